"""Memory of a search graph: nodes, their edges, and their allocation.

This module knows nothing about boards. A graph is stored in one arena of 64-byte cells, one cache line
each, and the number of a node is that of its first cell. A descent through a node with one tried edge
reads only two neighbouring cache lines:

    cell 0   key · q · visits · slots · opened · proof · ...          48 bytes
             slot 0: child, visits, q, pending, proof, flags          16 bytes
    cell 1   slot 1                                                   16 bytes
             priors   of all legal moves                               2 bytes each
             moves    in the same order                                4 bytes each
    ...

Only edges that have been tried have a slot. All untried edges have the same Q, so the next one to try
is the one with the best prior. It is always kept in front of the other untried ones: the tried edges
are a prefix, and only roots are ever sorted. From the third edge on, slots are in a separate block, whose
size doubles when it is full.

Selection and backup read every tried edge of every node of a path, and reading a child's Q would
cost a cache miss each time. So a slot has a copy of it. A child with one parent changes only by visits
through that parent, and backup then updates the copy. Slots of a child with several parents are
marked as SHARED and have no copy: the child itself is read. `child_q` handles both cases.

The arrays of `Arrays` are views of the same arena, each with its own unit. Freed blocks go to a list
of free blocks of their size, and free neighbours are joined after a sweep. Memory is reused and never
moved.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.jit import Number, Truth, array, borrowing, element, inlined

CELL = 64
"""Bytes per cell."""

NODE = np.dtype(
    [
        ("key", "u8"),  # full key: position and the counters that planes or rules use
        ("q", "f4"),  # value of the node, for its side to move; exact if proven
        ("value", "f4"),  # value that the evaluator returned for the position
        ("draw", "f4"),  # probability of a draw, mean over its visits
        ("visits", "i4"),  # 1 + sum of the edges' visits; 0 until evaluated
        ("slots", "i4"),  # index of its first slot
        ("next", "i4"),  # next node of the hash chain; 0: none
        ("parent", "i4"),  # the only node with an edge to it; 0: unknown or several
        ("pending", "i2"),  # pending visits (virtual loss): descents not backed up yet
        ("count", "u2"),  # legal moves
        ("opened", "u2"),  # edges that have a slot
        ("distance", "i2"),  # plies to the end of the game, if proven won or lost
        ("state", "i1"),  # FRESH, WAITING, OPEN, END
        ("proof", "i1"),  # UNPROVEN, WON, DRAWN, LOST for the side to move
        ("mark", "u1"),  # number of the last marking that reached it
        ("flags", "u1"),  # CLOSES_CYCLE, CHECKS_TRIED, IN_CHECK, SORTED
        ("slot0", "i4", (4,)),  # reached as a SLOT
    ]
)
assert NODE.itemsize == CELL
FRESH, WAITING, OPEN, END = range(1, 5)
"""FRESH: neither evaluated nor sent to the evaluator; WAITING: sent; OPEN: evaluated; END: the game is
over."""
UNPROVEN, WON, DRAWN, LOST = range(4)
CLOSES_CYCLE = 1
"""Node flag: an edge of the node has closed a repetition."""
CHECKS_TRIED = 2
"""Node flag: mates by checks have been looked for (`look_ahead/by_checks.py`)."""
IN_CHECK = 8
"""Node flag: the side to move is in check."""
SORTED = 16
"""Node flag: the untried edges are sorted, and their priors are not compared any more."""

SLOT = np.dtype(
    {
        "names": ["child", "visits", "q", "repeat", "pending", "proof", "flags"],
        "formats": ["i4", "i4", "f4", "i4", "i2", "i1", "u1"],
        "offsets": [0, 4, 8, 8, 12, 14, 15],
        "itemsize": 16,
    }
)
"""child     node, 0: none
visits    visits of this edge, including repetitions
q         copy of the child's, for the child's side to move; unused with NO_COPY
repeat    instead of q if the edge REPEATS: entry of `repeats`
pending   pending visits (virtual loss): descents through it that are not backed up yet
proof     copy of the child's; unused with NO_COPY
flags     SHARED, REPEATS, WINS
"""
MOST_PENDING = int(np.iinfo(SLOT["pending"]).max)
"""Greatest number of pending visits of an edge or a node."""
SlotRow: TypeAlias = Annotated[Any, element(SLOT)]
SHARED = 1
"""Slot flag: other edges lead to the child as well."""
REPEATS = 2
"""Slot flag: visits of the edge have closed a repetition."""
WINS = 4
"""Slot flag: the game is over at the child, and won for the side that makes the move."""
NO_COPY = SHARED | REPEATS
"""Slot flags with which the slot has no copy of the child's q and proof."""
MAX_VISITS = (1 << 31) - 1
"""Largest number of visits of a node, a slot or a repeat; later visits are not counted."""
MAX_CELLS = (1 << 29) - 2
"""Largest number of cells: a slot's number is that of its cell times four, and must fit into 31 bits."""
REPEAT = np.dtype(
    [
        ("visits", "i4"),  # visits of the edge that closed a repetition
        ("next", "i4"),  # next free entry
        ("sum", "f8"),  # sum of their values, for the side that makes the move
        ("draws", "f8"),  # number of draws among them
        ("verdict", "i8"),  # verdict on a chase, for the side to move afterwards; or UNKNOWN
    ]
)
"""Visits of one edge that closed a repetition."""
UNKNOWN = 2

