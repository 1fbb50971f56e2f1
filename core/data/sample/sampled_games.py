"""The games that are sampled, gathered from all stores, and positions kept of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.data.game_record import Labels
from variant_ai.core.data.sample import compiled_replay as replay
from variant_ai.core.data.store.visits import Visits, join_visits
from variant_ai.core.encoding import MoveCodec
from variant_ai.core.errors import DataError
from variant_ai.core.rules.kernel.rule_tables import Tables
from variant_ai.core.rules.position import POSITION, Position

MIN_STRIDE, MAX_STRIDE = 4, 1 << 20
"""Plies between the positions kept of a game."""


class GameArrays(Protocol):
    """What the sampler needs of a game store: G games of together L plies.

    A `Store` is one; so is anything with these attributes. Two more need not be there: `visits` of
    searches (`visits.Visits`, or None), and `opening_plies` int64 [G], first plies of each game that
    are not sampled.
    """

    @property
    def codes(self) -> NDArray[np.uint16]:
        """[L] moves of all games one after the other (`MoveCodec`)."""

    @property
    def offsets(self) -> NDArray[np.int64]:
        """[G + 1] where each game's codes begin, and L."""

    @property
    def results(self) -> NDArray[np.int8]:
        """[G] 1 the first player won, 0 drawn, -1 lost, 2 unknown."""

    @property
    def starts(self) -> Position:
        """[S] the distinct start positions, dtype POSITION, keys set."""

    @property
    def start_of(self) -> NDArray[np.int32]:
        """[G] index into `starts`."""


@dataclass(slots=True)
class SampledGames:
    """The sampled games of all stores, one after the other."""

    codes: NDArray[np.uint16]
    first_code: NDArray[np.int64]
    """[G] where a game's codes begin."""
    skipped: NDArray[np.int64]
    """[G] first plies of a game that are not sampled."""
    cumulative: NDArray[np.int64]
    """[G + 1] sampled positions before each game."""
    block_game: NDArray[np.int32]
    """Game of every BLOCK-th sampled position."""
    start_of: NDArray[np.int32]
    starts: Position
    results: NDArray[np.int8]
    origins: NDArray[np.int64]
    """[G, 2] number of the store, index within it."""
    visits: Visits | None = None

    @property
    def most_choices(self) -> int:
        """Moves with visits at the position that has most of them."""
        return 0 if self.visits is None else self.visits.most

    @property
    def plies(self) -> NDArray[np.int64]:
        """[G] of whole games."""
        return np.diff(self.cumulative) + self.skipped

    def searched(self) -> int:
        """Sampled positions with visits."""
        if self.visits is None:
            return 0
        first, plies = self.visits.first, np.diff(self.cumulative)
        before = np.concatenate([[0], np.cumsum(np.diff(self.visits.ends) > 0)])
        there = first >= 0
        begin = first[there] + self.skipped[there]
        return int((before[begin + plies[there]] - before[begin]).sum())

    @staticmethod
    def gather(
        stores: GameArrays | Sequence[GameArrays],
        games: NDArray[np.integer] | Sequence[NDArray[np.integer]] | None,
        labels: Labels,
    ) -> SampledGames:
        """The chosen `games` of each store, all by default; those without a result or a move behind
        their opening are left out. Raises ValueError where stores and games are not of the same
        number."""
        listed = list(stores) if isinstance(stores, Sequence) else [stores]
        if games is None:
            chosen: list[NDArray[np.integer] | None] = [None] * len(listed)
        elif isinstance(stores, Sequence):
            chosen = list(games)
        else:
            chosen = [np.asarray(games)]
        if len(chosen) != len(listed):
            raise ValueError(f"{len(listed)} stores, but games of {len(chosen)}")
        firsts, skipped, plies, start_of, results, origins, every_kept = [], [], [], [], [], [], []
        code_base = start_base = 0
        for number, (store, games_) in enumerate(zip(listed, chosen, strict=True)):
            every = np.arange(len(store.results)) if games_ is None else np.asarray(games_)
            offsets = np.asarray(store.offsets, np.int64)
            openings = getattr(store, "opening_plies", np.zeros(len(offsets) - 1, np.int64))
            behind = np.diff(offsets) - openings
            kept = every[(np.abs(store.results[every]) <= 1) & (behind[every] > 0)]
            firsts.append(offsets[kept] + code_base)
            skipped.append(openings[kept])
            plies.append(behind[kept])
            start_of.append(np.asarray(store.start_of)[kept] + start_base)
            results.append(np.asarray(store.results)[kept])
            origins.append(np.stack([np.full_like(kept, number), kept], axis=1))
            every_kept.append(kept)
            code_base += len(store.codes)
            start_base += len(store.starts)
        cumulative = np.zeros(sum(map(len, plies)) + 1, np.int64)
        np.cumsum(np.concatenate(plies), out=cumulative[1:])
        blocks = np.arange(0, cumulative[-1], replay.BLOCK)
        return SampledGames(
            codes=_joined([store.codes for store in listed], np.uint16),
            first_code=_joined(firsts, np.int64),
            skipped=_joined(skipped, np.int64),
            cumulative=cumulative,
            block_game=(np.searchsorted(cumulative, blocks, "right") - 1).astype(np.int32),
            start_of=_joined(start_of, np.int32),
            starts=_joined([store.starts for store in listed], POSITION),
            results=_joined(results, np.int8),
            origins=_joined(origins, np.int64),
            visits=None if labels == "move" else _visits(listed, every_kept),
        )


