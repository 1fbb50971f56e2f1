"""Record of a game, as readers yield it and stores return it.

Moves are move integers (`core/rules/position.py`). Their legality was checked when the game was
imported or generated, and is not checked again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from variant_ai.core.search.report import MATE as MATE  # noqa: PLC0414  (part of a record: see `scores`)

Result = Literal["1-0", "0-1", "1/2-1/2", "*"]
"""Result as in PGN: the first player comes first, `*` is unknown or unfinished."""

RESULTS: tuple[Result, ...] = ("1-0", "0-1", "1/2-1/2", "*")
LOST_BY: tuple[Result, Result] = ("0-1", "1-0")
"""Result of a game that this colour lost."""

Labels = Literal["move", "visits"]
"""Target of a policy: the move played, or the visits of a search."""

MAX_VISITS = (1 << 32) - 1
"""Visits of one move."""
FULL_WEIGHT = 65_535
"""Sum of the weights of a policy target."""
TRAINS_POLICY, TRAINS_VALUE = 1, 2
"""A position whose policy may be learnt; one whose value may be learnt from the result of its game."""
TRAINS_ALL = TRAINS_POLICY | TRAINS_VALUE
MAX_GENERATION = (1 << 31) - 1
PlyVisits = tuple[tuple[int, int], ...]
"""Visits of a search at a ply: (move integer, visits from 1) of every move kept, in any order (usually
the most visited first); empty without a search."""


def points_of(result: Result) -> float:
    """Points of the first player; half a point for a game without a result."""
    return 1.0 if result == "1-0" else 0.0 if result == "0-1" else 0.5


def whole_weights(moves: Sequence[int], shares: Sequence[float]) -> PlyVisits:
    """Write a policy target in whole numbers that add up to FULL_WEIGHT: rounded down, and one more for
    those with the largest remainders. Moves left with nothing are left out. moves: M move integers.
    shares: M numbers, of each move, adding up to 1."""
    # lists, because arrays of a few moves take several times as long
    exact = [share * FULL_WEIGHT for share in shares]
    weights = [int(weight) for weight in exact]
    rest = max(FULL_WEIGHT - sum(weights), 0)
    lost = [weight - given for weight, given in zip(weights, exact, strict=True)]
    for index in sorted(range(len(lost)), key=lost.__getitem__)[:rest]:
        weights[index] += 1
    return tuple((move, weight) for move, weight in zip(moves, weights, strict=True) if weight > 0)


MOVE_LIMIT = "adjudicated: move limit"
"""Termination of a generated game or a game of a match that was ended at its greatest length as a draw."""
CAPPED = "max plies"
"""Termination of a game of self-play that reached its greatest length; its result is no value target."""
OPENING_TAG = "OpeningPlies"
"""Header with the number of first plies that neither player chose."""


@dataclass(slots=True)
class GameRecord:
    """A game. Texts are those of the source, `''` if missing.

    The first player is `white` in every variant (Red, sente).
    """

    variant: str
    moves: list[int] = field(default_factory=list)
    """Move integers from the start position."""
    start_fen: str | None = None
    """Position before the first move; None is the start position of the variant."""
    result: Result = "*"
    white: str = ""
    black: str = ""
    white_elo: int | None = None
    black_elo: int | None = None
    date: str = ""
    """`2008.05.31`, with `??` for unknown parts (`1955.05.??`); `''` if the year is unknown."""
    event: str = ""
    site: str = ""
    round: str = ""
    eco: str = ""
    """Opening code of the source (ECO, ECCO)."""
    time_control: str = ""
    termination: str = ""
    """Kind of ending as in the source: `normal`, `time forfeit`, `abandoned`, `checkmate`."""
    group: str = ""
    """Split key: games of one group stay together in a split. `''`: a group by itself."""
    source: str = ""
    """File of the game, `archive.tar.xz!member.pgn` for a member of an archive."""
    number: int = 0
    """Number of the game in its source, from 1; 0 if unknown."""
    scores: list[int | None] | None = None
    """Per ply, centipawns from the view of the player who made the move; see MATE."""
    clocks: list[int | None] | None = None
    """Per ply, milliseconds left after the move to the player who made it."""
    visits: list[PlyVisits] | None = None
    """Per ply, visits of a search, or the weights of a policy target, which add up to FULL_WEIGHT;
    None if none were kept."""
    root_values: list[float | None] | None = None
    """Per ply, value of the search for the player to move, in [-1, 1]: the mean of the root, or that of
    the move chosen; None if unknown."""
    trains: list[int] | None = None
    """Per ply, what may be learnt from the position: TRAINS_POLICY + TRAINS_VALUE. 0: nothing; without
    TRAINS_VALUE the root value may still be learnt, but not the result. None: TRAINS_ALL."""
    generation: int | None = None
    """Number of the net that played the game in a run of self-play; None for other games."""
    comments: dict[int, str] = field(default_factory=dict)
    """Ply of a move (0 is the first) to the comment on it, `-1` before the first move. Scores and
    clocks are not repeated here."""
    tags: dict[str, str] = field(default_factory=dict)
    """Headers without a field of their own."""

    @property
    def plies(self) -> int:
        return len(self.moves)

    @property
    def opening_plies(self) -> int:
        """First plies that neither player chose (a line given to both players, random moves), from the
        header `OpeningPlies`; 0 if it is missing or not a number."""
        text = self.tags.get(OPENING_TAG, "")
        return int(text) if text.isdecimal() and text.isascii() and len(text) < 6 else 0

    @property
    def year(self) -> int | None:
        """Year of `date`, None if unknown."""
        match = re.match(r"[0-9]{4}", self.date)
        return int(match[0]) if match else None

    @property
    def value(self) -> int | None:
        """Result for the first player: 1 won, 0 drawn, -1 lost, None unknown."""
        return {"1-0": 1, "0-1": -1, "1/2-1/2": 0}.get(self.result)
