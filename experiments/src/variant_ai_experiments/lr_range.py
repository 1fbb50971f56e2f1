"""The learning-rate range test (Smith 2018; paper 000, section 8): how fast can this net learn here?

A fresh net is trained for a few hundred steps while the learning rate grows from step to step by
the same factor. The loss first stays, then falls, and from some rate on it rises again: one cycle
may climb to a rate below that one.

The rate suggested is `MARGIN` of the one at which the smoothed loss is least. By then the net has
already suffered from rates that were too great, and a whole training keeps near its greatest rate
for much longer than the test does.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from variant_ai.core.errors import VariantAIError
from variant_ai.core.system.files import write_whole
from variant_ai.core.train.loop.trainer import Trainer

SMOOTHING = 0.95
"""Of the running mean by which the test ends; its bias towards the beginning is corrected."""
WINDOW = 1 / 20
"""Share of the steps, on either side, that the loss is smoothed over afterwards: the running mean
lags behind, by a factor of four in the rate over 150 steps."""
MARGIN = 1 / 3
HOPELESS = 1.2
"""The test ends where the smoothed loss is so many times the least one."""
WARM = 20
"""Steps before it may end: until then the mean says little."""


@dataclass(frozen=True)
class RangeTest:
    """What came of it: K steps."""

    rates: tuple[float, ...]
    """[K], growing."""
    losses: tuple[float, ...]
    """[K] of the batch of each step, as trained (policy + α · value)."""
    smoothed: tuple[float, ...]
    """[K] mean of the losses around each step."""
    steepest: float
    """Rate at which the smoothed loss falls fastest."""
    least: float
    """Rate at which it is least."""
    suggested: float
    """Greatest learning rate to train with, two digits."""
    diverged: bool
    """Whether the loss rose again; if not, the test ended too early to suggest much."""


def range_test(
    trainer: Trainer,
    *,
    low: float,
    high: float,
    steps: int,
    tell: Callable[[int, float, float], None] = lambda step, rate, loss: None,
) -> RangeTest:
    """Runs the test with a trainer's net and data, which is fit for no training afterwards.

    Momentum is the least of the schedule, which goes with its greatest rate. `tell` gets the step
    (from 1), its rate and the smoothed loss. Raises VariantAIError where the range is empty, or
    the loss is no number from the start.
    """
    if not 0 < low < high:
        raise VariantAIError(f"learning rates from {low:g} to {high:g} are no range")
    momentum = trainer.config.momentum[0]
    batches = trainer.train.batches()
    rates: list[float] = []
    losses: list[float] = []
    means: list[float] = []
    mean, diverged = 0.0, False
    for step in range(steps):
        rate = low * (high / low) ** (step / max(1, steps - 1))
        loss = trainer.step_at(batches, rate, momentum).item()
        if not math.isfinite(loss):
            diverged = True
            break
        mean = SMOOTHING * mean + (1 - SMOOTHING) * loss
        rates.append(rate)
        losses.append(loss)
        means.append(mean / (1 - SMOOTHING ** (step + 1)))
        tell(step + 1, rate, means[-1])
        if step >= WARM and means[-1] > HOPELESS * min(means[WARM:]):
            diverged = True
            break
    if len(rates) <= WARM:
        raise VariantAIError(
            f"the loss was no number after {len(rates)} steps, at a learning rate of {low:g} and "
            "little more; begin with a smaller one"
        )
    half = max(1, round(steps * WINDOW))
    smoothed = [_around(losses, k, half) for k in range(len(losses))]
    best = min(range(len(rates)), key=smoothed.__getitem__)
    inner = range(half, max(best, half + 1))
    last = len(rates) - 1
    steepest = min(inner, key=lambda k: smoothed[min(k + half, last)] - smoothed[k - half])
    return RangeTest(
        tuple(rates),
        tuple(losses),
        tuple(smoothed),
        rates[min(steepest, best)],
        rates[best],
        float(f"{MARGIN * rates[best]:.2g}"),
        diverged or best < last - half,
    )


def _around(losses: list[float], at: int, half: int) -> float:
    near = losses[max(0, at - half) : at + half + 1]
    return sum(near) / len(near)


def loss_limits(test: RangeTest) -> tuple[float, float]:
    """Of the axis of losses. The test ends where the loss explodes: that it rises is to be seen, not
    how far."""
    top = min(1.2 * test.smoothed[0], 1.03 * max(test.smoothed))
    low = min(*test.smoothed, *test.losses[WARM:])
    return low - 0.05 * (top - low), top


def draw_range(test: RangeTest, path: Path, title: str) -> None:
    """The test as a PNG: loss over the learning rate, and the rate suggested."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.plot(test.rates, test.losses, color="#0b5fa5", linewidth=0.7, alpha=0.35, label="batch")
    axes.plot(test.rates, test.smoothed, color="#0b5fa5", linewidth=1.8, label="mean around it")
    axes.set_ylim(*loss_limits(test))
    for rate, label, colour in (
        (test.steepest, "falls fastest", "#777777"),
        (test.least, "least loss", "#777777"),
        (test.suggested, "suggested", "#d1600a"),
    ):
        axes.axvline(rate, color=colour, linewidth=1.2, linestyle="--")
        axes.annotate(
            f"{label}\n{rate:.2g}",
            (rate, 0.98),
            xycoords=("data", "axes fraction"),
            xytext=(3, 0),
            textcoords="offset points",
            va="top",
            fontsize=8,
            color=colour,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 1},
        )
    axes.set_xscale("log")
    axes.set_xlabel("learning rate")
    axes.set_ylabel("loss")
    axes.set_title(title, fontsize=11)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower left", framealpha=0.8, edgecolor="none", fontsize=9)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=120)
    write_whole(path, buffer.getvalue())
