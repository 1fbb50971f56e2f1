"""Where the positions of a sweep come from: which game, and how strong its mover was.

N positions in the order of the sweep, G games sampled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.data.sample.sampler import Sampler
from variant_ai.core.data.store.game_store import NO_RATING, Store

RATING_STEPS = (100, 200, 400)
MOST_CLASSES = 10
UNRATED = "no rating"


@dataclass(frozen=True)
class Places:
    """Game and ratings of each of N positions."""

    game: NDArray[np.int64]
    """[N] numbered among the games sampled."""
    ratings: NDArray[np.int32]
    """[G, 2] of the first and the second player, NO_RATING where missing."""

    def mover_ratings(self, side: NDArray[np.integer]) -> NDArray[np.int32]:
        """[N] rating of the player to move, `side` [N] being the colour to move."""
        return self.ratings[self.game, np.asarray(side, np.int64)]


def places_of(source: Sampler, stores: Sequence[Store], *, limit: int | None = None) -> Places:
    """Places of `source.sweep(limit=limit)`; `stores` are those the source samples, in order."""
    ratings = np.full((len(source.origins), 2), NO_RATING, np.int32)
    for number, store in enumerate(stores):
        here = source.origins[:, 0] == number
        ratings[here] = store.ratings[source.origins[here, 1]]
    return Places(source.swept_games(limit=limit), ratings)


def rating_classes(rating: NDArray[np.int32]) -> dict[str, NDArray[np.bool_]]:
    """`2200-2299`, ... and `no rating` -> which of N positions belong there; empty ones left out.

    Classes are 100, 200 or 400 points wide, the narrowest that gives at most ten.
    """
    known = rating != NO_RATING
    classes: dict[str, NDArray[np.bool_]] = {}
    if known.any():
        low, high = int(rating[known].min()), int(rating[known].max())
        step = next(
            (s for s in RATING_STEPS if high // s - low // s < MOST_CLASSES), RATING_STEPS[-1]
        )
        for first in range(low // step * step, high + 1, step):
            classes[f"{first}-{first + step - 1}"] = known & (rating // step == first // step)
    classes[UNRATED] = ~known
    return {title: where for title, where in classes.items() if where.any()}
