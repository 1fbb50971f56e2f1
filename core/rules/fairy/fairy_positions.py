"""Positions and moves of Fairy-Stockfish: positions as it keeps them, with cached results, and its moves in text
as move integers.

A record holds what planes show. In some variants Fairy-Stockfish knows more: walls on the board,
several e.p. squares, rights to bring pieces in, that the last move was a pass. So every record of
the engine `fairy` carries a `State`: a FEN of Fairy-Stockfish, the moves made since, and cached
results. A copy of a record carries the same state as long as it is the same position. A record
that lost its state (for example in an array) is found again by its bytes, or the FEN is written
from the record.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.errors import SpecError
from variant_ai.core.rules.geometry import Geometry
from variant_ai.core.rules.pieces import PieceTypes
from variant_ai.core.rules.position import (
    CASTLING,
    DOUBLE_STEP,
    DROP,
    EN_PASSANT,
    NORMAL,
    PASS,
    POSITION,
    PROMOTION,
    TURNED,
    Position,
    make_move,
    piece_code,
    piece_type,
)

K = TypeVar("K")
V = TypeVar("V")

UNKNOWN: Any = ...
"""Marks a result that is not known yet, if None is a possible result; one object in every process."""


class State:
    """One position of Fairy-Stockfish and its results, which only the rules engine sets."""

    __slots__ = ("base", "before", "check", "drawn", "fen", "hidden", "legal", "moves", "outcome")

    def __init__(
        self, base: str, moves: tuple[str, ...], fen: str, before: str, hidden: bool
    ) -> None:
        self.base = base
        """FEN that the moves start from; Fairy-Stockfish gets both."""
        self.moves = moves
        """The last two moves at most, which Fairy-Stockfish needs for passes and facing kings.
        Repetitions are left to `Game`."""
        self.fen = fen
        """FEN of the position, written by Fairy-Stockfish."""
        self.before = before
        """FEN before the last move; empty if there was none."""
        self.hidden = hidden
        """True if the FEN has something that the record does not hold."""
        self.legal: NDArray[np.int32] | None = None
        self.check: bool | None = None
        self.drawn: bool | None = None
        """True if neither side has the pieces to mate."""
        self.outcome: Any = UNKNOWN
        """Outcome, without ends that depend on counts in the record."""

    def next_base(self) -> tuple[str, tuple[str, ...]]:
        """Base and moves to which the next move is appended."""
        return (self.before, self.moves[-1:]) if self.moves else (self.fen, ())


class FairyPosition(np.ndarray[Any, Any]):
    """A position, shape (1,), with its state."""

    state: State | None
    mark: bytes
    """Fingerprint of the record when the state was set."""

    def __array_finalize__(self, made_from: Any) -> None:
        self.state = getattr(made_from, "state", None)
        self.mark = getattr(made_from, "mark", b"")

    def __reduce__(self) -> Any:
        """Positions take their states along to another process."""
        if self.dtype != POSITION:  # a field of a position
            return super().__reduce__()
        return _restored, (self.tobytes(), state_of(self))


_FIELDS: Mapping[str, Any] = POSITION.fields or {}
_KEY_END = int(_FIELDS["key"][1]) + 8
_SIDE, _LIMIT_END = int(_FIELDS["side"][1]), int(_FIELDS["count_limit"][1]) + 2


def fingerprint(position: Position) -> bytes:
    """Bytes of the fields that identify a position: board, hands and key; side, rights, e.p.
    square, kings, checks left and counting limit."""
    record = position.tobytes()
    return record[:_KEY_END] + record[_SIDE:_LIMIT_END]


def with_state(position: Position, state: State) -> Position:
    """Return the same record with a state."""
    carrier = position.view(FairyPosition)
    carrier.state, carrier.mark = state, fingerprint(position)
    return carrier


def state_of(position: Position) -> State | None:
    """Return the state of a position; None if it has none or has changed since."""
    state: State | None = getattr(position, "state", None)
    if state is None or getattr(position, "mark", b"") != fingerprint(position):
        return None
    return state


def _restored(record: bytes, state: State | None) -> Position:
    """Position that was pickled."""
    position: Position = np.frombuffer(bytearray(record), POSITION)
    return position if state is None else with_state(position, state)


class RecentCache(Generic[K, V]):
    """Cache of the values used last, by key. Thread-safe."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._kept: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: K, value: V) -> None:
        with self._lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            if len(self._kept) > self.size:
                self._kept.popitem(last=False)


