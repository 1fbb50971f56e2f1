"""`variant-ai lr-find`: the learning-rate range test ([Range-test]; [CrazyAra-preprint] section 8).

A new net is trained for a few hundred steps while the learning rate grows from step to step by the
same factor. The loss first stays, then falls, and from some rate on it rises again: the maximum of
one cycle should be below that rate.

The suggested rate is `MARGIN` of the one with the lowest smoothed loss. At that point the net has
already suffered from rates that were too high, and a whole training stays near its maximum rate
much longer than the test does.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import note, print_facts, print_json, progress
from variant_ai.cli.common.options import (
    FiniteRange,
    examples,
    json_option,
    replace_option,
    require_new,
)
from variant_ai.cli.common.training_options import (
    let_threads_sleep,
    make_request,
    note_sample,
    training_command,
)
from variant_ai.core.errors import VariantAIError
from variant_ai.core.system.text_tables import counted

if TYPE_CHECKING:
    from variant_ai.core.train.loop.trainer import Trainer

SMOOTHING = 0.95
"""Factor of the running mean that ends the test; its bias towards the beginning is corrected."""
WINDOW = 1 / 20
"""Share of the steps, on either side, over which the loss is smoothed afterwards. The running mean
lags behind, by a factor of four in the rate over 150 steps."""
MARGIN = 1 / 3
HOPELESS = 1.2
"""The test ends when the smoothed loss is this many times the lowest one."""
WARM = 20
"""Steps before it may end: until then the mean says little."""


@training_command(
    without=("epochs", "steps", "minutes", "lr_max", "lr_min", "warmup", "spike", "ema", "trainer"),
    epilog=examples(
        "variant-ai lr-find -V NAME --data games.store",
        "variant-ai lr-find -V NAME --data games.store --blocks 5 --channels 64 --batch 256",
        "# for fine-tuning a net",
        "variant-ai lr-find -V NAME --data games.store --from runs/mine --lr-to 1",
    ),
)
@click.option(
    "--lr-from",
    "low",
    type=FiniteRange(0, min_open=True),
    default=1e-4,
    help="Learning rate of the first step.",
)
@click.option(
    "--lr-to",
    "high",
    type=FiniteRange(0, min_open=True),
    default=10.0,
    help="Learning rate of the last step, unless the loss rises earlier.",
)
@click.option("--steps", type=click.IntRange(min=40), default=200, help="Number of steps.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("lr-find.png"),
    help="Picture to write.",
)
@replace_option
@json_option
def command(
    low: float,
    high: float,
    steps: int,
    output: Path,
    replace: bool,
    as_json: bool,
    given: dict[str, Any],
    stores: tuple[str, ...],
    **options: Any,
) -> None:
    """Find the largest useful learning rate by a short training at increasing rates.

    The picture shows the loss over the rate. The suggested rate is for --lr of `train`, with the
    same net, data and batch. Nothing else is kept.
    """
    let_threads_sleep()
    from variant_ai.core.train.loop.trainer import Trainer
    from variant_ai.core.train.run.plan import prepare

    if low >= high:
        raise click.UsageError(f"--lr-from {low:g} is not below --lr-to {high:g}")
    require_new(output, replace)
    request, rules = make_request({**given, "steps": steps}, stores=stores, **options)
    prepared = prepare(request, rules=rules)
    config = prepared.config
    note_sample(stores, config.variant)
    trainer = Trainer(config, prepared.train, None, Path(), tensorboard=False)
    trainer.load_initial_weights()
    note(
        f"{config.net.title}, batches of {config.batch} on {config.device} in {config.precision}: "
        f"{counted(steps, 'step')} from {low:g} to {high:g}"
    )
    with progress() as bar:
        task = bar.add_task("steps", total=steps)

        def on_step(step: int, rate: float, loss: float) -> None:
            bar.update(task, completed=step, note=f"rate {rate:.2g}, loss {loss:.3f}")

        test = range_test(trainer, low=low, high=high, steps=steps, on_step=on_step)
    draw_range(test, output, f"{config.variant}, {config.net.title}, batch {config.batch}")
    if as_json:
        print_json({**asdict(test), "batch": config.batch, "picture": output})
        return
    print_facts(
        [
            ("suggested", f"{test.suggested:g}  (variant-ai train --lr {test.suggested:g})"),
            ("lowest loss", f"at {test.least:.2g}"),
            ("falls fastest", f"at {test.steepest:.2g}"),
            ("by default", f"{config.lr_max:g} at batch {config.batch}"),
            ("picture", output),
        ]
    )
    if not test.diverged:
        note("The loss has not risen again: try a higher --lr-to.")


@dataclass(frozen=True)
class RangeTest:
    """Result of a range test of K steps."""

    rates: tuple[float, ...]
    """[K], increasing."""
    losses: tuple[float, ...]
    """[K] loss of each step's batch, as trained (policy + α · value)."""
    smoothed: tuple[float, ...]
    """[K] mean of the losses around each step."""
    steepest: float
    """Rate at which the smoothed loss falls fastest."""
    least: float
    """Rate with the lowest smoothed loss."""
    suggested: float
    """Maximum learning rate to train with, two digits."""
    diverged: bool
    """True if the loss rose again; if not, the test ended too early to suggest much."""


def range_test(
    trainer: Trainer,
    *,
    low: float,
    high: float,
    steps: int,
    on_step: Callable[[int, float, float], None] = lambda step, rate, loss: None,
) -> RangeTest:
    """Run the test with a trainer's net and data; the trainer cannot be used for training afterwards.

    Momentum is the minimum of the schedule, which belongs to its maximum rate. `on_step` gets the
    step (from 1), its rate and the smoothed loss. Raises VariantAIError if the range is empty, or
    if the loss is not a number from the start.
    """
    if not 0 < low < high:
        raise VariantAIError(f"learning rates from {low:g} to {high:g}: the range is empty")
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
        on_step(step + 1, rate, means[-1])
        if step >= WARM and means[-1] > HOPELESS * min(means[WARM:]):
            diverged = True
            break
    if len(rates) <= WARM:
        raise VariantAIError(
            f"the loss was not a number after {counted(len(rates), 'step')}, at learning rates from {low:g} "
            "on; begin with a lower rate"
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
    """Return the limits of the loss axis. The loss explodes at the end of the test: the picture
    shows that it rises, not how far."""
    top = min(1.2 * test.smoothed[0], 1.03 * max(test.smoothed))
    low = min(*test.smoothed, *test.losses[WARM:])
    return low - 0.05 * (top - low), top


def draw_range(test: RangeTest, path: Path, title: str) -> None:
    """Write the test as a PNG: loss over the learning rate, and the suggested rate."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from variant_ai.core.system.files import write_whole

    figure = Figure(figsize=(8, 5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.plot(test.rates, test.losses, color="#0b5fa5", linewidth=0.7, alpha=0.35, label="batch")
    axes.plot(test.rates, test.smoothed, color="#0b5fa5", linewidth=1.8, label="mean around it")
    axes.set_ylim(*loss_limits(test))
    for rate, label, colour in (
        (test.steepest, "falls fastest", "#777777"),
        (test.least, "lowest loss", "#777777"),
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
