"""Is the king safe after a move? The move is made on the position's own board and taken back, so two
threads must not use one record at the same time. Functions take records.
"""

from __future__ import annotations

import numpy as np

from variant_ai.core.jit import Number, Truth, inlined, njit
from variant_ai.core.rules.kernel.attacks import MoveWorkRow, attacked, exposed, is_blown_up, touch
from variant_ai.core.rules.kernel.table_layout import TablesRow
from variant_ai.core.rules.position import PositionRow


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
