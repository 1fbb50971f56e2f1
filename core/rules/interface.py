"""Rules interface: everything that search, data and training know of a game.

Two implementations play specs: `kernel` (compiled tables, microseconds a call) and `fairy`
(pyffish, milliseconds a call, every variant of Fairy-Stockfish, and the reference in tests). Plugins
add others (`plain_rules.py`).
Positions are records (`position.py`), moves are integers. A Rules object has no game state, so it
may serve any number of games and threads (calls of `fairy` run one at a time). A position of
`fairy` carries what a record cannot hold (`fairy_positions.py`).

Repetition, perpetual check and perpetual chase depend on the moves before a position; for these
there is `Game` (`game.py`), which keeps the history.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.rules.pieces import PieceTypes
from variant_ai.core.rules.position import Position
from variant_ai.core.spec.schema import VariantSpec

EndReason: TypeAlias = Literal[
    "checkmate",
    "stalemate",
    "repetition",
    "perpetual check",
    "perpetual chase",
    "move count",
    "insufficient material",
    "variant win",
]
"""Why a game has ended; every command uses these words."""
END_REASONS: tuple[EndReason, ...] = get_args(EndReason)


def value_of(winner: int | None, colour: int) -> int:
    """Value of a finished game for `colour`: 1 won, 0 drawn, -1 lost. winner: None for a draw."""
    return 0 if winner is None else (1 if winner == colour else -1)


@dataclass(frozen=True)
class Outcome:
    """Result of a finished game, and the reason."""

    winner: int | None
    """Colour that won; None for a draw."""
    reason: EndReason
    detail: str = ""
    """The rule of the spec that applied, e.g. `third occurrence, both sides chase (axf)`."""

    @property
    def result(self) -> Literal["1-0", "0-1", "1/2-1/2"]:
        """Result as in PGN."""
        return "1/2-1/2" if self.winner is None else "0-1" if self.winner else "1-0"

    def value(self, colour: int) -> int:
        """Value for `colour`: 1 won, 0 drawn, -1 lost."""
        return value_of(self.winner, colour)


class Rules(ABC):
    """Rules of one variant. Methods do not change their arguments."""

    name: str
    """Name of the engine: `kernel`, `fairy`, or a plugin's."""

    def __init__(self, spec: VariantSpec) -> None:
        self.spec = spec
        self.types = PieceTypes(spec)

    @abstractmethod
    def position(self, fen: str | None = None) -> Position:
        """Make the position of a FEN, or the start position.

        Raises FenError for text that is not a FEN of the variant, or a position that cannot be
        played (no king, the side not to move in check, facing kings, too many pieces in hand).
        """

    @abstractmethod
    def fen(self, position: Position) -> str:
        """Return the FEN; `position(fen(p))` equals p except for the fields in
        `position.NOT_IN_FEN`."""

    @abstractmethod
    def legal_moves(self, position: Position) -> NDArray[np.int32]:
        """Return the legal moves, shape (n,), in an arbitrary but fixed order."""

    @abstractmethod
    def play(self, position: Position, move: int) -> Position:
        """Return the position after a legal move (not checked), with `repetitions` 0."""

    @abstractmethod
    def in_check(self, position: Position) -> bool:
        """Return True if the side to move is in check."""

    @abstractmethod
    def outcome(self, position: Position) -> Outcome | None:
        """Return the outcome that follows from the position alone, else None: mate, stalemate, move
        count, variant ends, insufficient material. Repetition needs a `Game`."""

    def uci(self, move: int) -> str:
        """Return the UCI text of a move."""
        from variant_ai.core.rules.text.notation import uci

        return uci(self.types, self.spec.board.files, move)

    def memory(self, position: Position) -> int:
        """Return a number that distinguishes positions with equal keys whose continuation depends
        on the moves before them, beyond the `passes` of a record; 0 if only repetitions depend on
        these."""
        return 0

    def judge_cycle(self, fen: str, moves: list[str]) -> Outcome | None:
        """Return the outcome of a repeated position if one side chased all the time; None if it did not, or
        if this engine does not know: then Fairy-Stockfish is asked. moves: UCI, from `fen` to the
        repetition."""
        return None


def positions_before(rules: Rules, position: Position, moves: Iterable[int]) -> Iterator[Position]:
    """Yield the position before each of the moves, which are played one after the other."""
    for move in moves:
        yield position
        position = rules.play(position, move)
