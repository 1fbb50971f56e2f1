"""What a client asked for and the working thread has not begun: in order, and not without bounds."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Iterator
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


class Control:
    """Shared by the thread that reads and the threads that search."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.sent = 0
        """Number of the last `go` read."""
        self.finished = 0
        """Number of the last `go` answered."""
        self.leaving = False
        """No answer is wanted any more."""
        self.input_ended = False
        """Nobody can say `stop` any more: searches without an end of their own stop at once."""
        self._stopped = 0
        self._hit = 0
        self._hit_at = 0.0
        self._hit_with_draw = False

    def next_number(self, *, stop_others: bool) -> int:
        """Number of a `go` that was just read; those before it are stopped unless they may end."""
        with self.changed:
            if stop_others:
                self._stopped = self.sent
            self.sent += 1
            self.changed.notify_all()
            return self.sent

    @property
    def searching(self) -> bool:
        """Whether a `go` is still without its answer; waits while one is being printed."""
        with self.changed:
            return self.sent > self.finished

    def stop(self) -> bool:
        """Stop every `go` sent so far; False where all were answered."""
        with self.changed:
            pending = self.searching
            self._stopped = self.sent
            self.changed.notify_all()
            return pending

    def ponder_hit(self, at: float, draw_offered: bool) -> None:
        """The clock of the last `go` runs from `at` (perf_counter)."""
        with self.changed:
            self._hit, self._hit_at, self._hit_with_draw = self.sent, at, draw_offered
            self.changed.notify_all()

    def leave(self) -> None:
        with self.changed:
            self.leaving = True
            self._stopped = self.sent
            self.changed.notify_all()

    def end_input(self) -> None:
        with self.changed:
            self.input_ended = True
            self.changed.notify_all()

    @contextlib.contextmanager
    def answering(self, number: int) -> Iterator[None]:
        """Within it the answer is printed: a `stop` that comes now finds it all said."""
        with self.changed:
            try:
                yield
            finally:
                self.finished = max(self.finished, number)
                self.changed.notify_all()

    def is_stopped(self, number: int) -> bool:
        return self.leaving or self._stopped >= number

    def hit(self, number: int) -> float | None:
        """When the ponder hit of this `go` came, None where it did not."""
        return self._hit_at if self._hit >= number else None

    def hit_with_draw(self, number: int) -> bool:
        """Whether a draw was offered with the ponder hit."""
        return self._hit >= number and self._hit_with_draw

    def wait(self, seconds: float | None) -> None:
        """Sleep until something changes, or so long. Call with `changed` held."""
        self.changed.wait(seconds)
