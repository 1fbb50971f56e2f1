"""Checks given by the moves of a position, found for all moves at once.

One scan outwards from the enemy king finds the squares from which each piece type would attack it
(`hits`), and marks the squares whose change could give check in another way: own pieces in front of
others (discovered checks), legs, hurdles. A plain move that touches no marked square gives check
exactly if its piece hits from its target; all others are tested by making them. Where captures
explode, every move is.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.jit import Number, Truth, array, element, field, inlined, njit
from variant_ai.core.rules.kernel.attacks import (
    COLOUR_BIT,
    ENTERING_MATTERS,
    LEAVING_MATTERS,
    TYPE_MASK,
    captures,
    exposed,
)
from variant_ai.core.rules.kernel.move_programs import (
    END,
    HOPS,
    LAME,
    LEAPS,
    RAY,
    SQUARE_MASK,
    TYPE_SHIFT,
)
from variant_ai.core.rules.kernel.play_move import advance
from variant_ai.core.rules.kernel.table_layout import EXPLODES, MAX_MOVES, Tables, TablesRow
from variant_ai.core.rules.position import (
    DOUBLE_STEP,
    DROP,
    MAX_SQUARES,
    NORMAL,
    Position,
    PositionRow,
)

PLAIN = 1 << NORMAL | 1 << DROP | 1 << DOUBLE_STEP
"""Kinds of moves that only put the moved piece on the target."""

CHECKS = np.dtype([("hits", "i4", (MAX_SQUARES,)), ("marks", "i1", (MAX_SQUARES,))], align=True)
"""Scratch memory of one thread: masks of types that attack the king from a square, and marks."""
CheckWork: TypeAlias = Annotated[NDArray[np.void], array(CHECKS)]
CheckWorkRow: TypeAlias = Annotated[Any, element(CHECKS)]
Marks: TypeAlias = Annotated[Any, field(np.uint8, MAX_MOVES)]
"""Field of a record with a number for each move."""


def new_checks() -> CheckWork:
    """Scratch memory for `checks_into`, CHECKS of shape (1,)."""
    return np.zeros(1, CHECKS)


@njit
def checks_into(
    t: Tables,
    p: Position,
    i: Number,
    moves: NDArray[np.int32],
    first: Number,
    n: Number,
    work: CheckWork,
    trial: Position,
    gives: Marks,
) -> Number:
    """Set `gives[k]` to 1 if legal move `moves[first + k]` of position i gives check or explodes the
    enemy king, else to 0; return the number of such moves.

    t: TABLES (1,), p: POSITION (any), moves: int32, work: CHECKS (1,), trial: POSITION (1,),
    gives: uint8, at least n.
    """
    table, position = t[0], p[i]
    us = np.int64(position["side"])
    king = np.int64(position["kings"][1 - us])
    for k in range(n):
        gives[k] = 0
    if king < 0:
        return 0
    scan_targets(table, position, us, king, work[0])
    hits, marks = work[0]["hits"], work[0]["marks"]
    exploding = table["features"] & EXPLODES
    found = 0
    for k in range(n):
        move = np.int64(moves[first + k])
        target = move & 127
        origin = (move >> 7) & 127
        kind = (move >> 14) & 7
        touched = marks[target] & ENTERING_MATTERS
        if kind == DROP:
            code = 1 + np.int64(table["hand_type"][(move >> 17) & 31])
        else:
            code = np.int64(position["board"][origin])
            touched |= marks[origin] & LEAVING_MATTERS
        if touched != 0 or (PLAIN >> kind) & 1 == 0 or exploding:
            trial[0] = position
            advance(table, trial[0], move)
            at = np.int64(trial[0]["kings"][1 - us])
            check = at < 0 or exposed(table, trial[0], 1 - us, at)
        else:
            check = (hits[target] >> ((code - 1) & TYPE_MASK)) & 1 != 0
        if check:
            gives[k] = 1
            found += 1
    return found


@inlined
def own(piece: Number, us: Number) -> Truth:
    return piece != 0 and ((piece - 1) >> COLOUR_BIT) == us


@njit
def scan_targets(
    t: TablesRow, p: PositionRow, us: Number, king: Number, work: CheckWorkRow
) -> None:
    """Fill hits and marks of the work record for the enemy king's square. Records."""
    board = p["board"]
    hits, marks = work["hits"], work["marks"]
    program = t["reverse"]
    for square in range(MAX_SQUARES):
        hits[square] = 0
        marks[square] = 0
    at = t["reverse_start"][us * MAX_SQUARES + king]
    while True:
        opcode = program[at]
        if opcode == END:
            return
        n = program[at + 1]
        at += 2
        if opcode == RAY:
            blocker = -1
            for i in range(n):
                entry = program[at + i]
                square = entry & SQUARE_MASK
                piece = board[square]
                if blocker < 0:
                    hits[square] |= entry >> TYPE_SHIFT
                    if piece != 0:
                        if not own(piece, us):
                            break
                        blocker = square
                else:
                    # farther out the blocker itself may attack (zones)
                    if captures(piece, us, entry) or captures(board[blocker], us, entry):
                        marks[blocker] |= LEAVING_MATTERS
                    if piece != 0:
                        break
            at += n
        elif opcode == LEAPS:
            for i in range(n):
                entry = program[at + i]
                hits[entry & SQUARE_MASK] |= entry >> TYPE_SHIFT
            at += n
        elif opcode == LAME:  # n holds the legs
            entry = program[at]
            near, far = n & SQUARE_MASK, n >> 7
            if board[near] == 0 and board[far] == 0:
                hits[entry & SQUARE_MASK] |= entry >> TYPE_SHIFT
            else:
                marks[near] |= LEAVING_MATTERS
                marks[far] |= LEAVING_MATTERS
            at += 1
        elif opcode == HOPS:
            met = 0
            avoiders = np.int64(0)
            for i in range(n):
                entry = program[at + 2 * i]
                square = entry & SQUARE_MASK
                piece = np.int64(board[square])
                if met == 0:
                    hits[square] |= entry >> TYPE_SHIFT
                elif met == 1:
                    hits[square] |= program[at + 2 * i + 1] & ~avoiders
                if piece != 0:
                    if met == 0:
                        avoiders = np.int64(t["avoided_by"][(piece - 1) & TYPE_MASK])
                    if avoiders != 0:  # another piece there would be a hurdle
                        marks[square] |= ENTERING_MATTERS
                    if met == 0 and captures(piece, us, program[at + 2 * i + 1] << TYPE_SHIFT):
                        for j in range(i):  # a piece moved there becomes a hurdle
                            marks[program[at + 2 * j] & SQUARE_MASK] |= ENTERING_MATTERS
                    marks[square] |= LEAVING_MATTERS
                    met += 1
                    if met == 2:
                        break
            at += 2 * n
        else:  # BEHIND: rare enough to test every change of the ray
            for i in range(n):
                marks[program[at + i] & SQUARE_MASK] |= LEAVING_MATTERS | ENTERING_MATTERS
            at += n
