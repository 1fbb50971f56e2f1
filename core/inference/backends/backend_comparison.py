"""`check:A,B`: two evaluators side by side, and how far they are apart.

B positions, A actions.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.inference.interface import Evaluation, Evaluator
from variant_ai.core.inference.known_answers import softmax


@dataclass(frozen=True)
class Differences:
    """How far two evaluators were apart, over all positions so far."""

    positions: int = 0
    value: float = 0.0
    """Largest difference of a value, 0 to 2."""
    policy: float = 0.0
    """Largest difference of an action's probability, 0 to 1; the softmax is over all A actions."""
    value_mean: float = 0.0
    same_best: int = 0
    """Positions in which both give the same action the highest logit."""

    def sentence(self) -> str:
        """`over 1,600 positions: value at most 0.0012 apart ...`."""
        if not self.positions:
            return "nothing was evaluated"
        return (
            f"over {self.positions:,} positions: value at most {self.value:.2g} apart "
            f"({self.value_mean:.2g} on average), probability of an action at most "
            f"{self.policy:.2g}, same best action in {self.same_best / self.positions:.2%}"
        )


class CheckEvaluator(Evaluator):
    """Answers as its first evaluator does, and compares the second's answers with them."""

    name = "check"

    def __init__(self, first: Evaluator, second: Evaluator) -> None:
        """Takes both over. Raises ValueError where their shapes differ."""
        for what in ("planes_shape", "actions"):
            if getattr(first, what) != getattr(second, what):
                raise ValueError(
                    f"{first.name} and {second.name} cannot be compared: {what} "
                    f"{getattr(first, what)} and {getattr(second, what)}"
                )
        self.first, self.second = first, second
        self.planes_shape, self.actions, self.info = first.planes_shape, first.actions, first.info
        self.precision, self.threads = first.precision, first.threads
        self._lock = threading.Lock()
        self._differences = Differences()

    @property
    def differences(self) -> Differences:
        """Those so far; from any thread."""
        with self._lock:
            return self._differences

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        """Grows: what to tell the user once all is evaluated."""
        said = self.differences
        own = f"{self.describe()}: {said.sentence()}"
        return (*self.first.notes, *self.second.notes, *([own] if said.positions else []))

    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        """As the interface has it: one thread at a time."""
        mine, other = self.first.evaluate(planes), self.second.evaluate(planes)
        value = np.abs(mine.value - other.value)
        policy = np.abs(softmax(mine.policy) - softmax(other.policy))
        same = int((mine.policy.argmax(1) == other.policy.argmax(1)).sum())
        before = self._differences
        positions = before.positions + len(value)
        found = Differences(
            positions,
            max(before.value, float(value.max(initial=0))),
            max(before.policy, float(policy.max(initial=0))),
            (before.value_mean * before.positions + float(value.sum())) / max(positions, 1),
            before.same_best + same,
        )
        with self._lock:
            self._differences = found
        return mine

    def describe(self) -> str:
        return f"check of {self.first.describe()} against {self.second.describe()}"

    def close(self) -> None:
        self.first.close()
        self.second.close()
