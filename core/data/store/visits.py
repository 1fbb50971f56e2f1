"""Visits of searches: how often a search visited each move of the positions of a game.

Self-play of a net stores them with its moves; a policy may be trained on them instead of the moves
played. They are optional: games without visits need no space for them.

Games have n plies; a store has G games, of which those with visits have R plies and E visited moves
in total.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.data.game_record import MAX_VISITS, GameRecord, PlyVisits
from variant_ai.core.data.store.columns import ColumnError, ColumnReader, Columns
from variant_ai.core.data.store.store_format import Moves, PlyColumn, add_codes, joined, read_codes
from variant_ai.core.data.store.stored_moves import Codes, RulesCodec
from variant_ai.core.errors import DataError
from variant_ai.core.system.text_tables import counted

FULL = np.iinfo(np.uint16).max


@dataclass(frozen=True, slots=True)
class GameVisits:
    """Visits of one game in codes, which are copied between stores without a replay."""

    counts: NDArray[np.int64]
    """[n] number of visited moves at each ply, 0 without a search."""
    codes: Codes
    """[E] visited moves, ply after ply."""
    visits: NDArray[np.int64]
    """[E] visits of each move, from 1."""


class Visits(NamedTuple):
    """Visits of many games, as the sampler needs them: 4 bytes per visited move."""

    first: NDArray[np.int64]
    """[G] index in `ends` of the first ply of a game; -1 for a game without visits."""
    ends: NDArray[np.int64]
    """[R + 1] ply r has the moves `ends[r]` to `ends[r + 1] - 1`."""
    codes: Codes
    """[E] moves."""
    weights: NDArray[np.uint16]
    """[E] visits; if those of a ply exceed 16 bits, scaled so that the greatest is 65535."""

    @property
    def max_moves(self) -> int:
        """Most moves of one ply."""
        return int(np.diff(self.ends).max(initial=0))


def check_visits(record: GameRecord) -> None:
    """Raises DataError if the visits of a record cannot be written."""
    if record.visits is None:
        return
    if len(record.visits) != record.plies:
        raise DataError(
            f"visits of {counted(len(record.visits), 'ply')} for a game of {counted(record.plies, 'ply')}"
        )
    for ply, visited in enumerate(record.visits):
        for _, count in visited:
            if not 1 <= count <= MAX_VISITS:
                raise DataError(
                    f"ply {ply + 1}: {count} visits of a move; accepted: 1 to {MAX_VISITS}"
                )


def encode_visits(codec: RulesCodec, fen: str | None, record: GameRecord) -> GameVisits | None:
    """Visits of a record in codes. Raises MoveError if a move has no code."""
    if record.visits is None:
        return None
    moves = [[move for move, _ in visited] for visited in record.visits]
    return GameVisits(
        np.array([len(visited) for visited in moves], np.int64),
        codec.encode_choices(fen, record.moves, moves),
        np.array([count for visited in record.visits for _, count in visited], np.int64),
    )


def decode_visits(
    codec: RulesCodec, fen: str | None, game: Codes, visits: GameVisits
) -> list[PlyVisits]:
    """Visits of a game with codes `game`, as in a record. Raises MoveError."""
    moves = codec.decode_choices(fen, game, visits.counts.tolist(), visits.codes)
    pairs = list(zip(moves, visits.visits.tolist(), strict=True))
    ends = np.cumsum(visits.counts).tolist()
    return [
        tuple(pairs[end - count : end])
        for end, count in zip(ends, visits.counts.tolist(), strict=True)
    ]


# --- blocks --------------------------------------------------------------------------------------


def add_visits(columns: Columns, games: Sequence[GameVisits | None], squares: int) -> None:
    """Add the visits of the games of a shard."""
    present = [game for game in games if game is not None]
    columns.add_integers("has_visits", (game is not None for game in games))
    columns.add_integers("counts", joined([game.counts for game in present], np.int64))
    add_codes(columns, joined([game.codes for game in present], np.uint16), squares)
    columns.add_integers("visits", joined([game.visits for game in present], np.int64))


class VisitBlock:
    """Visits of the games of a shard, from its ROOT block."""

    def __init__(self, columns: ColumnReader, squares: int, moves: Moves) -> None:
        """Raises ColumnError if the columns do not fit each other or the games of the shard."""
        self._counts = PlyColumn(columns, "visits", moves.plies, "counts")
        self.has, self.counts = self._counts.has, self._counts.values
        """[games], [plies of the games with visits]."""
        self.codes = read_codes(columns, squares)
        self.visits = columns.integers("visits")
        if self.counts.size and int(self.counts.min()) < 0:
            raise ColumnError("a ply has a negative number of moves")
        if not int(self.counts.sum()) == len(self.codes) == len(self.visits):
            raise ColumnError("the numbers of its moves and visits do not match their sum")
        if self.visits.size and not 1 <= int(self.visits.min()) <= int(self.visits.max()) <= (
            MAX_VISITS
        ):
            raise ColumnError("a number of visits is out of range")
        self.ends = np.concatenate([[0], np.cumsum(self.counts)])
        """[plies of the games with visits + 1]."""

    def of(self, game: int) -> GameVisits | None:
        """Visits of a game of the shard, None if it has none."""
        counts = self._counts.of(game)
        if counts is None:
            return None
        begin, end = self._counts.begins[game], self._counts.ends[game]
        here = slice(self.ends[begin], self.ends[end])
        return GameVisits(counts, self.codes[here], self.visits[here])

    def arrays(self) -> Visits | None:
        """Visits as the sampler needs them; None if no game of the shard has any."""
        if not self.has.any():
            return None
        return Visits(
            np.where(self.has, self._counts.begins, -1),
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
    """Join the visits of several shards or stores, each with its number of games; None if none of
    them has visits."""
    present = [visits for _, visits in parts if visits is not None]
    if not present:
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
        joined(firsts, np.int64),
        joined(ends, np.int64),
        joined([visits.codes for visits in present], np.uint16),
        joined([visits.weights for visits in present], np.uint16),
    )


class VisitsHash:
    """Hash of visits for the content hash of a store, independent of the shards."""

    def __init__(self) -> None:
        self._parts = [hashlib.blake2b(digest_size=16) for _ in range(4)]

    def add(self, games: int, block: VisitBlock | None) -> None:
        """Add the next shard, of `games` games; `block` is None if they have no visits."""
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
