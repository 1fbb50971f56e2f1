"""The memory of a search graph: nodes and their edges, and how they are handed out.

Nothing here knows what a board is. All of a graph lies in one arena of cells of 64 bytes, a cache
line each, and a node is named by its first cell. A descent through a node with one tried edge reads
two neighbouring lines and no more:

    cell 0   key · q · visits · slots · opened · proof · ...          48 bytes
             slot 0: child, visits, q, flight, proof, flags           16 bytes
    cell 1   slot 1                                                   16 bytes
             priors   of all legal moves                               2 bytes each
             moves    in the same order                                4 bytes each
    ...

Of its edges only those that were ever tried have a slot. Untried edges all have the same Q, so the
next one tried is the one with the best prior. That one is always kept in front of the others: the
tried ones are a prefix, and nothing is ever sorted. From the third on, slots live in a block of their
own, whose room doubles.

Selection and back-up look at every tried edge of every node of a path, and a child's Q would cost a
cache miss each. So a slot has a copy of it. A child with one parent changes only when a visit comes
through that parent, and back-up renews the copy then; slots of a child with several are SHARED and
have no copy: the child is asked. `child_q` knows which.

The arrays of `Arrays` are views of the one arena, each with its own unit. Blocks that are given back
go to a list of blocks of their size, and neighbours are joined when a sweep is over: memory is used
again and never moved.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.jit import Number, Truth, array, borrowing, element, inlined

CELL = 64
"""Bytes of a cell."""

NODE = np.dtype(
    [
        ("key", "u8"),  # full key: position and the counters that planes or rules read
        ("q", "f4"),  # value of the node, for its side to move; exact where proven
        ("value", "f4"),  # what the evaluator said of the position alone
        ("draw", "f4"),  # probability of a draw, mean of what its visits brought
        ("visits", "i4"),  # 1 + sum of the edges' visits; 0 until evaluated
        ("slots", "i4"),  # index of its first slot
        ("next", "i4"),  # next node of the hash chain; 0 ends
        ("parent", "i4"),  # the only node with an edge to it; 0 where that is not known
        ("flight", "i2"),  # descents through its edges that are not backed up yet
        ("count", "u2"),  # legal moves
        ("opened", "u2"),  # edges that have a slot
        ("distance", "i2"),  # plies to the end of the game where proven won or lost
        ("state", "i1"),  # FRESH, WAITING, OPEN, END
        ("proof", "i1"),  # UNPROVEN, WON, DRAWN, LOST for the side to move
        ("mark", "u1"),  # last marking that reached it
        ("flags", "u1"),  # CLOSES, LOOKED, MATES, CHECKED, SORTED
        ("slot0", "i4", (4,)),  # reached as a SLOT
    ]
)
assert NODE.itemsize == CELL
FRESH, WAITING, OPEN, END = range(1, 5)
"""FRESH: not evaluated and not at the evaluator; END: the game is over there."""
UNPROVEN, WON, DRAWN, LOST = range(4)
CLOSES = 1
"""Flag: an edge of the node has closed a repetition."""
LOOKED = 2
"""Flag: its checks have been tried for mate."""
MATES = 4
"""Flag: the first untried edge mates."""
CHECKED = 8
"""Flag: the side to move is in check."""
SORTED = 16
"""Flag: the order of its untried edges is given, and they are not compared any more."""

SLOT = np.dtype(
    {
        "names": ["child", "visits", "q", "repeat", "flight", "proof", "flags"],
        "formats": ["i4", "i4", "f4", "i4", "i2", "i1", "u1"],
        "offsets": [0, 4, 8, 8, 12, 14, 15],
        "itemsize": 16,
    }
)
"""child    node, 0 none
visits   of this edge, repetitions included
q        copy of the child's, for the child's side to move; with ASKS it is not kept
repeat   in the place of q where the edge REPEATS: entry of `repeats`
flight   descents through it that are not backed up yet
proof    copy of the child's; with ASKS it is not kept
flags    SHARED, REPEATS, WINS
"""
SlotRow: TypeAlias = Annotated[Any, element(SLOT)]
SHARED = 1
"""Slot flag: other edges lead to the child as well."""
REPEATS = 2
"""Slot flag: visits of the edge have closed a repetition."""
WINS = 4
"""Slot flag: the game is over at the child, and won for the side that moves along the edge."""
ASKS = SHARED | REPEATS
"""Slot flags with either of which the child itself has to be asked."""
MOST_VISITS = (1 << 31) - 1
"""Greatest count of visits of a node, a slot or a repeat; what comes after it is not counted."""
MOST_CELLS = (1 << 29) - 2
"""A slot's number is that of its cell times four, and must fit into 31 bits."""
REPEAT = np.dtype(
    [
        ("visits", "i4"),  # visits of the edge that closed a repetition
        ("next", "i4"),  # next free entry
        ("sum", "f8"),  # of their values, for the side that moves along the edge
        ("draws", "f8"),  # how many of them were draws
        ("verdict", "i8"),  # of the judge of chases, for the side to move then; UNKNOWN
    ]
)
UNKNOWN = 2

