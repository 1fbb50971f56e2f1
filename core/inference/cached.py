"""A cache of evaluations: positions met again need no net.

It pays where trees are thrown away and their positions come back: the moves of a game analysed one
after the other, many games from the same opening. Within one search transpositions are merged
anyway. An entry of A actions takes 4 A bytes (18 kB for 4,500 actions).

B positions, A actions.
"""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.inference.interface import Evaluation, Evaluator


class CachedEvaluator(Evaluator):
    """Remembers what an evaluator said, the longest unused forgotten first."""

    def __init__(self, evaluator: Evaluator, *, memory_mb: float = 256) -> None:
        """Takes the evaluator over. `memory_mb` is kept to, in MB of 2**20 bytes."""
        self.evaluator = evaluator
        self.name, self.info, self.precision = evaluator.name, evaluator.info, evaluator.precision
        self.planes_shape, self.actions = evaluator.planes_shape, evaluator.actions
        self.threads, self.notes = evaluator.threads, evaluator.notes
        # Beside policy, value, win/draw/loss and plies left: the dictionary's entry and its key.
        self.capacity = max(0, int(memory_mb * 2**20) // (4 * (self.actions + 5) + 200))
        self.hits = self.misses = 0
        """Positions answered without and with the net."""
        self._slots: OrderedDict[int, int] = OrderedDict()
        # Pages of memory are taken from the system when they are first written.
        self._kept = Evaluation(
            np.empty(self.capacity, np.float32),
            np.empty((self.capacity, self.actions), np.float32),
            np.empty((self.capacity, 3), np.float32),
            np.empty(self.capacity, np.float32),
        )
        self._has_wdl = self._has_plies = False

    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        """Without keys nothing is remembered. One thread at a time, without the GIL."""
        return self.evaluator.evaluate(planes)

    def evaluate_keyed(self, keys: NDArray[np.uint64], planes: NDArray[np.float32]) -> Evaluation:
        """The evaluation of B positions, from the cache where their keys are known.

        `keys` [B]: equal keys must mean equal planes, so whatever the planes show (repetitions,
        move count) belongs into them. Positions of a batch with the same key are evaluated once.
        One thread at a time.
        """
        if self.capacity == 0:
            self.misses += len(keys)
            return self.evaluator.evaluate(planes)
        names = [int(key) for key in keys]
        missing: dict[int, int] = {}
        for row, name in enumerate(names):
            if name in self._slots:
                self._slots.move_to_end(name)
            else:
                missing.setdefault(name, row)
        self.misses += len(missing)
        self.hits += len(names) - len(missing)
        if len(missing) == len(names):
            said = self.evaluator.evaluate(planes)
            for name, row in missing.items():
                self._keep(name, said, row)
            return said
        # Taken out before anything is kept, which might forget them.
        known = [(row, self._slots[n]) for row, n in enumerate(names) if n in self._slots]
        answer = self._gather(known, len(names))
        if missing:
            rows = list(missing.values())
            said = self.evaluator.evaluate(np.ascontiguousarray(planes[rows]))
            place = {name: i for i, name in enumerate(missing)}
            for row, name in enumerate(names):
                if name in place:
                    _copy(said, place[name], answer, row)
            for name, i in place.items():
                self._keep(name, said, i)
        return answer

    def clear(self) -> None:
        """Forgets everything, e.g. before another net. Not during an evaluation."""
        self._slots.clear()

    def __len__(self) -> int:
        return len(self._slots)

    def describe(self) -> str:
        return f"{self.evaluator.describe()}, cache of {self.capacity:,} positions"

    def close(self) -> None:
        self.clear()
        self.evaluator.close()

    def _keep(self, name: int, said: Evaluation, row: int) -> None:
        if name in self._slots:
            return
        if len(self._slots) < self.capacity:
            slot = len(self._slots)
        else:
            _, slot = self._slots.popitem(last=False)
        self._slots[name] = slot
        self._has_wdl, self._has_plies = said.wdl is not None, said.plies_left is not None
        _copy(said, row, self._kept, slot)

    def _gather(self, known: list[tuple[int, int]], n: int) -> Evaluation:
        """An answer for n positions with the known rows filled in: pairs of row and slot."""
        answer = Evaluation(
            np.empty(n, np.float32),
            np.empty((n, self.actions), np.float32),
            np.empty((n, 3), np.float32) if self._has_wdl else None,
            np.empty(n, np.float32) if self._has_plies else None,
        )
        for row, slot in known:
            _copy(self._kept, slot, answer, row)
        return answer


def _copy(source: Evaluation, i: int, target: Evaluation, j: int) -> None:
    for a, b in zip(source, target, strict=True):
        if a is not None and b is not None:
            b[j] = a[i]
