"""Mates by checks that the rules find at a node, before the evaluator is asked.

A proof number search ([Proof-numbers]) tries all checks of one side and all answers of the other. A
mate is written into the graph as nodes and proofs, so that lines of play, reports and later searches
use it like every other proof (`backup.py`). A line that closes a cycle is not a win here
(`repetition.py`).

    is_due            True if a node has not been searched yet and has enough visits
    prove_by_checks   searches, and writes
    mate_by_checks    the search alone
    write_mate        adds the mate to the graph
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.jit import Number, Truth, array, borrowing
from variant_ai.core.rules.kernel.game_ends import NO_END, end_of
from variant_ai.core.rules.kernel.giving_check import checks_into
from variant_ai.core.rules.kernel.movegen import legal_moves_into
from variant_ai.core.rules.kernel.play_move import play_into
from variant_ai.core.rules.kernel.table_layout import Tables
from variant_ai.core.search.compiled_settings import Settings
from variant_ai.core.search.tree.backup import recompute
from variant_ai.core.search.tree.growth import find_or_make, link
from variant_ai.core.search.tree.nodes import (
    CHECKS_TRIED,
    FRESH,
    LOST,
    OPEN,
    UNPROVEN,
    WON,
    Arrays,
    copy_child,
    first_move,
    first_prior,
    open_edge,
)
from variant_ai.core.search.tree.priors import expand_uniform
from variant_ai.core.search.tree.repetition import NO_CYCLE, cycle_start
from variant_ai.core.search.tree.working_memory import LONGEST_MATE, MATE_NODE, Descent, Scratch

MateNodes: TypeAlias = Annotated[NDArray[np.void], array(MATE_NODE)]
NEVER = 1 << 30
"""Proof number of a position that is not won, and disproof number of one that is."""

HOPELESS = 2
"""Proof number of the position above which a search for a mate is given up. With no such
bound, 200 positions a leaf found few more mates and cost several times as much (one-off measurement)."""


@borrowing
def is_due(s: Settings, g: Arrays, node: Number) -> Truth:
    """Return True if mates are to be looked for at a node now."""
    record = g.nodes[node]
    if record["flags"] & CHECKS_TRIED or record["proof"] != UNPROVEN:
        return False
    if not (s[0]["solver"] and s[0]["look_for_mates"]):
        return False
    if record["state"] == FRESH:
        return s[0]["mate_visits"] <= 1
    return record["state"] == OPEN and record["visits"] >= s[0]["mate_visits"]


@borrowing
def prove_by_checks(
    t: Tables, s: Settings, g: Arrays, w: Descent, k: Scratch, node: Number, at: Number
) -> None:
    """Look for a forced mate by checks alone at a node, whose position is `at` of the line, and write
    it into the graph, which proves the node.

    If a node of the mate is pending, or if memory is full, the node stays as it is; but if there is no
    memory for its own edges, a FRESH node becomes OPEN without a proof. Overwrites the line after `at`.
    """
    g.nodes[node]["flags"] |= CHECKS_TRIED
    if mate_by_checks(t, s, w, k, at):
        write_mate(t, s, g, w, k, node, at)


@borrowing
def mate_by_checks(t: Tables, s: Settings, w: Descent, k: Scratch, start: Number) -> Truth:
    """Return True if checks alone mate from position `start` of the line: proof number search
    ([Proof-numbers]). The mate is then in `k.mates`."""
    tree = k.mates.nodes
    most = min(LONGEST_MATE, w.line.shape[0] - 1 - start)
    add(tree, np.int64(0), np.int64(-1), np.int64(0))
    used = np.int64(1)
    for _ in range(np.int64(s[0]["mate_positions"])):
        node = np.int64(0)
        ply = np.int64(0)
        while tree[node]["count"] > 0:
            node = np.int64(hopeful_child(tree, node, ply))
            play_into(t, w.line, start + ply, w.line, start + ply + 1, np.int64(tree[node]["move"]))
            ply += 1
        used = expand(t, s, w, k, start, node, ply, most, used)
        update(tree, node, ply)
        if tree[0]["proof"] == 0 or tree[0]["proof"] > HOPELESS:
            break
    return tree[0]["proof"] == 0


@borrowing
def add(tree: MateNodes, node: Number, parent: Number, move: Number) -> None:
    """Set a node that is not expanded."""
    record = tree[node]
    record["parent"] = parent
    record["move"] = move
    record["count"] = 0
    record["proof"] = 1
    record["disproof"] = 1


@borrowing
def hopeful_child(tree: MateNodes, node: Number, ply: Number) -> Number:
    """The child that is easiest to prove, if the attacker moves at this ply, or to disprove. Of equal
    checks those come first that have not been tried, so that a mate in one is not missed for a long
    line of forced answers."""
    first = np.int64(tree[node]["first"])
    best = first
    for child in range(first + 1, first + np.int64(tree[node]["count"])):
        if ply & 1 == 0:
            difference = np.int64(tree[child]["proof"]) - np.int64(tree[best]["proof"])
            untried = tree[child]["count"] == 0 and tree[best]["count"] > 0
            better = difference < 0 or (difference == 0 and untried)
        else:
            better = tree[child]["disproof"] < tree[best]["disproof"]
        if better:
            best = np.int64(child)
    return best


@borrowing
def expand(
    t: Tables,
    s: Settings,
    w: Descent,
    k: Scratch,
    start: Number,
    node: Number,
    ply: Number,
    most: Number,
    used: Number,
) -> Number:
    """Give a node its children: the attacker's checks or all answers. A node without children is
    proven if the attacker has won, else disproven. Returns the number of nodes used so far."""
    tree = k.mates.nodes
    at = start + ply
    attacks = ply & 1 == 0
    record = tree[node]
    record["disproof"] = 0
    record["proof"] = NEVER
    root = np.int64(w.path_info[0]["root_at"])
    if ply > 0 and cycle_start(s, w.line, root, at, w.past) != NO_CYCLE:
        return used
    n = np.int64(legal_moves_into(t, w.line, at, w.out, w.work))
    end = np.int64(end_of(t, w.line, at, n, np.int64(w.work[0]["check"])))
    if end != NO_END:
        if (end >> 3) - 1 == np.int64(w.line[start]["side"]):
            record["proof"] = 0
            record["disproof"] = NEVER
        return used
    if ply == most or used + n > tree.shape[0]:
        return used
    moves = k.mates.moves
    for e in range(n):
        moves[e] = w.out[0]["move"][e]
    gives = k.expander[0]["gives"]
    if attacks:
        checks_into(t, w.line, at, moves, np.int64(0), n, k.checks, k.trial, gives)
    record["first"] = used
    for e in range(n):
        if not attacks or gives[e]:
            add(tree, used, node, np.int64(moves[e]))
            used += 1
    record["count"] = used - record["first"]
    return used


@borrowing
def update(tree: MateNodes, leaf: Number, ply: Number) -> None:
    """Compute the numbers of an expanded node and of the nodes above it."""
    node = leaf
    while node >= 0:
        record = tree[node]
        count = np.int64(record["count"])
        if count > 0:
            least = np.int64(NEVER)
            total = np.int64(0)
            proofs = ply & 1 == 0
            for child in range(np.int64(record["first"]), np.int64(record["first"]) + count):
                proof = np.int64(tree[child]["proof"])
                disproof = np.int64(tree[child]["disproof"])
                least = min(least, proof if proofs else disproof)
                total += disproof if proofs else proof
            total = min(total, np.int64(NEVER))
            record["proof"] = least if proofs else total
            record["disproof"] = total if proofs else least
        node = np.int64(record["parent"])
        ply -= 1


@borrowing
def write_mate(
    t: Tables, s: Settings, g: Arrays, w: Descent, k: Scratch, node: Number, at: Number
) -> Truth:
    """Write the mate in `k.mates` into the graph: the winner's moves and all answers. Returns False if
    it could not be completed.

    A node gets its edges when all its children are proven, so an interrupted proof leaves no node that
    looks evaluated.
    """
    tree, stack = k.mates.nodes, k.mates.stack
    root = np.int64(w.path_info[0]["root_at"])
    ply = np.int64(0)
    tree[0]["node"] = node
    stack[0, 0] = stack[0, 1] = 0
    while True:
        parent = np.int64(stack[ply, 0])
        done = np.int64(stack[ply, 1])
        if done == tree[parent]["count"]:
            if not write_edges(t, s, g, w, k, parent, ply, at + ply):
                return False
            if ply == 0:
                return True
            ply -= 1
            stack[ply, 1] += 1
            continue
        child = np.int64(tree[parent]["first"]) + done
        if tree[child]["proof"] != 0:  # a check that does not win
            stack[ply, 1] += 1
            continue
        here = at + ply
        play_into(t, w.line, here, w.line, here + 1, np.int64(tree[child]["move"]))
        if cycle_start(s, w.line, root, here + 1, w.past) != NO_CYCLE:
            return False
        above, move = abs(np.int64(tree[parent]["node"])), np.int64(tree[child]["move"])
        there, known = opened_child(g, above, move), True
        if there == 0:
            there, known = find_or_make(t, s, g, w, here + 1)
        if there == 0 or there == g.state[0]["root"]:
            return False
        tree[child]["node"] = -there if known else there
        record = g.nodes[there]
        if record["proof"] == (LOST if ply & 1 == 0 else WON):
            stack[ply, 1] += 1
            continue
        if record["proof"] != UNPROVEN or (record["state"] != FRESH and record["state"] != OPEN):
            return False
        ply += 1
        stack[ply, 0] = child
        stack[ply, 1] = 0


@borrowing
def opened_child(g: Arrays, node: Number, move: Number) -> Number:
    """Return the child to which a node has an edge of a move already, or 0; node 0 has none.

    Another node of the same position is no replacement for it: without transpositions it is new, and
    the proof would stand in the edge but not in its child.
    """
    record = g.nodes[node]
    if record["state"] != OPEN:
        return np.int64(0)
    first = first_move(node, np.int64(record["count"]))
    for edge in range(np.int64(record["opened"])):
        if g.moves[first + edge] == move:
            return np.int64(g.slots[np.int64(record["slots"]) + edge]["child"])
    return np.int64(0)


@borrowing
def write_edges(
    t: Tables,
    s: Settings,
    g: Arrays,
    w: Descent,
    k: Scratch,
    parent: Number,
    ply: Number,
    at: Number,
) -> Truth:
    """Give a node the edges to its proven children, and prove it. Returns False if memory is full, or
    if an edge that closes a repetition prevents the proof."""
    tree = k.mates.nodes
    node = abs(np.int64(tree[parent]["node"]))
    record = g.nodes[node]
    if record["state"] == FRESH:
        expand_uniform(t, s, g, node, w.line, at, k)
    first = first_move(node, np.int64(record["count"]))
    begin = np.int64(tree[parent]["first"])
    for child in range(begin, begin + np.int64(tree[parent]["count"])):
        if tree[child]["proof"] != 0:
            continue
        edge = np.int64(0)
        while g.moves[first + edge] != tree[child]["move"]:
            edge += 1
        if edge >= record["opened"]:
            bring_forward(g, node, edge)
            edge = np.int64(record["opened"])
            if not open_edge(g, node):
                return False
        there = np.int64(tree[child]["node"])
        slot = np.int64(record["slots"]) + edge
        if g.slots[slot]["child"] == 0:
            link(g, node, edge, abs(there), there < 0)
        else:
            copy_child(g, slot)
    recompute(g, s, node)
    return record["proof"] != UNPROVEN


@borrowing
def bring_forward(g: Arrays, node: Number, edge: Number) -> None:
    """Make an untried edge the next one to be tried.

    It gets at least the prior of the edge that it replaces, so that the best one stays in front.
    """
    record = g.nodes[node]
    opened = np.int64(record["opened"])
    to_move = first_move(node, np.int64(record["count"]))
    to_prior = first_prior(node)
    move = g.moves[to_move + edge]
    prior = max(g.priors[to_prior + edge], g.priors[to_prior + opened])
    for e in range(edge, opened, -1):
        g.moves[to_move + e] = g.moves[to_move + e - 1]
        g.priors[to_prior + e] = g.priors[to_prior + e - 1]
    g.moves[to_move + opened] = move
    g.priors[to_prior + opened] = prior
