"""A worker process, seen from the server: questions and answers as JSON lines.

If the process ends, all its open questions get an error, and the next question starts a new one. A
question that takes too long ends the process, because there is no other way to end a computation.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import os
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from variant_ai.core.errors import VariantAIError
from variant_ai.core.system.child_processes import guard_child, release_child
from variant_ai.core.web import Json

_log = logging.getLogger("variant_ai.web")

MAX_ANSWER = 8 << 20
"""Bytes of an answer; input planes of the largest board take one."""
CLOSING = 2.0
"""Seconds that a process has to end by itself."""


class WorkerError(VariantAIError):
    """The process ended before it answered; another one may answer."""


@dataclass
class Ticket:
    """A question on its way: its number once it is sent."""

    number: int = 0
    sent: asyncio.Event = field(default_factory=asyncio.Event)


class WorkerProcess:
    """One process and the questions that it has not answered yet. Used in one event loop."""

    def __init__(self, command: Sequence[str], name: str) -> None:
        """command: program and arguments. name: for messages."""
        self._command = list(command)
        self.name = name
        self.started = 0
        """Number of processes started so far."""
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._numbers = itertools.count(1)
        self._open: dict[int, asyncio.Queue[Json]] = {}
        self._starting = asyncio.Lock()

    async def ask(self, question: Json, seconds: float) -> Json:
        """Return the answer to a question. Raises VariantAIError with the worker's message, or if it
        takes longer than `seconds`; WorkerError if the process ends."""
        try:
            async with asyncio.timeout(seconds):
                async for answer in self.stream(question):
                    return answer
        except TimeoutError:
            self.kill()
            raise VariantAIError(f"this took over {seconds:g} seconds and was ended") from None
        raise WorkerError(f"{self.name} gave no answer")

    async def stream(self, question: Json, ticket: Ticket | None = None) -> AsyncIterator[Json]:
        """Yield the answers to a question, without their `id`; the caller ends the loop at the
        final one. ticket: gets the question's number when it is sent."""
        await self._start()
        number = next(self._numbers)
        answers: asyncio.Queue[Json] = asyncio.Queue()
        waiting = self._open
        waiting[number] = answers
        try:
            self._write({**question, "id": number})
            if ticket is not None:
                ticket.number = number
                ticket.sent.set()
            while True:
                answer = await answers.get()
                if "error" in answer:
                    ended = answer.get("ended")
                    raise (WorkerError if ended else VariantAIError)(str(answer["error"]))
                yield answer
        finally:
            waiting.pop(number, None)

    def stop(self, number: int) -> None:
        """Ask the worker to end the search of this number early."""
        if self._process is not None:
            with contextlib.suppress(WorkerError):
                self._write({"action": "stop", "id": number})

    def kill(self) -> None:
        """End the process at once; the next question starts another one."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()

    async def close(self) -> None:
        """End the process, by force if it does not end by itself."""
        process = self._process
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), CLOSING)
        except TimeoutError:
            self.kill()
            await process.wait()
        if self._reader is not None:
            await self._reader

    async def _start(self) -> None:
        async with self._starting:
            if self._process is not None and self._process.returncode is None:
                return
            self.started += 1
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *self._command,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    limit=MAX_ANSWER,
                    start_new_session=True,
                    env={**os.environ, "PYTHONUNBUFFERED": "1"},
                )
            except OSError as error:  # no memory, or too many processes or open files
                raise WorkerError(f"{self.name} cannot be started: {error.strerror}") from error
            guard_child(self._process.pid)
            self._open = {}
            self._reader = asyncio.create_task(self._read(self._process, self._open))

    def _write(self, question: Json) -> None:
        process = self._process
        if process is None or process.stdin is None or process.stdin.is_closing():
            raise WorkerError(f"{self.name} has ended; try again")
        process.stdin.write(json.dumps(question, ensure_ascii=False).encode() + b"\n")

    async def _read(
        self, process: asyncio.subprocess.Process, waiting: dict[int, asyncio.Queue[Json]]
    ) -> None:
        """Hand out the answers of a process until it ends. waiting: its open questions."""
        assert process.stdout is not None
        while True:
            try:
                line = await process.stdout.readline()
            except ValueError:  # an answer beyond all bounds
                process.kill()
                break
            if not line:
                break
            with contextlib.suppress(ValueError):
                answer = json.loads(line)
                answers = waiting.get(answer.pop("id", None))
                if answers is not None:
                    answers.put_nowait(answer)
        await process.wait()
        release_child(process.pid)
        for answers in waiting.values():
            answers.put_nowait({"error": f"{self.name} ended; try again", "ended": True})


def report_fault(what: str, error: Exception) -> str:
    """Log an error that no message of ours describes; return the text for the visitor, which
    names no paths of the server. what: the kind of question, for both."""
    _log.error("a question of the type %s failed", what, exc_info=error)
    return f"the server could not answer ({type(error).__name__}); its log says more"


def python_command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of ours as a program of its own."""
    return [sys.executable, "-m", module, *arguments]
