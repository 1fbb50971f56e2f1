"""Positions as Fairy-Stockfish keeps them, with cached results.

A record holds what planes show. In some variants Fairy-Stockfish knows more: walls on the board,
several e.p. squares, rights to bring pieces in, that the last move was a pass. So every record of
the engine `fairy` carries a `State`: a FEN of Fairy-Stockfish, the moves made since, and cached
results. A copy of a record carries the same state as long as it is the same position. A record
that lost its state (for example in an array) is found again by its bytes, or the FEN is written
from the record.
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
