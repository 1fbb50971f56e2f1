"""One descent (simulation) from the root along selected edges, and the ways it can end:

    LEAF           a position to evaluate; its path is pending until the evaluation is backed up
    COLLISION      the leaf is already pending; the path is pending until the batch is full
    DONE           backed up: game over, proven, repeated, or known through another path
    FULL           no memory for a new node
    NEEDS_JUDGE    a chase must be judged first; nothing has changed (the path has `length` + 1 edges)
    STUCK          every move that may be searched is proven to lose

The graph stores no positions. Those of the path are played again on the line, 30 ns a move, after the
game's positions up to the root, which repetition needs.
"""

from __future__ import annotations

import numpy as np

from variant_ai.core.jit import Number, Truth, borrowing
from variant_ai.core.jit.functions import prefetch
from variant_ai.core.jit.signatures import Ints3D
from variant_ai.core.rules.kernel.play_move import count_given_check, play_into, replay_into
from variant_ai.core.rules.kernel.table_layout import Tables
from variant_ai.core.search.compiled_settings import CATCH_UP, Q_EPSILON, Settings
from variant_ai.core.search.tree.backup import apply_virtual_loss, back_up
from variant_ai.core.search.tree.growth import find_or_make, link
from variant_ai.core.search.tree.look_ahead.by_checks import is_due, prove_by_checks
from variant_ai.core.search.tree.nodes import (
    CLOSES_CYCLE,
    END,
    FRESH,
    IN_CHECK,
    MAX_VISITS,
    OPEN,
    REPEATS,
    UNKNOWN,
    UNPROVEN,
    WAITING,
    Arrays,
    first_move,
    open_edge,
    repeat_of,
)
from variant_ai.core.search.tree.repetition import (
    JUDGE_FROM,
    JUDGE_SHARE,
    NO_CYCLE,
    check_verdict,
    cycle_key,
    cycle_start,
    idle_verdict,
    verdict_index,
)
from variant_ai.core.search.tree.selection import NO_EDGE, select_edge, select_improved
from variant_ai.core.search.tree.working_memory import Descent, Scratch

LEAF, COLLISION, DONE, FULL, NEEDS_JUDGE, STUCK = range(6)


@borrowing
def stops_at(g: Arrays, s: Settings, slot: Number) -> Truth:
    """Return True if a visit ends at a child that was also visited through other parents. The first visit
    of an edge does so with every `backup`.

    Catch-up: the child has more visits than this edge. Q-epsilon: the edge's mean differs from the
    child's Q by more than epsilon ([MCGS]).
    """
    edge = g.slots[slot]
    child = g.nodes[np.int64(edge["child"])]
    if child["state"] != OPEN:
        return False
    own = np.int64(edge["visits"])
    if edge["flags"] & REPEATS:
        own -= np.int64(g.repeats[np.int64(edge["repeat"])]["visits"])
    if own == 0:
        return True
    if child["visits"] <= own:
        return False
    if s[0]["backup"] == CATCH_UP:
        return True
    if s[0]["backup"] == Q_EPSILON:
        return abs(np.float64(g.edge_values[slot]) + np.float64(child["q"])) > s[0]["q_epsilon"]
    return False


@borrowing
def correction(g: Arrays, s: Settings, slot: Number) -> float:
    """Value, for the child's side to move, that brings an edge's mean to the child's Q ([MCGS])."""
    edge = g.slots[slot]
    q = np.float64(g.nodes[np.int64(edge["child"])]["q"])
    if s[0]["backup"] != Q_EPSILON or edge["visits"] == 0:
        return q
    mean = -np.float64(g.edge_values[slot])
    return min(max(q + np.int64(edge["visits"]) * (q - mean), -1.0), 1.0)


@borrowing
def verdict_on_cycle(
    t: Tables,
    s: Settings,
    g: Arrays,
    w: Descent,
    slot: Number,
    first: Number,
    at: Number,
    near: Truth,
) -> Number:
    """Value of a closed cycle for the side to move at its end; UNKNOWN if a judge must decide.

    `near`: the edge belongs to the root, where chases are always judged.
    """
    value = check_verdict(t, s, w.line, first, at)
    if value != UNKNOWN:
        return value
    if s[0]["chase_loses"]:
        index = verdict_index(w.verdicts, cycle_key(w.line, first, at))
        if w.verdicts[index]["used"]:
            known = np.int64(w.verdicts[index]["value"])
            if g.slots[slot]["flags"] & REPEATS:
                g.repeats[np.int64(g.slots[slot]["repeat"])]["verdict"] = known
            return known
        if near:
            return np.int64(UNKNOWN)
        if g.slots[slot]["flags"] & REPEATS:
            repeat = np.int64(g.slots[slot]["repeat"])
            if g.repeats[repeat]["verdict"] != UNKNOWN:
                return np.int64(g.repeats[repeat]["verdict"])
            times = np.int64(g.repeats[repeat]["visits"])
            visits = np.int64(g.nodes[np.int64(g.state[0]["root"])]["visits"])
            if times >= JUDGE_FROM and times * JUDGE_SHARE >= visits:
                return np.int64(UNKNOWN)
    return idle_verdict(t, s, w.line, at)


