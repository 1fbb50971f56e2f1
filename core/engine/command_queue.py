"""What a client asked for and the working thread has not begun: in order, and not without bounds."""

from __future__ import annotations

import threading
from collections import deque
from typing import NamedTuple

from variant_ai.core.engine.commands import Command, Go, Ignored, Quit

MAX_WAITING = 32 << 20
"""Characters of lines that may wait for the end of a search."""


class Waiting(NamedTuple):
    """A command and what came with it."""

    command: Command
    number: int = 0
    """Of a `go` or an `isready`."""
    at: float = 0.0
    """When its line was read, as `InputLine.at` has it."""
    size: int = 0
    """Characters of its line."""


class Inbox:
    """Safe to use from any thread."""

    def __init__(self) -> None:
        self._queue: deque[Waiting] = deque()
        self._size = 0
        self._arrived = threading.Condition()

    def put(self, item: Waiting) -> bool:
        """False where too much is waiting already; a `go` or `quit` is always taken."""
        with self._arrived:
            full = self._size + item.size > MAX_WAITING
            if full and not isinstance(item.command, (Go, Quit)):
                return False
            self._append(item)
        return True

    def take(self) -> Waiting:
        """The oldest one, once there is one."""
        with self._arrived:
            while not self._queue:
                self._arrived.wait()
            item = self._queue.popleft()
            self._size -= item.size
            return item

    def quit(self, *, answer_first: bool) -> bool:
        """Let nothing come but the end; answer_first: and what was asked before and is no search.
        Whether there is such a thing."""
        with self._arrived:
            kept = [item for item in self._queue if not isinstance(item.command, (Go, Ignored))]
            kept = kept if answer_first else []
            self._queue.clear()
            self._size = 0
            for item in (*kept, Waiting(Quit())):
                self._append(item)
        return bool(kept)

    def _append(self, item: Waiting) -> None:
        self._queue.append(item)
        self._size += item.size
        self._arrived.notify_all()
