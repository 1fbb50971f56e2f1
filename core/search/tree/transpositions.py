"""The transposition table: from a position's full key to its node.

Two positions share a node where nothing that the network or the rules read differs: the position
itself (pieces, hands, castling, en passant, checks left) and those counters and last moves that the
spec's planes or rules look at. With the ply among them, ply rises along every edge and the graph has no cycle
(000 9.2.5 asks for the move counter and the no-progress counter for the same reason).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.jit import Number, borrowing
from variant_ai.core.jit.arrays import Key
from variant_ai.core.rules.position import Position
from variant_ai.core.search.tree.nodes import SWEEPING, Arrays
from variant_ai.core.spec.plane_layout import input_planes, last_moves_shown
from variant_ai.core.spec.schema import VariantSpec

Heads = NDArray[np.int32]
READS_PLY, READS_CLOCK, READS_CHECKS, READS_REPETITIONS = 1, 2, 4, 8
MOVES_SHIFT = 4
"""Above these bits stands how many of the last moves are read."""


def counters_read(spec: VariantSpec) -> int:
    """Bits of the counters that planes or rules of the spec look at, and how many of the last moves
    the planes show."""
    words = {plane.item for plane in input_planes(spec)}
    rules = spec.rules
    read = 0
    if "move_number" in words:
        read |= READS_PLY
    if "halfmove" in words or rules.no_progress.plies != "none" or rules.counting != "none":
        read |= READS_CLOCK
    if rules.no_progress.plies != "none" and rules.no_progress.checks_counted != "all":
        read |= READS_CHECKS
    if "repetitions" in words:
        read |= READS_REPETITIONS
    return read | last_moves_shown(spec) << MOVES_SHIFT


@borrowing
def node_key(p: Position, i: Number, read: Number) -> Number:
    """Full key of position i, uint64: its own key and the counters in `read`."""
    position = p[i]
    packed = np.uint64(0)
    if read & READS_PLY:
        packed |= np.uint64(position["ply"]) & np.uint64(0xFFFF)
    if read & READS_CLOCK:
        packed |= (np.uint64(position["clock"]) & np.uint64(0xFFFF)) << np.uint64(16)
        packed ^= (np.uint64(position["count_limit"]) & np.uint64(0xFF)) << np.uint64(54)
    if read & READS_CHECKS:
        packed |= (np.uint64(position["checks"][0]) & np.uint64(0x3FF)) << np.uint64(32)
        packed |= (np.uint64(position["checks"][1]) & np.uint64(0x3FF)) << np.uint64(42)
    if read & READS_REPETITIONS:
        seen = min(np.int64(position["repetitions"]), np.int64(2))
        packed |= np.uint64(seen) << np.uint64(52)
    key = position["key"] ^ mixed(packed)
    for k in range(read >> MOVES_SHIFT):
        move = np.uint64(position["last_moves"][k])
        if move != np.uint64(0):
            key ^= mixed(move | np.uint64(k + 1) << np.uint64(56))
    return key


@borrowing
def mixed(packed: Key) -> Number:
    """splitmix64's finaliser; 0 stays 0."""
    x = (packed ^ (packed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@borrowing
def find(g: Arrays, key: Key) -> Number:
    """The node of a key, 0 if there is none. Nodes that a sweep is about to free are none."""
    state = g.state[0]
    mask = np.uint64(g.heads.shape[0] - 1)
    node = np.int64(g.heads[np.int64(key & mask)])
    while node != 0:
        record = g.nodes[node]
        if record["key"] == key and not (
            state["phase"] == SWEEPING and record["mark"] != state["mark"]
        ):
            return node
        node = np.int64(record["next"])
    return np.int64(0)


@borrowing
def insert(g: Arrays, node: Number, key: Key) -> None:
    """Enter a node under its key."""
    mask = np.uint64(g.heads.shape[0] - 1)
    head = np.int64(key & mask)
    g.nodes[node]["next"] = g.heads[head]
    g.heads[head] = node


def grown(g: Arrays) -> Arrays:
    """The graph with twice as many hash chains. Not while a sweep goes through them."""
    heads = np.zeros(2 * len(g.heads), np.int32)
    move_chains(g, heads)
    return g._replace(heads=heads)


@borrowing
def move_chains(g: Arrays, heads: NDArray[np.int32]) -> None:
    """Hang every node into the new chains."""
    mask = np.uint64(heads.shape[0] - 1)
    for chain in range(g.heads.shape[0]):
        node = np.int64(g.heads[chain])
        while node != 0:
            after = np.int64(g.nodes[node]["next"])
            head = np.int64(g.nodes[node]["key"] & mask)
            g.nodes[node]["next"] = heads[head]
            heads[head] = node
            node = after
