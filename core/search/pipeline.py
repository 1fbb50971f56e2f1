"""Evaluator threads: while the net evaluates one batch, the tree thread fills the next.

Results are used in the order in which the batches were submitted, so that the same seed gives the same
tree. A search that is stopped does not wait for pending batches; their threads finish them.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.errors import DataError, VariantAIError
from variant_ai.core.inference.backends.composite_backends import ParallelEvaluator
from variant_ai.core.inference.interface import Evaluation, Evaluator
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
        if self._closed:
            raise VariantAIError("this search is closed; create a new one")
        with self._wake:
            self._stopped = False

    def close(self) -> None:
        """Stop and end the threads; waits at most one second for each."""
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
