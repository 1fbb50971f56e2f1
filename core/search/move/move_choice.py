"""Choice of the move to play: pure functions of the root's statistics.

Arrays have shape (n,), one entry for each move of the root, in any order. `visits` are counts, `q`
values in [-1, 1] for the mover, `mates` proven plies to the end of the game: positive if the mover
wins, negative if it loses, 0 if nothing is proven.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.search.settings import SearchParams

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

GREEDY = 0.01
"""Temperatures below this count as 0: N^(1/τ) would select the greatest N anyway."""


def q_threshold(total: float, init: float, maximum: float, base: float) -> float:
    """Share of the greatest N below which a move's Q' counts as 0, as if it lost ([CrazyAra-preprint] eq. 7)."""
    return maximum - math.exp(-total / base) * (maximum - init)


def move_policy(visits: Ints, q: Floats, params: SearchParams) -> Floats:
    """Policy (1 - f)·N/ΣN + f·Q' with Q' in [0, 1] ([CrazyAra-preprint] eq. 5); shape (n,), sums to 1.

    Q' is (Q + 1)/2, or 0 for moves with less than `q_threshold` of the greatest N. With f = 0 the
    policy is the share of visits. Without any visits it is uniform.
    """
    total = float(visits.sum())
    if total <= 0:
        return np.full(len(visits), 1.0 / max(len(visits), 1))
    policy = visits / total
    f = params.q_weight
    if f > 0:
        threshold = q_threshold(
            total, params.q_thresh_init, params.q_thresh_max, params.q_thresh_base
        )
        well_known = visits >= threshold * visits.max()
        policy = (1.0 - f) * policy + f * np.where(well_known, (q + 1.0) / 2.0, 0.0)
    mass = float(policy.sum())
    # if all visits went to lost moves and f = 1, the sum is 0
    return policy / mass if mass > 0 else visits / total


def ranking(policy: Floats, q: Floats, prior: Floats, mates: Ints | None = None) -> Ints:
    """Indices of the moves, best first, shape (n,).

    Proven wins come first, the quickest of them first; proven losses come last, the longest defence
    first. Otherwise moves are ordered by policy, then Q, then prior, then the given order.
    """
    plies = np.zeros(len(policy), np.int64) if mates is None else mates
    proven = np.sign(plies)
    # fewer plies are better for wins, more for losses: both mean the smaller signed number
    return np.lexsort((-prior, -q, -policy, plies, -proven)).astype(np.int64)


def move_temperature(params: SearchParams, own_moves: int) -> float:
    """Temperature after `own_moves` moves of the player: τ·decay^moves, 0 from `temperature_moves`
    on."""
    if own_moves >= params.temperature_moves:
        return 0.0
    tau = params.temperature * params.temperature_decay**own_moves
    return tau if tau >= GREEDY else 0.0


def tempered(policy: Floats, tau: float) -> Floats:
    """policy^(1/τ), normalised ([CrazyAra-preprint] eq. 4); τ = 0 keeps only the first maximum."""
    if tau < GREEDY:
        chosen = np.zeros(len(policy))
        chosen[int(np.argmax(policy))] = 1.0
        return chosen
    # relative to the maximum, because small policies could otherwise all underflow to 0
    powers: Floats = (policy / policy.max()) ** (1.0 / tau)
    return powers / float(powers.sum())


def clipped(policy: Floats, quantile: float) -> Floats:
    """Policy without its least likely moves, which together have less than `quantile`; normalised.

    Equally likely moves are kept or removed together, and the most likely one is always kept
    ([Xiangqi-thesis] table 7.1).
    """
    if quantile <= 0:
        return policy
    order = np.argsort(policy, kind="stable")
    reached = np.cumsum(policy[order]) >= quantile
    last = int(np.argmax(reached)) if reached.any() else len(policy) - 1
    kept = np.where(policy >= policy[order[last]], policy, 0.0)
    return kept / float(kept.sum())


def choose(
    visits: Ints,
    q: Floats,
    prior: Floats,
    params: SearchParams,
    *,
    mates: Ints | None = None,
    own_moves: int = 0,
    rng: np.random.Generator | None = None,
) -> int:
    """Return the index of the move to play.

    own_moves: number of moves that the player has made before, for the temperature. rng: samples the
    move if there is a temperature; None: a new generator with `params.seed`. Without visits the
    priors are used instead. Proven wins are always played, proven losses only if there is nothing
    else.
    """
    policy = move_policy(visits, q, params)
    if not visits.any() and prior.sum() > 0:
        policy = prior / prior.sum()
    first = int(ranking(policy, q, prior, mates)[0])
    tau = move_temperature(params, own_moves)
    if tau == 0.0 or (mates is not None and mates[first] != 0):
        return first
    if mates is not None:
        policy = np.where(mates < 0, 0.0, policy)
    if policy.max() <= 0:
        return first
    policy = clipped(tempered(policy, tau), params.quantile_clipping)
    rng = np.random.default_rng(params.seed) if rng is None else rng
    return int(rng.choice(len(policy), p=policy))
