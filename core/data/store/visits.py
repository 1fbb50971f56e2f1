"""Visits of searches: how often a search looked at each move of the positions of a game.

What self-play of a net leaves beside its moves, and what a policy may be trained on in place of the
move played. Optional: a game without visits takes neither bytes nor memory for them.

Games of n plies; a store of G games, of which those with visits have R plies together, and E moves
visited in all of these.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.data.game_record import MAX_VISITS, GameRecord, PlyVisits
from variant_ai.core.data.store.columns import ColumnError, ColumnReader, Columns
from variant_ai.core.data.store.store_format import Moves, add_codes, read_codes
from variant_ai.core.data.store.stored_moves import Codes, GameCodec
from variant_ai.core.errors import DataError

FULL = np.iinfo(np.uint16).max


@dataclass(frozen=True, slots=True)
class GameVisits:
    """Visits of one game in codes: what goes from store to store without a replay."""

    counts: NDArray[np.int64]
    """[n] moves visited at each ply, 0 where nothing was searched."""
    codes: Codes
    """[E] those moves, ply after ply."""
    visits: NDArray[np.int64]
    """[E] visits of each, from 1."""


class Visits(NamedTuple):
    """Visits of many games, as the sampler needs them: 4 bytes per visited move."""

    first: NDArray[np.int64]
    """[G] index in `ends` of a game's first ply; -1 where the game has no visits."""
    ends: NDArray[np.int64]
    """[R + 1] ply r has the moves `ends[r]` to `ends[r + 1] - 1`."""
    codes: Codes
    """[E] moves."""
    weights: NDArray[np.uint16]
    """[E] visits; where those of a ply go beyond 16 bits, in proportion, the greatest 65535."""

    @property
    def max_moves(self) -> int:
        """Most moves of one ply."""
        return int(np.diff(self.ends).max(initial=0))


def check_visits(record: GameRecord) -> None:
    """Raises DataError where a record's visits cannot be written as they are."""
    if record.visits is None:
        return
    if len(record.visits) != record.plies:
        raise DataError(f"visits of {len(record.visits)} plies for a game of {record.plies} plies")
    for ply, visited in enumerate(record.visits):
        for _, count in visited:
            if not 1 <= count <= MAX_VISITS:
                raise DataError(f"ply {ply}: {count} visits of a move; accepted is 1 to 4294967295")


def coded(codec: GameCodec, fen: str | None, record: GameRecord) -> GameVisits | None:
    """The visits of a record in codes. Raises MoveError where a move has none."""
    if record.visits is None:
        return None
    moves = [[move for move, _ in visited] for visited in record.visits]
    return GameVisits(
        np.array([len(visited) for visited in moves], np.int64),
        codec.encode_choices(fen, record.moves, moves),
        np.array([count for visited in record.visits for _, count in visited], np.int64),
    )


def decoded(codec: GameCodec, fen: str | None, game: Codes, visits: GameVisits) -> list[PlyVisits]:
    """The visits of a game with codes `game` as a record has them. Raises MoveError."""
    moves = codec.decode_choices(fen, game, visits.counts.tolist(), visits.codes)
    pairs = list(zip(moves, visits.visits.tolist(), strict=True))
    ends = np.cumsum(visits.counts).tolist()
    return [
        tuple(pairs[end - count : end])
        for end, count in zip(ends, visits.counts.tolist(), strict=True)
    ]


# --- blocks --------------------------------------------------------------------------------------


def pack_visits(games: Sequence[GameVisits | None], squares: int) -> bytes:
    """The ROOT body of a shard."""
    there = [game for game in games if game is not None]
    columns = Columns()
    columns.add_integers("has_visits", (game is not None for game in games))
    columns.add_integers("counts", _joined([game.counts for game in there], np.int64))
    add_codes(columns, _joined([game.codes for game in there], np.uint16), squares)
    columns.add_integers("visits", _joined([game.visits for game in there], np.int64))
    return columns.to_bytes()


