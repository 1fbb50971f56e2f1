"""Positions as Fairy-Stockfish keeps them, and what it has said about each.

A record holds what planes show. Fairy-Stockfish knows more of some variants: walls on the board,
several e.p. squares, rights to bring pieces in, that the last move was a pass. So every record of
the engine `fairy` carries a `State` with it: a FEN of Fairy-Stockfish, the moves made since, and
each answer that was given once. A copy of a record carries the same state for as long as it is the
same position; a record that lost it (written into an array, say) is found again by its bytes, or
stands for the FEN that can be written from it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.rules.position import POSITION, Position

K = TypeVar("K")
V = TypeVar("V")

Packed = tuple[str, tuple[str, ...], str, str, bool]
"""A state without its answers."""
UNKNOWN: Any = object()
"""An answer that may be None, before it is given."""


class State:
    """One position of Fairy-Stockfish, and its answers. Written to by the rules alone."""

    __slots__ = ("base", "before", "check", "drawn", "fen", "hidden", "legal", "moves", "outcome")

    def __init__(
        self, base: str, moves: tuple[str, ...], fen: str, before: str, hidden: bool
    ) -> None:
        self.base = base
        """FEN that the moves start from; questions are asked about the two together."""
        self.moves = moves
        """The last two moves at most: what Fairy-Stockfish's rules of passes and facing kings look
        back to. Repetitions are a `Game`'s business."""
        self.fen = fen
        """FEN of the position itself, as Fairy-Stockfish writes it."""
        self.before = before
        """FEN before the last move; empty if there was none."""
        self.hidden = hidden
        """Whether the FEN says something that the record does not hold."""
        self.legal: NDArray[np.int32] | None = None
        self.check: bool | None = None
        self.drawn: bool | None = None
        """True if nobody has the pieces to mate."""
        self.outcome: Any = UNKNOWN
        """Without the ends that a count in the record decides."""

    def next_base(self) -> tuple[str, tuple[str, ...]]:
        """Base and moves that one more move is appended to."""
        return (self.before, self.moves[-1:]) if self.moves else (self.fen, ())

    def packed(self) -> Packed:
        """Data that makes the same state in another process."""
        return self.base, self.moves, self.fen, self.before, self.hidden


class FairyPosition(np.ndarray[Any, Any]):
    """A position, shape (1,), with the state it was made with."""

    state: State | None
    mark: bytes
    """Of the record as it was made."""

    def __array_finalize__(self, made_from: Any) -> None:
        self.state = getattr(made_from, "state", None)
        self.mark = getattr(made_from, "mark", b"")


_FIELDS: Mapping[str, Any] = POSITION.fields or {}
_KEY_END = int(_FIELDS["key"][1]) + 8
_SIDE, _LIMIT_END = int(_FIELDS["side"][1]), int(_FIELDS["count_limit"][1]) + 2


def fingerprint(position: Position) -> bytes:
    """The fields that must not have changed since a state was made: board, hands and key; side,
    rights, e.p. square, kings, checks left and counting limit."""
    record = position.tobytes()
    return record[:_KEY_END] + record[_SIDE:_LIMIT_END]


def with_state(position: Position, state: State) -> Position:
    """The same record, carrying the state."""
    carrier = position.view(FairyPosition)
    carrier.state, carrier.mark = state, fingerprint(position)
    return carrier


def state_of(position: Position) -> State | None:
    """The state that a position carries, None if it has none or was changed since."""
    state: State | None = getattr(position, "state", None)
    if state is None or getattr(position, "mark", b"") != fingerprint(position):
        return None
    return state


class RecentCache(Generic[K, V]):
    """The values used last, by key. Safe in any thread."""

    def __init__(self, most: int) -> None:
        self.most = most
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
            if len(self._kept) > self.most:
                self._kept.popitem(last=False)
