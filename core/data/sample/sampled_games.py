"""Games of all stores gathered for the sampler, with the positions kept of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.data.game_record import TRAINS_ALL, TRAINS_VALUE, Labels
from variant_ai.core.data.sample.compiled_replay import (
    BLOCK,
    Encoding,
    Frames,
    Games,
    Targets,
    replay_games,
)
from variant_ai.core.data.sample.value_labels import ValueLabels, value_of_scores
from variant_ai.core.data.store.columns import Floats, Longs
from variant_ai.core.data.store.visits import Visits, join_visits
from variant_ai.core.errors import DataError
from variant_ai.core.rules.position import POSITION

if TYPE_CHECKING:
    from variant_ai.core.data.store.game_store import Store

MIN_STRIDE, MAX_STRIDE = 4, 1 << 20
"""Plies between the positions kept of a game."""


class SampledGames(NamedTuple):
    """Sampled games of all stores, one after the other."""

    arrays: Games
    origins: Longs
    """[G, 2] number of the store, index within it."""
    visits: Visits | None
    targets: Targets | None
    """None if every label is a move or visits, and a result."""


def gather_games(
    stores: Store | Sequence[Store],
    games: NDArray[np.integer] | Sequence[NDArray[np.integer]] | None,
    labels: Labels,
    value_labels: ValueLabels,
    draw_value: float,
) -> SampledGames:
    """Gather the chosen `games` of each store, all by default, except games without a move after their
    opening and those without a result or a value of the search.

    Raises DataError if no position is left."""
    listed = list(stores) if isinstance(stores, Sequence) else [stores]
    if games is None:
        chosen: list[NDArray[np.integer] | None] = [None] * len(listed)
    elif isinstance(stores, Sequence):
        chosen = list(games)
    else:
        chosen = [np.asarray(games)]
    firsts, skipped, plies, start_of, results, origins, visits = [], [], [], [], [], [], []
    cut_off: list[NDArray[np.bool_]] = []
    targets: list[Callable[[], tuple[Floats, NDArray[np.uint8]]]] = []
    has_targets = draw_value != 0
    code_base = start_base = 0
    for number, (store, indices) in enumerate(zip(listed, chosen, strict=True)):
        every = np.arange(len(store.results)) if indices is None else np.asarray(indices)
        offsets = np.asarray(store.offsets, np.int64)
        openings = store.opening_plies
        sampled = np.diff(offsets) - openings
        searched = _searched_values(store, value_labels)
        known = np.abs(store.results[every]) <= 1
        if searched is not None:
            before = np.concatenate([[0], np.cumsum(~np.isnan(searched))])
            known |= before[offsets[every + 1]] > before[offsets[every] + openings[every]]
        kept = every[known & (sampled[every] > 0)]
        targets.append(partial(_targets_of, store, kept, offsets, openings, searched))
        unknown = np.abs(store.results[kept]) > 1
        has_targets |= searched is not None or store.trains is not None or bool(unknown.any())
        firsts.append(offsets[kept] + code_base)
        skipped.append(openings[kept])
        plies.append(sampled[kept])
        start_of.append(np.asarray(store.start_of)[kept] + start_base)
        results.append(np.asarray(store.results)[kept])
        cut_off.append(store.cut_off[kept])
        origins.append(np.stack([np.full_like(kept, number), kept], axis=1))
        visits.append((len(store.codes), None if labels == "move" else store.visits))
        code_base += len(store.codes)
        start_base += len(store.starts)
    cumulative = np.zeros(sum(map(len, plies)) + 1, np.int64)
    np.cumsum(np.concatenate(plies), out=cumulative[1:])
    if not cumulative[-1]:
        raise DataError(
            "no position to sample: no chosen game has a result and a move after its opening"
        )
    blocks = np.arange(0, cumulative[-1], BLOCK)
    joined_targets = None
    if has_targets:
        made = [target() for target in targets]
        joined_targets = _joined_targets(made, value_labels, draw_value)
    arrays = Games(
        codes=_joined([store.codes for store in listed], np.uint16),
        first_code=_joined(firsts, np.int64),
        skipped=_joined(skipped, np.int64),
        cumulative=cumulative,
        chosen=_taught(joined_targets),
        block_game=(np.searchsorted(cumulative, blocks, "right") - 1).astype(np.int32),
        start_of=_joined(start_of, np.int32),
        starts=_joined([store.starts for store in listed], POSITION),
        results=_joined(results, np.int8),
        cut_off=_joined(cut_off, np.uint8),
    )
    joined = join_visits(visits)
    if joined is not None:
        joined = Visits(*(_joined([array], array.dtype) for array in joined))
    return SampledGames(arrays, _joined(origins, np.int64), joined, joined_targets)


def _searched_values(store: Store, labels: ValueLabels) -> Floats | None:
    """[L] values of the search that the labels use, NaN if unknown; None if the store has none."""
    if labels.source == "result":
        return None
    roots, scores = store.root_values, store.scores
    if labels.source == "root" or scores is None:
        return roots
    if labels.scale is None:
        raise ValueError("the scale of the scores is not known; fit it first")
    values = value_of_scores(scores, labels.scale)
    return values if roots is None else np.where(np.isnan(values), roots, values)


def _targets_of(
    store: Store,
    games: NDArray[np.integer],
    offsets: Longs,
    openings: Longs,
    searched: Floats | None,
) -> tuple[Floats, NDArray[np.uint8]]:
    """Values of the search of the positions of some games of a store, NaN if there is none, and what
    may be learnt from each position."""
    begins = offsets[games] + openings[games]
    plies = offsets[games + 1] - begins
    at = np.arange(plies.sum()) + np.repeat(begins - np.cumsum(plies) + plies, plies)
    may_train = store.trains
    values = np.full(len(at), np.nan, np.float32) if searched is None else searched[at]
    trains = np.full(len(at), TRAINS_ALL, np.uint8) if may_train is None else may_train[at]
    values[trains == 0] = np.nan
    unknown = np.abs(np.asarray(store.results)[games]) > 1
    trains[np.repeat(unknown, plies)] &= TRAINS_ALL & ~TRAINS_VALUE
    return values, trains


def _joined_targets(
    parts: Sequence[tuple[Floats, NDArray[np.uint8]]], labels: ValueLabels, draw_value: float
) -> Targets | None:
    """Targets of the positions of all stores; None if all are moves or visits, and results."""
    values = _joined([values for values, _ in parts], np.float32)
    trains = _joined([trains for _, trains in parts], np.uint8)
    if not draw_value and np.isnan(values).all() and (trains == TRAINS_ALL).all():
        return None
    return Targets(values, trains, float(labels.share), float(draw_value))


def _taught(targets: Targets | None) -> Longs:
    """Positions that teach something, ascending; empty if all do. Raises DataError if none does."""
    if targets is None:
        return np.zeros(0, np.int64)
    chosen = np.flatnonzero((targets.trains > 0) | ~np.isnan(targets.values))
    if not len(chosen):
        raise DataError("no position to sample: the chosen games have none that may be learnt")
    return chosen if len(chosen) < len(targets.trains) else np.zeros(0, np.int64)


def make_frames(games: Games, encoding: Encoding, repetitions: bool, memory: int) -> Frames:
    """Replay all games and keep as many positions as fit into `memory` bytes.

    `repetitions`: count earlier occurrences of each position. Raises DataError for a move that is
    not possible in its position.
    """
    plies = np.diff(games.cumulative) + games.skipped
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
    keys = np.empty(plies.max() if repetitions else 0, np.uint64)
    replayed = replay_games(encoding, games, frames, keys)
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