INLINE_SLOTS = 2
"""Slots inside the node itself."""
CLASSES = 768
"""Limit of the size of blocks: they have fewer cells than this."""
USED = 1 << 15
"""Flag in `blocks`: the block is in use."""

STATE = np.dtype(
    [
        ("root", "i4"),
        ("cells", "i8"),  # cells in use, without those of the free lists
        ("cell_limit", "i8"),  # most cells that may be in use
        ("cell_top", "i8"),  # first cell that was never allocated; cell 0 is unused
        ("node_count", "i8"),  # nodes in use
        ("free", "i4", (CLASSES,)),  # first free block of each size
        ("repeat_top", "i4"),  # first entry of `repeats` that was never used
        ("repeat_free", "i4"),  # first free entry of `repeats`
        ("mark", "u1"),  # mark of reachable nodes
        ("phase", "i1"),  # IDLE, MARKING, SWEEPING, JOINING
        ("stack", "i4"),  # nodes on the mark stack
        ("swept", "i8"),  # next chain when sweeping, next cell when joining
        # counters of this search
        ("visits", "i8"),
        ("evaluations", "i8"),
        ("terminals", "i8"),
        ("collisions", "i8"),
        ("merges", "i8"),
        ("depths", "i8"),  # sum of the lengths of all paths
    ],
    align=True,
)
"""State and counters of a graph."""
IDLE, MARKING, SWEEPING, JOINING = range(4)


class Arrays(NamedTuple):
    """Arrays of one graph. Memory is only reserved: pages are allocated when first written."""

    nodes: Annotated[NDArray[np.void], array(NODE)]
    """NODE, by cell; cell 0 is unused, so that 0 can mean none."""
    slots: Annotated[NDArray[np.void], array(SLOT)]
    """SLOT, four per cell."""
    moves: NDArray[np.int32]
    """Moves, sixteen per cell; see `first_move`."""
    priors: NDArray[np.uint16]
    """Priors as encoded by `priors.py`, 32 per cell; see `first_prior`."""
    blocks: NDArray[np.uint16]
    """By cell: at the first cell of each block its size, plus USED if it is in use."""
    edge_values: NDArray[np.float32]
    """Mean value of each slot for the side that makes the move, if backup keeps one; otherwise one
    element."""
    heads: NDArray[np.int32]
    """First node of each hash chain; the length is a power of two."""
    repeats: Annotated[NDArray[np.void], array(REPEAT)]
    """REPEAT; entry 0 is unused."""
    stack: NDArray[np.int32]
    """Mark stack: marked nodes whose children have not been marked yet."""
    state: Annotated[NDArray[np.void], array(STATE)]
    """STATE, shape (1,)."""


