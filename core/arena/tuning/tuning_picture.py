"""Picture of a tuning: trials and expected score over each setting, most important first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.arena.tuning.search_tuning import Plan, Range, Settings, TuningResult, Value
from variant_ai.core.arena.tuning.surrogate import Surrogate
from variant_ai.core.system.text_tables import counted
from variant_ai.core.train.pictures.canvas import (
    BLUE,
    GREY,
    VERMILION,
    Picture,
    new_figure,
    picture,
)

COLUMNS = 3
PROFILED = 41
"""Values of a setting in its curve."""


def draw(plan: Plan, outcome: TuningResult) -> Picture:
    """A panel for each setting, most important first. Needs a fitted surrogate."""
    shares = importances(plan, outcome)
    ranges = sorted(plan.ranges, key=lambda one: -shares[one.name])
    columns = min(COLUMNS, len(ranges))
    rows = math.ceil(len(ranges) / columns)
    figure = new_figure(3.6 * columns, 2.9 * rows)
    for number, one in enumerate(ranges, start=1):
        axes = figure.add_subplot(rows, columns, number)
        _panel(axes, plan, outcome, one)
        axes.set_title(f"{one.name} ({100 * shares[one.name]:.0f} %)", fontsize=9)
        if (number - 1) % columns == 0:
            axes.set_ylabel("score against present", fontsize=8)
        axes.tick_params(labelsize=8)
    return picture(
        figure,
        "trials",
        f"Search settings of {plan.variant}: {counted(len(outcome.trials), 'trial')}",
        "Dots are trials of a few games each. The line is the expected score with its standard "
        "deviation; the other settings are those of the winner, or else the present ones. The dashed "
        "line is the present setting. In brackets: share of the variance of the expected score that "
        "the setting explains alone.",
    )


def _panel(axes: Any, plan: Plan, outcome: TuningResult, one: Range) -> None:
    values, mean, deviation = profile(plan, outcome, one)
    tried = [trial.settings[one.name] for trial in outcome.trials]
    scores = [trial.tally.score for trial in outcome.trials]
    if one.choices:
        at = list(range(len(values)))
        dots = [at[values.index(value)] for value in tried]
        axes.errorbar(at, mean, yerr=deviation, fmt="s", color=BLUE, capsize=4, zorder=3)
        axes.set_xticks(at, [str(value) for value in values])
        axes.set_xlim(-0.6, len(values) - 0.4)
        if plan.present[one.name] in values:
            axes.axvline(values.index(plan.present[one.name]), color=VERMILION, ls="--", lw=1)
    else:
        dots = tried  # type: ignore[assignment]
        line = np.array(values, dtype=float)
        axes.plot(line, mean, color=BLUE, zorder=3)
        axes.fill_between(line, mean - deviation, mean + deviation, color=BLUE, alpha=0.2, lw=0)
        present = plan.present[one.name]
        if one.holds(present):
            axes.axvline(float(present), color=VERMILION, ls="--", lw=1)
    axes.scatter(dots, scores, s=12, color=GREY, alpha=0.7, lw=0)
    axes.axhline(0.5, color=GREY, lw=0.6)
    axes.set_ylim(0, 1)


def importances(plan: Plan, outcome: TuningResult) -> dict[str, float]:
    """Return the share of the variance of the expected score that each setting explains alone, over
    the values tried (first-order sensitivity; other settings averaged over the trials)."""
    assert outcome.surrogate is not None
    points = plan.points(outcome.trials)
    total = float(np.var(outcome.surrogate.predict(points)[0])) or 1.0
    found: dict[str, float] = {}
    for one, columns in _columns(plan):
        # by how often each was tried: the sampler hardly tries a bad choice again
        at, tried = np.unique(points[:, columns], axis=0, return_counts=True)
        means = [_average(outcome.surrogate, points, columns, value) for value in at]
        found[one.name] = float(np.var(np.repeat(means, tried))) / total
    return found


def profile(
    plan: Plan, outcome: TuningResult, one: Range
) -> tuple[list[Value], NDArray[np.float64], NDArray[np.float64]]:
    """Return values of a setting, with mean and standard deviation of the expected score there.

    The other settings are those of the winner; without a winner the present ones, or, if these are
    outside the ranges, those of the trial with the greatest expected score.
    """
    assert outcome.surrogate is not None
    base = outcome.winner or _base(plan, outcome)
    values: list[Value] = list(one.choices) or [
        float(v) for v in np.linspace(one.low, one.high, PROFILED)
    ]
    at = np.array([plan.point({**base, one.name: value}) for value in values])
    mean, deviation = outcome.surrogate.predict(at)
    return values, mean, deviation


def _base(plan: Plan, outcome: TuningResult) -> Settings:
    if plan.present_is_inside:
        return plan.present
    assert outcome.surrogate is not None
    points = plan.points(outcome.trials)
    return outcome.trials[int(np.argmax(outcome.surrogate.predict(points)[0]))].settings


def _columns(plan: Plan) -> Iterator[tuple[Range, list[int]]]:
    first = 0
    for one in plan.ranges:
        yield one, list(range(first, first + one.width))
        first += one.width


def _average(
    surrogate: Surrogate, points: NDArray[np.float64], columns: list[int], value: Any
) -> float:
    moved = points.copy()
    moved[:, columns] = value
    return float(surrogate.predict(moved)[0].mean())
