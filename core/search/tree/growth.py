"""New nodes for positions, and the edges that lead to them.

make_node     a node for a position of the line
find_or_make  the node of a position, made if there is none
link          an edge to a node
"""

from __future__ import annotations

import numpy as np

from variant_ai.core.jit import Number, Truth, borrowing
from variant_ai.core.jit.signatures import Key
from variant_ai.core.rules.kernel.game_ends import MOVE_COUNT, NO_END, end_of
from variant_ai.core.rules.kernel.movegen import legal_moves_into
from variant_ai.core.rules.kernel.table_layout import Tables
from variant_ai.core.search.compiled_settings import Settings
from variant_ai.core.search.tree.backup import prove
from variant_ai.core.search.tree.nodes import (
    DRAWN,
    END,
    IN_CHECK,
    LOST,
    MARKING,
    SHARED,
    UNPROVEN,
    WINS,
    WON,
    Arrays,
    allocate_node,
    copy_child,
    first_move,
    share,
)
from variant_ai.core.search.tree.transpositions import find, insert, node_key
from variant_ai.core.search.tree.working_memory import Descent


@borrowing
def make_node(t: Tables, s: Settings, g: Arrays, w: Descent, at: Number, key: Key) -> Number:
    """Create a node for position `at` of the line: FRESH, or END if the game is over there.

    Returns 0 if memory is full. An end of the game that depends on the position alone proves the
    node. The move count does not, because it depends on the path.
    """
    n = legal_moves_into(t, w.line, at, w.out, w.work)
    end = end_of(t, w.line, at, n, np.int64(w.work[0]["check"]))
    kept = n if end == NO_END else np.int64(0)
    node = allocate_node(g, kept)
    if node == 0:
        return node
    record = g.nodes[node]
    record["key"] = key
    if w.work[0]["check"]:
        record["flags"] = IN_CHECK
    if end == NO_END:
        first = first_move(node, n)
        moves = w.out[0]["move"]
        for k in range(n):
            g.moves[first + k] = moves[k]
    else:
        winner = (np.int64(end) >> 3) - 1
        finish(s, g, node, winner, np.int64(w.line[at]["side"]), np.int64(end) & 7 != MOVE_COUNT)
    return node


@borrowing
def finish(
    s: Settings, g: Arrays, node: Number, winner: Number, side: Number, proves: Truth
) -> None:
    """Make a node END; `winner` is -1 for a draw. `proves`: the result does not depend on the path."""
    record = g.nodes[node]
    record["state"] = END
    record["visits"] = 1
    proof = np.int64(DRAWN)
    if winner >= 0:
        proof = np.int64(WON) if winner == side else np.int64(LOST)
    prove(g, node, proof, np.int64(0))
    record["value"] = record["q"]
    if not (proves and s[0]["solver"]):
        record["proof"] = UNPROVEN


@borrowing
def find_or_make(t: Tables, s: Settings, g: Arrays, w: Descent, at: Number) -> tuple[Number, Truth]:
    """Return the node of position `at` of the line, 0 if memory is full, and True if it was there
    before."""
    key = node_key(w.line, at, s[0]["read"])
    node = np.int64(0)
    if s[0]["transpositions"]:
        node = np.int64(find(g, key))
    if node != 0:
        return node, True
    node = np.int64(make_node(t, s, g, w, at, key))
    if node != 0:
        insert(g, node, key)
    return node, False


@borrowing
def link(g: Arrays, node: Number, edge: Number, child: Number, known: Truth) -> None:
    """Link an edge to a child node; `known`: the child existed before, and has other parents.

    If a marking is going on, the child is marked, because the parent may have been handled already.
    """
    index = np.int64(g.nodes[node]["slots"]) + edge
    slot = g.slots[index]
    there = g.nodes[child]
    slot["child"] = child
    if known:
        share(g, child)
        slot["flags"] |= SHARED
    else:
        there["parent"] = node
        copy_child(g, index)
    if there["state"] == END and there["q"] <= -1.0:
        slot["flags"] |= WINS
    state = g.state[0]
    if state["phase"] == MARKING and g.nodes[child]["mark"] != state["mark"]:
        g.nodes[child]["mark"] = state["mark"]
        g.stack[state["stack"]] = child
        state["stack"] += 1
