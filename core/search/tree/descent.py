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

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.jit import Number, Truth, array, borrowing
from variant_ai.core.jit.arrays import Ints3D, Key
from variant_ai.core.jit.functions import prefetch
from variant_ai.core.rules.kernel.attacks import MoveWork
from variant_ai.core.rules.kernel.game_ends import MOVE_COUNT, NO_END, end_of
from variant_ai.core.rules.kernel.giving_check import CheckWork, checks_into, new_checks, new_trial
from variant_ai.core.rules.kernel.make_move import count_given_check, play_into, replay_into
from variant_ai.core.rules.kernel.move_lists import MoveLists
from variant_ai.core.rules.kernel.movegen import legal_moves_into
from variant_ai.core.rules.kernel.table_layout import Tables
from variant_ai.core.rules.position import Position
from variant_ai.core.search.compiled_settings import CATCH_UP, Q_EPSILON, Settings
from variant_ai.core.search.forest.improved_policy import select_improved
from variant_ai.core.search.tree.backup import apply_virtual_loss, back_up, prove
from variant_ai.core.search.tree.nodes import (
    CHECKS_TRIED,
    CLOSES_CYCLE,
    DRAWN,
    END,
    FRESH,
    HAS_MATE,
    IN_CHECK,
    LOST,
    MARKING,
    MAX_VISITS,
    OPEN,
    REPEATS,
    SHARED,
    UNKNOWN,
    UNPROVEN,
    WAITING,
    WINS,
    WON,
    Arrays,
    allocate_node,
    first_move,
    first_prior,
    open_edge,
    repeat_of,
    share,
)
from variant_ai.core.search.tree.priors import EXPANDER, Expander
from variant_ai.core.search.tree.repetition import (
    JUDGE_FROM,
    JUDGE_SHARE,
    NO_CYCLE,
    Past,
    Verdicts,
    check_verdict,
    cycle_key,
    cycle_start,
    idle_verdict,
    verdict_index,
)
from variant_ai.core.search.tree.selection import NO_EDGE, select_edge
from variant_ai.core.search.tree.transpositions import find, insert, node_key

LEAF, COLLISION, DONE, FULL, NEEDS_JUDGE, STUCK = range(6)

MATE_CHECK_VISITS = 4
"""Visits at which a node's checks are tried for mate."""

PATH_INFO = np.dtype(
    [
        ("root_at", "i8"),  # index of the root in the line
        ("root_end", "i8"),  # edges of the root before this one may be selected
        ("root_edge", "i8"),  # 1 + edge of the root to follow; 0: select it
        ("leaf", "i8"),  # node of a LEAF
        ("length", "i8"),  # edges of the path
        ("row", "i8"),  # NEEDS_JUDGE: row of the path
        ("cycle", "i8"),  # NEEDS_JUDGE: index in the line where the cycle begins
        ("cycle_end", "i8"),  # NEEDS_JUDGE: index in the line where it ends
    ]
)
"""Root and result of a descent."""


class Descent(NamedTuple):
    """Arrays that descents read and write; one set per tree."""

    line: Position
    """POSITION: the game's positions up to the root, then those of the path."""
    past: Past
    """PAST of the game."""
    verdicts: Verdicts
    """VERDICT: chases judged so far."""
    root_priors: NDArray[np.float32]
    """See `select_edge`; empty if the root's own priors are used."""
    no_priors: NDArray[np.float32]
    """Empty array, for inner nodes."""
    path_info: Annotated[NDArray[np.void], array(PATH_INFO)]
    """PATH_INFO, shape (1,)."""
    out: MoveLists
    """Move lists of the generator."""
    work: MoveWork
    """Scratch memory of the generator."""


class Scratch(NamedTuple):
    """Scratch memory of expansion; one set per tree."""

    expander: Expander
    """EXPANDER, shape (1,)."""
    checks: CheckWork
    """CHECKS."""
    trial: Position
    """POSITION, shape (1,)."""


def new_scratch() -> Scratch:
    return Scratch(np.zeros(1, EXPANDER), new_checks(), new_trial())


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
def link(g: Arrays, node: Number, edge: Number, child: Number, known: Truth) -> None:
    """Link an edge to a child node; `known`: the child existed before, and has other parents.

    If a marking is going on, the child is marked, because the parent may have been handled already.
    """
    slot = g.slots[np.int64(g.nodes[node]["slots"]) + edge]
    there = g.nodes[child]
    slot["child"] = child
    if known:
        share(g, child)
        slot["flags"] |= SHARED
    else:
        there["parent"] = node
        if slot["flags"] & REPEATS == 0:
            slot["q"] = there["q"]
            slot["proof"] = there["proof"]
    if there["state"] == END and there["q"] <= -1.0:
        slot["flags"] |= WINS
    state = g.state[0]
    if state["phase"] == MARKING and g.nodes[child]["mark"] != state["mark"]:
        g.nodes[child]["mark"] = state["mark"]
        g.stack[state["stack"]] = child
        state["stack"] += 1


