"""Selection of an edge by PUCT ([CrazyAra-preprint] eq. 2, 3, 10, 11); below, by the improved policy of
Gumbel self-play.

    argmax over a of Q(s, a) + U(s, a),   U(s, a) = c(s) P(s, a) sqrt(N(s)) / (d(s) + N(s, a))

N(s) is the sum of the edges' visits. Ties go to the better prior, and so does the first choice, when
every U is 0. All untried edges have the same Q (`unvisited_value`, "first play urgency"), so only the
first of them can be chosen; see `nodes.py`. Pending visits count as virtual loss or virtual visits.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.jit import Number, Truth, borrowing, inlined
from variant_ai.core.search.compiled_settings import (
    CATCH_UP,
    DRAW,
    LOSS,
    LOST_VISIT,
    TABLED,
    Settings,
    divisor,
    exploration,
)
from variant_ai.core.search.tree.nodes import (
    REPEATS,
    WINS,
    WON,
    Arrays,
    child_proof,
    child_q,
    first_prior,
)
from variant_ai.core.search.tree.priors import decode_prior

NO_EDGE = -1
_LEAST = 1e-8
"""Least difference of values that `minmax` rescales by."""

_exploration = inlined(exploration)
_divisor = inlined(divisor)


@borrowing
def edge_value(g: Arrays, s: Settings, slot: Number) -> float:
    """Q(s, a) of a slot with visits, for the side that makes the move.

    It is the child's Q, so that all parents profit from the visits of each. Visits that closed a
    repetition belong to the path and not to the child, so they have a separate value (w_rep of n_rep
    visits): Q = ((N - n_rep) * -Q(child) + w_rep) / N.
    """
    edge = g.slots[slot]
    if s[0]["backup"] != CATCH_UP:
        return np.float64(g.edge_values[slot])
    if edge["flags"] & REPEATS == 0:
        return -child_q(g, edge)
    entry = g.repeats[np.int64(edge["repeat"])]
    visits = np.int64(edge["visits"])
    value = np.float64(entry["sum"])
    if edge["child"] != 0:
        value -= (visits - np.int64(entry["visits"])) * child_q(g, edge)
    return value / visits


@borrowing
def unvisited_value(g: Arrays, s: Settings, node: Number) -> Number:
    """Q of an edge without visits: first play urgency ([CrazyAra-preprint] section 9.1)."""
    q_unvisited = s[0]["q_unvisited"]
    if q_unvisited == LOSS:
        return -1.0
    if q_unvisited == DRAW:
        return 0.0
    return max(np.float64(g.nodes[node]["q"]) - s[0]["q_unvisited_reduction"], -1.0)


@inlined
def exploration_factor(s: Settings, total: Number) -> Number:
    """c(s) sqrt(N(s)) for a sum of visits, from the table or by its formula."""
    whole = np.int64(total)
    if 0 <= whole < TABLED and whole == total:
        return np.float64(s[0]["explore"][whole])
    return _exploration(s[0], np.float64(total))


@inlined
def visit_divisor(s: Settings, total: Number) -> Number:
    """d(s) for a sum of visits, from the table or by its formula."""
    whole = np.int64(total)
    if 0 <= whole < TABLED and whole == total:
        return np.float64(s[0]["divisor"][whole])
    return _divisor(s[0], np.float64(total))


@borrowing
def select_edge(
    g: Arrays, s: Settings, node: Number, root_priors: NDArray[np.float32], end: Number
) -> Number:
    """Select an edge of an OPEN node; `opened` means the first untried one, NO_EDGE none.

    Only edges before `end` are considered. `root_priors` is empty at inner nodes; at the root it
    holds the priors to use instead of the node's own (with noise), negative for excluded moves.
    """
    record, settings = g.nodes[node], s[0]
    opened = np.int64(record["opened"])
    slots = np.int64(record["slots"])
    priors = first_prior(node)
    replaced = root_priors.shape[0] > 0
    virtual = settings["virtual_loss"]
    total = np.int64(record["visits"]) - 1 + virtual * np.int64(record["pending"])
    explore, divisor = exploration_factor(s, total), visit_divisor(s, total)
    unvisited = unvisited_value(g, s, node)
    solver = settings["solver"]
    follows = settings["backup"] == CATCH_UP  # an edge's Q is that of its child
    best = -np.inf
    chosen = np.int64(NO_EDGE)
    for e in range(opened):
        if replaced and root_priors[e] < 0:
            continue
        slot = slots + e
        edge = g.slots[slot]
        visits = np.int64(edge["visits"])
        flags = edge["flags"]
        q = unvisited
        if flags == 0 and follows:
            if solver and edge["proof"] == WON:
                continue  # a move proven to lose is never visited again
            if visits > 0:
                q = -np.float64(edge["q"])
        else:
            if flags & REPEATS == 0:
                if flags & WINS and settings["mate_stop"]:
                    return np.int64(e)  # [CrazyAra-preprint] section 9.2.7
                if solver and edge["child"] != 0 and child_proof(g, edge) == WON:
                    continue
            if visits > 0:
                q = edge_value(g, s, slot)
        n = np.float64(visits)
        pending = np.int64(edge["pending"])
        if pending > 0:
            virtual_visits = virtual * pending
            if settings["virtual_style"] == LOST_VISIT and virtual_visits > 0:
                q = (q * n - virtual_visits) / (n + virtual_visits) if visits > 0 else -1.0
            n += virtual_visits
        prior = np.float64(root_priors[e]) if replaced else decode_prior(g.priors[priors + e])
        score = q + explore * prior / (divisor + n)
        if score > best:
            best = score
            chosen = np.int64(e)
    if opened < end:
        prior = (
            np.float64(root_priors[opened]) if replaced else decode_prior(g.priors[priors + opened])
        )
        score = unvisited + explore * prior / divisor
        if score > best:
            chosen = opened
    return chosen


# --- the policy that a search improved ---------------------------------------------------------------

# [Gumbel] section 4:
#
#     pi'(a) = softmax(logit(a) + sigma(q(a))),   sigma(q) = (offset + max_b N(b)) * scale * q
#
# q(a) is the value of a move in [0, 1]; moves without visits get the mean v_mix ([Gumbel] appendix D)
#
#     v_mix = (v + sum N * sum over visited of P q / sum over visited of P) / (1 + sum N)
#
# With `minmax` all q are rescaled so that the least of the position is 0 and the greatest 1. Logits are
# the logarithms of the priors, and all untried moves share one q: a node costs one exponential for each
# tried move, however many moves are legal.


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
