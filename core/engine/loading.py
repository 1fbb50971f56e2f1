"""Loading of rules, net and search while a client waits: how long a `go` waits for it, and messages about it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from variant_ai.core.engine.running_search import NEVER, SearchTask
from variant_ai.core.engine.search_signals import SearchSignals
from variant_ai.core.system import compilation_progress as compilation

if TYPE_CHECKING:
    from variant_ai.core.search.move.clock import TimeManager

LOOK_EVERY = 0.05
"""Seconds between two checks of a loader."""
LATE_FOR_POLICY = 2.0
"""Seconds that a move for a fixed time may be late, if it would otherwise be any legal move."""
LOADING_SHARE = 0.25
"""Share of the clock that may be spent, once, on loading a net."""
PROGRESS_EVERY = 1.0
"""Seconds between two checks whether the progress has changed."""


def loading_deadlines(
    task: SearchTask, manager: TimeManager, signals: SearchSignals
) -> tuple[float, float]:
    """Return two times by perf_counter: if the search is still loading, the first choice of the policy
    is played from the first on, any legal move from the second on. NEVER: no time limit runs yet."""
    begins: float | None = task.at
    if task.go.waits:
        begins = None if task.go.infinite else signals.ponder_hit_time(task.number)
    policy = last = NEVER
    if begins is None:
        return policy, last
    if task.movetime is not None:
        policy = begins + task.movetime
        last = policy + LATE_FOR_POLICY
    if task.clock is not None:
        maximum = manager.budget(task.clock, task.own_moves).maximum
        policy = min(policy, begins + maximum)
        last = min(last, begins + max(maximum, LOADING_SHARE * task.clock.remaining))
    return policy, last


class BackgroundLoader:
    """Runs one function in a thread that a `go` can stop waiting for. Used by the working thread."""

    def __init__(self, signals: SearchSignals) -> None:
        self._signals = signals
        self._thread: threading.Thread | None = None

    @property
    def is_busy(self) -> bool:
        """True if a function was started and `finish` has not waited for it."""
        return self._thread is not None

    def load(self, make: Callable[[], object], until: Callable[[], float], number: int) -> bool:
        """Start `make`, or continue to wait for it. Return True if it has ended in time.

        until: returns the time when to stop waiting (perf_counter); called repeatedly. number: of
        the `go`; its stop also ends the waiting. Errors of `make` are ignored: its next caller
        will see them.
        """
        changed = self._signals.changed
        if self._thread is None:

            def run() -> None:
                with contextlib.suppress(Exception):
                    make()
                with changed:
                    changed.notify_all()

            self._thread = threading.Thread(target=run, name="loader", daemon=True)
            self._thread.start()
        with changed:
            while self._thread.is_alive() and not self._signals.is_stopped(number):
                left = until() - time.perf_counter()
                if left <= 0:
                    break
                changed.wait(min(left, LOOK_EVERY))
        return not self._thread.is_alive()

    def finish(self) -> None:
        """Wait until the function has ended; without effect in the thread that runs it."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
            self._thread = None


def has_time_to_look(task: SearchTask, manager: TimeManager, seconds: float) -> bool:
    """Return True if there is time for one evaluation of `seconds`: always if the clock leaves time for a
    search, otherwise if it takes at most the share TARGET_CAP of the remaining time."""
    from variant_ai.core.search.move.clock import TARGET_CAP

    clock = None if task.go.waits else task.clock
    if clock is None or manager.pace(clock, task.own_moves) != "at once":
        return True
    return seconds <= TARGET_CAP * (clock.remaining + clock.byoyomi - manager.overhead)


class LoadingProgress:
    """Prints how far loading is, whenever that has changed and an answer waits for it."""

    def __init__(self, is_over: Callable[[], bool], write: Callable[[str], None]) -> None:
        """is_over: whether everything is loaded, or nobody wants to know. Both are called in a thread
        of their own."""
        self._is_over = is_over
        self._write = write
        self._lock = threading.Lock()
        self._waiting = 0
        """Number of answers that wait."""
        self._last = ""
        self._has_timer = False

    def begin(self) -> None:
        """Count an answer that waits from now on."""
        with self._lock:
            self._waiting += 1
            self._last = ""
            self._start_timer()

    def end(self) -> None:
        """Count an answer that has been given."""
        with self._lock:
            self._waiting -= 1

    def _start_timer(self) -> None:
        """Start the timer if there is none; the caller holds the lock."""
        if not self._has_timer and not self._is_over():
            self._has_timer = True
            timer = threading.Timer(PROGRESS_EVERY, self._print)
            timer.daemon = True
            timer.start()

    def _print(self) -> None:
        with self._lock:
            self._has_timer = False
            if not self._waiting or self._is_over():
                return
            progress = compilation.latest()
            is_compiling = progress is not None and progress.done < progress.total
            text = str(progress) if is_compiling else "still loading"
            if text != self._last:
                self._write(text)
            self._last = text
            self._start_timer()
