"""Searches of all visitors, fairly: visitors take turns, and a long search ends early if another
visitor waits.

A process runs one search at a time. The next one is that of the visitor whose last turn was
longest ago; a visitor's own searches follow one another. A search that has had its slice ends, with
`shared: true` in its final answer, as soon as somebody else waits: the page may ask again. So does a
search that reports, for a question of its own visitor that has a quick answer.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from variant_ai.core.errors import VariantAIError
from variant_ai.core.web import Json
from variant_ai.core.web.worker_process import Ticket, WorkerError, WorkerProcess, report_fault

LOADING = 120.0
"""Seconds beyond its own limit after which a search is given up: loading a net, compiling."""


@dataclass(eq=False)
class SearchJob:
    """A search that waits or runs."""

    owner: Hashable
    """Visitor."""
    question: Json
    """Query for the JSON service, without `id`."""
    on_answer: Callable[[Json], None]
    """Gets each answer; the last one has `final: true`, an `action`, or an `error`."""
    seconds: float
    """Longest time that it may take, without loading."""
    stopped: bool = False
    running: tuple[WorkerProcess, Ticket] | None = field(default=None, repr=False)

    @property
    def is_instant(self) -> bool:
        """True for a question that is no search and has one answer."""
        return "action" in self.question


class SearchSchedule:
    """Gives searches to processes. Used in one event loop."""

    def __init__(self, workers: list[WorkerProcess], slice: float) -> None:
        """slice: seconds after which a search ends if another visitor waits."""
        self.workers = workers
        self._slice = slice
        self._waiting: dict[Hashable, deque[SearchJob]] = {}
        self._running: set[SearchJob] = set()
        self._turns = 0
        self._served: dict[Hashable, int] = {}
        """Number of the last turn of each visitor; 0: none yet."""
        self._more = asyncio.Condition()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to work."""
        self._tasks = [asyncio.create_task(self._work(worker)) for worker in self.workers]

    async def close(self) -> None:
        """End all searches and processes."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(worker.close() for worker in self.workers))

    async def submit(self, job: SearchJob) -> None:
        """Add a search to those that wait; one that was stopped before is answered at once."""
        async with self._more:
            if job.stopped:
                job.on_answer(_stopped(job))
                return
            waiting = self._waiting.setdefault(job.owner, deque())
            self._served.setdefault(job.owner, 0)
            if job.is_instant:
                waiting.appendleft(job)
            else:
                waiting.append(job)
            self._more.notify_all()

    def stop(self, job: SearchJob) -> None:
        """End a search early; it still gets its final answer. One that waits gets it at once."""
        job.stopped = True
        if job.running is not None:
            worker, ticket = job.running
            if ticket.sent.is_set():
                worker.stop(ticket.number)
            return
        waiting = self._waiting.get(job.owner, deque())
        if job in waiting:
            waiting.remove(job)
            if not waiting:
                del self._waiting[job.owner]
            job.on_answer(_stopped(job))

    def forget(self, owner: Hashable) -> None:
        """End all searches of a visitor who has left."""
        self._waiting.pop(owner, None)
        self._served.pop(owner, None)
        for job in self._running:
            if job.owner == owner:
                job.on_answer = _ignore
                self.stop(job)

    def _gives_way(self, job: SearchJob, seconds: float) -> bool:
        """Return True if a search that has run for so long has to end for one that waits: another
        visitor's, or a question of the same visitor about the tree or the net while it reports."""
        own = self._waiting.get(job.owner, ())
        if "report_every" in job.question and any(other.is_instant for other in own):
            return True
        others = any(owner != job.owner for owner in self._waiting)
        return others and seconds >= self._slice

    async def _next(self) -> SearchJob:
        async with self._more:
            await self._more.wait_for(lambda: self._waiting)
            owner = min(self._waiting, key=lambda one: self._served.get(one, 0))
            jobs = self._waiting[owner]
            job = jobs.popleft()
            if not jobs:
                del self._waiting[owner]
            self._running.add(job)
            return job

    async def _work(self, worker: WorkerProcess) -> None:
        while True:
            job = await self._next()
            try:
                await self._run(worker, job)
            except VariantAIError as error:
                job.on_answer({"error": str(error), "final": True})
            except Exception as error:  # one search must not end those of all visitors
                job.on_answer({"error": report_fault("search", error), "final": True})
            finally:
                self._running.discard(job)
                self._turns += 1
                if job.owner in self._served:
                    self._served[job.owner] = self._turns

    async def _run(self, worker: WorkerProcess, job: SearchJob) -> None:
        ticket = Ticket()
        job.running = worker, ticket
        shared = False

        async def share() -> None:
            """End the search when it has to give way."""
            nonlocal shared
            await ticket.sent.wait()
            if job.stopped:  # while the process started
                self.stop(job)
            began = asyncio.get_running_loop().time()
            async with self._more:
                while not self._gives_way(job, asyncio.get_running_loop().time() - began):
                    # not `wait_for`, which may lose a cancellation in Python 3.11
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(self._slice):
                            await self._more.wait()
                    if job.running is None:
                        return
            shared = True
            self.stop(job)

        sharing = asyncio.create_task(share())
        try:
            async with asyncio.timeout(job.seconds + LOADING):
                async for answer in worker.stream(job.question, ticket):
                    final = job.is_instant or bool(answer.get("final"))
                    if final and shared:
                        answer["shared"] = True
                    job.on_answer(answer)
                    if final:
                        return
                    if job.stopped:
                        self.stop(job)
        except TimeoutError:
            worker.kill()
            raise WorkerError("the search took too long and was ended") from None
        except Exception:
            self.stop(job)  # the process may not have ended it
            raise
        finally:
            job.running = None
            sharing.cancel()


def _stopped(job: SearchJob) -> Json:
    """Return the final answer to a job that was stopped before its turn."""
    if job.is_instant:
        return {"error": "this was stopped before its turn", "final": True}
    return {"final": True, "best": None, "lines": [], "stopped_by": "stop"}


def _ignore(answer: Json) -> None:
    """Drop an answer that nobody waits for."""
