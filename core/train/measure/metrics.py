"""The papers' metrics ([CrazyAra-preprint] table 10, [Xiangqi-thesis] table 4.14), from one row per
position, and their confidence intervals.

N positions, G games. Definitions:
- policy loss: mean of -log p(move played), p the softmax over all A actions; with the labels
  `visits` mean of -Σ π · log p, π the shares of a search's visits;
- policy accuracy: share of positions whose greatest logit is the move played (with the labels
  `visits`, the move visited most); top-5 likewise;
- value loss: mean of (z - v)^2, without the factor ½ of some papers;
- value accuracy sign: share of positions with z ≠ 0 whose v has the sign of z; v = 0 is wrong;
- combined loss: (policy loss + α · value loss) / (1 + α), the loss of the training divided by the sum of
  its weights. The papers' tables have (1 - α) · policy loss + α · value loss, which for their α = 0.01
  is lower by 0.0001 of the difference between the two losses.
z is the value label: the result, unless training uses other labels. A position whose policy must
not be learnt is left out of the policy metrics, one whose value must not be learnt out of the value
metrics. So the two means may be of different positions. The combined loss is computed from the
means, its interval from the positions that have both labels.

Positions of one game are similar (same players, same result), so an interval that took them as
independent would be too narrow. Here games are the independent units: a mean is a ratio of sums over
games, and its variance is that of the games' residuals (Cochran, Sampling Techniques, 3rd ed.,
section 6.3; cluster-robust).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from variant_ai.core.train.loop.loss import LossWeights, SoftLabels, losses

TOP = 5
Z95 = 1.959963984540054
"""Half-width of a 95 % interval in standard errors."""

Values = NDArray[np.float64]


def for_json(value: Any) -> Any:
    """Replace NaN and infinity by None, because JSON has neither, also within lists and mappings."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {name: for_json(part) for name, part in value.items()}
        case list() | tuple():
            return [for_json(part) for part in value]
    return value


@dataclass(frozen=True)
class Metrics:
    """Means over N positions, as far as they teach a policy or a value; a mean over nothing is NaN."""

    positions: int
    policy_loss: float
    policy_accuracy: float
    top5_accuracy: float
    value_loss: float
    value_accuracy_sign: float
    decided: int
    """Positions whose value label is not 0: those of games that were not drawn."""
    combined_loss: float

    @staticmethod
    def of(numbers: Mapping[str, Any]) -> Metrics:
        """The metrics among numbers by name; NaN for one that an older version did not have."""
        return Metrics(
            **{name: numbers.get(name, math.nan) for name in Metrics.__dataclass_fields__}
        )

    def as_dict(self) -> dict[str, float | int | None]:
        numbers: dict[str, float | int | None] = for_json(asdict(self))
        return numbers


@dataclass
class Sums:
    """Running sums of the metrics of batches, as they are kept in checkpoints."""

    positions: int = 0
    policies: int = 0
    """Positions that teach a policy."""
    values: int = 0
    """Positions that teach a value."""
    policy_loss: float = 0.0
    correct: int = 0
    top5: int = 0
    value_loss: float = 0.0
    sign_correct: int = 0
    decided: int = 0

    def mean(self, value_weight: float) -> Metrics:
        """The metrics; `value_weight` is α."""

        def share(total: float, count: int) -> float:
            return total / count if count else math.nan

        policy = share(self.policy_loss, self.policies)
        value = share(self.value_loss, self.values)
        return Metrics(
            positions=self.positions,
            policy_loss=policy,
            policy_accuracy=share(self.correct, self.policies),
            top5_accuracy=share(self.top5, self.policies),
            value_loss=value,
            value_accuracy_sign=share(self.sign_correct, self.decided),
            decided=self.decided,
            combined_loss=(policy + value_weight * value) / (1 + value_weight),
        )

    def add(self, scores: Scores) -> None:
        self.positions += len(scores.rank)
        policy, valued = scores.teaches_policy, scores.teaches_value
        self.policies += int(policy.sum())
        self.values += int(valued.sum())
        self.policy_loss -= float(scores.log_probability[policy].sum(dtype=np.float64))
        self.correct += int((scores.rank[policy] == 0).sum())
        self.top5 += int((scores.rank[policy] < TOP).sum())
        error = (scores.outcome - scores.value)[valued].astype(np.float64)
        self.value_loss += float((error * error).sum())
        decided = valued & (scores.outcome != 0)
        self.decided += int(decided.sum())
        right = np.sign(scores.value[decided]) == np.sign(scores.outcome[decided])
        self.sign_correct += int(right.sum())


