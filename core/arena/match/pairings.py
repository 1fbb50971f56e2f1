"""Who plays whom, with which opening, in which order.

A match is a sequence of numbered pairings that follows from its settings alone, so a match that
was broken off goes on where it stopped. Rounds come one after another: in a round every pair of
players plays one opening with both colours, so the table is fair at any time, and a match with
more games has the same first games.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from variant_ai.core.errors import SettingError

Kind = Literal["round-robin", "gauntlet", "pairs"]


@dataclass(frozen=True)
class Pairing:
    """One game to be played."""

    number: int
    """From 0, in the order of play."""
    round: int
    """From 0; both games of a pair are of one round."""
    first: int
    """Player with the first player's pieces, by index."""
    second: int
    opening: int
    """Index of the opening."""


def meetings(
    players: int, kind: Kind, seeds: int = 1, pairs: Sequence[tuple[int, int]] = ()
) -> list[tuple[int, int]]:
    """Pairs of players that meet: all, in a gauntlet each of the first `seeds` players with each of
    the others, or the given `pairs`. Raises SettingError where somebody would meet nobody."""
    if players < 2:
        raise SettingError(f"a match needs two players, not {players}")
    if kind == "gauntlet" and not 0 < seeds < players:
        raise SettingError(f"a gauntlet of {players} players has 1 to {players - 1} seeds")
    if kind == "pairs":
        if len({frozenset(pair) for pair in pairs}) < len(pairs):
            raise SettingError("pairs: two players meet once; give them more games")
        if missing := set(range(players)) - {player for pair in pairs for player in pair}:
            raise SettingError(f"pairs: player {min(missing) + 1} meets nobody")
        return list(pairs)
    return [
        (a, b)
        for a in range(players)
        for b in range(a + 1, players)
        if kind == "round-robin" or a < seeds <= b
    ]


def pairings(
    pairs: Sequence[tuple[int, int]], games: int, openings: Sequence[int]
) -> Iterator[Pairing]:
    """The games of a match: `games` for each pair, the k-th round with `openings[k]`, from the
    start again where they run out."""
    number = 0
    for k in range((games + 1) // 2):
        opening = openings[k % len(openings)]
        for a, b in pairs:
            for game, (first, second) in enumerate(((a, b), (b, a))):
                if 2 * k + game < games:
                    yield Pairing(number, k, first, second, opening)
                number += 1


def opening_order(count: int, order: Literal["sequential", "random"], seed: int) -> list[int]:
    """Indices of the openings in the order in which rounds take them."""
    indices = list(range(count))
    if order == "random":
        random.Random(f"openings {seed}").shuffle(indices)
    return indices