INLINE_SLOTS = 2
"""Slots that a node has itself."""
CLASSES = 768
"""Blocks have fewer cells than this."""
USED = 1 << 15

STATE = np.dtype(
    [
        ("root", "i4"),
        ("cells", "i8"),  # in use, those of free lists not counted
        ("cell_limit", "i8"),
        ("cell_top", "i8"),  # cells ever handed out; cell 0 is none
        ("node_count", "i8"),  # nodes in use
        ("free", "i4", (CLASSES,)),  # first free block of each size
        ("repeat_top", "i4"),
        ("repeat_free", "i4"),
        ("mark", "u1"),  # of nodes that are alive
        ("phase", "i1"),  # IDLE, MARKING, SWEEPING, JOINING
        ("stack", "i4"),  # nodes waiting on the mark stack
        ("swept", "i8"),  # next chain to look at when sweeping, next cell when joining
        # counters of this search
        ("visits", "i8"),
        ("evaluations", "i8"),
        ("terminals", "i8"),
        ("collisions", "i8"),
        ("merges", "i8"),
        ("catches", "i8"),  # visits that ended where another parent's had been
        ("cuts", "i8"),  # visits ended by max_depth
        ("depths", "i8"),  # sum of the lengths of all paths
        ("full", "i1"),  # 1: something could not be handed out
    ],
    align=True,
)
COUNTERS = (
    "visits",
    "evaluations",
    "terminals",
    "collisions",
    "merges",
    "catches",
    "cuts",
    "depths",
    "full",
)
IDLE, MARKING, SWEEPING, JOINING = range(4)


class Arrays(NamedTuple):
    """All of one graph. Its capacity is virtual: pages are taken when first written."""

    nodes: Annotated[NDArray[np.void], array(NODE)]
    """NODE, by cell; 0 is unused, so that 0 can mean none."""
    slots: Annotated[NDArray[np.void], array(SLOT)]
    """SLOT, four a cell."""
    moves: NDArray[np.int32]
    """Sixteen a cell; see `first_move`."""
    priors: NDArray[np.uint16]
    """Codes of `priors.py`, 32 a cell; see `first_prior`."""
    blocks: NDArray[np.uint16]
    """At the first cell of each block its size, with USED where it is in use; by cell."""
    edge_values: NDArray[np.float32]
    """Mean value of each slot for the side that moves, where back-up keeps one; else one element."""
    heads: NDArray[np.int32]
    """First node of each hash chain; a power of two."""
    repeats: Annotated[NDArray[np.void], array(REPEAT)]
    """REPEAT; 0 is unused."""
    stack: NDArray[np.int32]
    """Nodes reached by the marking whose children were not looked at yet."""
    state: Annotated[NDArray[np.void], array(STATE)]
    """STATE, shape (1,)."""


FEWEST_CHAINS = 1 << 10
TABLE_SHARE = 24
"""One part in so many of the memory is for the hash table."""
SMALLEST = 16
"""Nodes for which there is always room, however little memory was asked for."""


