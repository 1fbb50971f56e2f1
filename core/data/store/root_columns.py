"""The ROOT block of a shard: what searches say of the positions of its games.

Beside visits (`visits.py`) these are root values, the heads that may learn from a position, and the
generation of the net that played. All of them are optional; a shard without any has no such block.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.data.game_record import MAX_GENERATION, TRAINS_ALL, GameRecord
from variant_ai.core.data.store.columns import (
    ColumnError,
    ColumnReader,
    Columns,
    optional_numbers,
    unshifted,
)
from variant_ai.core.data.store.store_format import Moves, Pending, PlyColumn, known
from variant_ai.core.data.store.visits import VisitBlock, VisitsHash, add_visits
from variant_ai.core.errors import DataError
from variant_ai.core.system.text_tables import counted

STEPS = 10_000
"""Root values are kept as whole multiples of 1 / STEPS."""
NO_VALUE = np.int16(-32_768)
"""A missing root value among multiples."""


def check_root(record: GameRecord) -> None:
    """Raises DataError if root values, `trains` or generation of a record cannot be written."""
    for name, values in (("root values", record.root_values), ("trains", record.trains)):
        if values is not None and len(values) != record.plies:
            raise DataError(
                f"{name} of {counted(len(values), 'ply')} for a game of {counted(record.plies, 'ply')}"
            )
    for ply, value in enumerate(record.root_values or ()):
        if value is not None and not -1 <= value <= 1:
            raise DataError(f"ply {ply}: root value {value}; accepted: -1 to 1")
    for ply, bits in enumerate(record.trains or ()):
        if not 0 <= bits <= TRAINS_ALL:
            raise DataError(f"ply {ply}: trains {bits}; accepted: 0 to {TRAINS_ALL}")
    if record.generation is not None and not 0 <= record.generation <= MAX_GENERATION:
        raise DataError(f"generation {record.generation}; accepted: 0 to {MAX_GENERATION}")


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
    return None if value is None or math.isnan(value) else round(value * STEPS)


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
) -> tuple[NDArray[np.float32] | None, NDArray[np.uint8] | None]:
    """Root values (float32, NaN if unknown) and `trains` (uint8) of all plies of a store, each None if
    no game has them. `shards` are the plies of each, and its block if it has one."""
    values: list[NDArray[np.float32]] = []
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


class RootHash:
    """Hash of visits, root values and `trains` for the content hash of a store, independent of the
    shards. Columns that say nothing leave it as it is without them."""

    def __init__(self) -> None:
        self._visits = VisitsHash()
        self._steps, self._trains = (hashlib.blake2b(digest_size=16) for _ in range(2))
        self._has_visits = self._has_values = self._has_trains = False

    def add(self, games: int, plies: int, block: RootBlock | None) -> None:
        """Add the next shard; `block` is None if it has none."""
        self._visits.add(games, None if block is None else block.visits)
        steps, trains = np.full(plies, NO_VALUE), np.full(plies, TRAINS_ALL, np.uint8)
        if block is not None:
            self._has_visits |= bool(block.visits.has.any())
            steps, trains = block.steps, block.trains
        self._has_values |= bool((steps != NO_VALUE).any())
        self._has_trains |= bool((trains != TRAINS_ALL).any())
        self._steps.update(steps.tobytes())
        self._trains.update(trains.tobytes())

    def digest(self) -> bytes:
        digest = self._visits.digest() if self._has_visits else b""
        if self._has_values:
            digest += b"root values" + self._steps.digest()
        if self._has_trains:
            digest += b"trains" + self._trains.digest()
        return digest
