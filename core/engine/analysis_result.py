"""Result of a search for programs: values, and moves as UCI text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from variant_ai.core.rules.game import Game
    from variant_ai.core.search.report import Report


@dataclass(frozen=True)
class Variation:
    """One move and its line of play. Values are those of the side to move."""

    move: str
    pv: tuple[str, ...]
    """Line of play, `move` first; every move is legal."""
    value: float
    """-1 (lost) to 1 (won)."""
    cp: int
    """The value in centipawns."""
    mate: int | None
    """Full moves to a proven end, negative when being mated."""
    wdl: tuple[float, float, float] | None
    """Probabilities of win, draw, loss; None if the net does not predict them."""
    visits: int
    prior: float
    """The net's probability of the move."""


@dataclass(frozen=True)
class Analysis:
    """Result of a search."""

    best: str | None
    """None if the game is over."""
    ponder: str | None
    """Expected reply."""
    lines: tuple[Variation, ...]
    """Moves that the search has visited, best first."""
    visits: int
    """Visits of this search; those of `lines` include the tree kept from earlier searches."""
    depth: int
    """Plies of the best line of play."""
    seconds: float
    stopped_by: str
    """Reason for the end: `simulations`, `movetime`, `solved`, … ; empty while it runs."""

    @property
    def value(self) -> float | None:
        """Value of the best move, -1 to 1; None without one."""
        return self.lines[0].value if self.lines else None


def analysis_of(game: Game, report: Report) -> Analysis:
    """Return the report of a search of the game's last position with moves as text."""
    text = game.rules.uci
    return Analysis(
        best=None if report.best is None else text(report.best),
        ponder=None if report.ponder is None else text(report.ponder),
        lines=tuple(
            Variation(
                move=text(line.move),
                pv=tuple(map(text, line.pv)),
                value=line.q,
                cp=line.cp,
                mate=line.mate_in,
                wdl=line.wdl,
                visits=line.visits,
                prior=line.prior,
            )
            for line in report.known_lines
        ),
        visits=report.visits,
        depth=report.depth,
        seconds=report.seconds,
        stopped_by=report.stopped_by,
    )
