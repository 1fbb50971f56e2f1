"""Selection: which edge of a node a descent takes (000 eq. 2, 3, 10, 11).

    argmax over a of Q(s, a) + U(s, a),   U(s, a) = c(s) P(s, a) sqrt(N(s)) / (d(s) + N(s, a))

N(s) is the sum of the edges' visits. Ties go to the better prior, and so does the first pick, when
every U is 0. All untried edges share one Q, so only the first of them can win: `nodes.py`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.jit import Number, borrowing
from variant_ai.core.search.compiled_settings import (
    ADAPTIVE,
    CATCH_UP,
    DRAW,
    LOSS,
    LOST_VISIT,
    TABLED,
    Settings,
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


@borrowing
def edge_value(g: Arrays, s: Settings, slot: Number) -> float:
    """Q(s, a) of a slot with visits, for the side that moves along it.

    It is the child's, so that all parents see what any of them has learnt. Visits that
    closed a repetition are a matter of the path, not of the child: they keep a value of their own
    (w_rep of n_rep visits): Q = ((N - n_rep) * -Q(child) + w_rep) / N.
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
    """Q of an edge without visits (000 9.1)."""
    q_unvisited = s[0]["q_unvisited"]
    if q_unvisited == LOSS:
        return -1.0
    if q_unvisited == DRAW:
        return 0.0
    return max(np.float64(g.nodes[node]["q"]) - s[0]["q_unvisited_reduction"], -1.0)


@borrowing
def select_edge(
    g: Arrays, s: Settings, node: Number, root_priors: NDArray[np.float32], end: Number
) -> Number:
    """The edge to take from an OPEN node; `opened` for the first untried one, NO_EDGE if none.

    Edges before `end` are considered. `root_priors` is empty at inner nodes; at the root it holds
    the priors to use instead of the node's own (noise), negative for moves left out.
    """
    record, settings = g.nodes[node], s[0]
    opened = np.int64(record["opened"])
    slots = np.int64(record["slots"])
    priors = first_prior(node)
    own = root_priors.shape[0] > 0
    virtual = settings["virtual_loss"]
    total = np.int64(record["visits"]) - 1 + virtual * np.int64(record["flight"])
    whole = np.int64(total)
    if 0 <= whole < TABLED and whole == total:
        explore = settings["explore"][whole]
        divisor = settings["divisor"][whole]
    else:
        base = settings["cpuct_base"]
        explore = (math.log((total + base + 1.0) / base) + settings["cpuct_init"]) * math.sqrt(
            total
        )
        divisor = settings["u_divisor"]
        if divisor == ADAPTIVE:
            low = settings["u_min"]
            divisor = low - math.exp(-total / settings["u_base"]) * (low - settings["u_init"])
    unvisited = unvisited_value(g, s, node)
    solver = settings["solver"]
    follows = settings["backup"] == CATCH_UP  # an edge's Q is its child's
    best = -np.inf
    chosen = np.int64(NO_EDGE)
    for e in range(opened):
        if own and root_priors[e] < 0:
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
                    return np.int64(e)  # 000 9.2.7: a move that ends the game won needs no rival
                if solver and edge["child"] != 0 and child_proof(g, edge) == WON:
                    continue
            if visits > 0:
                q = edge_value(g, s, slot)
        n = np.float64(visits)
        flight = np.int64(edge["flight"])
        if flight > 0:
            under_way = virtual * flight
            if settings["virtual_style"] == LOST_VISIT and under_way > 0:
                q = (q * n - under_way) / (n + under_way) if visits > 0 else -1.0
            n += under_way
        prior = np.float64(root_priors[e]) if own else decode_prior(g.priors[priors + e])
        score = q + explore * prior / (divisor + n)
        if score > best:
            best = score
            chosen = np.int64(e)
    if opened < end:
        prior = np.float64(root_priors[opened]) if own else decode_prior(g.priors[priors + opened])
        score = unvisited + explore * prior / divisor
        if score > best:
            chosen = opened
    return chosen
