"""perft: the number of move sequences of a given length, the test and the bench of move rules."""

from __future__ import annotations

import numpy as np

from variant_ai.core.rules.cache import Number, Record, njit
from variant_ai.core.rules.movegen import legal_moves_into, new_moves, new_work
from variant_ai.core.rules.play import replay_into
from variant_ai.core.rules.position import Position, new_position
from variant_ai.core.rules.tables import Tables


@njit
def count_leaves(
    t: Record, line: Record, lists: Record, out: Record, work: Record, ply: Number, depth: Number
) -> Number:
    """Move sequences of length `depth` >= 1 from position `ply` of the line.

    Moves of the last ply are counted, not played. line: POSITION, lists: MOVES, both longer
    than ply + depth; out and work: see `legal_moves_into`.
    """
    n = legal_moves_into(t, line, ply, out, work)
    if depth == 1:
        return n
    moves = lists[ply]["move"]
    for k in range(n):
        moves[k] = out[0]["move"][k]
    leaves = 0
    for k in range(n):
        replay_into(t, line, ply, line, ply + 1, np.int64(moves[k]))
        leaves += count_leaves(t, line, lists, out, work, ply + 1, depth - 1)
    return leaves


def perft(tables: Tables, position: Position, depth: int) -> int:
    """Move sequences of the length from a position; 1 for depth 0."""
    if depth == 0:
        return 1
    line = new_position(depth + 1)
    line[0] = position[0]
    lists = new_moves(depth + 1)
    return int(count_leaves(tables, line, lists, new_moves(2), new_work(), 0, depth))
