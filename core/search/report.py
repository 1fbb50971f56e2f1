"""What a search says of itself, while it runs and at its end.

Every value is seen from the side to move at the root unless it says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

WORST = 0.9999
"""|value| from which centipawns grow no more: bf16 rounds 0.998 up to 1."""
LAMBDA = 1.2
"""λ of equation 8."""
MAX_CENTIPAWNS = 5051
MATE = 32000
"""Score of having mated: mate in n own moves is `MATE - n`, being mated in n moves `n - MATE`."""
MATE_RANGE = 1000
"""Scores this close to MATE are mates."""


def centipawns(value: float) -> int:
    """A value in [-1, 1] as centipawns from the same side, cut toward zero.

    cp = -sign(v) · ln(1 - |v|) / ln 1.2 · 100, with |v| at most 0.9999 (000 eq. 8; the fraction bar
    is misprinted there, thesis table 5.4 shows this reading). From -5051 to 5051.
    """
    size = min(abs(value), WORST)
    return int(-math.copysign(1.0, value) * math.log(1.0 - size) / math.log(LAMBDA) * 100.0)


def moves_to_mate(score: int) -> int | None:
    """Full moves to mate of a score in centipawns, negative when being mated; None if it is no mate."""
    left = MATE - abs(score)
    if left >= MATE_RANGE:
        return None
    return left if score > 0 else -left


def score_text(score: int) -> str:
    """Score as text: `+0.43` in pawns, or moves to mate `#3`, `#-2`."""
    mate = moves_to_mate(score)
    return f"{score / 100:+.2f}" if mate is None else f"#{mate}"


@dataclass(frozen=True)
class Line:
    """One move of the root and what follows it."""

    move: int
    pv: tuple[int, ...]
    """The line of play, `move` first; every move is legal and none follows the end of the game."""
    visits: int
    prior: float
    """Probability in [0, 1] after temperature, noise and enhanced checks."""
    q: float
    """Value of the move for the mover, -1 (lost) to 1 (won); the solver's where it is proven."""
    wdl: tuple[float, float, float] | None = None
    """Probabilities of win, draw, loss for the mover; None where the net has none."""
    cp: int = 0
    """`centipawns(q)`."""
    mate: int | None = None
    """Plies to the end of a proven game: positive where the mover wins, negative where it loses;
    None where nothing is proven (proven draws too)."""

    @property
    def is_known(self) -> bool:
        """Whether the search looked at the move at all: if not, `q` is 0 and means nothing."""
        return self.visits > 0 or self.mate is not None

    @property
    def mate_in(self) -> int | None:
        """The same in full moves, as protocols want it."""
        if self.mate is None:
            return None
        return (self.mate + 1) // 2 if self.mate > 0 else -((-self.mate + 1) // 2)

    @property
    def score(self) -> int:
        """Score in centipawns for the mover; mates relative to MATE."""
        mate = self.mate_in
        if mate is None:
            return self.cp
        return MATE - mate if mate > 0 else -MATE - mate

    @property
    def score_text(self) -> str:
        """Score for the mover: `+0.43`, `#3`, `#-2`."""
        return score_text(self.score)

    @property
    def wdl_text(self) -> str:
        """Win, draw and loss in per cent, `41 38 21`; empty if the net has none."""
        return " ".join(f"{100 * p:.0f}" for p in self.wdl) if self.wdl else ""

    def as_json(self, text: Callable[[int], str], *, digits: int = 5) -> dict[str, Any]:
        """Fields for JSON, from the mover's point of view. text: writes a move. digits: decimal places
        of value and prior."""
        return {
            "move": text(self.move),
            "pv": [text(move) for move in self.pv],
            "value": round(self.q, digits),
            "cp": self.cp,
            "mate": self.mate_in,
            "wdl": None if self.wdl is None else [round(p, 4) for p in self.wdl],
            "visits": self.visits,
            "prior": round(self.prior, digits),
        }


@dataclass(frozen=True)
class Report:
    """State of a search. All counts are of this search, the tree's size apart."""

    best: int | None
    """The move to play; None where the game is over."""
    ponder: int | None = None
    """The answer expected."""
    lines: tuple[Line, ...] = ()
    """Best first, as the final choice ranks them; as many as were asked for."""
    visits: int = 0
    """Visits of the root: what protocols call nodes."""
    evaluations: int = 0
    """Positions the network saw."""
    terminals: int = 0
    """Visits that ended in a finished game."""
    collisions: int = 0
    """Selections thrown away because the leaf was at the network already."""
    merges: int = 0
    """Edges that met a position which had a node."""
    tree_nodes: int = 0
    """Nodes in the tree, those kept from earlier searches included."""
    depth: int = 0
    """Plies of the principal variation, never less than in an earlier report of the same search."""
    seldepth: int = 0
    """Plies of the longest line shown, at least `depth`."""
    seconds: float = 0.0
    hashfull: int = 0
    """Share of the memory in use, per mille."""
    stopped_by: str = ""
    """Why it ended: `simulations`, `evaluations`, `movetime`, `depth`, `mate`, `stop`, `solved`,
    `memory`, `counts`, `one move`, `game over`, `raw network`; empty while it runs."""

    @property
    def known_lines(self) -> tuple[Line, ...]:
        """Those of moves that the search looked at; all where it looked at none, as a policy does
        that plays without a search."""
        return tuple(line for line in self.lines if line.is_known) or self.lines

    @property
    def nps(self) -> int:
        """Visits a second, 0 before any time has passed."""
        return int(self.visits / self.seconds) if self.seconds > 0 else 0


@dataclass
class Phases:
    """Seconds that a search spent on what, of the tree thread unless it says otherwise."""

    fill: float = 0.0
    """Selection, rules and encoding: gathering leaves."""
    complete: float = 0.0
    """Priors, expansion and back-up."""
    wait: float = 0.0
    """For the evaluator."""
    network: float = 0.0
    """Of the evaluator's threads."""
    batches: int = 0
    """Batches evaluated."""
    rows: int = 0
    """Positions in them."""
