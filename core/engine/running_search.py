"""One `go`: its limits and options, its search, and the time when that must stop.

`Search.run` blocks the working thread. A second thread, the `_SearchTimer`, watches the clock and
the client's signals (`SearchSignals`) and calls `Search.stop`. It repeats the call until the search
has ended, because a stop before the search has begun has no effect.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from variant_ai.core.engine.commands import Go
from variant_ai.core.engine.search_signals import SearchSignals

if TYPE_CHECKING:
    from variant_ai.core.search.interface import BaseSearch
    from variant_ai.core.search.move.clock import Budget, Clock, TimeManager
    from variant_ai.core.search.move.limits import Limits
    from variant_ai.core.search.report import Report

NEVER = math.inf
"""Time of something that does not happen."""


@dataclass(frozen=True)
class SearchTask:
    """A `go` with everything that its search depends on."""

    go: Go
    number: int
    at: float
    """Time when its line was read, by perf_counter."""
    side: int
    """Colour to move."""
    ply: int
    """Plies of the game before the move."""
    legal_moves: int
    """Number of moves to choose from."""
    allowed: tuple[int, ...] | None = None
    """The only moves to search; None: all."""
    multipv: int = 1
    node_limit: int | None = None
    """Limit of the options, in addition to that of the `go`."""
    fixed_movetime: float | None = None
    """Seconds for every move, instead of the clock."""
    overhead: float = 0.02

    @property
    def own_moves(self) -> int:
        """Moves that the player has made in the game."""
        return self.ply // 2

    @property
    def clock(self) -> Clock | None:
        """Clock of the player to move, None without one."""
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
            max(self.go.byoyomi or 0.0, 0.0),
        )

    @property
    def movetime(self) -> float | None:
        """Seconds for this move: those of `movetime` less `Move Overhead` (at most a tenth), otherwise those of
        the option `Fixed_Movetime`; None without either."""
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
    def depth(self) -> int | None:
        """Plies of the best line."""
        return None if self.go.depth is None else max(self.go.depth, 1)

    @property
    def mate(self) -> int | None:
        """Full moves until mate."""
        return None if self.go.mate is None else max(self.go.mate, 1)

    @property
    def has_limit(self) -> bool:
        """True if the search ends by itself once its clock runs."""
        given = (self.depth, self.nodes, self.movetime, self.mate, self.clock)
        return any(limit is not None for limit in given)


LEAST_SECONDS = 0.05
LEAST_SHARE = 1 / 30
"""A search may use this share of the time left, up to LEAST_SECONDS, however late it begins: on a
busy machine nearly all of a short time is over by then, and a move without one evaluation is worth
less than the time."""
LATE_START = 0.25
"""Seconds. A search that begins later than this after its `go` waited for something that is loaded
once; its clock is not used to measure the lag."""


def run_search(
    search: BaseSearch,
    task: SearchTask,
    manager: TimeManager,
    signals: SearchSignals,
    on_report: Callable[[Report], None],
) -> Report:
    """Search the game that is set until a limit, the clock or the client ends it. For `infinite` and
    `ponder`, return only when the client allows the answer."""
    clock = None if task.go.waits else task.clock
    if clock is None:
        manager.lag.forget_last()
        return _SearchTimer(search, task, manager, signals).search_beside(on_report)
    from variant_ai.core.search.move.timed_search import hurried

    manager.lag.shown(task.ply, clock.remaining)
    is_late = time.perf_counter() - task.at > LATE_START
    few = hurried(manager, clock, task.own_moves, task.movetime)
    if few is not None:
        report, meant = search.run(few, moves=task.allowed, multipv=task.multipv), 0.0
    else:
        timer = _SearchTimer(search, task, manager, signals)
        report, meant = timer.search_beside(on_report), timer.meant
    if not is_late:
        manager.lag.sent(task.ply, clock.remaining, clock.increment, meant)
    return report


class _SearchTimer:
    """Decides when one search stops."""

    def __init__(
        self,
        search: BaseSearch,
        task: SearchTask,
        manager: TimeManager,
        signals: SearchSignals,
    ) -> None:
        self.search = search
        self.task = task
        self.manager = manager
        self.signals = signals
        self._ended = threading.Event()
        self._started = task.at
        self._budget: Budget | None = None
        self._least_end = 0.0
        self._available = NEVER
        self._waiting = task.go.waits
        self.meant = 0.0
        """Seconds that the search took, as far as the clock allowed them; known once it has ended.
        Time lost before a late start is not included."""
        if not self._waiting:
            self._start_clock(task.at)

    def search_beside(self, on_report: Callable[[Report], None]) -> Report:
        """Return the report of the search, with the timer beside it."""
        task = self.task
        thread = threading.Thread(target=self.run, name="clock", daemon=True)
        thread.start()
        try:
            report = self.search.run(
                self.limits(), moves=task.allowed, multipv=task.multipv, on_report=on_report
            )
        finally:
            self.end()
            thread.join()
        self.signals.wait_for_release(task.go, task.number)
        return report

    def limits(self) -> Limits:
        """Return the limits that the search itself checks. Under `infinite` and `ponder` there are
        none: the timer applies them when they may count. Only the limit of the options, which weakens a
        player, also holds on the opponent's time."""
        from variant_ai.core.search.move.limits import Limits

        task, go = self.task, self.task.go
        if self.signals.is_stopped(task.number):
            return Limits(movetime=0.0)
        if self._waiting:
            if go.ponder and task.node_limit is not None:
                return Limits(nodes=max(task.node_limit, 1))
            return Limits(infinite=True)
        deadline = self._deadline()
        movetime = None
        if deadline < NEVER:
            movetime = max(deadline - time.perf_counter(), 0.0)
        return Limits(
            nodes=task.nodes,
            movetime=movetime,
            depth=task.depth,
            mate=task.mate,
        )

    def end(self) -> None:
        """Note that the search has returned."""
        took = time.perf_counter() - self._started
        movetime = self.task.movetime
        self.meant = min(took, self._available, NEVER if movetime is None else movetime)
        self._ended.set()
        with self.signals.changed:
            self.signals.changed.notify_all()

    def run(self) -> None:
        """Watch until the search has ended."""
        from variant_ai.core.search.move.timed_search import PATIENCE

        signals = self.signals
        while not self._ended.is_set():
            if self._must_stop():
                self.search.stop()
                self._ended.wait(PATIENCE)
                continue
            with signals.changed:
                # A ponder hit that came after `_must_stop` has notified nobody.
                gone = self._ended.is_set() or signals.is_stopped(self.task.number)
                if not gone and not (self._waiting and self._ponder_hit() is not None):
                    signals.changed.wait(self._pause())

    def _ponder_hit(self) -> float | None:
        """Time of the ponder hit, if there was one that starts the clock."""
        return None if self.task.go.infinite else self.signals.ponder_hit_time(self.task.number)

    def _pause(self) -> float | None:
        from variant_ai.core.search.move.timed_search import TICK, pause_within

        if self._waiting and not self.signals.input_ended:
            return None
        now = time.perf_counter()
        left = max(self._deadline() - now, 0.0)
        return min(left, TICK if self._budget is None else pause_within(self._budget))

    def _deadline(self) -> float:
        """Latest end by time alone, by perf_counter."""
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
            self._available = max(self._budget.maximum, least)

    def _must_stop(self) -> bool:
        signals, task = self.signals, self.task
        if signals.is_stopped(task.number):
            return True
        if self._waiting:
            if signals.input_ended:
                return True
            hit = self._ponder_hit()
            if hit is None:
                return False
            self._waiting = False
            self._start_clock(hit)
        if signals.input_ended and not task.has_limit:
            return True
        if time.perf_counter() >= self._deadline():
            return True
        if task.go.ponder and self._limit_met():
            return True
        return self._budget is not None and self._is_decided(self._budget)

    def _limit_met(self) -> bool:
        """Return True if nothing is left to search, or a limit is met. The search checks neither, because
        both count from the ponder hit on."""
        task = self.task
        if self.search.report(1, pv=False).stopped_by:
            return True
        if task.nodes is None and task.depth is None and task.mate is None:
            return False
        report = self.search.report(1)
        if task.nodes is not None and report.visits >= task.nodes:
            return True
        from variant_ai.core.search.move.variations import line_limit

        return bool(line_limit(self.search.game, report, task.depth, task.mate))

    def _is_decided(self, budget: Budget) -> bool:
        """Return True if the clock's rules for easy and decided positions end the search."""
        from variant_ai.core.search.move.timed_search import LINES_WATCHED, progress_of

        report = self.search.report(LINES_WATCHED, pv=False)
        progress = progress_of(report, time.perf_counter() - self._started)
        if progress is None:
            return False  # at least one evaluation, for the score, unless the time is over
        if self.manager.verdict(budget, progress, self.task.legal_moves) is not None:
            return True
        # after a ponder hit the search does not know that it may end once the game is decided
        return self.task.go.ponder and report.known_lines[0].mate is not None
