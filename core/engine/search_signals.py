"""Shared state of the reading and the working thread of a session: commands in order, and signals that cannot wait.

The reading thread puts each `QueuedCommand` into a queue, and the working thread executes them one by
one. `SearchSignals` reach a search that is already running: stop, ponder hit, quit.

Every `go` has a number. A `stop` ends all searches sent before it and none sent after it, so a stop
that arrives just after the end of a search cannot hit the next one.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import NamedTuple

from variant_ai.core.engine.commands import Command, Go


class QueuedCommand(NamedTuple):
    """A command that waits for the working thread."""

    command: Command
    number: int = 0
    """Number of a `go`."""
    at: float = 0.0
    """Time when its line was read, `InputLine.at`."""
    size: int = 0
    """Characters of its line, if they count for the limit on waiting lines."""


class SearchSignals:
    """Signals of the reading thread to the threads that search. Thread-safe."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.sent = 0
        """Number of the last `go` read."""
        self.finished = 0
        """Number of the last `go` answered."""
        self.leaving = False
        """True after `quit`: no more answers are printed."""
        self.input_ended = False
        """True if no `stop` can come any more: searches without a limit stop at once."""
        self._stopped = 0
        self._hit = 0
        self._hit_at = 0.0
        self._hit_with_draw = False

    def next_number(self, *, stop_others: bool) -> int:
        """Return the number of a new `go`; `stop_others` stops the searches before it."""
        with self.changed:
            if stop_others:
                self._stopped = self.sent
            self.sent += 1
            self.changed.notify_all()
            return self.sent

    @property
    def searching(self) -> bool:
        """True while a `go` has no answer yet; waits while an answer is being printed."""
        with self.changed:
            return self.sent > self.finished

    def stop(self) -> bool:
        """Stop every `go` sent so far; return False if all were answered already."""
        with self.changed:
            pending = self.searching
            self._stopped = self.sent
            self.changed.notify_all()
            return pending

    def ponder_hit(self, at: float, draw_offered: bool) -> None:
        """Start the clock of the last `go` at the time `at` (perf_counter)."""
        with self.changed:
            self._hit, self._hit_at, self._hit_with_draw = self.sent, at, draw_offered
            self.changed.notify_all()

    def leave(self) -> None:
        """Stop every search; none of them prints an answer."""
        with self.changed:
            self.leaving = True
            self._stopped = self.sent
            self.changed.notify_all()

    def end_input(self) -> None:
        """Note that the client's input has ended."""
        with self.changed:
            self.input_ended = True
            self.changed.notify_all()

    @contextlib.contextmanager
    def answering(self, number: int) -> Iterator[None]:
        """Context in which the answer to a `go` is printed; a `stop` that comes now waits, and then
        finds the search finished."""
        with self.changed:
            try:
                yield
            finally:
                self.finished = max(self.finished, number)
                self.changed.notify_all()

    def is_stopped(self, number: int) -> bool:
        return self.leaving or self._stopped >= number

    def ponder_hit_time(self, number: int) -> float | None:
        """Return the time of the ponder hit of this `go`; None if there was none."""
        return self._hit_at if self._hit >= number else None

    def ponder_hit_with_draw(self, number: int) -> bool:
        """Return True if a draw was offered with the ponder hit."""
        return self._hit >= number and self._hit_with_draw

    def wait_for_release(self, go: Go, number: int) -> None:
        """Wait until the client allows the answer of an infinite or pondering search: by `stop`, by
        the end of its input, or (ponder) by a ponder hit. Other searches need not wait."""
        if not go.waits:
            return
        ponder = go.ponder and not go.infinite
        with self.changed:
            self.changed.wait_for(
                lambda: (
                    self.is_stopped(number)
                    or self.input_ended
                    or (ponder and self.ponder_hit_time(number) is not None)
                )
            )
