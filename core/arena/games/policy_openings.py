"""Opening lines drawn from a network's policy.

Paper 000, section 7: 1,000 openings of 5.84 ± 2.77 plies, drawn from the policy of the network, for
games between engines.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from variant_ai.core.arena.games.openings import Opening
from variant_ai.core.errors import DataError
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules

MEAN, DEVIATION = 5.84, 2.77
"""Plies of the published openings."""
TRIES = 50
"""Lines drawn for one that is new, before the policy counts as used up."""

Priors = Callable[[Game], Sequence[tuple[int, float]]]
"""Legal moves of a game's position with their probabilities; any positive scale."""


def policy_lines(
    rules: Rules,
    priors: Priors,
    count: int,
    *,
    plies: tuple[float, float] = (MEAN, DEVIATION),
    seed: int = 0,
    temperature: float = 1.0,
) -> Iterator[Opening]:
    """`count` lines from the start position, no two alike and none that ends the game.

    plies: mean and standard deviation of their lengths, normal, at least 1. temperature: above 1
    draws unlikely moves more often. Raises DataError where the policy has no more lines.
    """
    chance = random.Random(f"lines {seed}")
    seen: set[tuple[int, ...]] = set()
    failed = 0
    while len(seen) < count:
        game = Game(rules)
        for _ in range(max(1, round(chance.gauss(*plies)))):
            moves = priors(game)
            most = max(probability for _, probability in moves)  # by which no power vanishes
            weights = [(probability / most) ** (1 / temperature) for _, probability in moves]
            game.push(chance.choices([move for move, _ in moves], weights)[0])
            if game.outcome() is not None:
                break
        line = tuple(game.moves)
        if line in seen or game.outcome() is not None:
            failed += 1
            if failed > TRIES:
                raise DataError(
                    f"only {len(seen)} different lines were drawn; longer ones or a higher "
                    "temperature give more"
                )
            continue
        failed = 0
        seen.add(line)
        yield Opening(None, line)
