"""Rules that take some of the generated moves away, or add a pass.

Functions take records and a list whose first n moves count. They return the new number of moves, except
`reaches_goal`, which changes nothing.
"""

from __future__ import annotations

import numpy as np

from variant_ai.core.jit import Number, Truth, inlined, njit
from variant_ai.core.rules.kernel.attacks import TYPE_MASK, attacked, kings_face
from variant_ai.core.rules.kernel.king_safety import safe_after
from variant_ai.core.rules.kernel.move_lists import KIND, OFF_BOARD, ORIGIN, MoveListRow
from variant_ai.core.rules.kernel.table_layout import FACING_PARTS, TablesRow
from variant_ai.core.rules.position import (
    CASTLING,
    DOUBLE_STEP,
    DROP,
    EN_PASSANT,
    MAX_SQUARES,
    NORMAL,
    PASS,
    PositionRow,
)


@inlined
def without_checks(t: TablesRow, p: PositionRow, out: MoveListRow, n: Number) -> Number:
    """Keep only the moves that do not give check. For moves that take a piece from one square to another
    and nothing else; `missing_words` names the rest."""
    moves = out["move"]
    us = np.int64(p["side"])
    king = np.int64(p["kings"][1 - us])
    if king < 0:
        return n
    kept = 0
    for i in range(n):
        origin = np.int64((moves[i] >> ORIGIN) & 127)
        piece = np.int64(p["board"][origin])
        if safe_after(t, p, origin, np.int64(moves[i] & 127), piece, OFF_BOARD, king, us):
            moves[kept] = moves[i]
            kept += 1
    return kept


@njit
def no_evasions(t: TablesRow, p: PositionRow, us: Number, out: MoveListRow, n: Number) -> Number:
    """Of the moves of a king in check keep only the capture of the one piece that gives it. Variants
    with hoppers or lame leapers cannot have this rule (`missing_words`)."""
    moves, board = out["move"], p["board"]
    king = np.int64(p["kings"][us])
    kept = 0
    for i in range(n):
        target = np.int64(moves[i] & 127)
        evades = (moves[i] >> KIND) & 7 != DROP and (moves[i] >> ORIGIN) & 127 == king
        captured = board[target]
        board[target] = 0
        if not evades or (captured != 0 and not attacked(t, p, 1 - us, king)):
            moves[kept] = moves[i]
            kept += 1
        board[target] = captured
    return kept


@inlined
def only_captures(p: PositionRow, out: MoveListRow, n: Number) -> Number:
    """Keep only the captures, if there are any."""
    board = p["board"]
    moves = out["move"]
    kept = 0
    for i in range(n):
        move = moves[i]
        kind = (move >> KIND) & 7
        if (board[move & 127] != 0 and kind != CASTLING) or kind == EN_PASSANT:
            moves[kept] = move
            kept += 1
    return kept if kept > 0 else n


@njit
def without_repeats(out: MoveListRow, n: Number) -> Number:
    """Remove duplicate moves; of a step and a double step to one square keep the latter."""
    moves = out["move"]
    kept = 0
    for i in range(n):
        move = moves[i]
        steps = (move >> KIND) & 7 == NORMAL or (move >> KIND) & 7 == DOUBLE_STEP
        found = False
        for k in range(kept):
            if moves[k] == move or (steps and moves[k] ^ move == DOUBLE_STEP << KIND):
                moves[k] |= move  # NORMAL is 0
                found = True
                break
        if not found:
            moves[kept] = move
            kept += 1
    return kept


@inlined
def reaches_goal(t: TablesRow, p: PositionRow, out: MoveListRow, n: Number) -> Truth:
    """Return True if one of the moves brings a piece to its goal."""
    us = np.int64(p["side"])
    for i in range(n):
        move = out["move"][i]
        kind = (np.int64(p["board"][(move >> ORIGIN) & 127]) - 1) & TYPE_MASK
        if t["reach"][us * MAX_SQUARES + (move & 127)] and (t["reach_types"] >> kind) & 1:
            return True
    return False


@njit
def without_facing(t: TablesRow, p: PositionRow, us: Number, out: MoveListRow, n: Number) -> Number:
    """Of the moves between facing kings keep those that part them. For moves that take a piece from one
    square to another and nothing else; `missing_words` names the rest."""
    moves, board, kings = out["move"], p["board"], p["kings"]
    home = kings[us]
    kept = 0
    for i in range(n):
        origin, target = np.int64((moves[i] >> ORIGIN) & 127), np.int64(moves[i] & 127)
        piece, captured = board[origin], board[target]
        board[origin] = 0
        board[target] = piece
        if origin == home:
            kings[us] = target
        parted = not kings_face(t, p)
        kings[us] = home
        board[target] = captured
        board[origin] = piece
        if parted:
            moves[kept] = moves[i]
            kept += 1
    return kept


@inlined
def add_pass(
    t: TablesRow, p: PositionRow, us: Number, check: Number, out: MoveListRow, n: Number
) -> Number:
    """Add a pass, whose squares are that of the king, for a player who is not in check or whose king
    faces the other; return the number of moves."""
    king = np.int64(p["kings"][us])
    if king < 0 or (check != 0 and not (t["features"] & FACING_PARTS and kings_face(t, p))):
        return n
    out["move"][n] = king | (king << ORIGIN) | (PASS << KIND)
    return n + 1
