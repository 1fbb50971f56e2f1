"""Findings of searches about the positions of games, and the ROOT block of a shard that keeps them.

Visits are how often a search visited each move of a position: self-play of a net stores them with its
moves, and a policy may be trained on them instead of the moves played. Beside them there are root
values, the heads that may learn from a position, and the generation of the net that played. All of
them are optional; a shard without any has no ROOT block.

Games have n plies; a store has L plies and E visited moves in total.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.data.game_record import (
    MAX_VISITS,
    TRAINS_ALL,
    GameRecord,
    PlyVisits,
)
from variant_ai.core.data.store.columns import (
    ColumnError,
    ColumnReader,
    Columns,
    Floats,
    Longs,
    optional_numbers,
    unshifted,
)
from variant_ai.core.data.store.store_format import (
    Moves,
    Pending,
    PlyColumn,
    add_codes,
    joined,
    known,
    read_codes,
)
from variant_ai.core.data.store.stored_moves import Codes, RulesCodec

STEPS = 10_000
"""Root values are kept as whole multiples of 1 / STEPS."""
NO_VALUE = np.int16(-32_768)
"""A missing root value among multiples."""
FULL = np.iinfo(np.uint16).max


class GameVisits(NamedTuple):
    """Visits of one game in codes, which are copied between stores without a replay."""

    counts: Longs
    """[n] number of visited moves at each ply, 0 without a search."""
    codes: Codes
    """[E] visited moves, ply after ply."""
    visits: Longs
    """[E] visits of each move, from 1."""


class Visits(NamedTuple):
    """Visits of many games, as the sampler needs them: 4 bytes per visited move, 8 bytes per ply."""

    ends: Longs
    """[L + 1] ply l, of all plies of the games, has the moves `ends[l]` to `ends[l + 1] - 1`; none without a
    search."""
    codes: Codes
    """[E] moves."""
    weights: NDArray[np.uint16]
    """[E] visits; if those of a ply exceed 16 bits, scaled so that the greatest is 65535."""

    @property
    def max_moves(self) -> int:
        """Most moves of one ply."""
        return int(np.diff(self.ends).max(initial=0))


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
        self.ends = _ends(self.counts)
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
            _ends(self._counts.spread(self.counts, np.int64(0))),
            self.codes,
            _in_16_bits(self.visits, self.counts),
        )


def _in_16_bits(visits: Longs, counts: Longs) -> NDArray[np.uint16]:
    if not visits.size or int(visits.max()) <= FULL:
        return visits.astype(np.uint16)
    searched = counts[counts > 0]
    starts = np.cumsum(searched) - searched
    most = np.repeat(np.maximum.reduceat(visits, starts), searched)
    scaled = np.where(most > FULL, np.rint(visits * (FULL / most)), visits)
    return np.maximum(scaled, 1).astype(np.uint16)


def join_visits(parts: Sequence[tuple[int, Visits | None]]) -> Visits | None:
    """Join the visits of several shards or stores, each with its number of plies; None if none of
    them has visits."""
    present = [visits for _, visits in parts if visits is not None]
    if not present:
        return None
    counts = [
        np.zeros(plies, np.int64) if visits is None else np.diff(visits.ends)
        for plies, visits in parts
    ]
    return Visits(
        _ends(joined(counts, np.int64)),
        joined([visits.codes for visits in present], np.uint16),
        joined([visits.weights for visits in present], np.uint16),
    )


def _ends(counts: Longs) -> Longs:
    """[n + 1] sums of the first 0 to n counts."""
    return np.concatenate([[0], np.cumsum(counts)])


# --- the ROOT block -------------------------------------------------------------------------------


def pack_root(games: Sequence[Pending], squares: int) -> tuple[bytes, int, int] | None:
    """Body of the ROOT block of a shard, and how many of its games and plies have visits; None if no
    game has a column of it."""
    records = [game.record for game in games]
    searched = [game.visits for game in games if game.visits is not None]
    valued = any(record.root_values is not None for record in records)
    trained = any(record.trains is not None for record in records)
    numbered = any(record.generation is not None for record in records)
    if not (searched or valued or trained or numbered):
        return None
    columns = Columns()
    add_visits(columns, [game.visits for game in games], squares)
    if valued:
        columns.add_integers("has_root_values", (r.root_values is not None for r in records))
        columns.add_optional(
            "root_values", (_step(v) for r in records for v in r.root_values or ())
        )
    if trained:
        columns.add_integers("has_trains", (r.trains is not None for r in records))
        columns.add_integers("trains", (bits for r in records for bits in r.trains or ()))
    if numbered:
        columns.add_optional("generation", (r.generation for r in records))
    plies = sum(int((visits.counts > 0).sum()) for visits in searched)
    return columns.to_bytes(), len(searched), plies


def _step(value: float | None) -> int | None:
    return None if value is None else round(value * STEPS)


class RootBlock:
    """ROOT block, read: n games of P plies in total."""

    def __init__(self, body: bytes, squares: int, moves: Moves) -> None:
        """Raises ColumnError if the columns do not fit each other or the games of the shard."""
        columns = ColumnReader(body)
        self.visits = VisitBlock(columns, squares, moves)
        self._values = PlyColumn(columns, "root_values", moves.plies)
        steps = unshifted(self._values.values)
        if steps.size and not -STEPS <= int(steps.min()) <= int(steps.max()) <= STEPS:
            raise ColumnError("a root value is out of range")
        steps[self._values.values == 0] = NO_VALUE
        self.steps = self._values.spread(steps, NO_VALUE)
        """[P] int16 root values times STEPS, NO_VALUE if unknown."""
        self._trains = PlyColumn(columns, "trains", moves.plies)
        bits = self._trains.values
        if bits.size and not 0 <= int(bits.min()) <= int(bits.max()) <= TRAINS_ALL:
            raise ColumnError("a number of 'trains' is out of range")
        self.trains = self._trains.spread(bits, np.uint8(TRAINS_ALL))
        """[P] uint8 heads that may learn (`GameRecord.trains`)."""
        self.generations: list[int | None] = [None] * len(moves.plies)
        """[n] generation of each game."""
        if "generation" in columns:
            self.generations = columns.optional("generation")
            if len(self.generations) != len(moves.plies):
                raise ColumnError(f"column 'generation' does not have {len(moves.plies)} rows")

    def add_to(self, record: GameRecord, game: int) -> None:
        """Set root values, `trains` and generation of the record of a game."""
        steps, bits = self._values.of(game), self._trains.of(game)
        if steps is not None:
            numbers = optional_numbers(steps)
            record.root_values = [None if step is None else step / STEPS for step in numbers]
        record.trains = None if bits is None else bits.tolist()
        record.generation = self.generations[game]


def join_root(
    shards: Iterable[tuple[int, RootBlock | None]],
) -> tuple[Floats | None, NDArray[np.uint8] | None]:
    """Root values (float32, NaN if unknown) and `trains` (uint8) of all plies of a store, each None if
    no game has them. `shards` are the plies of each, and its block if it has one."""
    values: list[Floats] = []
    trains: list[NDArray[np.uint8]] = []
    for plies, block in shards:
        values.append(np.full(plies, np.nan, np.float32))
        trains.append(np.full(plies, TRAINS_ALL, np.uint8))
        if block is not None:
            exact = block.steps.astype(np.float32) / np.float32(STEPS)
            values[-1] = np.where(block.steps == NO_VALUE, np.float32(np.nan), exact)
            trains[-1] = block.trains
    every = np.concatenate(trains) if trains else np.zeros(0, np.uint8)
    return known(values), None if (every == TRAINS_ALL).all() else every


def root_digest(shards: Iterable[tuple[int, int, RootBlock | None]]) -> bytes:
    """Digest of visits, root values and `trains` for the content hash of a store, independent of the
    shards. Columns that say nothing leave it as it is without them. `shards` are the games and plies
    of each, and its block if it has one."""
    has, counts, codes, visits, steps, trains = (hashlib.blake2b(digest_size=16) for _ in range(6))
    has_visits = has_values = has_trains = False
    for games, plies, block in shards:
        if block is None:
            has.update(bytes(games))
            steps.update(np.full(plies, NO_VALUE).tobytes())
            trains.update(np.full(plies, TRAINS_ALL, np.uint8).tobytes())
            continue
        has.update(block.visits.has.tobytes())
        counts.update(block.visits.counts.tobytes())
        codes.update(block.visits.codes.tobytes())
        visits.update(block.visits.visits.tobytes())
        steps.update(block.steps.tobytes())
        trains.update(block.trains.tobytes())
        has_visits |= bool(block.visits.has.any())
        has_values |= bool((block.steps != NO_VALUE).any())
        has_trains |= bool((block.trains != TRAINS_ALL).any())
    digest = b""
    if has_visits:
        digest += b"".join(part.digest() for part in (has, counts, codes, visits))
    if has_values:
        digest += b"root values" + steps.digest()
    if has_trains:
        digest += b"trains" + trains.digest()
    return digest
