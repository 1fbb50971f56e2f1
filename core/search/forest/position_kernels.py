"""The compiled call of searches that each analyse one position: the leaves of all of them.

Selection is that of the ordinary search at every node, the root included. A search that is complete
waits until it is read.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.encoding.encoding_tables import InputTables
from variant_ai.core.jit import Truth, borrowing
from variant_ai.core.rules.kernel.table_layout import Tables
from variant_ai.core.search.compiled_settings import Settings
from variant_ai.core.search.forest.evaluation_cache import EvaluationCache
from variant_ai.core.search.forest.forest_arrays import (
    ENDED,
    SEARCHING,
    Forest,
    descent_at,
    tree_at,
)
from variant_ai.core.search.forest.forest_kernels import AT_ONCE, recalls
from variant_ai.core.search.tree.descent import DONE, LEAF, NEEDS_JUDGE, descend
from variant_ai.core.search.tree.leaf_batch import LeafBatch, store_leaf
from variant_ai.core.search.tree.nodes import UNPROVEN
from variant_ai.core.search.tree.working_memory import Scratch


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
