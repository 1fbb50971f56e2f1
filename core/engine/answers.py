"""From what a search found to what a client is told: scores, chances, lines of play.

Clients that keep records trust two scores blindly: `cp 0` with a line of one move is a draw, and
`mate 1` a win. The first is shown only where it is one; the second the solver has proven.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from variant_ai.core.engine.protocols.uci import Info

if TYPE_CHECKING:
    from variant_ai.core.rules.game import Game
    from variant_ai.core.search.report import Line, Report

RESIGN_AFTER = 3
"""Own moves in a row with chances below the limit."""


@dataclass(frozen=True)
class Answer:
    """What came of one `go`."""

    move: str | None
    """UCI text, ranks from 1; None where the game is over."""
    ponder: str | None = None
    ended: int = 0
    """Where the game is over: 1 won by the side to move, 0 drawn, -1 lost."""
    verdict: str = ""
    """`draw`, `resign` or nothing."""
    lines: tuple[str, ...] = ()
    """The last lines of the search, printed with the move."""
    info: Info | None = None
    """Of the best line."""


def info_of(game: Game, report: Report, *, wdl: bool) -> Iterator[Info]:
    """One Info for each line of a report about the game's last position."""
    from variant_ai.core.rules.text.notation import uci

    rules = game.rules
    files = rules.spec.board.files
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
            pv=[uci(rules.types, files, move) for move in line.pv or (line.move,)],
        )


def shown_score(game: Game, line: Line) -> int:
    """Centipawns; never 0 with a line of one move unless that move makes the draw."""
    if line.cp != 0 or line.mate is not None or len(line.pv) > 1:
        return line.cp
    return 0 if _draws(game, line.move) else 1


def _draws(game: Game, move: int) -> bool:
    """Whether the move ends the game drawn. The game is the search's too and stays untouched, so
    who checked or chased in a repetition is not asked."""
    rules = game.rules
    after = rules.play(game.position, move)
    outcome = rules.outcome(after)
    if outcome is not None:
        return outcome.winner is None
    return game.times_seen(int(after["key"][0])) + 1 >= rules.spec.rules.repetition.fold


def per_mille(line: Line) -> tuple[int, int, int]:
    """Chances of win, draw and loss as whole numbers with the sum 1000.

    A net without them is taken to know wins and losses only.
    """
    if line.mate is not None:
        return (1000, 0, 0) if line.mate > 0 else (0, 0, 1000)
    win, draw, _ = line.wdl if line.wdl is not None else ((1 + line.q) / 2, 0.0, 0.0)
    won = min(max(round(win * 1000), 0), 1000)
    drawn = min(max(round(draw * 1000), 0), 1000 - won)
    return won, drawn, 1000 - won - drawn


def resigns(chances: Sequence[float], limit: int) -> bool:
    """Whether the chances (of the mover, in [0, 1], one for each of its moves) were below so many
    per cent often enough; 0 never resigns."""
    last = chances[-RESIGN_AFTER:]
    return limit > 0 and len(last) == RESIGN_AFTER and all(c * 100 < limit for c in last)


def account_of(report: Report, at: float) -> str:
    """What a search did that was asked for at `at` (perf_counter), for `debug on`."""
    return (
        f"stopped by {report.stopped_by or 'stop'} after {time.perf_counter() - at:.3f} s: "
        f"{report.visits} visits, {report.evaluations} evaluations, {report.terminals} terminals, "
        f"{report.collisions} collisions, {report.merges} merges, {report.tree_nodes} nodes"
    )
