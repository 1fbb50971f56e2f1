"""Legality of generated moves: those that leave the king in danger, and rules that take moves away or add a
pass.

Functions take records. Those of the second part also take a list whose first n moves count, and return
the new number of moves, except `reaches_goal`, which changes nothing. Moves are made on the position's own
board and taken back, so two threads must not use one record at the same time.
"""

from __future__ import annotations

import numpy as np

from variant_ai.core.jit import Number, Truth, inlined, njit
from variant_ai.core.rules.kernel.attacks import (
    TYPE_MASK,
    MoveWorkRow,
    attacked,
    exposed,
    is_blown_up,
    kings_face,
    touch,
)
from variant_ai.core.rules.kernel.table_layout import (
    FACING_PARTS,
    KIND,
    OFF_BOARD,
    ORIGIN,
    MoveListRow,
    TablesRow,
)
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
def safe_after(
    t: TablesRow,
    p: PositionRow,
    origin: Number,
    target: Number,
    piece: Number,
    gone: Number,
    king: Number,
    them: Number,
) -> Truth:
    """Return True if the king on `king` is safe after a move. gone: a square that is emptied too,
    or -1. origin: -1 for a drop.
    """
    board = p["board"]
    captured = board[target]
    removed = board[0]
    if origin >= 0:
        board[origin] = 0
    board[target] = piece
    if gone >= 0:
        removed = board[gone]
        board[gone] = 0
    safe = not attacked(t, p, them, king)
    if gone >= 0:
        board[gone] = removed
    board[target] = captured
    if origin >= 0:
        board[origin] = piece
    return safe


@njit
def safe_explosion(
    t: TablesRow,
    p: PositionRow,
    origin: Number,
    target: Number,
    piece: Number,
    gone: Number,
    king: Number,
    us: Number,
    work: MoveWorkRow,
) -> Truth:
    """Return True if the king is safe after a move where captures explode. Arguments as in `safe_after`;
    king: its square after the move.

    A player may not explode his own king. A move that explodes the other one wins at once, so it may
    leave his own in check.
    """
    board = p["board"]
    captured = board[target]
    if captured == 0 and gone < 0:
        board[origin] = 0
        board[target] = piece
        safe = not exposed(t, p, us, king)
        board[target] = 0
        board[origin] = piece
        return safe
    if touch(t, target, king):
        return False
    other = np.int64(p["kings"][1 - us])
    if other >= 0 and touch(t, target, other):
        return True
    kept = work["kept"]
    for square in range(t["squares"]):
        found = np.int64(board[square])
        kept[square] = found
        if is_blown_up(t, found, np.int64(square), target):
            board[square] = 0
    board[origin] = 0
    if gone >= 0:
        board[gone] = 0
    safe = not exposed(t, p, us, king)
    for square in range(t["squares"]):
        board[square] = kept[square]
    return safe


@inlined
def safe_castled(t: TablesRow, p: PositionRow, walk: Number, us: Number) -> Truth:
    """Return True if the king is safe after castling: a rook that was not at the edge may have
    protected it."""
    board = p["board"]
    squares = t["castle_squares"]
    king_from, king_to = np.int64(squares[walk, 0]), np.int64(squares[walk, 1])
    rook_from, rook_to = np.int64(squares[walk, 2]), np.int64(squares[walk, 3])
    king, rook = board[king_from], board[rook_from]
    board[king_from] = 0
    board[rook_from] = 0
    board[king_to] = king
    board[rook_to] = rook
    safe = not exposed(t, p, us, king_to)
    board[king_to] = 0
    board[rook_to] = 0
    board[king_from] = king
    board[rook_from] = rook
    return safe


# --- rules that take moves away -------------------------------------------------------------------


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
