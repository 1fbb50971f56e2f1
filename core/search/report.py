"""`Report`: the state of a search, while it runs and at its end.

All values are from the point of view of the side to move at the root, unless stated otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

WORST = 0.9999
"""Largest |value| used for centipawns: bf16 rounds 0.998 up to 1."""
LAMBDA = 1.2
"""λ of [CrazyAra-preprint] eq. 8."""
MAX_CENTIPAWNS = 5051
MATE = 32000
"""Score of having mated: mate in n own moves is `MATE - n`, being mated in n moves `n - MATE`."""
MATE_RANGE = 1000
"""Scores this close to MATE are mates."""


def value_of(cp: int) -> float:
    """Convert centipawns to a value in [-1, 1], the inverse of `centipawns`; 1 and -1 for mates."""
    if moves_to_mate(cp) is not None:
        return math.copysign(1.0, cp)
    return math.copysign(1.0 - LAMBDA ** (-abs(cp) / 100.0), cp)


def centipawns(value: float) -> int:
    """Convert a value in [-1, 1] to centipawns for the same side, rounded towards zero.

    cp = -sign(v) · ln(1 - |v|) / ln 1.2 · 100, with |v| at most 0.9999 ([CrazyAra-preprint] eq. 8,
    where the fraction bar is misprinted; [Xiangqi-thesis] table 5.4 confirms this formula). The
    result is between -5051 and 5051.
    """
    size = min(abs(value), WORST)
    return int(-math.copysign(1.0, value) * math.log(1.0 - size) / math.log(LAMBDA) * 100.0)


def moves_to_mate(score: int) -> int | None:
    """Full moves to mate of a score in centipawns, negative when being mated; None if it is no mate."""
    left = MATE - abs(score)
    if left >= MATE_RANGE:
        return None
    return left if score > 0 else -left


def full_moves(plies: int) -> int:
    """Convert plies to mate to full moves, as in protocols; the sign stays."""
    return (plies + 1) // 2 if plies > 0 else -((1 - plies) // 2)


def score_text(score: int) -> str:
    """Score as text: `+0.43` in pawns, or moves to mate `#3`, `#-2`."""
    mate = moves_to_mate(score)
    return f"{score / 100:+.2f}" if mate is None else f"#{mate}"


@dataclass(frozen=True)
class Line:
    """One move of the root and its line of play."""

    move: int
    pv: tuple[int, ...]
    """Line of play, `move` first; all moves are legal, and none follows the end of the game."""
    visits: int
    prior: float
    """Probability in [0, 1] after temperature, noise and enhanced checks."""
    q: float
    """Value of the move for the mover, -1 (lost) to 1 (won); exact if proven."""
    wdl: tuple[float, float, float] | None = None
    """Probabilities of win, draw, loss for the mover; None if the net has no such output."""
    cp: int = 0
    """`centipawns(q)`."""
    mate: int | None = None
    """Plies to the end of a proven game: positive if the mover wins, negative if it loses; None if
    nothing is proven, and for proven draws."""

    @property
    def is_known(self) -> bool:
        """True if the search has visited or proven the move; otherwise `q` is the net's value of the
        position before it, 0 if the net has not seen that either."""
        return self.visits > 0 or self.mate is not None

    @property
    def mate_in(self) -> int | None:
        """`mate` in full moves, as in protocols."""
        return None if self.mate is None else full_moves(self.mate)

    @property
    def score(self) -> int:
        """Score in centipawns for the mover; mates relative to MATE."""
        mate = self.mate_in
        if mate is None:
            return self.cp
        return MATE - mate if mate > 0 else -MATE - mate

    @property
    def score_text(self) -> str:
        """Score for the mover: `+0.43`, `#3`, `#-2`; empty for a move that was not searched."""
        return score_text(self.score) if self.is_known else ""

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
            "value": round(self.q, digits) + 0.0,  # no -0.0
            "cp": self.cp,
            "mate": self.mate_in,
            "wdl": None if self.wdl is None else [round(p, 4) for p in self.wdl],
            "visits": self.visits,
            "prior": round(self.prior, digits),
        }


@dataclass(frozen=True)
class Report:
    """State of a search. Except for `tree_nodes` and `hashfull`, numbers are of this search only."""

    best: int | None
    """Move to play; None if the game is over."""
    ponder: int | None = None
    """Expected reply."""
    lines: tuple[Line, ...] = ()
    """Best moves in the order of the final choice; at most `multipv`."""
    visits: int = 0
    """Visits of the root; called nodes in protocols."""
    evaluations: int = 0
    """Positions evaluated by the network."""
    terminals: int = 0
    """Visits that ended in a finished game."""
    collisions: int = 0
    """Descents discarded because their leaf was already pending."""
    merges: int = 0
    """Edges that led to a position which already had a node."""
    tree_nodes: int = 0
    """Nodes in the tree, including those kept from earlier searches."""
    depth: int = 0
    """Plies of the principal variation, at least as in earlier reports of the same search."""
    seldepth: int = 0
    """Plies of the longest line in the report, at least `depth`."""
    seconds: float = 0.0
    hashfull: int = 0
    """Share of the memory in use, per mille."""
    stopped_by: str = ""
    """Reason why it ended; empty while it runs.

    A limit: `simulations`, `evaluations`, `movetime`, `depth`, `mate`; or `stop`. `solved`: the root is
    proven, or every move that may be searched loses. `memory`: it is full; `counts`: more visits cannot
    be counted. `game over`, `raw network`: there was nothing to search. `player`: a program on the page has
    answered.
    """

    @property
    def known_lines(self) -> tuple[Line, ...]:
        """Lines of moves that are visited or proven; all lines if there are none, as when the raw
        policy plays without a search."""
        return tuple(line for line in self.lines if line.is_known) or self.lines

    @property
    def best_line(self) -> Line | None:
        """Line of the move to play; None if it is not among `lines`."""
        return next((line for line in self.lines if line.move == self.best), None)

    @property
    def nps(self) -> int:
        """Visits per second; 0 before any time has passed."""
        return int(self.visits / self.seconds) if self.seconds > 0 else 0


@dataclass
class Phases:
    """Time that a search spent in its phases, in seconds of the tree thread."""

    fill: float = 0.0
    """Collecting leaves: selection, rules and encoding."""
    complete: float = 0.0
    """Priors, expansion and backup."""
    wait: float = 0.0
    """Waiting for the evaluator."""
    batches: int = 0
    """Number of evaluated batches."""
    rows: int = 0
    """Number of positions in these batches."""
