"""Games of all stores gathered for the sampler, with the positions kept of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.data.game_record import Labels
from variant_ai.core.data.sample.compiled_replay import BLOCK, Encoding, Frames, Games, replay_games
from variant_ai.core.data.store.visits import Visits, join_visits
from variant_ai.core.errors import DataError
from variant_ai.core.rules.position import POSITION, Position
from variant_ai.core.system.text_tables import counted

MIN_STRIDE, MAX_STRIDE = 4, 1 << 20
"""Plies between the positions kept of a game."""


class GameArrays(Protocol):
    """Arrays of a game store that the sampler needs: G games of L plies in total.

    A `Store` has them, as may any other object. Two more are optional: `visits` of searches
    (`visits.Visits`, or None), and `opening_plies` int64 [G], the first plies of each game that are
    not sampled.
    """

    @property
    def codes(self) -> NDArray[np.uint16]:
        """[L] moves of all games, one after the other (`MoveCodec`)."""

    @property
    def offsets(self) -> NDArray[np.int64]:
        """[G + 1] index of the first code of each game, and L."""

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
    """Sampled games of all stores, one after the other."""

    arrays: Games
    origins: NDArray[np.int64]
    """[G, 2] number of the store, index within it."""
    visits: Visits | None = None

    @property
    def max_choices(self) -> int:
        """Most moves with visits in one position."""
        return 0 if self.visits is None else self.visits.max_moves

    @property
    def plies(self) -> NDArray[np.int64]:
        """[G] length of whole games."""
        return np.diff(self.arrays.cumulative) + self.arrays.skipped

    def searched(self) -> int:
        """Number of sampled positions with visits."""
        if self.visits is None:
            return 0
        first, plies = self.visits.first, np.diff(self.arrays.cumulative)
        before = np.concatenate([[0], np.cumsum(np.diff(self.visits.ends) > 0)])
        present = first >= 0
        begin = first[present] + self.arrays.skipped[present]
        return int((before[begin + plies[present]] - before[begin]).sum())


def gather_games(
    stores: GameArrays | Sequence[GameArrays],
    games: NDArray[np.integer] | Sequence[NDArray[np.integer]] | None,
    labels: Labels,
) -> SampledGames:
    """Gather the chosen `games` of each store, all by default, except games without a result or a
    move after their opening. Raises ValueError if stores and games differ in number."""
    listed = list(stores) if isinstance(stores, Sequence) else [stores]
    if games is None:
        chosen: list[NDArray[np.integer] | None] = [None] * len(listed)
    elif isinstance(stores, Sequence):
        chosen = list(games)
    else:
        chosen = [np.asarray(games)]
    if len(chosen) != len(listed):
        raise ValueError(f"{counted(len(listed), 'store')}, but games of {len(chosen)}")
    firsts, skipped, plies, start_of, results, origins, visits = [], [], [], [], [], [], []
    code_base = start_base = 0
    for number, (store, indices) in enumerate(zip(listed, chosen, strict=True)):
        every = np.arange(len(store.results)) if indices is None else np.asarray(indices)
        offsets = np.asarray(store.offsets, np.int64)
        openings = getattr(store, "opening_plies", np.zeros(len(offsets) - 1, np.int64))
        sampled = np.diff(offsets) - openings
        kept = every[(np.abs(store.results[every]) <= 1) & (sampled[every] > 0)]
        firsts.append(offsets[kept] + code_base)
        skipped.append(openings[kept])
        plies.append(sampled[kept])
        start_of.append(np.asarray(store.start_of)[kept] + start_base)
        results.append(np.asarray(store.results)[kept])
        origins.append(np.stack([np.full_like(kept, number), kept], axis=1))
        found: Visits | None = None if labels == "move" else getattr(store, "visits", None)
        visits.append(
            (len(kept), None if found is None else found._replace(first=found.first[kept]))
        )
        code_base += len(store.codes)
        start_base += len(store.starts)
    cumulative = np.zeros(sum(map(len, plies)) + 1, np.int64)
    np.cumsum(np.concatenate(plies), out=cumulative[1:])
    blocks = np.arange(0, cumulative[-1], BLOCK)
    arrays = Games(
        codes=_joined([store.codes for store in listed], np.uint16),
        first_code=_joined(firsts, np.int64),
        skipped=_joined(skipped, np.int64),
        cumulative=cumulative,
        block_game=(np.searchsorted(cumulative, blocks, "right") - 1).astype(np.int32),
        start_of=_joined(start_of, np.int32),
        starts=_joined([store.starts for store in listed], POSITION),
        results=_joined(results, np.int8),
    )
    joined = join_visits(visits)
    if joined is not None:
        joined = Visits(*(_joined([array], array.dtype) for array in joined))
    return SampledGames(arrays, _joined(origins, np.int64), joined)


def make_frames(games: SampledGames, encoding: Encoding, repetitions: bool, memory: int) -> Frames:
    """Replay all games and keep as many positions as fit into `memory` bytes.

    `repetitions`: count earlier occurrences of each position. Raises DataError for a move that is
    not possible in its position.
    """
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
        np.zeros(games.arrays.cumulative[-1] if repetitions else 0, np.int8),
    )
    keys = np.empty(plies.max() if repetitions else 0, np.uint64)
    replayed = replay_games(encoding, games.arrays, frames, keys)
    if replayed < len(plies):
        raise DataError(
            f"game {replayed + 1} of the sampled games has a move that is not possible in its position: "
            "the store is damaged, or made under other rules"
        )
    return frames


def _joined(arrays: Sequence[Any], dtype: Any) -> Any:
    """One array, contiguous and writable: anything else has another signature in compiled code."""
    array = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
    return np.require(array, dtype, ["C", "W", "A"])
