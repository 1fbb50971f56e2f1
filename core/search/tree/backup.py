"""Backup of a visit along its path, virtual loss, and the MCTS solver.

The value of a node is a function of its edges ([MCGS] keeps a mean instead):

    Q(n) = (V(n) + sum over a of N(n, a) * Q(n, a)) / (1 + sum over a of N(n, a))

where V(n) is the evaluator's value and Q(n, a) = -Q(child). It is computed again for every node of the
path, so changes to a child by visits through another parent reach this path at its next visit. The
probability of a draw, which selection does not use, is the mean over the visits.

With the backups `q-epsilon` and `none` an edge keeps the mean of the values that passed through it, and
the node the mean of all, as in a tree.
"""

from __future__ import annotations

import numpy as np

from variant_ai.core.jit import Number, borrowing
from variant_ai.core.jit.signatures import Ints3D
from variant_ai.core.search.compiled_settings import CATCH_UP, Settings
from variant_ai.core.search.tree.nodes import (
    CLOSES_CYCLE,
    DRAWN,
    LOST,
    MAX_VISITS,
    REPEATS,
    UNPROVEN,
    WON,
    Arrays,
    child_proof,
    child_q,
    copy_child,
)

FAR = 32_000
"""Largest distance to the end of the game that is stored."""


@borrowing
def recompute(g: Arrays, s: Settings, node: Number) -> None:
    """Compute Q and visits of an OPEN node from its edges, and its proof (MCTS solver).

    All proofs are from the view of the side to move at their node. A node is won if a child is
    lost, at the shortest distance. It is lost if all children are won, at the longest distance. It
    is drawn if all children are proven, none is lost and one is drawn. If an edge has closed a
    repetition, the node can be proven won by another edge, but neither lost nor drawn: the value of
    that edge depends on the path.
    """
    record = g.nodes[node]
    slots = np.int64(record["slots"])
    opened = np.int64(record["opened"])
    total = np.float64(record["value"])
    visits = np.int64(1)
    drawn = False
    unproven = opened < np.int64(record["count"]) or record["flags"] & CLOSES_CYCLE != 0
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
        if proof == UNPROVEN or edge["flags"] & REPEATS:
            unproven = True
        elif proof == LOST:
            quickest = min(quickest, np.int64(g.nodes[child]["distance"]) + 1)
        elif proof == WON:
            longest = max(longest, np.int64(g.nodes[child]["distance"]) + 1)
        else:
            drawn = True
    record["visits"] = min(visits, np.int64(MAX_VISITS))
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
    """Store the proof of a node; its value is exact from now on."""
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
    was_pending: Number,
) -> None:
    """Add one visit to the edges of a path, deepest first.

    path: int32 [rows, 2, depth], nodes and their edges; `length` of them are used. `value` and
    `draw` belong to the position after the last edge, for its side to move; `value` is used only if
    edges keep values. `was_pending` 1 also removes the virtual loss of the visit; it is 0 if the
    visit ended during its descent.
    """
    keeps = s[0]["backup"] != CATCH_UP
    for d in range(length - 1, -1, -1):
        node = np.int64(path[row, 0, d])
        record = g.nodes[node]
        slot = np.int64(record["slots"]) + np.int64(path[row, 1, d])
        edge = g.slots[slot]
        if edge["visits"] < MAX_VISITS:
            edge["visits"] += 1
        if was_pending:
            edge["pending"] -= 1
            record["pending"] -= 1
        copy_child(g, slot)
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
def apply_virtual_loss(
    g: Arrays, path: Ints3D, row: Number, length: Number, change: Number
) -> None:
    """Add (`change` 1) or remove (-1) the virtual loss of a pending visit along a path."""
    for d in range(length):
        record = g.nodes[np.int64(path[row, 0, d])]
        record["pending"] += change
        g.slots[np.int64(record["slots"]) + np.int64(path[row, 1, d])]["pending"] += change
