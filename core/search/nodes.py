"""The arrays of a search graph: nodes, their edges, and how they are handed out.

Nothing here knows what a board is. A node is 64 bytes, one cache line. Its legal moves and priors
lie in a pool, best prior first; of its edges only those that were ever tried have a slot. Since
untried edges all have the same Q, the next one tried is always the first untried one, so that the
tried edges are a prefix of the moves:

    nodes[n]       key · q · visits · proof · ...        64 bytes
      │ .moves ──► moves   m0  m1  m2  m3  m4  m5        4 bytes each    `.count` of them
      │            priors  p0≥ p1≥ p2≥ p3≥ p4≥ p5        2 bytes each
      └ .slots ──► slots   s0  s1  ·   ·                16 bytes each    `.opened` in use, room
                           │                                             for a power of two
                           └ child, visits, flight, repeat

A block of moves that is given back goes to a list of blocks of its size, and so do slots and nodes:
memory is reused and never moved.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.rules.cache import Number, Record, Truth, borrowing

NODE = np.dtype(
    [
        ("key", "u8"),  # full key: position and the counters that planes or rules read
        ("q", "f4"),  # value of the node, for its side to move; exact where proven
        ("value", "f4"),  # what the evaluator said of the position alone
        ("draw", "f4"),  # probability of a draw, averaged like q
        ("own_draw", "f4"),  # the evaluator's
        ("visits", "i4"),  # 1 + sum of the edges' visits; 0 until evaluated
        ("flight", "i4"),  # descents through its edges that are not backed up yet
        ("moves", "i4"),  # where its moves and priors begin
        ("slots", "i4"),  # where its slots begin
        ("next", "i4"),  # next node of the hash chain, or of the list of free nodes; 0 ends
        ("count", "u2"),  # legal moves
        ("opened", "u2"),  # edges that have a slot
        ("ply", "i2"),  # ply of the game, low bits
        ("distance", "i2"),  # plies to the end of the game where proven won or lost
        ("state", "i1"),  # FREE, FRESH, WAITING, OPEN, END
        ("proof", "i1"),  # UNPROVEN, WON, DRAWN, LOST for the side to move
        ("room", "i1"),  # slots reserved: 2**room, -1 none
        ("mark", "u1"),  # last marking that reached it
        ("uncertain", "i1"),  # 1: an edge of it has closed a repetition
    ],
    align=True,
)
FREE, FRESH, WAITING, OPEN, END = range(5)
"""FRESH: not evaluated and not at the evaluator; END: the game is over there."""
UNPROVEN, WON, DRAWN, LOST = range(4)

SLOT = np.dtype(
    [
        ("child", "i4"),  # node, 0 none
        ("visits", "i4"),  # of this edge, repetitions included
        ("flight", "i4"),  # descents through it that are not backed up yet
        ("repeat", "i4"),  # entry of `repeats`, 0 none
    ]
)
REPEAT = np.dtype(
    [
        ("visits", "i4"),  # visits of the edge that closed a repetition
        ("next", "i4"),  # next free entry
        ("sum", "f8"),  # of their values, for the side that moves along the edge
        ("draws", "f8"),  # how many of them were draws
    ]
)

MOVE_BLOCK = 8
"""Blocks of moves are multiples of this."""
MOVE_CLASSES = 2048 // MOVE_BLOCK + 1
SLOT_CLASSES = 12

STATE = np.dtype(
    [
        ("root", "i4"),
        ("bytes", "i8"),  # in use, free lists not counted
        ("byte_limit", "i8"),
        ("node_count", "i4"),  # nodes in use
        ("node_top", "i4"),  # nodes ever handed out; 0 is none
        ("node_free", "i4"),
        ("move_top", "i8"),
        ("move_free", "i4", (MOVE_CLASSES,)),
        ("slot_top", "i8"),
        ("slot_free", "i4", (SLOT_CLASSES,)),
        ("repeat_top", "i4"),
        ("repeat_free", "i4"),
        ("mark", "u1"),  # of nodes that are alive
        ("phase", "i1"),  # IDLE, MARKING, SWEEPING
        ("stack", "i4"),  # nodes waiting on the mark stack
        ("swept", "i4"),  # next node to look at when sweeping
        # counters of this search
        ("visits", "i8"),
        ("evaluations", "i8"),
        ("terminals", "i8"),
        ("collisions", "i8"),
        ("merges", "i8"),
        ("cuts", "i8"),  # descents ended by max_depth
        ("depths", "i8"),  # sum of the lengths of all paths
        ("full", "i1"),  # 1: something could not be handed out
    ],
    align=True,
)
IDLE, MARKING, SWEEPING = range(3)

_PER_MOVE = 6


class Arrays(NamedTuple):
    """All of one graph. Capacities are virtual: pages are taken when first written."""

    nodes: NDArray[np.void]
    """NODE; 0 is unused, so that 0 can mean none."""
    slots: NDArray[np.void]
    """SLOT."""
    edge_values: NDArray[np.float32]
    """Mean value of each slot for the side that moves, where back-up keeps one; else one element."""
    moves: NDArray[np.int32]
    priors: NDArray[np.uint16]
    """Codes of `priors.py`, in the order of `moves`."""
    heads: NDArray[np.int32]
    """First node of each hash chain; a power of two."""
    repeats: NDArray[np.void]
    """REPEAT; 0 is unused."""
    stack: NDArray[np.int32]
    """Nodes reached by the marking whose children were not looked at yet."""
    state: NDArray[np.void]
    """STATE, shape (1,)."""


SMALLEST = 16
"""Nodes for which there is always room, however little memory was asked for."""


def new_arrays(memory: int, keeps_values: bool) -> Arrays:
    """An empty graph of at most `memory` bytes; `keeps_values` for back-ups with edge values."""
    nodes = max(SMALLEST + 1, memory // (NODE.itemsize + 12))
    moves = max(SMALLEST * 2048, memory // _PER_MOVE)
    slots = max(SMALLEST * 64, memory // SLOT.itemsize)
    repeats = max(64, min(nodes, 1 << 20))
    heads = 1 << max(4, (memory // 512).bit_length())
    arrays = Arrays(
        nodes=np.empty(nodes, NODE),
        slots=np.empty(slots, SLOT),
        edge_values=np.empty(slots if keeps_values else 1, np.float32),
        moves=np.empty(moves, np.int32),
        priors=np.empty(moves, np.uint16),
        heads=np.zeros(heads, np.int32),
        repeats=np.empty(repeats, REPEAT),
        stack=np.empty(nodes, np.int32),
        state=np.zeros(1, STATE),
    )
    arrays.state[0]["byte_limit"] = memory
    clear(arrays)
    return arrays


def clear(arrays: Arrays) -> None:
    """Forget every node; memory stays reserved."""
    state = arrays.state[0]
    limit = int(state["byte_limit"])
    arrays.state[:] = np.zeros(1, STATE)
    state["byte_limit"] = limit
    state["node_top"] = state["repeat_top"] = state["swept"] = 1
    state["mark"] = 1
    arrays.heads[:] = 0
    state["bytes"] = 4 * len(arrays.heads)


def reset_counters(arrays: Arrays) -> None:
    """Begin the counts of a new search."""
    state = arrays.state[0]
    for name in ("visits", "evaluations", "terminals", "collisions", "merges", "cuts", "depths"):
        state[name] = 0
    state["full"] = 0


@borrowing
def allocate_node(g: Arrays, count: Number) -> Number:
    """A FRESH node with room for `count` moves, 0 where memory is full."""
    state = g.state[0]
    size = (count + MOVE_BLOCK - 1) // MOVE_BLOCK
    cost = 64 + 6 * MOVE_BLOCK * size
    node = np.int64(state["node_free"])
    block = np.int64(state["move_free"][size])
    if (
        (state["bytes"] + cost > state["byte_limit"] and state["node_count"] >= SMALLEST)
        or (node == 0 and state["node_top"] >= g.nodes.shape[0])
        or (block == 0 and state["move_top"] + MOVE_BLOCK * (size + 1) > g.moves.shape[0])
    ):
        state["full"] = 1
        return np.int64(0)
    if node != 0:
        state["node_free"] = g.nodes[node]["next"]
    else:
        node = np.int64(state["node_top"])
        state["node_top"] += 1
    if size == 0:
        block = np.int64(0)
    elif block != 0:
        state["move_free"][size] = g.moves[block]
    else:
        # 0 means none in the lists, so the pool begins at MOVE_BLOCK
        block = np.int64(state["move_top"]) + MOVE_BLOCK
        state["move_top"] += MOVE_BLOCK * size
    state["bytes"] += cost
    state["node_count"] += 1
    record = g.nodes[node]
    record["q"] = 0
    record["value"] = 0
    record["draw"] = 0
    record["own_draw"] = 0
    record["visits"] = 0
    record["flight"] = 0
    record["moves"] = block
    record["slots"] = 0
    record["next"] = 0
    record["count"] = count
    record["opened"] = 0
    record["distance"] = 0
    record["state"] = FRESH
    record["proof"] = UNPROVEN
    record["room"] = -1
    record["mark"] = state["mark"]
    record["uncertain"] = 0
    return node


@borrowing
def open_edge(g: Arrays, node: Number) -> Truth:
    """Give the first untried edge a slot; False where memory is full."""
    record, state = g.nodes[node], g.state[0]
    opened = np.int64(record["opened"])
    room = np.int64(record["room"])
    if room < 0 or opened == 1 << room:
        larger = room + 1
        cost = 16 << larger
        block = np.int64(state["slot_free"][larger])
        if (state["bytes"] + cost > state["byte_limit"] and state["node_count"] >= SMALLEST) or (
            block == 0 and state["slot_top"] + (2 << larger) > g.slots.shape[0]
        ):
            state["full"] = 1
            return False
        if block != 0:
            state["slot_free"][larger] = g.slots[block]["child"]
        else:
            block = np.int64(state["slot_top"]) + 1
            state["slot_top"] += 1 << larger
        state["bytes"] += cost
        old = np.int64(record["slots"])
        if room >= 0:
            for e in range(opened):
                g.slots[block + e] = g.slots[old + e]
                if g.edge_values.shape[0] > 1:
                    g.edge_values[block + e] = g.edge_values[old + e]
            free_slots(g, old, room)
        record["slots"] = block
        record["room"] = larger
    slot = g.slots[np.int64(record["slots"]) + opened]
    slot["child"] = 0
    slot["visits"] = 0
    slot["flight"] = 0
    slot["repeat"] = 0
    if g.edge_values.shape[0] > 1:
        g.edge_values[np.int64(record["slots"]) + opened] = 0
    record["opened"] = opened + 1
    return True


@borrowing
def free_slots(g: Arrays, block: Number, room: Number) -> None:
    """Give back a block of 2**room slots."""
    state = g.state[0]
    g.slots[block]["child"] = state["slot_free"][room]
    state["slot_free"][room] = block
    state["bytes"] -= 16 << room


@borrowing
def free_node(g: Arrays, node: Number) -> None:
    """Give back a node and all that belongs to it; it must be out of the hash table."""
    record, state = g.nodes[node], g.state[0]
    for e in range(np.int64(record["opened"])):
        repeat = np.int64(g.slots[np.int64(record["slots"]) + e]["repeat"])
        if repeat != 0:
            g.repeats[repeat]["next"] = state["repeat_free"]
            state["repeat_free"] = repeat
    if record["room"] >= 0:
        free_slots(g, np.int64(record["slots"]), np.int64(record["room"]))
    size = (np.int64(record["count"]) + MOVE_BLOCK - 1) // MOVE_BLOCK
    if size > 0:
        g.moves[np.int64(record["moves"])] = state["move_free"][size]
        state["move_free"][size] = record["moves"]
    state["bytes"] -= 64 + 6 * MOVE_BLOCK * size
    state["node_count"] -= 1
    record["state"] = FREE
    record["next"] = state["node_free"]
    state["node_free"] = node


@borrowing
def repeat_of(g: Arrays, slot: Record) -> Number:
    """The slot's entry of `repeats`, made if it has none; 0 where there is no room."""
    state = g.state[0]
    entry = np.int64(slot["repeat"])
    if entry != 0:
        return entry
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
    slot["repeat"] = entry
    return entry
