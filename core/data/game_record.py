"""One game as every room knows it: what a reader yields and what a store gives back.

Moves are move integers (`core/rules/position.py`) that were proven legal once, when the game was
imported or generated; nothing above asks again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from variant_ai.core.search.report import MATE as MATE  # noqa: PLC0414  (part of a record: see `scores`)

Result = Literal["1-0", "0-1", "1/2-1/2", "*"]
"""As PGN writes it; the first player is named first, `*` is unknown or unfinished."""

RESULTS: tuple[Result, ...] = ("1-0", "0-1", "1/2-1/2", "*")

Labels = Literal["move", "visits"]
"""What a policy learns: the move played, or how often a search visited each move."""

MOST_VISITS = (1 << 32) - 1
"""Of one move."""
PlyVisits = tuple[tuple[int, int], ...]
"""What a search found at a ply: (move integer, visits from 1) of every move kept, in any order (ours
write the most visited first); empty where nothing was searched."""

OPENING_TAG = "OpeningPlies"
"""Header with the number of first plies that neither player chose."""


@dataclass(slots=True)
class GameRecord:
    """A game. Texts are as the source had them, `''` where it was silent.

    The first player is `white` whatever the variant calls it (Red, sente).
    """

    variant: str
    moves: list[int] = field(default_factory=list)
    """Move integers from the start position on."""
    start_fen: str | None = None
    """Position before the first move; None is the variant's own start position."""
    result: Result = "*"
    white: str = ""
    black: str = ""
    white_elo: int | None = None
    black_elo: int | None = None
    date: str = ""
    """`2008.05.31`, with `??` for what is unknown (`1955.05.??`); `''` where even the year is."""
    event: str = ""
    site: str = ""
    round: str = ""
    eco: str = ""
    """Opening code of the source (ECO, ECCO)."""
    time_control: str = ""
    termination: str = ""
    """How it ended in the source's words: `normal`, `time forfeit`, `abandoned`, `checkmate`."""
    group: str = ""
    """Split key: games of one group stay on one side of a split. `''`: a group of its own."""
    source: str = ""
    """File the game came from, as `archive.tar.xz!member.pgn` where it lay in an archive."""
    number: int = 0
    """Which game of its source it is, from 1; 0 where that has no meaning."""
    scores: list[int | None] | None = None
    """Per ply, centipawns from the point of view of the player who made the move; see MATE."""
    clocks: list[int | None] | None = None
    """Per ply, milliseconds left on the clock of the player who made the move, after it."""
    visits: list[PlyVisits] | None = None
    """Per ply, how often a search visited the moves of the position; None where no ply was searched
    or nobody kept it."""
    comments: dict[int, str] = field(default_factory=dict)
    """Ply of a move (0 is the first) to the words about it, `-1` those before the first move.
    Scores and clocks are not repeated here."""
    tags: dict[str, str] = field(default_factory=dict)
    """Headers that have no field of their own."""

    @property
    def plies(self) -> int:
        return len(self.moves)

    @property
    def opening_plies(self) -> int:
        """First plies that neither player chose (a line given to both, moves drawn by lot), by the
        header `OpeningPlies`; 0 where it is missing or no number."""
        text = self.tags.get(OPENING_TAG, "")
        return int(text) if text.isdecimal() and text.isascii() and len(text) < 6 else 0

    @property
    def year(self) -> int | None:
        """Year of `date`, None where unknown."""
        match = re.match(r"[0-9]{4}", self.date)
        return int(match[0]) if match else None

    @property
    def value(self) -> int | None:
        """Result for the first player: 1 won, 0 drawn, -1 lost, None unknown."""
        return {"1-0": 1, "0-1": -1, "1/2-1/2": 0}.get(self.result)
