"""Compiled functions of forests. Each serves all trees in one call, except `begin`. Of self-play:

    gather   takes the waiting leaf of each tree into one batch; searches that are complete play their
             move (`finish_move`), and the next one begins in the same call
    answer   expands the leaves with their evaluations and backs these up
    begin    starts a game from the positions in its line

Of searches that each analyse one position `gather_leaves`, and also `answer` and `begin`. Their selection
is that of the ordinary search at every node, the root included, and one that is complete waits until it is
read.

A tree waits for one leaf at a time. In self-play, chases that only Fairy-Stockfish can judge count as
ordinary repetitions during a search; the game itself is judged when it ends.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.encoding.encoding_kernels import InputTables, PolicyTables
from variant_ai.core.jit import Number, Truth, borrowing
from variant_ai.core.jit.functions import prefetch
from variant_ai.core.jit.random_numbers import uniform
from variant_ai.core.jit.signatures import Floats2D
from variant_ai.core.rules.kernel.play_move import play_into
from variant_ai.core.rules.kernel.table_layout import MAX_MOVES, Tables
from variant_ai.core.search.compiled_settings import Settings
from variant_ai.core.search.forest.evaluation_cache import (
    EvaluationCache,
    keep_evaluation,
    recall_evaluation,
)
from variant_ai.core.search.forest.forest_arrays import (
    ENDED,
    RESIGNED,
    SEARCHING,
    Choice,
    Forest,
    descent_at,
    tree_at,
)
from variant_ai.core.search.forest.root_moves import (
    chosen_edge,
    next_root_edge,
    prepare_root,
    target_of,
)
from variant_ai.core.search.tree.descent import DONE, LEAF, NEEDS_JUDGE, descend
from variant_ai.core.search.tree.growth import make_node
from variant_ai.core.search.tree.leaf_batch import LeafBatch, complete, finish_row, store_leaf
from variant_ai.core.search.tree.nodes import (
    END,
    OPEN,
    UNPROVEN,
    Arrays,
    clear,
    first_move,
)
from variant_ai.core.search.tree.repetition import fill_past, remember
from variant_ai.core.search.tree.selection import NO_EDGE
from variant_ai.core.search.tree.transpositions import insert, node_key
from variant_ai.core.search.tree.working_memory import Descent, Scratch

LEAST_PAST = 32
"""Entries of the smallest table of past positions."""
AT_ONCE = 256
"""Visits without a leaf that a tree makes in one call."""


@borrowing
def remember_line(f: Forest, i: Number, positions: Number) -> Descent:
    """Make the table of past positions of tree i from the first `positions` ones of its line. It is as
    small as that allows: each descent looks into it, and a large one would not stay in the cache."""
    size = np.int64(LEAST_PAST)
    while size < 2 * positions + LEAST_PAST:
        size *= 2
    f.trees[i]["past"] = min(size, f.sizes[3])
    w = descent_at(f, i)
    fill_past(w.past, w.line, positions)
    return w


@borrowing
def start_tree(
    t: Tables, s: Settings, c: Choice, f: Forest, g: Arrays, w: Descent, i: Number
) -> None:
    """Start the search of the last position of tree i; the slab is cleared."""
    tree = f.trees[i]
    clear(g)
    tree["prepared"] = 0
    tree["stuck"] = 0
    tree["full"] = 1
    if c[0]["full_share"] < 1.0 and uniform(f.randoms, i) >= c[0]["full_share"]:
        tree["full"] = 0
    tree["nodes"] = c[0]["nodes"] if tree["full"] else c[0]["fast_nodes"]
    at = np.int64(w.path_info[0]["root_at"])
    key = node_key(w.line, at, s[0]["read"])
    root = make_node(t, s, g, w, at, key)
    g.state[0]["root"] = root
    insert(g, root, key)
    w.path_info[0]["root_end"] = g.nodes[root]["count"]
    w.path_info[0]["root_edge"] = 0


@borrowing
def begin(t: Tables, s: Settings, c: Choice, f: Forest, i: Number, positions: Number) -> None:
    """Start game i, whose first `positions` positions are in its line; the last one must not have
    ended the game."""
    w = remember_line(f, i, positions)
    g = tree_at(f, i)
    tree = f.trees[i]
    tree["state"] = SEARCHING
    tree["lost"][0] = 0
    tree["lost"][1] = 0
    w.path_info[0]["root_at"] = positions - 1
    start_tree(t, s, c, f, g, w, i)


@borrowing
def is_over(f: Forest, g: Arrays, i: Number) -> Truth:
    """Return True if the search of tree i is complete."""
    tree = f.trees[i]
    record = g.nodes[np.int64(g.state[0]["root"])]
    if record["state"] != OPEN or not tree["prepared"]:
        return False
    if tree["stuck"] or record["proof"] != UNPROVEN:
        return True
    return np.int64(record["visits"]) - 1 >= tree["nodes"]


@borrowing
def finish_move(
    t: Tables, s: Settings, c: Choice, f: Forest, g: Arrays, w: Descent, k: Scratch, i: Number
) -> None:
    """Log the complete search of tree i, play its move and start the next search, or end the game."""
    tree = f.trees[i]
    counters = f.counters[0]
    root = np.int64(g.state[0]["root"])
    record = g.nodes[root]
    n = np.int64(record["count"])
    moves = first_move(root, n)
    p = k.expander[0]["p"][:]  # as an array, or its readers would be compiled for another type, too
    value = target_of(c, s, f, g, i, p)
    edge = chosen_edge(c, s, f, g, i, p)
    move = np.int64(g.moves[moves + edge])
    at = np.int64(w.path_info[0]["root_at"])
    entry = f.entries[counters["entries"]]
    counters["entries"] += 1
    entry["game"] = tree["game"]
    entry["ply"] = at
    entry["move"] = move
    entry["full"] = tree["full"]
    entry["root_value"] = value
    entry["first"] = counters["weights"]
    used = np.int64(counters["weights"])
    for e in range(n):
        if p[e] > 0.0:
            f.weight_moves[used] = g.moves[moves + e]
            f.weights[used] = p[e]
            used += 1
    entry["count"] = used - np.int64(counters["weights"])
    counters["weights"] = used
    counters["visits"] += np.int64(record["visits"]) - 1
    # resignation
    side = np.int64(w.line[at]["side"])
    for player in range(2):
        own = value if player == side else -value
        if own < c[0]["resign_below"]:
            tree["lost"][player] += 1
        else:
            tree["lost"][player] = 0
    resigned = tree["resigns"] and (
        tree["lost"][0] >= c[0]["resign_plies"] or tree["lost"][1] >= c[0]["resign_plies"]
    )
    play_into(t, w.line, at, w.line, at + 1, move)
    at += 1
    w.path_info[0]["root_at"] = at
    if 2 * (at + 1) > tree["past"]:
        w = remember_line(f, i, at)
    before = remember(w.past, w.line[at]["key"])
    w.line[at]["repetitions"] = min(before, np.int64(127))
    start_tree(t, s, c, f, g, w, i)
    if (
        g.nodes[np.int64(g.state[0]["root"])]["state"] == END
        or before + 1 >= c[0]["fold"]
        or at >= tree["limit"]
    ):
        tree["state"] = ENDED
    elif resigned:
        tree["state"] = RESIGNED


@borrowing
def recalls(
    cache: EvaluationCache, s: Settings, g: Arrays, w: Descent, b: LeafBatch, row: Number
) -> Truth:
    """Expand and back up the leaf of the last descent, whose path is in `row`, if the net evaluated it
    for this or another tree; otherwise return False. It counts as an evaluation of this search, so that
    its report does not depend on the other trees."""
    leaf = np.int64(w.path_info[0]["leaf"])
    if not recall_evaluation(cache, g, leaf):
        return False
    b.leaves[row] = leaf
    b.lengths[row] = w.path_info[0]["length"]
    finish_row(s, g, b, row)
    return True


@borrowing
def prefetch_tree(f: Forest, i: Number) -> None:
    """Start to load what the next descent of tree i reads first: its root, its last position."""
    cells = i * f.sizes[0] + np.int64(f.states[i]["root"])
    for cell in range(4):
        prefetch(f.nodes, cells + cell)
    prefetch(f.nodes, i * f.sizes[0] + (np.int64(f.nodes[cells]["slots"]) >> 2))
    prefetch(f.root_scores, i * MAX_MOVES)
    prefetch(f.line, i * f.sizes[2] + np.int64(f.path_infos[i]["root_at"]))


@borrowing
def gather(
    t: Tables,
    e: InputTables,
    c: Choice,
    s: Settings,
    noisy: Settings,
    f: Forest,
    b: LeafBatch,
    k: Scratch,
    cache: EvaluationCache,
    owners: NDArray[np.int64],
) -> Number:
    """Take one leaf of each tree into the batch; returns the number of rows.

    A tree has none if its game has ended, or if the log is full: read it and call again. owners: tree
    of each row.
    """
    row = np.int64(0)
    trees = f.trees.shape[0]
    for i in range(trees):
        tree = f.trees[i]
        if tree["state"] != SEARCHING:
            continue
        if i + 1 < trees:
            prefetch_tree(f, np.int64(i + 1))
        g = tree_at(f, np.int64(i))
        w = descent_at(f, np.int64(i))
        info = w.path_info[0]
        made = np.int64(0)
        while made < AT_ONCE:
            root = np.int64(g.state[0]["root"])
            if not tree["prepared"] and g.nodes[root]["state"] == OPEN:
                prepare_root(c, f, g, np.int64(i))
            if is_over(f, g, np.int64(i)):
                counters = f.counters[0]
                if (
                    counters["entries"] >= f.entries.shape[0]
                    or counters["weights"] + g.nodes[root]["count"] > f.weights.shape[0]
                ):
                    break
                finish_move(t, s, c, f, g, w, k, np.int64(i))
                w = descent_at(f, np.int64(i))
                if tree["state"] != SEARCHING:
                    break
                continue
            if tree["prepared"]:
                edge = next_root_edge(c, s, noisy, f, g, np.int64(i))
                if edge == NO_EDGE:
                    tree["stuck"] = 1
                    continue
                info["root_edge"] = 1 + edge
            found = descend(t, s, g, w, k, b.paths, row)
            if found == LEAF and recalls(cache, s, g, w, b, row):
                made += 1
                continue
            if found == LEAF:
                store_leaf(t, e, s, g, w, b, k, row)
                owners[row] = i
                row += 1
                break
            if found == DONE:
                made += 1
            else:
                tree["stuck"] = 1
    return row


@borrowing
def answer(
    t: Tables,
    a: PolicyTables,
    action_table: NDArray[np.int32],
    s: Settings,
    f: Forest,
    b: LeafBatch,
    k: Scratch,
    cache: EvaluationCache,
    rows: Number,
    owners: NDArray[np.int64],
    values: NDArray[np.float32],
    logits: Floats2D,
    draws: NDArray[np.float32],
) -> Number:
    """Expand the leaves of the batch and back them up. Returns the rows done: `rows`, unless an
    evaluation is not a number. Arrays as in `leaf_batch.complete`."""
    for row in range(rows):
        if row + 1 < rows:
            leaf = owners[row + 1] * f.sizes[0] + np.int64(b.leaves[row + 1])
            for cell in range(3):
                prefetch(f.nodes, leaf + cell)
        g = tree_at(f, owners[row])
        done = complete(
            t,
            a,
            action_table,
            s,
            g,
            b,
            k,
            np.int64(row),
            np.int64(row + 1),
            values,
            logits,
            draws,
        )
        if done != row + 1:
            return np.int64(row)
        keep_evaluation(cache, g, np.int64(b.leaves[row]))
    return rows


# --- searches that each analyse one position ------------------------------------------------------


@borrowing
def gather_leaves(
    t: Tables,
    e: InputTables,
    s: Settings,
    f: Forest,
    b: LeafBatch,
    k: Scratch,
    cache: EvaluationCache,
    owners: NDArray[np.int64],
    progress: NDArray[np.int64],
) -> Truth:
    """Take one leaf of each search into the batch. Returns False if the next tree has closed a cycle
    that must be judged before the call is repeated.

    A search has no leaf if it is complete (ENDED), or after AT_ONCE visits that ended without one.
    owners: tree of each row. progress [2]: next tree, rows so far.
    """
    row = progress[1]
    for i in range(progress[0], f.trees.shape[0]):
        tree = f.trees[i]
        if tree["state"] != SEARCHING:
            continue
        g = tree_at(f, np.int64(i))
        w = descent_at(f, np.int64(i))
        root = np.int64(g.state[0]["root"])
        made = np.int64(0)
        while made < AT_ONCE:
            if (
                tree["stuck"]
                or g.nodes[root]["proof"] != UNPROVEN
                or g.state[0]["visits"] >= tree["nodes"]
            ):
                tree["state"] = ENDED
                break
            found = descend(t, s, g, w, k, b.paths, row)
            # roots are always evaluated: afterwards they are prepared
            if found == LEAF and tree["prepared"] and recalls(cache, s, g, w, b, row):
                made += 1
                continue
            if found == LEAF:
                store_leaf(t, e, s, g, w, b, k, row)
                owners[row] = i
                row += 1
                break
            if found == DONE:
                made += 1
            elif found == NEEDS_JUDGE:
                progress[0] = i
                progress[1] = row
                return False
            else:
                tree["stuck"] = found
    progress[0] = f.trees.shape[0]
    progress[1] = row
    return True