def _visits(stores: Sequence[GameArrays], games: Sequence[NDArray[np.integer]]) -> Visits | None:
    """Visits of the games chosen of each store; None where no store has any."""
    parts: list[tuple[int, Visits | None]] = []
    for store, kept in zip(stores, games, strict=True):
        found: Visits | None = getattr(store, "visits", None)
        parts.append(
            (len(kept), None if found is None else replace(found, first=found.first[kept]))
        )
    joined = join_visits(parts)
    if joined is None:
        return None
    return Visits(
        np.require(joined.first, np.int64, ["C", "W", "A"]),
        np.require(joined.ends, np.int64, ["C", "W", "A"]),
        np.require(joined.codes, np.uint16, ["C", "W", "A"]),
        np.require(joined.weights, np.uint16, ["C", "W", "A"]),
    )


@dataclass(slots=True)
class Frames:
    """Positions kept of every game, so that a sample replays a few plies and not all."""

    stride: int
    """Every so many plies of a game one is kept, ply 0 first."""
    first: NDArray[np.int64]
    """[G] index of a game's first."""
    positions: Position
    seen: NDArray[np.int8]
    """[N] how often each sampled position occurred before in its game; empty where no plane asks."""

    @staticmethod
    def of(
        games: SampledGames, tables: Tables, codec: MoveCodec, repetitions: bool, memory: int
    ) -> Frames:
        """As many positions as fit into `memory` bytes. Raises DataError for a move that its position
        does not allow."""
        plies = games.plies
        stride = MIN_STRIDE
        while int((-(-plies // stride)).sum()) * POSITION.itemsize > memory and stride < MAX_STRIDE:
            stride *= 2
        counts = -(-plies // stride)
        first = np.zeros(len(plies), np.int64)
        np.cumsum(counts[:-1], out=first[1:])
        frames = Frames(
            stride,
            first,
            np.zeros(int(counts.sum()), POSITION),
            np.zeros(games.cumulative[-1] if repetitions else 0, np.int8),
        )
        replayed = replay.replay_games(
            tables,
            codec.record,
            games.codes,
            games.first_code,
            games.skipped,
            games.cumulative,
            games.start_of,
            games.starts,
            stride,
            frames.first,
            frames.positions,
            frames.seen,
            np.empty(plies.max() if repetitions else 0, np.uint64),
        )
        if replayed < len(plies):
            raise DataError(
                f"game {replayed} of the sampled games has a move that its position does not "
                "allow: the store is damaged, or of other rules"
            )
        return frames


def _joined(arrays: Sequence[Any], dtype: Any) -> Any:
    """One array, contiguous and writable: anything else is another signature to compiled code."""
    array = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
    return np.require(array, dtype, ["C", "W", "A"])
