"""Transposition table: from a position's full key to its node.

Two positions share a node if they agree in everything that the network or the rules use: the position itself
(pieces, hands, castling, en passant, checks left), and those counters and last moves that the spec's
planes or rules use. With the ply among them, the ply increases along every edge and the graph has no
cycle; [CrazyAra-preprint] section 9.2.5 uses the move counter and the no-progress counter for the same
reason. Without it the graph may have cycles: a descent ends at a repetition on its path (`repetition.cycle_start`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.jit import Number, borrowing
from variant_ai.core.jit.random_numbers import mixed
from variant_ai.core.jit.signatures import Key
from variant_ai.core.rules.position import Position
from variant_ai.core.search.tree.nodes import SWEEPING, Arrays
from variant_ai.core.spec.plane_layout import input_planes, last_moves_shown
from variant_ai.core.spec.schema import VariantSpec

READS_PLY, READS_CLOCK, READS_CHECKS, READS_REPETITIONS, READS_PASSES = 1, 2, 4, 8, 16
MAX_SHOWN_REPETITIONS = 4
"""Most repetitions that planes can show, see `RepetitionPlanes`."""
MOVES_SHIFT = 5
"""The bits from here on hold the number of last moves that are used."""


def counters_read(spec: VariantSpec) -> int:
    """Return the bits of the counters that the spec's planes or rules use, and the number of last
    moves in its planes."""
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
    if rules.pass_ != "never":
        read |= READS_PASSES
    return read | last_moves_shown(spec) << MOVES_SHIFT


@borrowing
def node_key(p: Position, i: Number, read: Number) -> Number:
    """Full key of position i, uint64: its own key combined with the counters in `read`."""
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
        seen = np.uint64(min(np.int64(position["repetitions"]), np.int64(MAX_SHOWN_REPETITIONS)))
        packed |= (seen & np.uint64(3)) << np.uint64(52)
        packed |= (seen >> np.uint64(2)) << np.uint64(62)
    key = position["key"] ^ mixed(packed)
    if read & READS_PASSES and position["passes"] > 0:
        key ^= mixed(
            np.uint64(position["passes"]) << np.uint64(32) | np.uint64(0xFF) << np.uint64(56)
        )
    for k in range(read >> MOVES_SHIFT):
        move = np.uint64(position["last_moves"][k])
        if move != np.uint64(0):
            key ^= mixed(move | np.uint64(k + 1) << np.uint64(56))
    return key


@borrowing
def find(g: Arrays, key: Key) -> Number:
    """Return the node of a key, 0 if there is none. Nodes that a sweep is about to free are ignored."""
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
    """Add a node under its key."""
    mask = np.uint64(g.heads.shape[0] - 1)
    head = np.int64(key & mask)
    g.nodes[node]["next"] = g.heads[head]
    g.heads[head] = node


def grown(g: Arrays) -> Arrays:
    """Return the graph with twice as many hash chains. Not allowed during a sweep."""
    heads = np.zeros(2 * len(g.heads), np.int32)
    move_chains(g, heads)
    return g._replace(heads=heads)


@borrowing
def move_chains(g: Arrays, heads: NDArray[np.int32]) -> None:
    """Move every node to the new chains."""
    mask = np.uint64(heads.shape[0] - 1)
    for chain in range(g.heads.shape[0]):
        node = np.int64(g.heads[chain])
        while node != 0:
            after = np.int64(g.nodes[node]["next"])
            head = np.int64(g.nodes[node]["key"] & mask)
            g.nodes[node]["next"] = heads[head]
            heads[head] = node
            node = after
