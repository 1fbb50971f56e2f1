"""The Rules interface: all that search, data and training know of a game.

There are two implementations: `kernel` (compiled tables, microseconds a question) and `fairy` (pyffish,
milliseconds a question, every variant of Fairy-Stockfish, and the judge in tests). Positions are
records (`position.py`), moves are integers. A Rules object itself holds no game state, so one may serve
any number of games and threads (the fairy engine answers one question at a time). What a record has no
room for, a position of `fairy` keeps beside it (`fairy_states.py`).

What needs the moves before a position (repetition, perpetual check and chase) is asked of a
`Game` (`game.py`), which keeps the history.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.rules.pieces import PieceTypes
from variant_ai.core.rules.position import Position
from variant_ai.core.spec.schema import VariantSpec


@dataclass(frozen=True)
class Outcome:
    """How a game ended."""

    winner: int | None
    """Colour that won, None for a draw."""
    reason: str
    """One of `checkmate`, `stalemate`, `repetition`, `perpetual check`, `perpetual chase`,
    `move count`, `insufficient material`, `variant win`; the same words in every command."""
    detail: str = ""
    """Which rule of the spec applied, in words, e.g. `third occurrence, both sides chase (axf)`."""

    @property
    def result(self) -> str:
        """As PGN writes it."""
        return "1/2-1/2" if self.winner is None else ("1-0", "0-1")[self.winner]

    def value(self, colour: int) -> int:
        """1 won, 0 drawn, -1 lost, from the point of view of `colour`."""
        return 0 if self.winner is None else (1 if self.winner == colour else -1)


class Rules(ABC):
    """Rules of one variant. Every method leaves its arguments as they were."""

    name: str
    """`kernel` or `fairy`."""

    def __init__(self, spec: VariantSpec) -> None:
        self.spec = spec
        self.types = PieceTypes(spec)

    @abstractmethod
    def position(self, fen: str | None = None) -> Position:
        """The position of a FEN, or the start position.

        Raises FenError: not a FEN of this variant, or a position that cannot be played on
        (no king, the side not to move in check, generals facing, too many pieces in hand).
        """

    @abstractmethod
    def fen(self, position: Position) -> str:
        """The FEN; `position(fen(p))` gives back p, save `repetitions` and `checks`."""

    @abstractmethod
    def legal_moves(self, position: Position) -> NDArray[np.int32]:
        """Legal moves, shape (n,), in no promised order but always the same one."""

    @abstractmethod
    def play(self, position: Position, move: int) -> Position:
        """The position after a legal move (legality is not checked), `repetitions` 0."""

    @abstractmethod
    def in_check(self, position: Position) -> bool:
        """Whether the side to move is in check."""

    @abstractmethod
    def outcome(self, position: Position) -> Outcome | None:
        """The end of the game as the position alone shows it: mate, stalemate, move count,
        variant ends, insufficient material. Repetition needs a `Game`."""

    def memory(self, position: Position) -> int:
        """A number that differs between positions of one key which may go on differently because of
        the moves before them; 0 where nothing but repetitions depends on these."""
        return 0

    def judge_cycle(self, fen: str, moves: list[str]) -> Outcome | None:
        """Verdict on a repeated position where the spec's rule needs more than check flags
        (perpetual chase). `moves` (UCI) lead from `fen` to the repetition. None: no judge here."""
        return None
