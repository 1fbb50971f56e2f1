"""Answers to a `go`: move, scores, chances and lines, computed from the report of a search.

Clients that keep records rely on two scores: `cp 0` with a line of one move is a draw, and `mate 1`
a win. So the first is shown for real draws only; the second is proven by the solver.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from variant_ai.core.engine.protocols.uci import Info
from variant_ai.core.system.text_tables import counted

if TYPE_CHECKING:
    from variant_ai.core.rules.game import Game
    from variant_ai.core.search.report import Line, Report

RESIGN_AFTER = 3
"""Own moves in a row with chances below the limit."""


@dataclass(frozen=True)
class Answer:
    """Result of one `go`."""

    move: str | None
    """UCI text, ranks from 1; None if the game is over."""
    ponder: str | None = None
    """Expected reply."""
    report: Report | None = None
    infos: tuple[Info, ...] = ()
    """One for each line of the report, best first."""
    result: int = 0
    """If the game is over: 1 won by the side to move, 0 drawn, -1 lost."""


def infos_of(game: Game, report: Report, *, wdl: bool) -> Iterator[Info]:
    """Yield one Info for each line of a report on the game's last position."""
    milliseconds = int(report.seconds * 1000)
    for rank, line in enumerate(report.known_lines, 1):
        yield Info(
            depth=max(report.depth, 1),
            seldepth=max(report.seldepth, len(line.pv), 1),
            rank=rank,
            cp=shown_score(game, line),
            mate=line.mate_in,
            wdl=per_mille(line) if wdl else None,
            nodes=report.visits,
            nps=int(report.visits * 1000 / max(milliseconds, 1)),
            hashfull=min(max(report.hashfull, 0), 1000),
            milliseconds=milliseconds,
            pv=[game.rules.uci(move) for move in line.pv or (line.move,)],
        )


def shown_score(game: Game, line: Line) -> int:
    """Return centipawns; never 0 with a line of one move unless that move draws."""
    if line.cp != 0 or line.mate is not None or len(line.pv) > 1:
        return line.cp
    return 0 if _draws(game, line.move) else 1


def _draws(game: Game, move: int) -> bool:
    """True if the move ends the game drawn. The search uses the same game object, so it is not
    changed, and checks and chases in a repetition are not considered."""
    rules = game.rules
    after = rules.play(game.position, move)
    outcome = rules.outcome(after)
    if outcome is not None:
        return outcome.winner is None
    return game.times_seen(int(after["key"][0])) + 1 >= rules.spec.rules.repetition.fold


def per_mille(line: Line) -> tuple[int, int, int]:
    """Return the chances of win, draw and loss as whole numbers with the sum 1000.

    For a net that does not predict them, a draw is assumed to be impossible.
    """
    if line.mate is not None:
        return (1000, 0, 0) if line.mate > 0 else (0, 0, 1000)
    win, draw, _ = line.wdl if line.wdl is not None else ((1 + line.q) / 2, 0.0, 0.0)
    won = min(max(round(win * 1000), 0), 1000)
    drawn = min(max(round(draw * 1000), 0), 1000 - won)
    return won, drawn, 1000 - won - drawn


def resigns(chances: Sequence[float], limit: int) -> bool:
    """Return True if the last chances (of the engine, in [0, 1], one for each of its moves) were all
    below the limit in per cent; 0 never resigns."""
    last = chances[-RESIGN_AFTER:]
    return limit > 0 and len(last) == RESIGN_AFTER and all(c * 100 < limit for c in last)


def debug_line(report: Report, at: float) -> str:
    """Return a summary of a search that was requested at `at` (perf_counter), for `debug on`."""
    return (
        f"stopped by {report.stopped_by or 'stop'} after {time.perf_counter() - at:.3f} s: "
        f"{report.visits} visits, {counted(report.evaluations, 'evaluation')}, {report.terminals} terminals, "
        f"{counted(report.collisions, 'collision')}, {counted(report.merges, 'merge')}, {counted(report.tree_nodes, 'node')}"
    )
