"""Numbers of a generation: what its games were like."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from variant_ai.core.data.game_record import TRAINS_POLICY, TRAINS_VALUE, GameRecord
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules

ADVISED_GENERATION = 3
"""By this generation random weights are no longer the cause."""
MOSTLY_DRAWN = 0.95
SAMPLED_GAMES = 100
"""Games that are replayed to count distinct positions."""


def summarise_games(
    games: Sequence[GameRecord], rules: Rules, root_value_share: float, draw_value: float = 0.0
) -> dict[str, Any]:
    """Count what happened in the games of a generation. Shares are in [0, 1].

    root_value_share: λ of the value target, for `zero_value_loss`, the mean square of the target: a
    net that always answers 0 has this loss. draw_value: target of a drawn game for both sides.
    """
    plies = [record.plies for record in games]
    results = Counter(record.result for record in games)
    ends = Counter(record.termination for record in games)
    entropy: list[float] = []
    squares: list[float] = []
    for record in games:
        outcome = float(record.value or 0)
        first = int(rules.position(record.start_fen)["side"][0])
        for ply, bits in enumerate(record.trains or ()):
            if bits & TRAINS_POLICY and record.visits and record.visits[ply]:
                weights = np.array([weight for _, weight in record.visits[ply]], np.float64)
                weights = weights[weights > 0] / weights.sum()
                entropy.append(float(-(weights * np.log(weights)).sum()))
            root = record.root_values[ply] if record.root_values else None
            mover = outcome if (ply + first) % 2 == 0 else -outcome
            if outcome == 0:
                mover = draw_value
            if root is None:
                target = mover
            elif bits & TRAINS_VALUE:
                target = (1 - root_value_share) * mover + root_value_share * root
            else:
                target = root
            if bits:
                squares.append(target * target)
    return {
        "games": len(games),
        "positions": len(squares),
        "plies": _mean(plies),
        "longest": max(plies, default=0),
        "first_player_wins": results["1-0"] / max(1, len(games)),
        "second_player_wins": results["0-1"] / max(1, len(games)),
        "draws": results["1/2-1/2"] / max(1, len(games)),
        "ends": dict(ends.most_common()),
        "policy_entropy": _mean(entropy),
        "zero_value_loss": _mean(squares),
        "distinct_positions": _distinct(games[:SAMPLED_GAMES], rules),
    }


def advice_on(row: Mapping[str, Any], scattered_share: float) -> str:
    """Return what to change if hardly a game of the first generations was won; empty if there is nothing.

    row: numbers of a generation. scattered_share: `variety.scattered_share` of the run.
    """
    if row["generation"] != ADVISED_GENERATION or row["draws"] < MOSTLY_DRAWN or scattered_share:
        return ""
    return (
        f"{100 * row['draws']:.0f} % of the games were not won, so there is hardly a result to learn from. If this goes on, "
        "begin another run with --set variety.scattered_share=0.5: half of its games start with the "
        "pieces on random squares (docs/self-play.md, If draws or repetition take over)"
    )


def _distinct(games: Sequence[GameRecord], rules: Rules) -> float:
    """Share of distinct positions after the openings of these games."""
    keys: list[int] = []
    for record in games:
        game = Game(rules, record.start_fen)
        for ply, move in enumerate(record.moves):
            if ply >= record.opening_plies:
                keys.append(int(game.positions[-1]["key"][0]))
            game.push(move)
    return len(set(keys)) / len(keys) if keys else 0.0


def _mean(numbers: Sequence[float]) -> float:
    return float(np.mean(numbers)) if len(numbers) else 0.0