@borrowing
def visit_cycle(g: Arrays, node: Number, slot: Number, value: Number) -> Truth:
    """Count a visit that closed a cycle with this value for the side to move at its end; returns
    False if memory is full."""
    entry = repeat_of(g, g.slots[slot])
    if entry == 0:
        return False
    g.nodes[node]["flags"] |= CLOSES_CYCLE
    repeat = g.repeats[entry]
    if repeat["visits"] == MAX_VISITS:
        return True
    repeat["visits"] += 1
    if value == 0:
        repeat["draws"] += 1.0
    elif value == repeat["verdict"]:
        # the verdict of a judge, which also applies to the visits before it
        repeat["sum"] = -1.0 * value * np.int64(repeat["visits"])
        repeat["draws"] = 0.0
    else:
        repeat["sum"] -= value
    return True


@borrowing
def descend(
    t: Tables,
    s: Settings,
    g: Arrays,
    w: Descent,
    k: Scratch,
    path: Ints3D,
    row: Number,
) -> Number:
    """Follow selection from the root and return how the descent ended (LEAF, COLLISION, ...).

    path: int32 [rows, 2, depth], nodes and selected edges; the descent is written to `path[row]`.
    Further results are in PATH_INFO.
    """
    info = w.path_info[0]
    state = g.state[0]
    at = np.int64(info["root_at"])
    node = np.int64(state["root"])
    depth = np.int64(0)
    # without noise, excluded moves and a given edge at the root: a mate by checks would ignore them
    is_plain_root = w.root_priors.shape[0] == 0 and info["root_edge"] == 0
    solved_root = False
    while True:
        record = g.nodes[node]
        prefetch(g.nodes, np.int64(record["slot0"][0]))  # most nodes have only this child yet
        node_state = record["state"]
        info["length"] = depth
        if is_due(s, g, node) and (depth > 0 or (node_state == OPEN and is_plain_root)):
            prove_by_checks(t, s, g, w, k, node, at)
            if node_state == FRESH and record["state"] == OPEN and record["proof"] == UNPROVEN:
                return np.int64(FULL)
            solved_root = depth == 0 and record["proof"] != UNPROVEN
            node_state = record["state"]
        if node_state == FRESH:
            record["state"] = WAITING
            info["leaf"] = node
            apply_virtual_loss(g, path, row, depth, np.int64(1))
            return np.int64(LEAF)
        if node_state == WAITING:
            apply_virtual_loss(g, path, row, depth, np.int64(1))
            state["collisions"] += 1
            return np.int64(COLLISION)
        ended = node_state == END or (record["proof"] != UNPROVEN and (depth > 0 or solved_root))
        if ended or depth >= s[0]["max_depth"]:
            back_up(
                g,
                s,
                path,
                row,
                depth,
                np.float64(record["q"]),
                np.float64(record["draw"]),
                np.int64(0),
            )
            state["terminals"] += ended
            return np.int64(DONE)
        if depth == 0 and info["root_edge"] > 0:
            edge = np.int64(info["root_edge"]) - 1
        elif depth == 0:
            edge = select_edge(g, s, node, w.root_priors, np.int64(info["root_end"]))
            if edge == NO_EDGE:
                return np.int64(STUCK)
        else:
            if s[0]["improved"]:
                edge = select_improved(g, s, node)
            else:
                edge = select_edge(g, s, node, w.no_priors, np.int64(record["count"]))
            if edge == NO_EDGE:  # all are proven to lose, but one has closed a repetition
                edge = np.int64(0)
        if edge == np.int64(record["opened"]) and not open_edge(g, node):
            return np.int64(FULL)
        path[row, 0, depth] = node
        path[row, 1, depth] = edge
        slot = np.int64(record["slots"]) + edge
        child = np.int64(g.slots[slot]["child"])
        for cell in range(3):
            prefetch(g.nodes, child + cell)
        move = np.int64(g.moves[first_move(node, np.int64(record["count"])) + edge])
        if child == 0:
            play_into(t, w.line, at, w.line, at + 1, move)
        else:
            replay_into(t, w.line, at, w.line, at + 1, move)
            if g.nodes[child]["flags"] & IN_CHECK:
                count_given_check(t, w.line, at + 1)
        at += 1
        depth += 1
        first = cycle_start(s, w.line, np.int64(info["root_at"]), at, w.past)
        if first != NO_CYCLE:
            value = verdict_on_cycle(t, s, g, w, slot, first, at, depth == 1)
            if value == UNKNOWN:
                info["row"] = row
                info["cycle"] = first
                info["cycle_end"] = at
                return np.int64(NEEDS_JUDGE)
            if not visit_cycle(g, node, slot, value):
                return np.int64(FULL)
            back_up(
                g, s, path, row, depth, np.float64(value), 1.0 if value == 0 else 0.0, np.int64(0)
            )
            state["terminals"] += 1
            return np.int64(DONE)
        if child == 0:
            child, known = find_or_make(t, s, g, w, at)
            if child == 0:
                return np.int64(FULL)
            state["merges"] += known
            link(g, node, edge, child, known)
        if s[0]["transpositions"] and stops_at(g, s, slot):
            value = correction(g, s, slot)
            draw = np.float64(g.nodes[child]["draw"])
            back_up(g, s, path, row, depth, value, draw, np.int64(0))
            return np.int64(DONE)
        node = child
