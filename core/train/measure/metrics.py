"""The papers' metrics (paper 000, table 10; thesis table 4.14), from one row per position.

N positions. Definitions:
- policy loss: mean of -log p(move played), p the softmax over all A actions; with the labels
  `visits` mean of -Σ π · log p, π the shares of a search's visits;
- policy accuracy: share of positions whose greatest logit is the move played, with the labels
  `visits` the move visited most; top-5 likewise;
- value loss: mean of (z - v)^2, without the ½ some write;
- value accuracy sign: share of decided games' positions whose v has the sign of z; draws are left
  out, and v = 0 counts as wrong;
- combined loss: (1 - α) · policy loss + α · value loss: this is how the papers' tables add up.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

TOP = 5


@dataclass(frozen=True)
class Metrics:
    """Means over N positions; a mean over nothing is NaN."""

    positions: int
    policy_loss: float
    policy_accuracy: float
    top5_accuracy: float
    value_loss: float
    value_accuracy_sign: float
    decided: int
    """Positions of games that were not drawn."""
    combined_loss: float

    def as_dict(self) -> dict[str, float | int | None]:
        """For JSON: what is no number, or infinite, becomes None."""
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in asdict(self).items()
        }


@dataclass
class Sums:
    """Running sums of the metrics of batches; kept in checkpoints as they are."""

    positions: int = 0
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

        policy = share(self.policy_loss, self.positions)
        value = share(self.value_loss, self.positions)
        return Metrics(
            positions=self.positions,
            policy_loss=policy,
            policy_accuracy=share(self.correct, self.positions),
            top5_accuracy=share(self.top5, self.positions),
            value_loss=value,
            value_accuracy_sign=share(self.sign_correct, self.decided),
            decided=self.decided,
            combined_loss=(1 - value_weight) * policy + value_weight * value,
        )

    def add(self, scores: Scores) -> None:
        self.positions += len(scores.rank)
        self.policy_loss -= float(scores.log_probability.sum(dtype=np.float64))
        self.correct += int((scores.rank == 0).sum())
        self.top5 += int((scores.rank < TOP).sum())
        error = (scores.outcome - scores.value).astype(np.float64)
        self.value_loss += float((error * error).sum())
        decided = scores.outcome != 0
        self.decided += int(decided.sum())
        right = np.sign(scores.value[decided]) == np.sign(scores.outcome[decided])
        self.sign_correct += int(right.sum())


@dataclass(frozen=True)
class Scores:
    """How a net did on each of N positions."""

    log_probability: NDArray[np.float32]
    """[N] of the move played, among all actions; with the labels `visits`, Σ π · log p."""
    rank: NDArray[np.int64]
    """[N] how many actions come before the move played (or visited most) by their logits: 0 is a
    hit."""
    value: NDArray[np.float32]
    """[N] v, the net's value."""
    outcome: NDArray[np.float32]
    """[N] z, the game's result; both from the mover's side."""
    wdl: NDArray[np.float32] | None = None
    """[N, 3] probabilities of win, draw and loss, of a net that tells them."""

    def metrics(self, value_weight: float, where: NDArray[np.bool_] | None = None) -> Metrics:
        """Metrics of all positions, or of those marked True in `where`."""
        sums = Sums()
        sums.add(self if where is None else self.select(where))
        return sums.mean(value_weight)

    def select(self, where: NDArray[np.bool_]) -> Scores:
        return self._of(where)

    def part(self, first: int, end: int) -> Scores:
        """Views of positions `first` to `end - 1`."""
        return self._of(slice(first, end))

    def _of(self, where: NDArray[np.bool_] | slice) -> Scores:
        return Scores(
            self.log_probability[where],
            self.rank[where],
            self.value[where],
            self.outcome[where],
            None if self.wdl is None else self.wdl[where],
        )

    @staticmethod
    def room(positions: int, *, wdl: bool = False) -> Scores:
        """Room for N positions, to be filled by `put`.

        Kept part by part, the small arrays of each batch would lie between the large ones that
        come and go, and the process would grow by megabytes a batch (measured).
        """
        return Scores(
            np.zeros(positions, np.float32),
            np.zeros(positions, np.int64),
            np.zeros(positions, np.float32),
            np.zeros(positions, np.float32),
            np.zeros((positions, 3), np.float32) if wdl else None,
        )

    def put(self, at: int, part: Scores) -> int:
        """Copies the scores of a batch to position `at`; returns the position behind it."""
        end = at + len(part.rank)
        self.log_probability[at:end] = part.log_probability
        self.rank[at:end] = part.rank
        self.value[at:end] = part.value
        self.outcome[at:end] = part.outcome
        if self.wdl is not None and part.wdl is not None:
            self.wdl[at:end] = part.wdl
        return end


class Soft(NamedTuple):
    """Labels of a policy that are more than one move: π of a search (paper 000, equation 1)."""

    choices: Tensor
    """[B, K] int64 actions."""
    shares: Tensor
    """[B, K], each row adding up to 1; a choice of share 0 only fills up its row."""


def losses(
    value: Tensor, logits: Tensor, action: Tensor, outcome: Tensor, soft: Soft | None = None
) -> tuple[Tensor, Tensor]:
    """Policy loss -log p(move played), or -Σ π · log p where `soft` gives π, and value loss
    (z - v)^2 of each position, both [B].

    value [B], logits [B, A], action int64 [B], outcome [B]. The training loss is the mean of
    policy + α · value (paper 000, equation 1); its term c ‖θ‖² is the optimiser's weight decay.
    """
    if soft is None:
        policy = functional.cross_entropy(logits.float(), action, reduction="none")
    else:
        known = functional.log_softmax(logits.float(), 1).gather(1, soft.choices)
        policy = -(soft.shares * known).sum(1)
    return policy, (outcome - value.float()).square()


def rank_of(logits: Tensor, action: Tensor) -> Tensor:
    """How many actions come before `action`, int64 [B]; A where its logit is NaN.

    Before it are greater logits, and equal ones of lower index, as argmax has it: of a net that says
    the same of every move, each would be a hit otherwise.
    """
    with torch.no_grad():
        played = logits.gather(1, action[:, None])
        lower = torch.arange(logits.shape[1], device=logits.device) < action[:, None]
        before = torch.where(lower, logits >= played, logits > played)
        # A NaN is greater than nothing and would count as a hit.
        return torch.where(played[:, 0].isnan(), logits.shape[1], before.sum(1))


def score(
    value: Tensor,
    logits: Tensor,
    action: Tensor,
    outcome: Tensor,
    wdl: Tensor | None = None,
    soft: Soft | None = None,
) -> Scores:
    """Scores of a batch; shapes as in `losses`. `wdl` [B, 3] are probabilities."""
    with torch.no_grad():
        policy, _ = losses(value, logits, action, outcome, soft)
        return Scores(
            (-policy).cpu().numpy(),
            rank_of(logits, action).cpu().numpy(),
            value.float().cpu().numpy(),
            outcome.float().cpu().numpy(),
            None if wdl is None else wdl.float().cpu().numpy(),
        )
