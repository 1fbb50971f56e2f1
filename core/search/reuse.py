"""Keeping what is below a new root, and giving back the rest bit by bit.

A move was played: the new root is a node of the graph, and most other nodes can no longer be
reached. They are found and freed in slices between batches, each so short that nobody notices,
while the search goes on:

    MARKING   from the root along the slots; nodes made meanwhile are born marked, and an edge newly
              led to an unmarked node puts that one on the stack (`descend.link`)
    SWEEPING  nodes without the mark leave the table and are freed; nobody can find them any more
"""

from __future__ import annotations

import numpy as np

from variant_ai.core.rules.cache import Number, borrowing
from variant_ai.core.search.nodes import FREE, IDLE, MARKING, SWEEPING, Arrays, free_node
from variant_ai.core.search.table import remove

SLICE = 4096
"""Steps of one slice: about a millisecond."""


@borrowing
def begin_reclaim(g: Arrays) -> None:
    """Start to look for nodes that the root does not reach. A sweep must not be under way."""
    state = g.state[0]
    state["mark"] = 1 if state["mark"] == 255 else state["mark"] + 1
    state["phase"] = MARKING
    root = np.int64(state["root"])
    g.nodes[root]["mark"] = state["mark"]
    g.stack[0] = root
    state["stack"] = 1


@borrowing
def reclaim(g: Arrays, steps: Number) -> Number:
    """Look at about so many nodes; returns the phase afterwards, IDLE when done."""
    state = g.state[0]
    while steps > 0 and state["phase"] == MARKING:
        if state["stack"] == 0:
            state["phase"] = SWEEPING
            state["swept"] = 1
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
        node = np.int64(state["swept"])
        if node >= state["node_top"]:
            state["phase"] = IDLE
            break
        record = g.nodes[node]
        if record["state"] != FREE and record["mark"] != state["mark"]:
            remove(g, node)
            free_node(g, node)
            steps -= 3
        state["swept"] = node + 1
        steps -= 1
    return np.int64(state["phase"])