@dataclass(frozen=True)
class Scores:
    """Scores of a net on each of N positions."""

    log_probability: NDArray[np.float32]
    """[N] of the move played, among all actions; with the labels `visits`, Σ π · log p."""
    rank: NDArray[np.int64]
    """[N] number of actions before the move played (or visited most) in the order of logits: 0 is a
    hit."""
    value: NDArray[np.float32]
    """[N] v, the net's value."""
    outcome: NDArray[np.float32]
    """[N] z, the value label; both from the mover's side."""
    policy_weight: NDArray[np.float32]
    """[N] weight of the policy in the loss: 1, or 0 if it must not be learnt."""
    value_weight: NDArray[np.float32]
    """[N] weight of the value likewise."""
    wdl: NDArray[np.float32] | None = None
    """[N, 3] probabilities of win, draw and loss, for a net that predicts them."""

    @property
    def teaches_policy(self) -> NDArray[np.bool_]:
        """[N] True if the position has a policy label."""
        return self.policy_weight > 0

    @property
    def teaches_value(self) -> NDArray[np.bool_]:
        """[N] True if the position has a value label."""
        return self.value_weight > 0

    def metrics(self, value_weight: float, where: NDArray[np.bool_] | None = None) -> Metrics:
        """Metrics of all positions, or of those marked True in `where`."""
        sums = Sums()
        sums.add(self if where is None else self.select(where))
        return sums.mean(value_weight)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name, without those that are None."""
        return {name: array for name, array in vars(self).items() if array is not None}

    def select(self, where: NDArray[np.bool_] | slice) -> Scores:
        """The scores of the positions marked True, or of those in a slice (as views)."""
        return Scores(**{name: array[where] for name, array in self.arrays().items()})

    @staticmethod
    def empty(positions: int, *, wdl: bool = False) -> Scores:
        """Zeros for N positions, to be filled by `put`.

        If the small arrays of each batch were kept instead, they would lie between large temporary
        ones, and the process would grow by megabytes a batch (measured).
        """
        return Scores(
            np.zeros(positions, np.float32),
            np.zeros(positions, np.int64),
            np.zeros(positions, np.float32),
            np.zeros(positions, np.float32),
            np.zeros(positions, np.float32),
            np.zeros(positions, np.float32),
            np.zeros((positions, 3), np.float32) if wdl else None,
        )

    def put(self, at: int, part: Scores) -> int:
        """Copy the scores of a batch to position `at`; return the position after it."""
        end = at + len(part.rank)
        for name, array in self.arrays().items():
            array[at:end] = getattr(part, name)
        return end


def rank_of(logits: Tensor, action: Tensor) -> Tensor:
    """Number of actions before `action` in the order of logits, int64 [B]; A if its logit is NaN.

    Equal logits are ordered by index, as in argmax: otherwise every move would be a hit for a net
    that gives all moves the same logit.
    """
    with torch.no_grad():
        played = logits.gather(1, action[:, None])
        lower = torch.arange(logits.shape[1], device=logits.device) < action[:, None]
        before = torch.where(lower, logits >= played, logits > played)
        # No logit is greater than a NaN, so it would count as a hit.
        return torch.where(played[:, 0].isnan(), logits.shape[1], before.sum(1))


def score(
    value: Tensor,
    logits: Tensor,
    action: Tensor,
    outcome: Tensor,
    wdl: Tensor | None = None,
    soft: SoftLabels | None = None,
    weights: LossWeights | None = None,
) -> Scores:
    """Scores of a batch; shapes as in `losses`. `wdl` [B, 3] are probabilities."""
    ones = LossWeights(torch.ones(len(value)), torch.ones(len(value)))
    with torch.no_grad():
        policy, _ = losses(value, logits, action, outcome, soft)
        return Scores(
            (-policy).cpu().numpy(),
            rank_of(logits, action).cpu().numpy(),
            value.float().cpu().numpy(),
            outcome.float().cpu().numpy(),
            (weights or ones).policy.cpu().numpy(),
            (weights or ones).value.cpu().numpy(),
            None if wdl is None else wdl.float().cpu().numpy(),
        )


# --- confidence intervals ------------------------------------------------------------------------


@dataclass(frozen=True)
class Interval:
    """A mean and its 95 % confidence interval; NaN if there is nothing to measure."""

    mean: float
    low: float
    high: float

    @property
    def certain(self) -> bool:
        """True if zero is outside the interval."""
        return self.low > 0 or self.high < 0


def interval(x: Values, w: Values, game: NDArray[np.int64]) -> Interval:
    """Σx / Σw over N positions with its interval; `game` [N] is the number of each position's game.

    With a single game the ends of the interval are NaN.
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


def _where(weight: NDArray[np.float32], x: Values | NDArray[np.bool_]) -> tuple[Values, Values]:
    """x and weight, both [N] and 0 at positions without a label."""
    taught = weight > 0
    return np.where(taught, x, 0.0), taught.astype(np.float64)


def _terms(scores: Scores, value_weight: float) -> Iterator[tuple[str, Values, Values]]:
    """Field of `Metrics`, x [N] and w [N], one after the other; the metric is Σx / Σw. `value_weight`
    is α."""
    policy, value = scores.policy_weight, scores.value_weight
    loss = -scores.log_probability.astype(np.float64)
    error = (scores.outcome - scores.value).astype(np.float64) ** 2
    decided = value * (scores.outcome != 0)
    right = np.sign(scores.value) == np.sign(scores.outcome)
    yield "policy_accuracy", *_where(policy, scores.rank == 0)
    yield "top5_accuracy", *_where(policy, scores.rank < TOP)
    yield "policy_loss", *_where(policy, loss)
    yield "value_accuracy_sign", *_where(decided, right)
    yield "value_loss", *_where(value, error)
    both = (loss + value_weight * error) / (1 + value_weight)
    yield "combined_loss", *_where(policy * value, both)


def intervals(scores: Scores, game: NDArray[np.int64], value_weight: float) -> dict[str, Interval]:
    """All metrics of a net with their intervals. `game` [N], `value_weight` is α."""
    return {name: interval(x, w, game) for name, x, w in _terms(scores, value_weight)}


def paired_differences(
    scores: Scores, reference: Scores, game: NDArray[np.int64], value_weight: float
) -> dict[str, Interval]:
    """All metrics of a net minus those of another on the same N positions, with intervals."""
    both = zip(_terms(scores, value_weight), _terms(reference, value_weight), strict=True)
    return {name: interval(x - theirs, w, game) for (name, x, w), (_, theirs, _) in both}