@borrowing
def stops_at(g: Arrays, s: Settings, slot: Number) -> Truth:
    """Return True if a visit ends at a child that was also visited through other parents.

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
            return np.int64(w.verdicts[index]["value"])
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
    else:
        # a late verdict also applies to the visits before it
        repeat["sum"] = -1.0 * value * np.int64(repeat["visits"])
        repeat["draws"] = 0.0
    return True


@borrowing
def find_mate_in_one(
    t: Tables, g: Arrays, w: Descent, k: Scratch, node: Number, at: Number
) -> None:
    """If an untried move mates or wins at once by a check or an explosion, make it the next one to be
    tried.

    Only such moves can mate. Each node is searched once, after a few visits: with uninformative priors a
    mate in one would otherwise have to wait for its turn among all moves.
    """
    record = g.nodes[node]
    record["flags"] |= CHECKS_TRIED
    count = np.int64(record["count"])
    opened = np.int64(record["opened"])
    first = first_move(node, count)
    gives = k.expander[0]["gives"]
    if checks_into(t, w.line, at, g.moves, first, count, k.checks, k.trial, gives) == 0:
        return
    for e in range(opened, count):
        if not gives[e]:
            continue
        move = g.moves[first + e]
        play_into(t, w.line, at, w.line, at + 1, np.int64(move))
        if legal_moves_into(t, w.line, at + 1, w.out, w.work) > 0:
            continue
        end = np.int64(end_of(t, w.line, at + 1, np.int64(0), np.int64(1)))
        if (end >> 3) - 1 != np.int64(w.line[at]["side"]):
            continue
        prior = g.priors[first_prior(node) + e]
        for j in range(e, opened, -1):
            g.moves[first + j] = g.moves[first + j - 1]
            g.priors[first_prior(node) + j] = g.priors[first_prior(node) + j - 1]
        g.moves[first + opened] = move
        # it gets at least the prior of the move it replaces, so that the best one stays in front
        kept = g.priors[first_prior(node) + opened]
        g.priors[first_prior(node) + opened] = max(prior, kept)
        record["flags"] |= HAS_MATE
        return


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
    was_pending = np.int64(0)
    while True:
        record = g.nodes[node]
        prefetch(g.nodes, np.int64(record["slot0"][0]))  # most nodes have only this child yet
        node_state = record["state"]
        info["length"] = depth
        if node_state == FRESH:
            record["state"] = WAITING
            info["leaf"] = node
            apply_virtual_loss(g, path, row, depth, np.int64(1))
            return np.int64(LEAF)
        if node_state == WAITING:
            apply_virtual_loss(g, path, row, depth, np.int64(1))
            state["collisions"] += 1
            return np.int64(COLLISION)
        if node_state == END or (record["proof"] != UNPROVEN and depth > 0):
            back_up(
                g,
                s,
                path,
                row,
                depth,
                np.float64(record["q"]),
                np.float64(record["draw"]),
                was_pending,
            )
            state["terminals"] += 1
            return np.int64(DONE)
        if depth >= s[0]["max_depth"]:
            back_up(
                g,
                s,
                path,
                row,
                depth,
                np.float64(record["q"]),
                np.float64(record["draw"]),
                was_pending,
            )
            state["cuts"] += 1
            return np.int64(DONE)
        plain = depth > 0 or w.root_priors.shape[0] == 0
        if record["visits"] >= MATE_CHECK_VISITS and record["flags"] & CHECKS_TRIED == 0 and plain:
            if s[0]["solver"] and s[0]["look_for_mates"]:
                find_mate_in_one(t, g, w, k, node, at)
            else:
                record["flags"] |= CHECKS_TRIED
        if record["flags"] & HAS_MATE and plain:
            edge = np.int64(record["opened"])
            record["flags"] &= 255 - HAS_MATE
        elif depth == 0 and info["root_edge"] > 0:
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
                g, s, path, row, depth, np.float64(value), 1.0 if value == 0 else 0.0, was_pending
            )
            state["terminals"] += 1
            return np.int64(DONE)
        if child == 0:
            key = node_key(w.line, at, s[0]["read"])
            if s[0]["transpositions"]:
                child = find(g, key)
            known = child != 0
            if known:
                state["merges"] += 1
            else:
                child = make_node(t, s, g, w, at, key)
                if child == 0:
                    return np.int64(FULL)
                insert(g, child, key)
            link(g, node, edge, child, known)
        if s[0]["transpositions"] and stops_at(g, s, slot):
            value = correction(g, s, slot)
            draw = np.float64(g.nodes[child]["draw"])
            back_up(g, s, path, row, depth, value, draw, was_pending)
            state["catches"] += 1
            return np.int64(DONE)
        node = child
