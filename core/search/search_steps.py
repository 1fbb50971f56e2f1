"""Steps of a search: batches of leaves are filled, evaluated and backed up.

`NetSteps` sends batches to the threads of a `Pipeline`: while the net evaluates one, the tree thread
fills the next. `UniformSteps` needs no net, and searches in slices of compiled code.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from functools import partial

from variant_ai.core.encoding.encoder import Encoder
from variant_ai.core.errors import DataError
from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.search.pipeline import Job, Pipeline, check_evaluation
from variant_ai.core.search.report import Phases
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.search.tree.descent import FULL, STUCK
from variant_ai.core.search.tree.game_tree import Tree
from variant_ai.core.search.tree.leaf_batch import ENOUGH, LeafBatch, batch_for, leaf_planes

SLICE_SECONDS = 0.004
"""Longest time that the tree thread works without checking for `stop` and the deadline."""
LONGEST_SLICE = 1 << 16
"""Visits."""


@dataclass
class PendingBatch:
    """Batch that is being evaluated."""

    batch: LeafBatch
    rows: int
    job: Job


class NetSteps:
    """Steps with a net. All methods belong to the tree thread; `lock` is held while the tree changes."""

    def __init__(
        self,
        tree: Tree,
        encoder: Encoder,
        evaluator: Evaluator,
        params: SearchParams,
        batch_rows: int,
        pipeline: Pipeline,
        lock: threading.RLock,
    ) -> None:
        """evaluator: one of the pipeline's, which are alike. batch_rows: leaves in a batch."""
        self.tree, self.encoder, self.evaluator, self.params = tree, encoder, evaluator, params
        self.batch_rows = batch_rows
        self.max_pending = pipeline.depth
        """Maximum number of pending batches. With 1, nothing is selected while the net is working."""
        self.pending: deque[PendingBatch] = deque()
        self.phases = Phases()
        self.knows_draws = False
        """True if the last evaluation had probabilities of a draw."""
        self._pipeline, self._lock = pipeline, lock
        self._batches = [self._new_batch() for _ in range(pipeline.depth + 1)]
        self._free = deque(self._batches)
        """Batches that are not pending."""
        self._rows = 0
        """Leaves in the first of them, which is not full yet."""
        self._ended = ""
        """Reason why no more leaves are possible."""

    def _new_batch(self) -> LeafBatch:
        return batch_for(self.encoder, self.evaluator, self.batch_rows, self.params.max_depth)

    def begin(self) -> Phases:
        """Begin a run. Returns its phases, which count from zero."""
        self._free = deque(self._batches)
        self._ended = ""
        self.phases = Phases()
        return self.phases

    def open_root(self, deadline: float | None) -> str:
        """Evaluate the root. Returns the reason if the search ends here, otherwise an empty string."""
        batch = self._batches[0]
        with self._lock:
            rows, _ = self.tree.fill(batch, 0, 1, 1, None)
        if not rows:
            return ""
        pending = self._submit(batch, rows)
        try:
            arrived = self._pipeline.wait(pending.job, deadline)
        except BaseException:  # such as Ctrl-C; the root must not stay pending
            self._abandon(pending)
            raise
        if not arrived:
            self._abandon(pending)
            return "stop" if self._pipeline.stopped else "movetime"
        self._back_up(pending)
        return ""

    def step(self, visits: int, evaluations: int, deadline: float | None) -> str:
        """Fill and submit a batch, or wait for the oldest one and back it up.

        visits, evaluations: numbers that the limits still allow. Returns the reason if the search ends here,
        otherwise an empty string. A batch that cannot be filled is kept while another one is pending,
        because that one will give new leaves.
        """
        pending_rows = sum(pending.rows for pending in self.pending)
        # ends of games are visits without evaluations, and do not fill the batch
        enough = self.params.leaves_at(self.tree.visits_at_root())
        size = min(self.batch_rows, enough, evaluations - pending_rows)
        most = visits - self._rows - pending_rows
        has_room = len(self.pending) < self.max_pending and self._rows < size
        if has_room and most > 0 and not self._ended and not self._fill(size, most, deadline):
            return ""
        full = 0 < self._rows >= size and len(self.pending) < self.max_pending
        if full or (self._rows and not self.pending):
            rows, self._rows = self._rows, 0
            self.pending.append(self._submit(self._free.popleft(), rows))
            if len(self.pending) < self.max_pending and most > size and not self._ended:
                return ""
        if self.pending and not self._back_up_oldest(deadline):
            return ""
        return self._ended if not self.pending and not self._rows else ""

    def end(self) -> None:
        """End a run. At a proof or a limit some leaves may still wait in a batch that is not full."""
        if self._rows:
            with self._lock:
                self.tree.abandon(self._free[0], 0, self._rows)
            self._rows = 0
        while self.pending:
            self._abandon(self.pending.pop())

    def _fill(self, size: int, most: int, deadline: float | None) -> bool:
        """Add leaves to the first free batch, up to `size`. Returns False if the search must end."""
        begun = time.perf_counter()
        goes_on = partial(self._pipeline.goes_on, deadline)
        with self._lock:
            self._rows, outcome = self.tree.fill(
                self._free[0], self._rows, size, most, None, goes_on
            )
        self.phases.fill += time.perf_counter() - begun
        if outcome != ENOUGH:
            self._ended = ending(self.tree, outcome)
        return goes_on()

    def _submit(self, batch: LeafBatch, rows: int) -> PendingBatch:
        planes = leaf_planes(self.encoder, batch, rows)
        return PendingBatch(batch, rows, self._pipeline.submit(planes))

    def _back_up_oldest(self, deadline: float | None) -> bool:
        """Wait for the oldest batch and back it up. Returns False if the search ends meanwhile."""
        begun = time.perf_counter()
        arrived = self._pipeline.wait(self.pending[0].job, deadline)
        self.phases.wait += time.perf_counter() - begun
        if arrived:
            pending = self.pending.popleft()
            self._free.append(pending.batch)
            self._back_up(pending)
        return arrived

    def _back_up(self, pending: PendingBatch) -> None:
        """Back up an evaluated batch."""
        job, rows = pending.job, pending.rows
        if job.error is not None:
            self._abandon(pending)
            raise job.error
        assert job.answer is not None
        answer = job.answer
        begun = time.perf_counter()
        with self._lock:
            try:
                check_evaluation(answer, rows, self.encoder.actions)
            except DataError:
                self._abandon(pending)
                raise
            draws = None if answer.wdl is None else answer.wdl[:, 1]
            self.knows_draws = draws is not None
            self.tree.complete(pending.batch, rows, answer.value, answer.policy, draws)
        self.phases.complete += time.perf_counter() - begun
        self.phases.batches += 1
        self.phases.rows += rows

    def _abandon(self, pending: PendingBatch) -> None:
        """Abandon a pending batch. Its planes may still be read, so it is replaced by a new one."""
        pending.job.abandoned = True
        with self._lock:
            self.tree.abandon(pending.batch, 0, pending.rows)
        self._batches = [
            self._new_batch() if batch is pending.batch else batch for batch in self._batches
        ]


