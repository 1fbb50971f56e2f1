"""Selection of an edge by PUCT ([CrazyAra-preprint] eq. 2, 3, 10, 11).

    argmax over a of Q(s, a) + U(s, a),   U(s, a) = c(s) P(s, a) sqrt(N(s)) / (d(s) + N(s, a))

N(s) is the sum of the edges' visits. Ties go to the better prior, and so does the first choice, when
every U is 0. All untried edges have the same Q (`unvisited_value`, "first play urgency"), so only the
first of them can be chosen; see `nodes.py`. Pending visits count as virtual loss or virtual visits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.jit import Number, borrowing, inlined
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
