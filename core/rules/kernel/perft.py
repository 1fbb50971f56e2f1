"""perft: the number of move sequences of a given length, a test and benchmark of move rules."""

from __future__ import annotations

import numpy as np

from variant_ai.core.jit import Number, njit
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.kernel.attacks import MoveWork
from variant_ai.core.rules.kernel.kernel_rules import is_compiled
from variant_ai.core.rules.kernel.movegen import legal_moves_into, new_work
from variant_ai.core.rules.kernel.play_move import replay_into
from variant_ai.core.rules.kernel.table_layout import MoveLists, Tables, new_moves
from variant_ai.core.rules.position import Position, new_position

COMPILED_DEPTH = 3
"""Longer sequences are started in Python, since compiled code does not react to Ctrl-C."""


@njit
def count_leaves(
    t: Tables,
    line: Position,
    lists: MoveLists,
    out: MoveLists,
    work: MoveWork,
    ply: Number,
    depth: Number,
) -> Number:
    """Count the move sequences of length `depth` >= 1 from position `ply` of the line.

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


def count_in_kernel(tables: Tables, position: Position, depth: int) -> int:
    """Count the move sequences of a length from a position in compiled code; 1 for depth 0."""
    if depth == 0:
        return 1
    line = new_position(depth + 1)
    line[0] = position[0]
    lists = new_moves(depth + 1)
    return int(count_leaves(tables, line, lists, new_moves(2), new_work(), 0, depth))


def perft(rules: Rules, position: Position, depth: int) -> int:
    """Count the move sequences of a length from a position with any engine; 1 for depth 0."""
    if is_compiled(rules) and depth <= COMPILED_DEPTH:
        return count_in_kernel(rules.tables, position, depth)
    if depth == 0:
        return 1
    moves = rules.legal_moves(position)
    if depth == 1:
        return len(moves)
    return sum(perft(rules, rules.play(position, int(move)), depth - 1) for move in moves)


def divide(rules: Rules, position: Position, depth: int) -> dict[str, int]:
    """Split perft of depth >= 1 by first move (UCI), sorted by move."""
    parts = {
        rules.uci(int(move)): perft(rules, rules.play(position, int(move)), depth - 1)
        for move in rules.legal_moves(position)
    }
    return dict(sorted(parts.items()))