class VisitBlock:
    """A ROOT block: the visits of a shard's games."""

    def __init__(self, body: bytes, squares: int, moves: Moves) -> None:
        """Raises ColumnError where the columns do not fit each other or the shard's games."""
        columns = ColumnReader(body)
        self.has = columns.integers("has_visits").astype(bool)
        """[games]."""
        self.counts = columns.integers("counts")
        self.codes = read_codes(columns, squares)
        self.visits = columns.integers("visits")
        if len(self.has) != len(moves.plies):
            raise ColumnError(f"column 'has_visits' does not have {len(moves.plies)} rows")
        self._plies = np.where(self.has, moves.plies, 0)
        if len(self.counts) != int(self._plies.sum()):
            raise ColumnError("column 'counts' does not have a row for each ply")
        if self.counts.size and int(self.counts.min()) < 0:
            raise ColumnError("a ply has less than no move")
        if not int(self.counts.sum()) == len(self.codes) == len(self.visits):
            raise ColumnError("its moves and their visits are not as many as it says")
        if self.visits.size and not 1 <= int(self.visits.min()) <= int(self.visits.max()) <= (
            MAX_VISITS
        ):
            raise ColumnError("a move has no visit, or too many")
        self.ends = np.concatenate([[0], np.cumsum(self.counts)])
        """[plies of the games with visits + 1]."""
        self._last = np.cumsum(self._plies)

    def of(self, game: int) -> GameVisits | None:
        """Visits of a game of the shard."""
        if not self.has[game]:
            return None
        end = int(self._last[game])
        begin = end - int(self._plies[game])
        here = slice(int(self.ends[begin]), int(self.ends[end]))
        return GameVisits(self.counts[begin:end], self.codes[here], self.visits[here])

    def arrays(self) -> Visits:
        return Visits(
            np.where(self.has, self._last - self._plies, -1),
            self.ends,
            self.codes,
            _in_16_bits(self.visits, self.counts),
        )


def _in_16_bits(visits: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.uint16]:
    if not visits.size or int(visits.max()) <= FULL:
        return visits.astype(np.uint16)
    searched = counts[counts > 0]
    starts = np.cumsum(searched) - searched
    most = np.repeat(np.maximum.reduceat(visits, starts), searched)
    scaled = np.where(most > FULL, np.rint(visits * (FULL / most)), visits)
    return np.maximum(scaled, 1).astype(np.uint16)


def join_visits(parts: Sequence[tuple[int, Visits | None]]) -> Visits | None:
    """Those of several shards or stores, one after the other, each with its number of games; None
    where none of them has any."""
    there = [visits for _, visits in parts if visits is not None]
    if not there:
        return None
    firsts: list[NDArray[np.int64]] = []
    ends: list[NDArray[np.int64]] = [np.zeros(1, np.int64)]
    plies = moves = 0
    for games, visits in parts:
        if visits is None:
            firsts.append(np.full(games, -1, np.int64))
            continue
        firsts.append(np.where(visits.first < 0, -1, visits.first + plies))
        ends.append(visits.ends[1:] + moves)
        plies += len(visits.ends) - 1
        moves += len(visits.codes)
    return Visits(
        _joined(firsts, np.int64),
        _joined(ends, np.int64),
        _joined([visits.codes for visits in there], np.uint16),
        _joined([visits.weights for visits in there], np.uint16),
    )


class VisitsHash:
    """What a store's content hash takes of visits: the same in any shards."""

    def __init__(self) -> None:
        self._parts = [hashlib.blake2b(digest_size=16) for _ in range(4)]

    def add(self, games: int, block: VisitBlock | None) -> None:
        """The next shard, or so many games without visits."""
        if block is None:
            self._parts[0].update(bytes(games))
            return
        self._parts[0].update(block.has.astype(np.uint8).data)
        for part, array in zip(
            self._parts[1:], (block.counts, block.codes, block.visits), strict=True
        ):
            part.update(np.ascontiguousarray(array).view(np.uint8).data)

    def digest(self) -> bytes:
        return b"".join(part.digest() for part in self._parts)


def _joined(arrays: Sequence[NDArray[Any]], dtype: type[np.generic]) -> NDArray[Any]:
    if len(arrays) == 1:
        return arrays[0].astype(dtype, copy=False)  # the sampler shares a store's own
    return np.concatenate(arrays).astype(dtype, copy=False) if arrays else np.zeros(0, dtype)
