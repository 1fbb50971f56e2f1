"""Evaluations of one net that searches meet again: of the part of a tree below the move played, and of
positions that several games have in common.

An entry has the moves and priors of an expanded node in their order, and its value. Newer entries take the
place of older ones. Two positions have the same entry if their nodes have the same key
(`tree/transpositions.py`), so that everything that the net or the rules use is the same.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.jit import Number, Truth, array, borrowing
from variant_ai.core.search.tree.nodes import OPEN, Arrays, first_move, first_prior

POSITIONS = 1 << 18
"""Entries: 8 MB."""
MOVES = 1 << 22
"""Moves of all entries together: 25 MB, which are allocated when they are first written."""

ENTRY = np.dtype(
    [
        ("key", "u8"),  # of the node
        ("first", "i8"),  # number of its first move, counted from the first one ever written
        ("count", "i8"),  # moves; 0: no entry
        ("value", "f4"),
        ("draw", "f4"),
    ],
    align=True,
)
"""An evaluation."""


class EvaluationCache(NamedTuple):
    """Arrays of a cache."""

    entries: Annotated[NDArray[np.void], array(ENTRY)]
    """ENTRY, by the last bits of the key; the length is a power of two."""
    moves: NDArray[np.int32]
    """A ring of moves."""
    priors: NDArray[np.uint16]
    """Priors of the moves as encoded by `tree/priors.py`."""
    written: NDArray[np.int64]
    """[1] moves ever written, with those that were left out at the end of the ring."""


def new_cache(positions: int = POSITIONS, moves: int = MOVES) -> EvaluationCache:
    """Create an empty cache. positions: a power of two."""
    return EvaluationCache(
        np.zeros(positions, ENTRY),
        np.zeros(moves, np.int32),
        np.zeros(moves, np.uint16),
        np.zeros(1, np.int64),
    )


def clear_cache(cache: EvaluationCache) -> None:
    """Remove all entries: for another net."""
    if cache.written[0]:  # an unused cache takes no memory
        cache.entries["count"] = 0


@borrowing
def keep_evaluation(c: EvaluationCache, g: Arrays, node: Number) -> None:
    """Keep the evaluation of a node that was expanded just now."""
    record = g.nodes[node]
    n = np.int64(record["count"])
    size = c.moves.shape[0]
    if n > size:
        return
    first = np.int64(c.written[0])
    at = first % size
    if at + n > size:  # the moves of an entry are in one piece
        first += size - at
        at = np.int64(0)
    moves = first_move(node, n)
    priors = first_prior(node)
    for k in range(n):
        c.moves[at + k] = g.moves[moves + k]
        c.priors[at + k] = g.priors[priors + k]
    c.written[0] = first + n
    entry = c.entries[np.int64(record["key"] & np.uint64(c.entries.shape[0] - 1))]
    entry["key"] = record["key"]
    entry["first"] = first
    entry["count"] = n
    entry["value"] = record["value"]
    entry["draw"] = record["draw"]


@borrowing
def recall_evaluation(c: EvaluationCache, g: Arrays, node: Number) -> Truth:
    """Expand a node without the net. Returns False if there is no entry."""
    record = g.nodes[node]
    n = np.int64(record["count"])
    entry = c.entries[np.int64(record["key"] & np.uint64(c.entries.shape[0] - 1))]
    size = c.moves.shape[0]
    first = np.int64(entry["first"])
    if entry["key"] != record["key"] or entry["count"] != n or c.written[0] - first > size:
        return False
    at = first % size
    moves = first_move(node, n)
    priors = first_prior(node)
    for k in range(n):
        g.moves[moves + k] = c.moves[at + k]
        g.priors[priors + k] = c.priors[at + k]
    record["value"] = entry["value"]
    record["q"] = entry["value"]
    record["draw"] = entry["draw"]
    record["visits"] = 1
    record["state"] = OPEN
    return True
