"""Loads a search while a clock runs, and knows until when a move can wait for it."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from variant_ai.core.engine.running_search import Task
from variant_ai.core.engine.search_signals import Control

if TYPE_CHECKING:
    from variant_ai.core.search.move.clock import TimeManager

LOOK_EVERY = 0.05
"""Seconds between two looks at the loader."""
LATE_FOR_POLICY = 2.0
"""Seconds that a move for a fixed time may be late, if otherwise it would be any legal move."""
LOADING_SHARE = 0.25
"""Share of the clock that may be spent, once, on loading a net."""

Deadlines = tuple[float, float]
"""Times by perf_counter. If the search is still loading, the policy's move is played from the first on,
any legal move from the second on."""


def deadlines(task: Task, manager: TimeManager) -> Deadlines | None:
    """None if the client waits as long as it takes."""
    if task.go.waits or (task.movetime is None and task.clock is None):
        return None
    first = last = math.inf
    if task.movetime is not None:
        first = task.at + task.movetime
        last = first + LATE_FOR_POLICY
    if task.clock is not None:
        maximum = manager.budget(task.clock, task.own_moves).maximum
        first = min(first, task.at + maximum)
        last = min(last, task.at + max(maximum, LOADING_SHARE * task.clock.remaining))
    return first, last


class Loader:
    """Used by the working thread alone."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None

    @property
    def is_busy(self) -> bool:
        """True if something was begun that `finish` has not waited for."""
        return self._thread is not None

    def load(
        self, make: Callable[[], object], until: Callable[[], float], number: int, control: Control
    ) -> bool:
        """Begin `make`, or go on waiting for it. True if it has ended in time.

        until: when to give up waiting, by perf_counter; asked again and again. number: of the `go`,
        whose stop ends the waiting too. Errors are left to the next one who calls `make`.
        """
        if self._thread is None:

            def run() -> None:
                with contextlib.suppress(Exception):
                    make()
                with control.changed:
                    control.changed.notify_all()

            self._thread = threading.Thread(target=run, name="loader", daemon=True)
            self._thread.start()
        with control.changed:
            while self._thread.is_alive() and not control.is_stopped(number):
                left = until() - time.perf_counter()
                if left <= 0:
                    break
                control.wait(min(left, LOOK_EVERY))
        return not self._thread.is_alive()

    def finish(self) -> None:
        """Wait until `make` has ended. Does nothing in the thread that runs it."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
            self._thread = None