# --- moves ----------------------------------------------------------------------------------------

_MOVE = re.compile(
    r"(?:(?P<drop>\+?[A-Z])@|(?P<origin>[a-l][0-9]{1,2}))(?P<target>[a-l][0-9]{1,2})"
    r"(?P<suffix>[a-z+-]?)(?:,(?P=target)(?P<wall>[a-l][0-9]{1,2}))?"
)


def is_move_text(text: str) -> bool:
    """Return True if a text has the form of a move."""
    return _MOVE.fullmatch(text) is not None


def is_pass(text: str) -> bool:
    """Return True if a move's origin is its target."""
    half = len(text) // 2
    return text[:half] == text[half:]


class FairyMoves:
    """Converts the legal moves of one variant to move integers; `notation.uci` converts them back."""

    def __init__(self, types: PieceTypes) -> None:
        self.spec, self.types = types.spec, types
        self._double_steps = _double_steps(types)

    def read(self, position: Position, text: str) -> int:
        """Convert a legal move from Fairy-Stockfish's text to a move integer.

        Raises SpecError if the move does not fit into one, or needs a word that the spec does not have.
        """
        match = _MOVE.fullmatch(text)
        if match is None:
            raise SpecError(
                f"{self.spec.fairy} has moves like {text!r}, which move integers cannot hold"
            )
        target, suffix = self._square(match["target"]), match["suffix"]
        if match["drop"]:
            return self._drop(match["drop"], target)
        origin = self._square(match["origin"])
        if origin == target and not suffix:
            return make_move(origin, target, PASS)
        if suffix == "-":
            return make_move(origin, target, NORMAL, 0, TURNED)
        extra = 1 + self._square(match["wall"]) if match["wall"] else 0
        code = int(position["board"][0, origin])
        kind, argument = NORMAL, 0
        if suffix:
            base = self.types.all[piece_type(code)].base
            kind, argument = PROMOTION, self._promoted(base, suffix)
        else:
            kind, argument = self._quiet_kind(position, code, origin, target)
        return make_move(origin, target, kind, argument, extra)

    def _square(self, name: str) -> int:
        """Square number of a name on the board."""
        return (int(name[1:]) - 1) * self.spec.board.files + ord(name[0]) - ord("a")

    def _drop(self, piece: str, target: int) -> int:
        hand = self.spec.hand_order
        if piece in hand:
            return make_move(0, target, DROP, hand.index(piece))
        if piece[1:] in hand:
            return make_move(0, target, DROP, hand.index(piece[1:]), TURNED)
        raise SpecError(f"{self.spec.fairy} drops {piece!r}, which is not in hands.order")

    def _promoted(self, base: str, suffix: str) -> int:
        """Type index of a promotion written `q` or `+`."""
        symbol = f"+{base}" if suffix == "+" else suffix.upper()
        if symbol not in self.types.by_symbol:
            raise SpecError(
                f"{self.spec.fairy} promotes {base} to {symbol}, which is not in the spec"
            )
        return self.types.promoted(symbol)

    def _quiet_kind(
        self, position: Position, code: int, origin: int, target: int
    ) -> tuple[int, int]:
        """Kind and argument of a move without a suffix."""
        piece = self.types.all[piece_type(code)].piece
        if piece_type(code) in self.types.castling_types:
            for right in self.types.castling_rights:
                held = int(position["castling"][0]) >> right.bit & 1
                if held and (right.king_from, right.king_to) == (origin, target):
                    return CASTLING, right.bit
        if piece.passant and position["board"][0, target] == 0:
            files = self.spec.board.files
            if target == int(position["ep"][0]) and origin % files != target % files:
                return EN_PASSANT, 0
            if abs(target - origin) == 2 * files and (code, origin) in self._double_steps:
                return DOUBLE_STEP, 0
        return NORMAL, 0


def _double_steps(types: PieceTypes) -> frozenset[tuple[int, int]]:
    """Piece codes, and squares from which they have a double step that allows en passant."""
    geometry = Geometry(types.spec)
    return frozenset(
        (piece_code(kind.index, colour), origin)
        for kind in types.all
        if kind.piece.passant
        for colour in (0, 1)
        for origin in range(geometry.squares)
        if any(m.is_double_step for m in geometry.movements(kind.piece, colour, origin))
    )