MIN_CHAINS = 1 << 10
TABLE_SHARE = 24
"""The hash table gets 1/24 of the memory."""
MIN_NODES = 16
"""Nodes that always fit, even if the memory limit is smaller."""


def cells_of(memory: int) -> int:
    """Return the number of cells that fit into `memory` bytes; more than 34 GB cannot be addressed."""
    return min((memory - memory // TABLE_SHARE) // (CELL + 2), MAX_CELLS)


def new_arrays(memory: int, keeps_values: bool) -> Arrays:
    """Create an empty graph of at most `memory` bytes; `keeps_values`: backup needs edge values."""
    cells = cells_of(memory)
    room = max(cells, MIN_NODES * 256) + 1
    arena = np.empty(room * CELL + CELL, np.uint8)
    skip = -arena.ctypes.data % CELL  # cells start at cache lines
    arena = arena[skip : skip + room * CELL]
    arrays = Arrays(
        nodes=arena.view(NODE),
        slots=arena.view(SLOT),
        moves=arena.view(np.int32),
        priors=arena.view(np.uint16),
        blocks=np.empty(room, np.uint16),
        edge_values=np.empty(4 * room if keeps_values else 1, np.float32),
        heads=np.zeros(MIN_CHAINS, np.int32),
        repeats=np.empty(max(64, min(room, 1 << 20)), REPEAT),
        stack=np.empty(room, np.int32),
        state=np.zeros(1, STATE),
    )
    arrays.nodes[0] = np.zeros(1, NODE)[0]
    arrays.state[0]["cell_limit"] = cells
    clear(arrays)
    return arrays


@borrowing
def clear(g: Arrays) -> None:
    """Remove all nodes, and reset the counters; memory stays reserved."""
    state = g.state[0]
    state["root"] = 0
    for cells in range(CLASSES):
        state["free"][cells] = 0
    for chain in range(g.heads.shape[0]):
        g.heads[chain] = 0
    state["cells"] = 0
    state["cell_top"] = 1
    state["node_count"] = 0
    state["repeat_top"] = 1
    state["repeat_free"] = 0
    state["mark"] = 1
    state["phase"] = IDLE
    state["stack"] = 0
    reset_counters(g)


@borrowing
def reset_counters(g: Arrays) -> None:
    """Reset the counters for a new search."""
    state = g.state[0]
    state["visits"] = 0
    state["evaluations"] = 0
    state["terminals"] = 0
    state["collisions"] = 0
    state["merges"] = 0
    state["depths"] = 0


def bytes_used(arrays: Arrays) -> int:
    """Return the memory of all nodes, edges and the hash table in bytes."""
    state = arrays.state[0]
    repeats = int(state["repeat_top"]) * REPEAT.itemsize
    return int(state["cells"]) * (CELL + 2) + arrays.heads.nbytes + repeats


@borrowing
def first_prior(node: Number) -> Number:
    """Index of a node's first prior."""
    return node * 32 + 40


@borrowing
def first_move(node: Number, count: Number) -> Number:
    """Index of the first move of a node with `count` moves."""
    return node * 16 + 20 + ((count + 1) >> 1)


@inlined
def node_cells(count: Number) -> Number:
    """Number of cells of a node with `count` moves."""
    return (80 + 2 * ((count + 1) & ~1) + 4 * count + CELL - 1) // CELL


@borrowing
def block_cells(opened: Number) -> Number:
    """Number of cells of the separate block for the slots of `opened` edges; 0: no block."""
    room = np.int64(INLINE_SLOTS)
    while room < opened:
        room *= 2
    return room >> 2 if room > INLINE_SLOTS else np.int64(0)


@borrowing
def allocate_cells(g: Arrays, size: Number) -> Number:
    """Allocate a block of `size` cells; returns 0 if memory is full."""
    state = g.state[0]
    if state["cells"] + size > state["cell_limit"] and state["node_count"] >= MIN_NODES:
        return np.int64(0)
    block = np.int64(state["free"][size])
    if block != 0:
        state["free"][size] = g.nodes[block]["next"]
    elif state["cell_top"] + size <= g.nodes.shape[0]:
        block = np.int64(state["cell_top"])
        state["cell_top"] += size
    else:
        larger = size + 1
        while larger < CLASSES and state["free"][larger] == 0:
            larger += 1
        if larger == CLASSES:
            return np.int64(0)
        block = np.int64(state["free"][larger])
        state["free"][larger] = g.nodes[block]["next"]
        add_free_block(g, block + size, larger - size)
    g.blocks[block] = size | USED
    state["cells"] += size
    return block


@borrowing
def add_free_block(g: Arrays, block: Number, size: Number) -> None:
    """Add a block to the list of free blocks of its size."""
    g.blocks[block] = size
    g.nodes[block]["next"] = g.state[0]["free"][size]
    g.state[0]["free"][size] = block


@borrowing
def free_cells(g: Arrays, block: Number, size: Number) -> None:
    """Free a block."""
    state = g.state[0]
    state["cells"] -= size
    if state["phase"] == JOINING and block >= state["swept"]:
        g.blocks[block] = size  # the joining has not reached it yet
    else:
        add_free_block(g, block, size)


@borrowing
def allocate_node(g: Arrays, count: Number) -> Number:
    """Allocate a FRESH node with room for `count` moves; returns 0 if memory is full."""
    node = allocate_cells(g, node_cells(count))
    if node == 0:
        return node
    g.state[0]["node_count"] += 1
    record = g.nodes[node]
    record["q"] = 0
    record["value"] = 0
    record["draw"] = 0
    record["visits"] = 0
    record["slots"] = node * 4 + 3
    record["next"] = 0
    record["parent"] = 0
    record["pending"] = 0
    record["count"] = count
    record["opened"] = 0
    record["distance"] = 0
    record["state"] = FRESH
    record["proof"] = UNPROVEN
    record["mark"] = g.state[0]["mark"]
    record["flags"] = 0
    return node


@borrowing
def open_edge(g: Arrays, node: Number) -> Truth:
    """Give the first untried edge a slot; returns False if memory is full."""
    record = g.nodes[node]
    opened = np.int64(record["opened"])
    old = np.int64(record["slots"])
    if opened >= INLINE_SLOTS and opened & (opened - 1) == 0:  # full: double the room
        block = allocate_cells(g, opened >> 1)
        if block == 0:
            return False
        for k in range(opened):
            g.slots[block * 4 + k] = g.slots[old + k]
            if g.edge_values.shape[0] > 1:
                g.edge_values[block * 4 + k] = g.edge_values[old + k]
        if opened > INLINE_SLOTS:
            free_cells(g, old >> 2, opened >> 2)
        old = block * 4
        record["slots"] = old
    slot = g.slots[old + opened]
    slot["child"] = 0
    slot["visits"] = 0
    slot["q"] = 0
    slot["pending"] = 0
    slot["proof"] = UNPROVEN
    slot["flags"] = 0
    if g.edge_values.shape[0] > 1:
        g.edge_values[old + opened] = 0
    record["opened"] = opened + 1
    bring_best(g, node)
    return True


@borrowing
def bring_best(g: Arrays, node: Number) -> None:
    """Move the untried edge with the greatest prior in front of the others, which keep their order."""
    record = g.nodes[node]
    if record["flags"] & SORTED:
        return
    count = np.int64(record["count"])
    prior = first_prior(node)
    front = prior + np.int64(record["opened"])
    end = prior + count
    if front >= end:
        return
    greatest = np.int64(g.priors[front])
    best = front
    for k in range(front + 1, end):
        code = np.int64(g.priors[k])
        if code > greatest:
            greatest = code
            best = k
    if best == front:
        return
    to_move = first_move(node, count) - prior
    move = g.moves[best + to_move]
    for k in range(best, front, -1):
        g.priors[k] = g.priors[k - 1]
        g.moves[k + to_move] = g.moves[k + to_move - 1]
    g.priors[front] = greatest
    g.moves[front + to_move] = move


@borrowing
def free_node(g: Arrays, node: Number) -> None:
    """Free a node with its slots and repeats; it must not be in the hash table any more."""
    record, state = g.nodes[node], g.state[0]
    slots = np.int64(record["slots"])
    for k in range(np.int64(record["opened"])):
        slot = g.slots[slots + k]
        if slot["flags"] & REPEATS:
            repeat = np.int64(slot["repeat"])
            g.repeats[repeat]["next"] = state["repeat_free"]
            state["repeat_free"] = repeat
    own_block = block_cells(np.int64(record["opened"]))
    if own_block > 0:
        free_cells(g, slots >> 2, own_block)
    state["node_count"] -= 1
    free_cells(g, node, node_cells(np.int64(record["count"])))


@borrowing
def repeat_of(g: Arrays, slot: SlotRow) -> Number:
    """Return the slot's entry of `repeats`, created if needed; 0 if memory is full."""
    state = g.state[0]
    if slot["flags"] & REPEATS:
        return np.int64(slot["repeat"])
    entry = np.int64(state["repeat_free"])
    if entry != 0:
        state["repeat_free"] = g.repeats[entry]["next"]
    elif state["repeat_top"] < g.repeats.shape[0]:
        entry = np.int64(state["repeat_top"])
        state["repeat_top"] += 1
    else:
        return np.int64(0)
    g.repeats[entry]["visits"] = 0
    g.repeats[entry]["sum"] = 0.0
    g.repeats[entry]["draws"] = 0.0
    g.repeats[entry]["verdict"] = UNKNOWN
    slot["flags"] |= REPEATS
    slot["repeat"] = entry
    return entry


@borrowing
def child_q(g: Arrays, slot: SlotRow) -> float:
    """Q of a slot's child, for the child's side to move. The slot must have a child."""
    if slot["flags"] & NO_COPY:
        return np.float64(g.nodes[np.int64(slot["child"])]["q"])
    return np.float64(slot["q"])


@borrowing
def child_proof(g: Arrays, slot: SlotRow) -> Number:
    """Proof of a slot's child. The slot must have a child."""
    if slot["flags"] & NO_COPY:
        return np.int64(g.nodes[np.int64(slot["child"])]["proof"])
    return np.int64(slot["proof"])


@borrowing
def copy_child(g: Arrays, slot: Number) -> None:
    """Copy Q and proof of a slot's child into the slot, if it has a child and a copy of it."""
    edge = g.slots[slot]
    child = np.int64(edge["child"])
    if child != 0 and edge["flags"] & NO_COPY == 0:
        edge["q"] = g.nodes[child]["q"]
        edge["proof"] = g.nodes[child]["proof"]


@borrowing
def share(g: Arrays, node: Number) -> None:
    """Mark the slots that lead to a node as SHARED: from now on its Q can change by visits that do
    not pass through its parent."""
    parent = np.int64(g.nodes[node]["parent"])
    if parent == 0:
        return
    g.nodes[node]["parent"] = 0
    slots = np.int64(g.nodes[parent]["slots"])
    for k in range(np.int64(g.nodes[parent]["opened"])):
        if g.slots[slots + k]["child"] == node:
            g.slots[slots + k]["flags"] |= SHARED
