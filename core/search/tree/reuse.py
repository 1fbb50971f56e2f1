"""Tree reuse: keeping the nodes below a new root and freeing the others step by step.

After a move the new root is a node of the graph, and most other nodes can no longer be reached. They
are found and freed in short slices between batches, while the search goes on:

    MARKING     marks nodes from the root along the slots; nodes created meanwhile are marked from the
                start, and a node that gets a new edge is put on the stack (`growth.link`)
    SWEEPING    goes through the hash chains and frees the nodes without the mark
    JOINING     goes through memory and joins neighbouring free blocks
"""

from __future__ import annotations

import numpy as np

from variant_ai.core.jit import Number, borrowing
from variant_ai.core.search.tree.nodes import (
    CLASSES,
    IDLE,
    JOINING,
    MARKING,
    SWEEPING,
    USED,
    Arrays,
    add_free_block,
    free_node,
)

SLICE = 4096
"""Steps of one slice: about a millisecond."""


@borrowing
def begin_reclaim(g: Arrays) -> None:
    """Start to free the nodes that the root does not reach. An earlier run must be finished, or still
    marking."""
    state = g.state[0]
    if state["mark"] == 255:  # an unfinished run may have left any number in a node
        for chain in range(g.heads.shape[0]):
            node = np.int64(g.heads[chain])
            while node != 0:
                g.nodes[node]["mark"] = 0
                node = np.int64(g.nodes[node]["next"])
        state["mark"] = 0
    state["mark"] += 1
    state["phase"] = MARKING
    root = np.int64(state["root"])
    g.nodes[root]["mark"] = state["mark"]
    g.stack[0] = root
    state["stack"] = 1


@borrowing
def reclaim(g: Arrays, steps: Number) -> Number:
    """Work through about `steps` nodes; returns the phase afterwards, IDLE when finished."""
    state = g.state[0]
    while steps > 0 and state["phase"] == MARKING:
        if state["stack"] == 0:
            state["phase"] = SWEEPING
            state["swept"] = 0
            break
        state["stack"] -= 1
        record = g.nodes[np.int64(g.stack[state["stack"]])]
        slots = np.int64(record["slots"])
        for k in range(np.int64(record["opened"])):
            child = np.int64(g.slots[slots + k]["child"])
            if child != 0 and g.nodes[child]["mark"] != state["mark"]:
                g.nodes[child]["mark"] = state["mark"]
                g.stack[state["stack"]] = child
                state["stack"] += 1
            steps -= 1
        steps -= 1
    while steps > 0 and state["phase"] == SWEEPING:
        chain = np.int64(state["swept"])
        if chain >= g.heads.shape[0]:
            state["phase"] = JOINING
            state["swept"] = 1
            for cells in range(CLASSES):
                state["free"][cells] = 0
            break
        kept = np.int64(0)
        node = np.int64(g.heads[chain])
        while node != 0:
            after = np.int64(g.nodes[node]["next"])
            if g.nodes[node]["mark"] == state["mark"]:
                kept = node
            else:
                if kept == 0:
                    g.heads[chain] = after
                else:
                    g.nodes[kept]["next"] = after
                free_node(g, node)
                steps -= 2
            node = after
            steps -= 1
        state["swept"] = chain + 1
        steps -= 1
    while steps > 0 and state["phase"] == JOINING:
        block = np.int64(state["swept"])
        top = np.int64(state["cell_top"])
        if block >= top:
            state["phase"] = IDLE
            break
        size = np.int64(g.blocks[block])
        if size & USED:
            state["swept"] = block + (size & ~USED)
        else:
            end = block + size
            while end < top and g.blocks[end] & USED == 0:
                after = np.int64(g.blocks[end])
                if end + after - block >= CLASSES:
                    break
                end += after
                steps -= 1
            if end == top:  # new blocks begin here, so the next slice must not begin farther on
                state["cell_top"] = block
                state["swept"] = block
            else:
                add_free_block(g, block, end - block)
                state["swept"] = end
        steps -= 1
    return np.int64(state["phase"])
