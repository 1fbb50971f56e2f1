"""Several evaluators as one: a batch is shared out and its parts are computed at the same time.

Two sessions of one thread each can beat one session of two, whose threads wait for each other at
every layer; and a search may use several GPUs.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.inference.interface import Evaluation, Evaluator


class ParallelEvaluator(Evaluator):
    """Evaluators of the same net, each in a thread of its own."""

    def __init__(self, evaluators: Sequence[Evaluator]) -> None:
        """Takes the evaluators over: `close` closes them. Raises ValueError where they differ."""
        first = evaluators[0]
        for other in evaluators[1:]:
            if (other.planes_shape, other.actions) != (first.planes_shape, first.actions):
                raise ValueError("evaluators of one batch take and give the same shapes")
        self.evaluators = tuple(evaluators)
        self.name, self.info, self.precision = first.name, first.info, first.precision
        self.planes_shape, self.actions = first.planes_shape, first.actions
        self.threads = sum(e.threads or 1 for e in evaluators)
        self.notes = tuple(dict.fromkeys(note for e in evaluators for note in e.notes))
        # The calling thread computes the first part itself.
        self._pool = ThreadPoolExecutor(len(evaluators) - 1 or 1, "evaluator")

    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        """As the interface has it: one thread at a time; the threads within are its own."""
        parts = [part for part in np.array_split(planes, len(self.evaluators)) if len(part)]
        others = [
            self._pool.submit(evaluator.evaluate, part)
            for evaluator, part in zip(self.evaluators[1:], parts[1:], strict=False)
        ]
        said = [self.evaluators[0].evaluate(parts[0] if parts else planes)]
        said += [other.result() for other in others]
        return join(said)

    def evaluate_in_pieces(self, piece: int | None) -> None:
        for evaluator in self.evaluators:
            share = None if piece is None else -(-piece // len(self.evaluators))
            evaluator.evaluate_in_pieces(share)

    def describe(self) -> str:
        return f"{len(self.evaluators)} x ({self.evaluators[0].describe()})"

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        for evaluator in self.evaluators:
            evaluator.close()


def join(parts: Sequence[Evaluation]) -> Evaluation:
    """Evaluations of consecutive positions as one."""
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
