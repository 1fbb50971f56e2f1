"""Progress of compilation in this process, for those who wait for it.

Compiled code is made once on a machine and then read from the cache (`core/rules/cache.py`), so most
processes never compile anything. One that does can take half a minute, and says so: `listen` sets who
hears of it. Nothing heavy is imported here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

ABOUT = 80
"""Functions that a search with a net compiles on a machine without a cache."""


class _State:
    """Of this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.listener: Callable[[int], None] | None = None
        self.count = 0


_state = _State()


def listen(listener: Callable[[int], None] | None) -> None:
    """Call `listener(count)` whenever a function begins to be compiled, in the thread that compiles;
    `count`: functions so far. None: nobody listens."""
    _state.listener = listener


def begins() -> None:
    """A function is not in the cache and is compiled now."""
    with _state.lock:
        _state.count += 1
        count = _state.count
    if _state.listener is not None:
        _state.listener(count)


def count() -> int:
    """Functions compiled in this process so far."""
    return _state.count


def progress(count: int) -> str:
    """A sentence for who waits: `compiling for this machine, once: 37 of about 80 functions`."""
    return f"compiling for this machine, once: {count} of about {max(ABOUT, count)} functions"


class Announcer:
    """Says in sentences that something is compiled: at the start, then every few seconds."""

    def __init__(self, say: Callable[[str], None], every: float = 3.0) -> None:
        self._say, self._every = say, every
        self._next = 0.0

    def __call__(self, count: int) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + self._every
            self._say(progress(count) + ("; it takes about half a minute" if count == 1 else ""))
