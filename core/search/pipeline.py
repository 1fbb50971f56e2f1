"""The evaluator's own thread: while the net works on one batch, the tree thread fills the next.

Answers are taken in the order in which batches were given, so that the same seed gives the same
tree. Nobody waits for a batch that is no longer wanted: a search that is told to stop leaves it to
its thread and goes.
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

from variant_ai.core.errors import VariantAIError
from variant_ai.core.inference.backends.composite_backends import ParallelEvaluator
from variant_ai.core.inference.interface import Evaluation, Evaluator


@dataclass
class Job:
    """A batch at the evaluator."""

    planes: NDArray[np.float32]
    """[B, C, H, W]; nobody else may write to it until the job is done."""
    answer: Evaluation | None = None
    error: BaseException | None = None
    done: threading.Event = field(default_factory=threading.Event)
    seconds: float = 0.0
    """What the evaluator took."""
    given_up: bool = False
    """Nobody waits for the answer: the evaluator is not asked, unless it has begun."""


class EvaluatorThread:
    """Feeds one evaluator from a queue. `submit` from any thread."""

    def __init__(self, evaluator: Evaluator, wake: threading.Condition) -> None:
        """`wake` is notified whenever a job is done."""
        self.evaluator = evaluator
        self._wake = wake
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="evaluator", daemon=True)
        self._thread.start()

    def submit(self, planes: NDArray[np.float32]) -> Job:
        job = Job(planes)
        self._jobs.put(job)
        return job

    def close(self) -> None:
        """No job may follow. Does not wait for the one at work."""
        self._jobs.put(None)

    def join(self, timeout: float | None = None) -> None:
        self._thread.join(timeout)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            if not job.given_up:
                begun = time.perf_counter()
                try:
                    job.answer = self.evaluator.evaluate(job.planes)
                except BaseException as error:  # raised again in the tree thread
                    job.error = error
                job.seconds = time.perf_counter() - begun
            job.done.set()
            with self._wake:
                self._wake.notify_all()


def streams(
    evaluator: Evaluator | Sequence[Evaluator], *, whole: bool
) -> tuple[list[Evaluator], int]:
    """(evaluators side by side, parts of a batch that each of them takes).

    An evaluator that shares out its batches waits for the slowest part of each: here its parts get
    batches of their own instead, as much smaller as there are parts, so that no core or GPU waits
    for another. With `whole` it is left as it is, and the tree does not depend on how it works.
    """
    if not isinstance(evaluator, Evaluator):
        return list(evaluator), 1
    if isinstance(evaluator, ParallelEvaluator) and not whole:
        return list(evaluator.evaluators), len(evaluator.evaluators)
    return [evaluator], 1


class Pipeline:
    """Evaluators side by side, each with a thread, and the wait for them that `stop` cuts short."""

    def __init__(self, evaluators: Sequence[Evaluator]) -> None:
        self._wake = threading.Condition()
        self._stopped = False
        self._closed = False
        self._threads = [EvaluatorThread(evaluator, self._wake) for evaluator in evaluators]
        self._next = 0
        self._last: list[Job | None] = [None] * len(evaluators)

    @property
    def depth(self) -> int:
        """Batches that may be under way: one at each evaluator, and one waiting for it."""
        return len(self._threads) + 1

    def submit(self, planes: NDArray[np.float32]) -> Job:
        """Give a batch to the next evaluator in turn."""
        turn = self._next
        self._next = (turn + 1) % len(self._threads)
        job = self._last[turn] = self._threads[turn].submit(planes)
        return job

    def settle(self) -> None:
        """Wait until no evaluator is at work, on batches that were given up neither."""
        for job in self._last:
            if job is not None:
                job.done.wait()

    def wait(self, job: Job, deadline: float | None) -> bool:
        """Until the job is done (True), or `stop` or the deadline (`time.perf_counter`) came."""
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
        """Wait for `stop`, at most so long."""
        with self._wake:
            if not self._stopped:
                self._wake.wait(seconds)

    def goes_on(self, deadline: float | None) -> bool:
        """Whether neither `stop` nor the deadline has come."""
        return not (self._stopped or (deadline is not None and time.perf_counter() >= deadline))

    @property
    def stopped(self) -> bool:
        return self._stopped

    def stop(self) -> None:
        """Ends waits, now and until `start`. From any thread."""
        with self._wake:
            self._stopped = True
            self._wake.notify_all()

    def start(self) -> None:
        """Waits may last again. Raises VariantAIError after `close`."""
        if self._closed:
            raise VariantAIError("this search is closed; make another")
        with self._wake:
            self._stopped = False

    def close(self) -> None:
        self._closed = True
        self.stop()
        for thread in self._threads:
            thread.close()
        for thread in self._threads:
            with contextlib.suppress(RuntimeError):
                thread.join(1.0)
