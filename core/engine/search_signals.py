"""What the reading thread tells a running search: stop, ponder hit, leave.

Every `go` has a number. A `stop` stops all that were sent before it and none that come after, so
one that races with the end of a search cannot hit the next one.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


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
