"""Progress of compilation, for the user interface.

Code is compiled once per machine and then read from the cache (`core/jit`), so most processes never
compile anything. A process that does needs up to a minute and shows its progress: `listen` sets the
function that is called with it. Only the standard library is imported here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

ABOUT = 80
"""Number of functions that a search with a net needs; used until the total is known."""
FIRST_ESTIMATE = 2.0
"""Seconds of compiling before the remaining time is estimated."""
FIRST_FUNCTIONS = 5
"""Functions that are compiled before the first estimate: the first ones are large."""
LONGEST_GAP = 30.0
"""Most seconds between two reports that count as compiling; the rest was other work."""


@dataclass(frozen=True)
class Progress:
    """State of the compilation on this machine, by all processes together."""

    done: int
    """Number of functions that are compiled."""
    total: int
    """Number of functions to compile."""
    seconds_left: float | None = None
    """Estimate; None if it is too early for one."""

    def __str__(self) -> str:
        text = f"compiling for this machine, once: {self.done} of {self.total} functions"
        if self.seconds_left is None:
            return text
        return f"{text}; about {max(1, round(self.seconds_left))} s left"


class _State:
    """State of this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.listener: Callable[[Progress], None] | None = None
        self.alone = 0
        """Number of functions that this process compiled without help."""
        self.latest: Progress | None = None
        self.before: int | None = None
        """Number of functions done by the first report; None before it."""
        self.reported = 0.0
        """Time of the last report."""
        self.spent = 0.0
        """Seconds of compiling since the first report."""


_state = _State()


def listen(listener: Callable[[Progress], None] | None) -> None:
    """Set the function that is called with the progress, in the thread that compiles or waits;
    None: no function."""
    _state.listener = listener


def begins() -> None:
    """Count a function that is not in the cache and that this process compiles."""
    with _state.lock:
        _state.alone += 1
        alone, shared = _state.alone, is_shared()
    if not shared:
        _publish(Progress(alone, max(ABOUT, alone)))


def report(done: int, total: int) -> None:
    """Report the number of functions that all processes have compiled, and of all functions."""
    now = time.monotonic()
    if _state.before is None:
        _state.before = done
    else:
        _state.spent += min(now - _state.reported, LONGEST_GAP)
    _state.reported = now
    left = None
    if _state.spent >= FIRST_ESTIMATE and done >= _state.before + FIRST_FUNCTIONS:
        left = (total - done) * _state.spent / (done - _state.before)
    _publish(Progress(done, total, left))


def _publish(progress: Progress) -> None:
    _state.latest = progress
    if _state.listener is not None:
        _state.listener(progress)


def latest() -> Progress | None:
    """Last progress of this process; None if nothing had to be compiled."""
    return _state.latest


def is_shared() -> bool:
    """Return True once other processes have compiled for this one."""
    return _state.before is not None


class Announcer:
    """Writes the progress as a sentence, at the start and then every few seconds."""

    def __init__(self, write: Callable[[str], None], every: float = 3.0) -> None:
        """every: seconds between two sentences."""
        self._write, self._every = write, every
        self._next = 0.0
        self._last = ""

    def __call__(self, progress: Progress) -> None:
        now, text = time.monotonic(), str(progress)
        is_news = text != self._last and (self._last or progress.done < progress.total)
        if now >= self._next and is_news:
            self._next = now + self._every
            self._last = text
            self._write(text)
