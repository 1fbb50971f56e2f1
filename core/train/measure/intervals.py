"""How sure a measured difference is: means and paired differences with confidence intervals.

Positions of one game are alike (same players, same result), so an interval that took them as
independent would be too narrow. The unit here is the game: the mean is a ratio of sums over games,
and its variance that of the games' residuals (Cochran, Sampling Techniques, 3rd ed., section 6.3;
cluster-robust). N positions, G games.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.train.measure.metrics import TOP, Scores

Z95 = 1.959963984540054
"""Half-width of a 95 % interval in standard errors."""

Values = NDArray[np.float64]
Measure = Callable[[Scores, float], tuple[Values, Values]]
"""(scores, α) -> x [N], w [N]: the metric is Σx / Σw."""


@dataclass(frozen=True)
class Interval:
    """A mean and its 95 % confidence interval; NaN where there is nothing to measure."""

    mean: float
    low: float
    high: float

    @property
    def certain(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low > 0 or self.high < 0

    def as_dict(self) -> dict[str, float | None]:
        """For JSON: what is no number, or infinite, becomes None."""
        return {k: v if math.isfinite(v) else None for k, v in asdict(self).items()}


def interval(x: Values, w: Values, game: NDArray[np.int64]) -> Interval:
    """Σx / Σw over N positions with its interval; `game` [N] says which belong together.

    With one game alone the mean is known and its interval is not (NaN).
    """
    _, number = np.unique(game, return_inverse=True)
    games = int(number.max()) + 1 if len(number) else 0
    weight = np.bincount(number, w, games)
    games = int((weight > 0).sum())
    total = float(weight.sum())
    if total == 0:
        return Interval(math.nan, math.nan, math.nan)
    mean = float(x.sum()) / total
    if games < 2:
        return Interval(mean, math.nan, math.nan)
    residual = np.bincount(number, x - mean * w, len(weight))
    error = math.sqrt(games / (games - 1) * float((residual**2).sum())) / total
    return Interval(mean, mean - Z95 * error, mean + Z95 * error)


def _ones(scores: Scores) -> Values:
    return np.ones(len(scores.rank))


def _policy_loss(scores: Scores, _: float) -> tuple[Values, Values]:
    return -scores.log_probability.astype(np.float64), _ones(scores)


def _policy_accuracy(scores: Scores, _: float) -> tuple[Values, Values]:
    return (scores.rank == 0).astype(np.float64), _ones(scores)


def _top5_accuracy(scores: Scores, _: float) -> tuple[Values, Values]:
    return (scores.rank < TOP).astype(np.float64), _ones(scores)


def _value_loss(scores: Scores, _: float) -> tuple[Values, Values]:
    return (scores.outcome - scores.value).astype(np.float64) ** 2, _ones(scores)


def _value_accuracy_sign(scores: Scores, _: float) -> tuple[Values, Values]:
    decided = scores.outcome != 0
    right = decided & (np.sign(scores.value) == np.sign(scores.outcome))
    return right.astype(np.float64), decided.astype(np.float64)


def _combined_loss(scores: Scores, value_weight: float) -> tuple[Values, Values]:
    policy, w = _policy_loss(scores, value_weight)
    return (1 - value_weight) * policy + value_weight * _value_loss(scores, value_weight)[0], w


MEASURES: dict[str, Measure] = {
    "policy_accuracy": _policy_accuracy,
    "top5_accuracy": _top5_accuracy,
    "policy_loss": _policy_loss,
    "value_accuracy_sign": _value_accuracy_sign,
    "value_loss": _value_loss,
    "combined_loss": _combined_loss,
}
"""The metrics of `Metrics`, by their names there."""


def intervals(scores: Scores, game: NDArray[np.int64], value_weight: float) -> dict[str, Interval]:
    """Every metric of a net with its interval. `game` [N], `value_weight` is α."""
    return {
        name: interval(*measure(scores, value_weight), game) for name, measure in MEASURES.items()
    }


def paired_differences(
    scores: Scores, reference: Scores, game: NDArray[np.int64], value_weight: float
) -> dict[str, Interval]:
    """Every metric of a net less that of another on the same N positions, with intervals."""
    differences = {}
    for name, measure in MEASURES.items():
        x, w = measure(scores, value_weight)
        differences[name] = interval(x - measure(reference, value_weight)[0], w, game)
    return differences
