"""Replay window: the newest positions of all generations, from which the learner samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.data.store.game_store import Store
from variant_ai.core.reinforce.reinforce_settings import Window


def window_size(total: int, settings: Window) -> int:
    """Positions of the window when `total` positions were recorded so far, at most `total`.

    It grows more slowly than the run: c (1 + β ((T / c)^α - 1) / α) ([KataGo]).
    """
    if total <= settings.size:
        return total
    c, alpha, beta = settings.size, settings.alpha, settings.beta
    return min(total, int(c * (1 + beta * ((total / c) ** alpha - 1) / alpha)))


@dataclass(frozen=True)
class ReplayWindow:
    """Games of a window."""

    stores: tuple[Store, ...]
    """Oldest first."""
    games: tuple[NDArray[np.int64], ...]
    """Indices of the games in each store."""
    positions: int
    """Plies of these games after their openings."""


def newest_games(
    generations: Sequence[int], open_store: Callable[[int], Store], wanted: int
) -> ReplayWindow:
    """Return the last games of the last generations that have at least `wanted` positions together.

    Games of a store are in the order in which they began. generations: with a store, in order.
    """
    stores: list[Store] = []
    games: list[NDArray[np.int64]] = []
    positions = 0
    for generation in reversed(generations):
        if positions >= wanted:
            break
        store = open_store(generation)
        plies = store.lengths - store.opening_plies
        from_end = np.cumsum(plies[::-1])
        count = min(len(plies), int(np.searchsorted(from_end, wanted - positions)) + 1)
        if count == 0:
            continue
        stores.append(store)
        games.append(np.arange(len(plies) - count, len(plies), dtype=np.int64))
        positions += int(from_end[count - 1])
    return ReplayWindow(tuple(stores[::-1]), tuple(games[::-1]), positions)
