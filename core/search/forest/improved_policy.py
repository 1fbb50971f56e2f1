"""The policy that a search improved ([Gumbel] section 4), and selection by it below the root.

    pi'(a) = softmax(logit(a) + sigma(q(a))),   sigma(q) = (offset + max_b N(b)) * scale * q

q(a) is the value of a move in [0, 1]; moves without visits get the mean v_mix ([Gumbel] appendix D)

    v_mix = (v + sum N * sum over visited of P q / sum over visited of P) / (1 + sum N)

With `minmax` all q are rescaled so that the least of the position is 0 and the greatest 1. Logits are
the logarithms of the priors, and all untried moves share one q: a node costs one exponential for each
tried move, however many moves are legal.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.jit import Number, Truth, borrowing
from variant_ai.core.search.compiled_settings import Settings
from variant_ai.core.search.tree.nodes import WON, Arrays, child_proof, first_prior
from variant_ai.core.search.tree.priors import decode_prior
from variant_ai.core.search.tree.selection import NO_EDGE, edge_value

_LEAST = 1e-8
"""Least difference of values that `minmax` rescales by."""


@borrowing
def move_value(g: Arrays, s: Settings, slot: Number) -> float:
    """Value of a visited move for the side that makes it, in [0, 1]: 1 is a win."""
    return min(max(0.5 * (edge_value(g, s, slot) + 1.0), 0.0), 1.0)


@borrowing
def value_or(g: Arrays, s: Settings, slot: Number, mix: float) -> float:
    """Value of a move as `move_value`, or `mix` if it was not visited."""
    return move_value(g, s, slot) if g.slots[slot]["visits"] > 0 else mix


@borrowing
def is_lost(g: Arrays, s: Settings, slot: Number) -> Truth:
    """Return True if the move of a slot is proven to lose."""
    edge = g.slots[slot]
    if edge["child"] == 0 or not s[0]["solver"]:
        return False
    return child_proof(g, edge) == WON


@borrowing
def sigma_terms(g: Arrays, s: Settings, node: Number) -> tuple[float, float, float]:
    """Return (low, factor, v_mix): sigma(q) = factor * (q - low), and q of moves without visits."""
    record = g.nodes[node]
    slots = np.int64(record["slots"])
    priors = first_prior(node)
    own = 0.5 * (np.float64(record["value"]) + 1.0)
    visits = np.int64(0)
    most = np.int64(0)
    tried = np.int64(0)
    mass = 0.0
    weighted = 0.0
    low = np.inf
    high = -np.inf
    for e in range(np.int64(record["opened"])):
        n = np.int64(g.slots[slots + e]["visits"])
        if n == 0:
            continue
        q = move_value(g, s, slots + e)
        p = np.float64(decode_prior(g.priors[priors + e]))
        tried += 1
        visits += n
        most = max(most, n)
        mass += p
        weighted += p * q
        low = min(low, q)
        high = max(high, q)
    mix = own
    if mass > 0.0:
        mix = (own + visits * weighted / mass) / (1.0 + visits)
    factor = (s[0]["visit_offset"] + most) * s[0]["value_scale"]
    if not s[0]["minmax"]:
        return 0.0, factor, mix
    if tried < np.int64(record["count"]):
        low = min(low, mix)
        high = max(high, mix)
    return low, factor / max(high - low, _LEAST), mix


@borrowing
def select_improved(g: Arrays, s: Settings, node: Number) -> Number:
    """Select the edge of an OPEN node with the greatest pi'(a) - N(a) / (1 + sum N); `opened` means the
    first untried one. NO_EDGE if all are proven to lose."""
    record = g.nodes[node]
    opened = np.int64(record["opened"])
    count = np.int64(record["count"])
    if record["visits"] <= 1:
        return np.int64(0)
    slots = np.int64(record["slots"])
    priors = first_prior(node)
    low, factor, mix = sigma_terms(g, s, node)
    greatest = -np.inf
    rest = 1.0
    for e in range(opened):
        q = value_or(g, s, slots + e, mix)
        greatest = max(greatest, factor * (q - low))
        rest -= np.float64(decode_prior(g.priors[priors + e]))
    untried = factor * (mix - low)
    if opened < count:
        greatest = max(greatest, untried)
        rest = max(rest, 0.0)
    else:
        rest = 0.0
    total = rest * math.exp(untried - greatest)
    for e in range(opened):
        q = value_or(g, s, slots + e, mix)
        p = np.float64(decode_prior(g.priors[priors + e]))
        total += p * math.exp(factor * (q - low) - greatest)
    share = 1.0 / np.float64(record["visits"])
    best = -np.inf
    chosen = np.int64(NO_EDGE)
    for e in range(opened):
        if is_lost(g, s, slots + e):
            continue
        n = np.int64(g.slots[slots + e]["visits"])
        q = value_or(g, s, slots + e, mix)
        p = np.float64(decode_prior(g.priors[priors + e]))
        score = p * math.exp(factor * (q - low) - greatest) / total - n * share
        if score > best:
            best = score
            chosen = np.int64(e)
    if opened < count:
        p = np.float64(decode_prior(g.priors[priors + opened]))
        if p * math.exp(untried - greatest) / total > best:
            chosen = opened
    return chosen


@borrowing
def improved_policy(g: Arrays, s: Settings, node: Number, p: NDArray[np.float64]) -> float:
    """Write pi' of all moves of an OPEN node to `p` [count or more], in the order of its edges, and
    return its value, the sum of pi' q in [-1, 1] for the side to move.

    Moves proven to lose get 0, unless all of them are.
    """
    record = g.nodes[node]
    opened = np.int64(record["opened"])
    count = np.int64(record["count"])
    slots = np.int64(record["slots"])
    priors = first_prior(node)
    low, factor, mix = sigma_terms(g, s, node)
    greatest = -np.inf
    lost = np.int64(0)
    for e in range(count):
        q = mix
        logit = math.log(np.float64(decode_prior(g.priors[priors + e])))
        if e < opened:
            if is_lost(g, s, slots + e):
                lost += 1
            q = value_or(g, s, slots + e, mix)
        p[e] = logit + factor * (q - low)
        greatest = max(greatest, p[e])
    total = 0.0
    for e in range(count):
        p[e] = math.exp(p[e] - greatest)
        if 0 < lost < count and e < opened and is_lost(g, s, slots + e):
            p[e] = 0.0
        total += p[e]
    if total <= 0.0:  # every move that is not lost has a weight too small for a number
        for e in range(count):
            p[e] = np.float64(decode_prior(g.priors[priors + e]))
            if e < opened and is_lost(g, s, slots + e):
                p[e] = 0.0
            total += p[e]
    value = 0.0
    for e in range(count):
        p[e] /= total
        value += p[e] * (value_or(g, s, slots + e, mix) if e < opened else mix)
    return 2.0 * value - 1.0
