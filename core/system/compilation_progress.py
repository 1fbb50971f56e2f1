"""Progress of compilation, for those who wait for it.

Compiled code is made once on a machine and then read from the cache (`core/jit`), so most processes
never compile anything. One that does needs a while and shows it: `listen` sets who is called with the
progress. Nothing heavy is imported here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

ABOUT = 80
"""Functions that a search with a net needs; the total until it is known."""
FIRST_ESTIMATE = 2.0
"""Seconds of compiling after which the rest is estimated."""


@dataclass(frozen=True)
class Progress:
    """State of the compilation for this machine, whichever process does it."""

    done: int
    """Functions that are compiled."""
    total: int
    seconds_left: float | None = None
    """Estimated; None as long as there is nothing to estimate it by."""

    def __str__(self) -> str:
        text = f"compiling for this machine, once: {self.done} of {self.total} functions"
        if self.seconds_left is None:
            return f"{text}; less than a minute"
        return f"{text}; about {max(1, round(self.seconds_left))} s left"


class _State:
    """Of this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.listener: Callable[[Progress], None] | None = None
        self.alone = 0
        """Functions that this process compiled without help."""
        self.latest: Progress | None = None
        self.first: tuple[float, int] | None = None
        """Time and functions done when the first report came."""


_state = _State()


def listen(listener: Callable[[Progress], None] | None) -> None:
    """Call `listener(progress)` while something is compiled, in the thread that compiles or waits for
    it. None: nobody listens."""
    _state.listener = listener


def begins() -> None:
    """Note that this process compiles a function that is not in the cache."""
    with _state.lock:
        _state.alone += 1
        alone, shared = _state.alone, is_shared()
    if not shared:
        _publish(Progress(alone, max(ABOUT, alone)))


def report(done: int, total: int) -> None:
    """Note how many functions are compiled by now, by this process and by others."""
    now = time.monotonic()
    if _state.first is None:
        _state.first = (now, done)
    began, before = _state.first
    left = None
    if now - began >= FIRST_ESTIMATE and done > before:
        left = (total - done) * (now - began) / (done - before)
    _publish(Progress(done, total, left))


def _publish(progress: Progress) -> None:
    _state.latest = progress
    if _state.listener is not None:
        _state.listener(progress)


def latest() -> Progress | None:
    """The last progress of this process; None if nothing had to be compiled."""
    return _state.latest


def is_shared() -> bool:
    """True once other processes have compiled for this one."""
    return _state.first is not None


class Announcer:
    """Writes progress as sentences: at the start, then every few seconds."""

    def __init__(self, say: Callable[[str], None], every: float = 3.0) -> None:
        self._say, self._every = say, every
        self._next = 0.0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + self._every
            self._say(str(progress))