def cells_of(memory: int) -> int:
    """How many cells so many bytes are: of more than 34 GB no more than have a number."""
    return min((memory - memory // TABLE_SHARE) // (CELL + 2), MOST_CELLS)


def new_arrays(memory: int, keeps_values: bool) -> Arrays:
    """An empty graph of at most `memory` bytes; `keeps_values` for back-ups with edge values."""
    cells = cells_of(memory)
    room = max(cells, SMALLEST * 256) + 1
    arena = np.empty(room * CELL + CELL, np.uint8)
    skip = -arena.ctypes.data % CELL  # cells are cache lines
    arena = arena[skip : skip + room * CELL]
    arrays = Arrays(
        nodes=arena.view(NODE),
        slots=arena.view(SLOT),
        moves=arena.view(np.int32),
        priors=arena.view(np.uint16),
        blocks=np.empty(room, np.uint16),
        edge_values=np.empty(4 * room if keeps_values else 1, np.float32),
        heads=np.zeros(FEWEST_CHAINS, np.int32),
        repeats=np.empty(max(64, min(room, 1 << 20)), REPEAT),
        stack=np.empty(room, np.int32),
        state=np.zeros(1, STATE),
    )
    arrays.state[0]["cell_limit"] = cells
    clear(arrays)
    return arrays


def clear(arrays: Arrays) -> None:
    """Forget every node; memory stays reserved."""
    limit = int(arrays.state[0]["cell_limit"])
    arrays.state[:] = np.zeros(1, STATE)
    state = arrays.state[0]
    state["cell_limit"] = limit
    state["cell_top"] = state["repeat_top"] = state["mark"] = 1
    arrays.heads[:] = 0
    arrays.nodes[0] = np.zeros(1, NODE)[0]


def reset_counters(arrays: Arrays) -> None:
    """Begin the counts of a new search."""
    for name in COUNTERS:
        arrays.state[0][name] = 0


def bytes_used(arrays: Arrays) -> int:
    """Memory of all nodes, edges and the hash table."""
    state = arrays.state[0]
    repeats = int(state["repeat_top"]) * REPEAT.itemsize
    return int(state["cells"]) * (CELL + 2) + arrays.heads.nbytes + repeats


@borrowing
def first_prior(node: Number) -> Number:
    """Index of a node's first prior."""
    return node * 32 + 40


@borrowing
def first_move(node: Number, count: Number) -> Number:
    """Index of the first of a node's `count` moves."""
    return node * 16 + 20 + ((count + 1) >> 1)


@inlined
def node_cells(count: Number) -> Number:
    """Cells of a node with so many moves."""
    return (80 + 2 * ((count + 1) & ~1) + 4 * count + CELL - 1) // CELL


@borrowing
def block_cells(opened: Number) -> Number:
    """Cells of the block that the slots of so many edges live in, 0 for none."""
    room = np.int64(INLINE_SLOTS)
    while room < opened:
        room *= 2
    return room >> 2 if room > INLINE_SLOTS else np.int64(0)


@borrowing
def take_cells(g: Arrays, size: Number) -> Number:
    """A block of so many cells, 0 where memory is full."""
    state = g.state[0]
    if state["cells"] + size > state["cell_limit"] and state["node_count"] >= SMALLEST:
        state["full"] = 1
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
            state["full"] = 1
            return np.int64(0)
        block = np.int64(state["free"][larger])
        state["free"][larger] = g.nodes[block]["next"]
        list_block(g, block + size, larger - size)
    g.blocks[block] = size | USED
    state["cells"] += size
    return block


@borrowing
def list_block(g: Arrays, block: Number, size: Number) -> None:
    """Enter a free block in the list of its size."""
    g.blocks[block] = size
    g.nodes[block]["next"] = g.state[0]["free"][size]
    g.state[0]["free"][size] = block


@borrowing
def give_cells(g: Arrays, block: Number, size: Number) -> None:
    """Give back a block."""
    state = g.state[0]
    state["cells"] -= size
    if state["phase"] == JOINING and block >= state["swept"]:
        g.blocks[block] = size  # the joining has yet to come there
    else:
        list_block(g, block, size)


@borrowing
def allocate_node(g: Arrays, count: Number) -> Number:
    """A FRESH node with room for `count` moves, 0 where memory is full."""
    node = take_cells(g, node_cells(count))
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
    record["flight"] = 0
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
    """Give the first untried edge a slot; False where memory is full."""
    record = g.nodes[node]
    opened = np.int64(record["opened"])
    old = np.int64(record["slots"])
    if opened >= INLINE_SLOTS and opened & (opened - 1) == 0:  # its room is full: twice as much
        block = take_cells(g, opened >> 1)
        if block == 0:
            return False
        for k in range(opened):
            g.slots[block * 4 + k] = g.slots[old + k]
            if g.edge_values.shape[0] > 1:
                g.edge_values[block * 4 + k] = g.edge_values[old + k]
        if opened > INLINE_SLOTS:
            give_cells(g, old >> 2, opened >> 2)
        old = block * 4
        record["slots"] = old
    slot = g.slots[old + opened]
    slot["child"] = 0
    slot["visits"] = 0
    slot["q"] = 0
    slot["flight"] = 0
    slot["proof"] = UNPROVEN
    slot["flags"] = 0
    if g.edge_values.shape[0] > 1:
        g.edge_values[old + opened] = 0
    record["opened"] = opened + 1
    bring_best(g, node)
    return True


@borrowing
def bring_best(g: Arrays, node: Number) -> None:
    """Put the untried edge with the greatest prior in front of the others, which keep their order."""
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
    """Give back a node and all that belongs to it; it must be out of the hash table."""
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
        give_cells(g, slots >> 2, own_block)
    state["node_count"] -= 1
    give_cells(g, node, node_cells(np.int64(record["count"])))


@borrowing
def repeat_of(g: Arrays, slot: SlotRow) -> Number:
    """The slot's entry of `repeats`, made if it has none; 0 where there is no room."""
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
        state["full"] = 1
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
    """Q of the child of a slot that has one, for the child's side to move."""
    if slot["flags"] & ASKS:
        return np.float64(g.nodes[np.int64(slot["child"])]["q"])
    return np.float64(slot["q"])


@borrowing
def child_proof(g: Arrays, slot: SlotRow) -> Number:
    """What is proven of the child of a slot that has one."""
    if slot["flags"] & ASKS:
        return np.int64(g.nodes[np.int64(slot["child"])]["proof"])
    return np.int64(slot["proof"])


@borrowing
def share(g: Arrays, node: Number) -> None:
    """Let nobody keep a copy of a node's Q: from now on it may change unseen by its parent."""
    parent = np.int64(g.nodes[node]["parent"])
    if parent == 0:
        return
    g.nodes[node]["parent"] = 0
    slots = np.int64(g.nodes[parent]["slots"])
    for k in range(np.int64(g.nodes[parent]["opened"])):
        if g.slots[slots + k]["child"] == node:
            g.slots[slots + k]["flags"] |= SHARED
