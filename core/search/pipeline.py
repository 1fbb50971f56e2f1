"""Batches of a search: filled with leaves, evaluated in threads, and backed up.

While the net evaluates one batch, the tree thread fills the next: a `Pipeline` has a thread for each
evaluator. Results are used in the order in which the batches were submitted, so that the same seed gives
the same tree. A search that is stopped does not wait for pending batches; their threads finish them.

`NetSteps` are the steps of a search with a net. `UniformSteps` needs no net, and searches in slices of
compiled code.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.encoding.encoder import Encoder
from variant_ai.core.errors import DataError, VariantAIError
from variant_ai.core.inference.backends.composite_backends import ParallelEvaluator
from variant_ai.core.inference.interface import Evaluation, Evaluator
from variant_ai.core.search.report import Phases
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.search.tree.descent import FULL, STUCK
from variant_ai.core.search.tree.game_tree import Tree
from variant_ai.core.search.tree.leaf_batch import ENOUGH, LeafBatch, batch_for, leaf_planes
from variant_ai.core.system.text_tables import counted


@dataclass
class Job:
    """A batch at the evaluator."""

    planes: NDArray[np.float32]
    """[B, C, H, W]; must not be changed until the job is done."""
    answer: Evaluation | None = None
    error: BaseException | None = None
    done: threading.Event = field(default_factory=threading.Event)
    abandoned: bool = False
    """True if the result is not needed: the batch is skipped if its evaluation has not started."""


class EvaluatorThread:
    """Runs one evaluator on the jobs of a queue."""

    def __init__(self, evaluator: Evaluator, wake: threading.Condition) -> None:
        """wake: notified whenever a job is done."""
        self.evaluator = evaluator
        self._wake = wake
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="evaluator", daemon=True)
        self._thread.start()

    def submit(self, planes: NDArray[np.float32]) -> Job:
        """Add a job to the queue; from any thread."""
        job = Job(planes)
        self._jobs.put(job)
        return job

    def close(self) -> None:
        """End the thread after the jobs of the queue, without waiting. No job may follow."""
        self._jobs.put(None)

    def join(self, timeout: float | None = None) -> None:
        self._thread.join(timeout)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            if not job.abandoned:
                try:
                    job.answer = self.evaluator.evaluate(job.planes)
                except BaseException as error:  # raised again in the tree thread
                    job.error = error
            job.done.set()
            with self._wake:
                self._wake.notify_all()


def streams(
    evaluator: Evaluator | Sequence[Evaluator], *, whole: bool
) -> tuple[list[Evaluator], int]:
    """Return (parallel evaluators, number of parts into which batches are divided).

    An evaluator that divides its batches must wait for the slowest part of each. Here its parts get
    separate, smaller batches instead, so that no core or GPU waits for another. With `whole` the
    evaluator is not divided, so that the tree does not depend on its parts.
    """
    if not isinstance(evaluator, Evaluator):
        return list(evaluator), 1
    if isinstance(evaluator, ParallelEvaluator) and not whole:
        return list(evaluator.evaluators), len(evaluator.evaluators)
    return [evaluator], 1


class Pipeline:
    """Parallel evaluators, each with a thread, and waiting for them, which `stop` ends."""

    def __init__(self, evaluators: Sequence[Evaluator]) -> None:
        self._wake = threading.Condition()
        self._stopped = False
        self._closed = False
        self._threads = [EvaluatorThread(evaluator, self._wake) for evaluator in evaluators]
        self._next = 0
        self._last: list[Job | None] = [None] * len(evaluators)

    @property
    def depth(self) -> int:
        """Maximum number of pending batches: one at each evaluator, and one that waits."""
        return len(self._threads) + 1

    def submit(self, planes: NDArray[np.float32]) -> Job:
        """Submit a batch to the next evaluator in turn."""
        turn = self._next
        self._next = (turn + 1) % len(self._threads)
        job = self._last[turn] = self._threads[turn].submit(planes)
        return job

    def settle(self) -> None:
        """Wait until no evaluator is busy, not even with an abandoned batch."""
        for job in self._last:
            if job is not None:
                job.done.wait()

    def wait(self, job: Job, deadline: float | None) -> bool:
        """Wait until the job is done and return True; False after `stop` or the deadline
        (`time.perf_counter`)."""
        with self._wake:
            while not job.done.is_set():
                if self._stopped:
                    return False
                left = None if deadline is None else deadline - time.perf_counter()
                if left is not None and left <= 0:
                    return False
                self._wake.wait(None if left is None else min(left, threading.TIMEOUT_MAX))
        return True

    def pause(self, seconds: float | None) -> None:
        """Wait for `stop`, at most `seconds`."""
        with self._wake:
            if not self._stopped:
                self._wake.wait(seconds)

    def goes_on(self, deadline: float | None) -> bool:
        """Return True until `stop` is called or the deadline has passed."""
        return not (self._stopped or (deadline is not None and time.perf_counter() >= deadline))

    @property
    def stopped(self) -> bool:
        """True from `stop` to the next `start`."""
        return self._stopped

    def stop(self) -> None:
        """End all waits, now and until `start`. From any thread."""
        with self._wake:
            self._stopped = True
            self._wake.notify_all()

    def start(self) -> None:
        """Allow waits again. Raises VariantAIError after `close`."""
        with self._wake:
            if self._closed:
                raise VariantAIError("this search is closed; create a new one")
            self._stopped = False

    def close(self) -> None:
        """Stop and end the threads; waits at most one second for each."""
        with self._wake:
            self._closed = True
        self.stop()
        for thread in self._threads:
            thread.close()
        for thread in self._threads:
            with contextlib.suppress(RuntimeError):
                thread.join(1.0)


def check_evaluation(answer: Evaluation, rows: int, actions: int) -> None:
    """Raise DataError if the output for `rows` positions has wrong shapes."""
    if not isinstance(answer, Evaluation):
        raise DataError(f"the evaluator answered with {answer!r}, not with an Evaluation")
    if answer.value.shape != (rows,) or answer.policy.shape != (rows, actions):
        raise DataError(
            f"the evaluator's output for {counted(rows, 'position')} has values {answer.value.shape} and "
            f"policy {answer.policy.shape}; expected ({rows},) and ({rows}, {actions})"
        )


# --- steps ----------------------------------------------------------------------------------------

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
