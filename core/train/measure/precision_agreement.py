"""How well a net in other numbers (int8, fp16, bf16) agrees with itself in fp32, on real positions.

N positions, A actions. Probabilities are over the legal moves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.encoding import Encoder
from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.rules.interface import Rules
from variant_ai.core.train.loop.position_source import Samples
from variant_ai.core.train.measure.frequency_baseline import legal_actions
from variant_ai.core.train.measure.metric_titles import TITLES

DECIDED = 0.05
"""Least difference of the probabilities of a net's first two moves in a decided position."""
MOST_LOST, LEAST_KEPT = 0.005, 0.98
"""An agreement is good where policy accuracy falls by at most the first and the share of decided
positions with the same first move is at least the second."""


class Positions(Protocol):
    """What positions are taken from; `core.data.sample.sampler.Sampler` is one."""

    def batch(self, step: int) -> Samples: ...


@dataclass(frozen=True)
class Sample:
    """Positions that were copied out of a sampler, and what is legal there."""

    planes: NDArray[np.float32]
    """[B, C, H, W]."""
    action: NDArray[np.int64]
    """[B] the move played."""
    legal: list[NDArray[np.int64]]
    """Of B, actions of the legal moves."""


@dataclass(frozen=True)
class Agreement:
    """What a net in other numbers does beside the fp32 one."""

    positions: int
    accuracy: float
    """Share of positions in which the highest logit is the move played."""
    accuracy_fp32: float
    same_first: float
    """Share of positions with the same first legal move."""
    decided: int
    """Positions in which the fp32 net's first two moves differ by over 0.05."""
    same_first_decided: float
    """The same share among those; 1 where there is none."""
    value_mean: float
    """Mean difference of the value, 0 to 2."""
    value_most: float
    policy_mean: float
    """Mean difference of the probabilities of a position: half the sum, 0 to 1."""

    @property
    def lost(self) -> float:
        """Policy accuracy lost, of 1; below 0 where the other net is better by luck."""
        return self.accuracy_fp32 - self.accuracy

    @property
    def good(self) -> bool:
        return self.lost <= MOST_LOST and self.same_first_decided >= LEAST_KEPT

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "lost": self.lost, "good": self.good}

    def lines(self) -> list[tuple[str, str]]:
        """Names and values for people."""
        return [
            ("positions", f"{self.positions:,}"),
            (TITLES["policy_accuracy"], f"{self.accuracy:.2%} (fp32 {self.accuracy_fp32:.2%})"),
            ("same first move", f"{self.same_first:.2%}"),
            (
                "same first move where decided",
                f"{self.same_first_decided:.2%} of {self.decided:,} positions whose first two "
                f"moves differ by over {DECIDED}",
            ),
            (
                "value difference",
                f"{self.value_mean:.4f} on average, at most {self.value_most:.3f}",
            ),
            ("policy difference", f"{self.policy_mean:.4f} on average"),
        ]


def take(
    source: Positions, encoder: Encoder, rules: Rules, positions: int, first: int = 0
) -> list[Sample]:
    """At least `positions` random positions of a source, by its batches from step `first` on."""
    taken: list[Sample] = []
    count = 0
    while count < positions:
        batch = source.batch(first + len(taken))
        taken.append(
            Sample(
                batch.planes.copy(),
                batch.action.copy(),
                legal_actions(rules, encoder, batch.positions),
            )
        )
        count += len(batch.action)
    return taken


def agreement(
    reference: Evaluator,
    other: Evaluator,
    samples: Sequence[Sample],
    advance: Callable[[int], None] = lambda n: None,
) -> Agreement:
    """Runs both on the same positions; `advance` is told how many were done."""
    hits = hits_reference = same = decided = same_decided = total = 0
    value_sum = value_most = policy_sum = 0.0
    for sample in samples:
        expected, said = reference.evaluate(sample.planes), other.evaluate(sample.planes)
        total += len(sample.action)
        hits += int((said.policy.argmax(1) == sample.action).sum())
        hits_reference += int((expected.policy.argmax(1) == sample.action).sum())
        value = np.abs(said.value - expected.value)
        value_sum += float(value.sum())
        value_most = max(value_most, float(value.max()))
        for i, legal in enumerate(sample.legal):
            mine, theirs = (
                probabilities(expected.policy[i, legal]),
                probabilities(said.policy[i, legal]),
            )
            agree = int(mine.argmax() == theirs.argmax())
            same += agree
            policy_sum += float(np.abs(mine - theirs).sum()) / 2
            if len(mine) > 1:
                second, best = np.partition(mine, -2)[-2:]
                if best - second > DECIDED:
                    decided += 1
                    same_decided += agree
        advance(len(sample.action))
    return Agreement(
        total,
        hits / total,
        hits_reference / total,
        same / total,
        decided,
        same_decided / decided if decided else 1.0,
        value_sum / total,
        value_most,
        policy_sum / total,
    )


def probabilities(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """Softmax over the legal moves of one position, [moves] -> [moves]."""
    shares = np.exp(logits - logits.max())
    result: NDArray[np.float32] = shares / shares.sum()
    return result
