"""Search with a clock: a thread checks the search's reports and stops it by `TimeManager`'s rules."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

from variant_ai.core.search.interface import BaseSearch
from variant_ai.core.search.move.clock import Budget, Clock, Progress, TimeManager
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.report import Report

TICK = 0.05
"""Longest pause between two checks of the search, in seconds."""
LEAST_TICK = 0.004
"""Shortest pause, in seconds."""
TICKS = 20
"""Number of checks within the target time."""
PATIENCE = 0.002
"""Seconds between two calls of `stop`: a call before the search has started has no effect."""
LINES_WATCHED = 3
"""Number of root moves used for the verdict."""
LOOK_SHARE = 1 / 6
"""Share of the remaining time that a single evaluation may take: a large net may need more, and would
then use up the time without a result."""


def progress_of(report: Report, elapsed: float) -> Progress | None:
    """Return the progress of a search for `TimeManager.verdict`; None if there are no visits yet.

    report: report with LINES_WATCHED lines. elapsed: seconds since the clock started.
    """
    lines = report.known_lines
    if not lines or not report.visits:
        return None
    by_visits = sorted((line.visits for line in lines), reverse=True)
    top = max(lines, key=lambda line: line.prior)
    return Progress(
        elapsed=elapsed,
        q=lines[0].q,
        top_prior=top.prior,
        top_prior_leads=top.q >= max(line.q for line in lines),
        leader_visits=by_visits[0],
        second_visits=by_visits[1] if len(by_visits) > 1 else 0,
        leader_chosen=lines[0].visits == by_visits[0],
        visits_per_second=report.visits / report.seconds if report.seconds > 0 else 0.0,
    )


def hurried(
    manager: TimeManager, clock: Clock, own_moves: int, movetime: float | None
) -> Limits | None:
    """Return the limits of a move for which there is hardly any time; None if there is enough.

    movetime: other limit of the time for the move, in seconds; None: there is none.
    """
    pace = manager.pace(clock, own_moves)
    if pace == "search":
        return None
    if pace == "at once":
        return Limits(movetime=0.0)
    look = max(LOOK_SHARE * (clock.remaining - manager.overhead), 0.0)
    return Limits(evaluations=1, movetime=look if movetime is None else min(look, movetime))


def pause_within(budget: Budget) -> float:
    """Return the seconds between two checks of a search with this budget."""
    return max(LEAST_TICK, min(TICK, budget.target / TICKS))


def run_on_clock(
    search: BaseSearch,
    manager: TimeManager,
    clock: Clock,
    limits: Limits,
    *,
    ply: int,
    legal_moves: int,
) -> Report:
    """Search the present game for as long as the clock allows.

    limits: other limits; the first one reached ends the search. ply: ply of the game before the move.
    legal_moves: number of legal moves.
    """
    own_moves = ply // 2
    manager.lag.shown(ply, clock.remaining)
    few = hurried(manager, clock, own_moves, limits.movetime)
    meant = 0.0
    if few is not None:
        report = search.run(few)
        if not (report.visits or report.evaluations or any(one.is_known for one in report.lines)):
            report = search.run(Limits(evaluations=1))  # better late than any legal move
    else:
        budget = manager.budget(clock, own_moves)
        latest = budget.maximum if limits.movetime is None else min(budget.maximum, limits.movetime)
        ended = threading.Event()
        arguments = search, manager, budget, legal_moves, ended
        watch = threading.Thread(target=_watch, args=arguments, name="clock", daemon=True)
        watch.start()
        began = time.perf_counter()
        try:
            report = search.run(replace(limits, movetime=latest))
        finally:
            ended.set()
            watch.join()
        meant = min(time.perf_counter() - began, latest)
    manager.lag.sent(ply, clock.remaining, clock.increment, meant)
    best = report.lines[0] if report.lines else None
    if best is not None and best.is_known:
        manager.played(best.q)
    return report


def _watch(
    search: BaseSearch,
    manager: TimeManager,
    budget: Budget,
    legal_moves: int,
    ended: threading.Event,
) -> None:
    """Stop a search by `TimeManager.verdict`; returns once `ended` is set."""
    began = time.perf_counter()
    while not ended.wait(pause_within(budget)):
        elapsed = time.perf_counter() - began
        progress = progress_of(search.report(LINES_WATCHED, pv=False), elapsed)
        if progress is not None and manager.verdict(budget, progress, legal_moves) is not None:
            stop_until(ended, search)


def stop_until(ended: threading.Event, search: BaseSearch) -> None:
    """Stop a search until it has ended: a call before it has begun has no effect."""
    while not ended.is_set():
        search.stop()
        ended.wait(PATIENCE)
