"""Evaluators made of others: several that share each batch, and two that are compared.

B positions, A actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.inference.interface import Evaluation, Evaluator, softmax
from variant_ai.core.system.text_tables import counted


class _Composite(Evaluator):
    """Evaluators of equal shapes as one, which is like the first and owns them: `close` closes them."""

    def __init__(self, evaluators: Sequence[Evaluator]) -> None:
        first = evaluators[0]
        shape = (first.planes_shape, first.actions)
        for other in evaluators[1:]:
            if (other.planes_shape, other.actions) != shape:
                raise ValueError(
                    f"{first.name} and {other.name} cannot evaluate the same positions: planes and "
                    f"actions are {shape} and {(other.planes_shape, other.actions)}"
                )
        self.evaluators = tuple(evaluators)
        self.planes_shape, self.actions = shape
        self.info, self.precision, self.threads = first.info, first.precision, first.threads
        self.ranks_moves, self.piece_gains = first.ranks_moves, first.piece_gains

    def close(self) -> None:
        for evaluator in self.evaluators:
            evaluator.close()


class ParallelEvaluator(_Composite):
    """Evaluators of the same net, each in its own thread; every batch is divided among them.

    Two sessions with one thread each can be faster than one session with two, whose threads wait
    for each other at every layer. A search may also use several GPUs this way.
    """

    def __init__(self, evaluators: Sequence[Evaluator]) -> None:
        """Take ownership of the evaluators. Raises ValueError if their shapes differ."""
        super().__init__(evaluators)
        self.name = evaluators[0].name
        self.threads = sum(e.threads or 1 for e in evaluators)
        self.notes = tuple(dict.fromkeys(note for e in evaluators for note in e.notes))
        # The calling thread computes the first part itself.
        self._pool = ThreadPoolExecutor(len(evaluators) - 1 or 1, "evaluator")

    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        parts = [part for part in np.array_split(planes, len(self.evaluators)) if len(part)]
        others = [
            self._pool.submit(evaluator.evaluate, part)
            for evaluator, part in zip(self.evaluators[1:], parts[1:], strict=False)
        ]
        found = [self.evaluators[0].evaluate(parts[0] if parts else planes)]
        found += [other.result() for other in others]
        return join(found)

    def evaluate_in_pieces(self, piece: int | None) -> None:
        for evaluator in self.evaluators:
            share = None if piece is None else -(-piece // len(self.evaluators))
            evaluator.evaluate_in_pieces(share)

    def describe(self) -> str:
        return f"{len(self.evaluators)} x ({self.evaluators[0].describe()})"

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        super().close()


def join(parts: Sequence[Evaluation]) -> Evaluation:
    """Return evaluations of consecutive positions as one."""
    if len(parts) == 1:
        return parts[0]
    wdl = [part.wdl for part in parts if part.wdl is not None]
    plies = [part.plies_left for part in parts if part.plies_left is not None]
    return Evaluation(
        np.concatenate([part.value for part in parts]),
        np.concatenate([part.policy for part in parts]),
        np.concatenate(wdl) if len(wdl) == len(parts) else None,
        np.concatenate(plies) if len(plies) == len(parts) else None,
    )


@dataclass(frozen=True)
class Differences:
    """Differences between two evaluators, over all positions so far."""

    positions: int = 0
    value: float = 0.0
    """Largest difference of a value, 0 to 2."""
    policy: float = 0.0
    """Largest difference of an action's probability, 0 to 1; the softmax is over all A actions."""
    value_mean: float = 0.0
    same_best: int = 0
    """Positions in which both give the same action the highest logit."""

    def sentence(self) -> str:
        """Return `over 1,600 positions: value at most 0.0012 apart ...`."""
        if not self.positions:
            return "nothing was evaluated"
        return (
            f"over {counted(self.positions, 'position')}: value at most {self.value:.2g} apart "
            f"({self.value_mean:.2g} on average), probability of an action at most "
            f"{self.policy:.2g}, same best action in {self.same_best / self.positions:.2%}"
        )


class CheckEvaluator(_Composite):
    """`check:A,B`: returns the first evaluator's answers and compares the second's with them."""

    name = "check"

    def __init__(self, first: Evaluator, second: Evaluator) -> None:
        """Take ownership of both. Raises ValueError if their shapes differ."""
        super().__init__((first, second))
        self.first, self.second = first, second
        self.differences = Differences()
        """Differences so far, replaced as a whole; from any thread."""

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        """Sentences for the user, with the result of the comparison so far."""
        found = self.differences
        own = f"{self.describe()}: {found.sentence()}"
        return (*self.first.notes, *self.second.notes, *([own] if found.positions else []))

    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        mine, other = self.first.evaluate(planes), self.second.evaluate(planes)
        value = np.abs(mine.value - other.value)
        policy = np.abs(softmax(mine.policy) - softmax(other.policy))
        same = int((mine.policy.argmax(1) == other.policy.argmax(1)).sum())
        before = self.differences
        positions = before.positions + len(value)
        self.differences = Differences(
            positions,
            max(before.value, float(value.max(initial=0))),
            max(before.policy, float(policy.max(initial=0))),
            (before.value_mean * before.positions + float(value.sum())) / max(positions, 1),
            before.same_best + same,
        )
        return mine

    def describe(self) -> str:
        return f"check of {self.first.describe()} against {self.second.describe()}"
