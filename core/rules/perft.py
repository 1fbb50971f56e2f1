"""perft: the number of move sequences of a given length, the test and the bench of move rules."""

from __future__ import annotations

import numpy as np

from variant_ai.core.rules.cache import Number, Record, njit
from variant_ai.core.rules.movegen import generate, new_moves, new_work
from variant_ai.core.rules.play import advance, count_check
from variant_ai.core.rules.position import Position, new_position
from variant_ai.core.rules.tables import WINS_BY_CHECKS, Tables


@njit
def count_leaves(
    t: Record, line: Record, lists: Record, work: Record, ply: Number, depth: Number
) -> Number:
    """Move sequences of length `depth` >= 1 from position `ply` of the line.

    Moves of the last ply are counted, not played. line: POSITION, lists: MOVES, both longer
    than ply + depth.
    """
    n = generate(t[0], line[ply], lists, ply, work)
    if depth == 1:
        return n
    leaves = 0
    for k in range(n):
        advance(t[0], line, ply, line, ply + 1, np.int64(lists[ply]["move"][k]))
        if t[0]["features"] & WINS_BY_CHECKS:
            count_check(t[0], line[ply + 1])
        leaves += count_leaves(t, line, lists, work, ply + 1, depth - 1)
    return leaves


def perft(tables: Tables, position: Position, depth: int) -> int:
    """Move sequences of the length from a position; 1 for depth 0."""
    if depth == 0:
        return 1
    line = new_position(depth + 1)
    line[0] = position[0]
    leaves = count_leaves(tables, line, new_moves(depth + 2), new_work(), 0, depth)
    return int(np.int64(leaves))
