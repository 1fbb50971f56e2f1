"""One search at a time: the limits of a `go`, the clock, and when the answer may be given.

`Search.run` blocks the working thread; beside it a thread of its own watches the clock and what
the reader says (`Control`), and calls `Search.stop`. It repeats the call until the search has
ended: a stop that comes before the search has begun is not lost.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from variant_ai.core.engine.command_queue import Control
from variant_ai.core.engine.commands import Go

if TYPE_CHECKING:
    from variant_ai.core.engine.engine_builder import Searching
    from variant_ai.core.search.move.clock import Budget, Clock, TimeManager
    from variant_ai.core.search.move.limits import Limits
    from variant_ai.core.search.report import Report

LEAST_SECONDS = 0.05
LEAST_SHARE = 1 / 30
"""A search may take this share of the time left, up to LEAST_SECONDS, however late it begins: on a
busy machine nearly all of a short time is gone before, and a move without one look at the net is
worth less than the time."""
STALL = 0.25
"""Seconds. A search that begins later than this after its `go` waited for something that is loaded
once, and its clock tells no lag."""
NEVER = math.inf


@dataclass(frozen=True)
class Task:
    """A `go` with what it depends on."""

    go: Go
    number: int
    at: float
    """When its line was read, by perf_counter."""
    side: int
    """Colour to move."""
    ply: int
    """Of the game, before the move."""
    legal_moves: int
    """Moves that may be played."""
    allowed: tuple[int, ...] | None = None
    """The only moves to search; None: all."""
    multipv: int = 1
    node_limit: int | None = None
    """From the options; stands beside the limit of the `go`."""
    fixed_movetime: float | None = None
    """Seconds for every move, instead of the clock."""
    overhead: float = 0.02

    @property
    def own_moves(self) -> int:
        """Moves the mover has made in the game."""
        return self.ply // 2

    @property
    def clock(self) -> Clock | None:
        """The mover's clock, None without one."""
        from variant_ai.core.search.move.clock import Clock

        index = 0 if self.go.relative else self.side
        left = self.go.times[index]
        if left is None or self.fixed_movetime is not None:
            return None
        moves = self.go.moves_to_go
        return Clock(
            left,
            max(self.go.increments[index] or 0.0, 0.0),
            moves if moves is not None and moves > 0 else None,
        )

    @property
    def movetime(self) -> float | None:
        """Seconds for this move by `movetime` or the option, less what the way back costs."""
        given = self.go.movetime
        if given is None and self.fixed_movetime is not None and not self.go.infinite:
            return self.fixed_movetime
        if given is None:
            return None
        return max(given - min(self.overhead, given / 10), 0.0)

    @property
    def nodes(self) -> int | None:
        limits = [n for n in (self.go.nodes, self.node_limit) if n is not None]
        return max(min(limits), 1) if limits else None

    @property
    def has_limit(self) -> bool:
        """Whether the search ends by itself once the clock may run."""
        go = self.go
        given = (go.depth, self.nodes, self.movetime, go.mate, self.clock)
        return any(limit is not None for limit in given)


class Searcher:
    """Runs tasks on a search, one after the other."""

    def __init__(self, control: Control) -> None:
        self.control = control

    def run(
        self,
        search: Searching,
        task: Task,
        manager: TimeManager,
        on_report: Callable[[Report], None],
    ) -> Report:
        """Search until a limit, the clock or the client ends it, and wait where the client wants
        to say when it gets the move. The game is set already."""
        clock = None if task.go.waits else task.clock
        if clock is None:
            manager.lag.forget_last()
            return self._searched(search, task, manager, on_report)[0]
        from variant_ai.core.search.move.timed_search import hurried

        manager.lag.shown(task.ply, clock.remaining)
        stalled = time.perf_counter() - task.at > STALL
        few = hurried(manager, clock, task.own_moves, task.movetime)
        if few is not None:
            report, meant = search.run(few, moves=task.allowed, multipv=task.multipv), 0.0
        else:
            report, meant = self._searched(search, task, manager, on_report)
        if not stalled:
            manager.lag.sent(task.ply, clock.remaining, clock.increment, meant)
        return report

    def _searched(
        self,
        search: Searching,
        task: Task,
        manager: TimeManager,
        on_report: Callable[[Report], None],
    ) -> tuple[Report, float]:
        """The report of a search that the clock's thread watches, and the seconds meant for it."""
        watch = _Watch(search, task, manager, self.control)
        thread = threading.Thread(target=watch.run, name="clock", daemon=True)
        thread.start()
        try:
            report = search.run(
                watch.limits(),
                moves=task.allowed,
                multipv=task.multipv,
                on_report=on_report,
            )
        finally:
            watch.end()
            thread.join()
        self._hold(task)
        return report, watch.meant

    def _hold(self, task: Task) -> None:
        """A search that ended by itself under `infinite` or `ponder` keeps its move."""
        control = self.control
        with control.changed:
            while task.go.waits and not control.is_stopped(task.number):
                if control.input_ended:
                    return
                if task.go.ponder and not task.go.infinite and control.hit(task.number):
                    return
                control.wait(None)