class UniformSteps:
    """Steps with the uniform evaluator: leaves are found, expanded and backed up in one compiled call.
    The methods are those of `NetSteps`."""

    knows_draws = False

    def __init__(
        self, tree: Tree, batch: LeafBatch, least: int, pipeline: Pipeline, lock: threading.RLock
    ) -> None:
        """least: visits of the shortest slice."""
        self.tree, self._batch, self._least = tree, batch, least
        self._slice = 4 * least
        """Visits of a slice; follows SLICE_SECONDS."""
        self._pipeline, self._lock = pipeline, lock
        self.phases = Phases()

    def begin(self) -> Phases:
        self._slice = 4 * self._least
        self.phases = Phases()
        return self.phases

    def open_root(self, deadline: float | None) -> str:
        with self._lock:
            self.tree.fill(self._batch, 0, 1, 1, 1)
        return ""

    def step(self, visits: int, evaluations: int, deadline: float | None) -> str:
        most, begun = min(visits, evaluations), time.perf_counter()
        goes_on = partial(self._pipeline.goes_on, deadline)
        rows = len(self._batch.leaves)
        with self._lock:
            _, outcome = self.tree.fill(self._batch, 0, rows, most, self._slice, goes_on)
        took = time.perf_counter() - begun
        self.phases.fill += took
        if took < SLICE_SECONDS / 2 and self._slice < LONGEST_SLICE:
            self._slice *= 2
        elif took > SLICE_SECONDS and self._slice > self._least:
            self._slice //= 2
        return ending(self.tree, outcome)

    def end(self) -> None:
        """Nothing is pending between two steps."""


def ending(tree: Tree, outcome: int) -> str:
    """Return the reason if no more leaves are possible: `memory`, `solved`, or an empty string."""
    if outcome == STUCK:
        return "solved"
    if outcome == FULL:
        return "" if tree.make_room() else "memory"
    return ""
