"""Back-up: what a visit changes on its path, and what finished games prove.

The value of a node is a function of its edges (arXiv 2012.11045 keeps a mean instead):

    Q(n) = (V(n) + sum over a of N(n, a) * Q(n, a)) / (1 + sum over a of N(n, a))

with V(n) the evaluator's value and Q(n, a) = -Q(child). It is computed anew for every node of the
path, so what another parent's visits taught a child reaches this path at its next visit. The rate of
draws, which selects nothing, is the mean of what the visits brought.

With `q-epsilon` and `none` an edge keeps the mean of the values that came through it, and the node
the mean of all, as in a tree.
"""

from __future__ import annotations

import numpy as np

from variant_ai.core.jit import Number, borrowing
from variant_ai.core.jit.arrays import Ints3D
from variant_ai.core.search.compiled_settings import CATCH_UP, Settings
from variant_ai.core.search.tree.nodes import (
    ASKS,
    CLOSES,
    DRAWN,
    LOST,
    MOST_VISITS,
    REPEATS,
    UNPROVEN,
    WON,
    Arrays,
    child_proof,
    child_q,
)

FAR = 32_000
"""Greatest distance kept."""


@borrowing
def recompute(g: Arrays, s: Settings, node: Number) -> None:
    """Q and visits of an OPEN node from its edges, and what they prove.

    The solver: a lost child makes a win, by the shortest line; if all children are won for the
    opponent it is a loss, by the longest; if all are proven and one is drawn, a draw. A node one of
    whose edges has closed a repetition can be proven won by another edge, but neither lost nor
    drawn: on another path that edge is worth something else.
    """
    record = g.nodes[node]
    slots = np.int64(record["slots"])
    opened = np.int64(record["opened"])
    total = np.float64(record["value"])
    visits = np.int64(1)
    drawn = False
    unproven = opened < np.int64(record["count"]) or record["flags"] & CLOSES != 0
    quickest = np.int64(FAR)
    longest = np.int64(0)
    for e in range(opened):
        edge = g.slots[slots + e]
        n = np.int64(edge["visits"])
        visits += n
        if edge["flags"] & REPEATS:
            entry = g.repeats[np.int64(edge["repeat"])]
            n -= np.int64(entry["visits"])
            total += np.float64(entry["sum"])
        child = np.int64(edge["child"])
        if child == 0:
            unproven = True
            continue
        total -= n * child_q(g, edge)
        proof = child_proof(g, edge)
        if proof == UNPROVEN:
            unproven = True
        elif proof == LOST:
            quickest = min(quickest, np.int64(g.nodes[child]["distance"]) + 1)
        elif proof == WON:
            longest = max(longest, np.int64(g.nodes[child]["distance"]) + 1)
        else:
            drawn = True
    record["visits"] = min(visits, np.int64(MOST_VISITS))
    if s[0]["backup"] == CATCH_UP:
        record["q"] = total / visits
    if s[0]["solver"]:
        if quickest < FAR:
            prove(g, node, np.int64(WON), quickest)
        elif not unproven:
            if drawn:
                prove(g, node, np.int64(DRAWN), np.int64(0))
            else:
                prove(g, node, np.int64(LOST), longest)


@borrowing
def prove(g: Arrays, node: Number, proof: Number, distance: Number) -> None:
    """Write what is proven of a node; its value is exact from now on."""
    record = g.nodes[node]
    record["proof"] = proof
    record["distance"] = distance
    record["q"] = 1.0 if proof == WON else (-1.0 if proof == LOST else 0.0)
    record["draw"] = 1.0 if proof == DRAWN else 0.0


@borrowing
def back_up(
    g: Arrays,
    s: Settings,
    path: Ints3D,
    row: Number,
    length: Number,
    value: float,
    draw: float,
    flown: Number,
) -> None:
    """Add one visit to the edges of a path, deepest first.

    path: int32 [rows, 2, depth], nodes and their edges; `length` of them are in use. `value` and
    `draw` are of the position behind the last edge, for its side to move; the value matters only
    where edges keep values. `flown` 1 also ends the visit's flight.
    """
    keeps = s[0]["backup"] != CATCH_UP
    for d in range(length - 1, -1, -1):
        node = np.int64(path[row, 0, d])
        record = g.nodes[node]
        slot = np.int64(record["slots"]) + np.int64(path[row, 1, d])
        edge = g.slots[slot]
        if edge["visits"] < MOST_VISITS:
            edge["visits"] += 1
        if flown:
            edge["flight"] -= 1
            record["flight"] -= 1
        child = np.int64(edge["child"])
        if child != 0 and edge["flags"] & ASKS == 0:
            edge["q"] = g.nodes[child]["q"]
            edge["proof"] = g.nodes[child]["proof"]
        if record["proof"] == UNPROVEN:
            n = np.int64(record["visits"]) + 1
            record["draw"] += (draw - np.float64(record["draw"])) / n
        if keeps:
            value = -value
            mean = np.float64(g.edge_values[slot])
            g.edge_values[slot] = mean + (value - mean) / np.int64(edge["visits"])
            if record["proof"] == UNPROVEN:
                n = np.int64(record["visits"]) + 1
                record["q"] += (value - np.float64(record["q"])) / n
        recompute(g, s, node)
        if record["proof"] != UNPROVEN:
            value = np.float64(record["q"])
            draw = np.float64(record["draw"])
    g.state[0]["visits"] += 1
    g.state[0]["depths"] += length


@borrowing
def fly(g: Arrays, path: Ints3D, row: Number, length: Number, change: Number) -> None:
    """Begin (`change` 1) or end (-1) the flight of a visit along a path."""
    for d in range(length):
        record = g.nodes[np.int64(path[row, 0, d])]
        record["flight"] += change
        g.slots[np.int64(record["slots"]) + np.int64(path[row, 1, d])]["flight"] += change