class _Watch:
    """Decides when one search stops."""

    def __init__(
        self, search: Searching, task: Task, manager: TimeManager, control: Control
    ) -> None:
        self.search = search
        self.task = task
        self.manager = manager
        self.control = control
        self._ended = threading.Event()
        self._started = task.at
        self._budget: Budget | None = None
        self._least_end = 0.0
        self._given = NEVER
        self._waiting = task.go.waits
        self.meant = 0.0
        """Seconds that the search took, as far as they were given to it; known once it has ended. What
        went before a late start was not."""
        if not self._waiting:
            self._start_clock(task.at)

    def limits(self) -> Limits:
        """What the search itself looks after. Under `infinite` and `ponder` that is nothing: the
        clock's thread applies the limits once they may count."""
        from variant_ai.core.search.move.limits import Limits

        task, go = self.task, self.task.go
        if self.control.is_stopped(task.number):
            return Limits(movetime=0.0)
        if self._waiting:
            return Limits(infinite=True)
        deadline = self._deadline()
        movetime = None
        if deadline < NEVER:
            movetime = max(deadline - time.perf_counter(), 0.0)
        return Limits(
            nodes=task.nodes,
            movetime=movetime,
            depth=None if go.depth is None else max(go.depth, 1),
            mate=None if go.mate is None else max(go.mate, 1),
        )

    def end(self) -> None:
        """The search has returned."""
        took = time.perf_counter() - self._started
        movetime = self.task.movetime
        self.meant = min(took, self._given, NEVER if movetime is None else movetime)
        self._ended.set()
        with self.control.changed:
            self.control.changed.notify_all()

    def run(self) -> None:
        """Watch until the search has ended."""
        from variant_ai.core.search.move.timed_search import PATIENCE

        control = self.control
        while not self._ended.is_set():
            if self._over():
                self.search.stop()
                self._ended.wait(PATIENCE)
                continue
            with control.changed:
                # A hit that came since `_over` looked has notified nobody.
                gone = self._ended.is_set() or control.is_stopped(self.task.number)
                if not gone and not (self._waiting and self._hit() is not None):
                    control.wait(self._pause())

    def _hit(self) -> float | None:
        """When the ponder hit came, if it has and lets the clock run."""
        return None if self.task.go.infinite else self.control.hit(self.task.number)

    def _pause(self) -> float | None:
        from variant_ai.core.search.move.timed_search import TICK, pause_within

        if self._waiting and not self.control.input_ended:
            return None
        now = time.perf_counter()
        left = max(self._deadline() - now, 0.0)
        return min(left, TICK if self._budget is None else pause_within(self._budget))

    def _deadline(self) -> float:
        """When the search must end by the time alone, by perf_counter."""
        movetime = self.task.movetime
        end = self._started + movetime if movetime is not None else NEVER
        if self._budget is not None:
            end = min(end, max(self._started + self._budget.maximum, self._least_end))
        return end

    def _start_clock(self, at: float) -> None:
        self._started = at
        clock = self.task.clock
        if clock is not None:
            self._budget = self.manager.budget(clock, self.task.own_moves)
            left = max(clock.remaining - self.task.overhead, 0.0)
            least = min(LEAST_SECONDS, LEAST_SHARE * left)
            self._least_end = time.perf_counter() + least
            self._given = max(self._budget.maximum, least)

    def _over(self) -> bool:
        control, task = self.control, self.task
        if control.is_stopped(task.number):
            return True
        if self._waiting:
            if control.input_ended:
                return True
            hit = self._hit()
            if hit is None:
                return False
            self._waiting = False
            self._start_clock(hit)
        if control.input_ended and not task.has_limit:
            return True
        if time.perf_counter() >= self._deadline():
            return True
        if task.go.ponder and self._limit_met():
            return True
        return self._budget is not None and self._decided(self._budget)

    def _limit_met(self) -> bool:
        """Limits that the search was not told of, because they count from the ponder hit on."""
        task, go = self.task, self.task.go
        if task.nodes is None and go.depth is None and go.mate is None:
            return False
        report = self.search.report(1)
        if report.stopped_by:  # nothing is left to find out, so no limit would ever be met
            return True
        if task.nodes is not None and report.visits >= task.nodes:
            return True
        if go.depth is not None and report.depth >= max(go.depth, 1):
            return True
        mate = report.lines[0].mate_in if report.lines else None
        return go.mate is not None and mate is not None and 0 < mate <= max(go.mate, 1)

    def _decided(self, budget: Budget) -> bool:
        """Whether the clock's rules for easy and decided positions end the search."""
        from variant_ai.core.search.move.timed_search import LINES_WATCHED, progress_of

        report = self.search.report(LINES_WATCHED, pv=False)
        progress = progress_of(report, time.perf_counter() - self._started)
        if progress is None:
            return False  # one look at the position, for the score, unless the time is over
        if self.manager.verdict(budget, progress, self.task.legal_moves) is not None:
            return True
        # after a ponder hit the search does not know that it may end once the game is decided
        return self.task.go.ponder and report.known_lines[0].mate is not None


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
