"""Attacks on a square, checks, and the squares on which a check depends.

All functions read the reverse programs (`move_programs.py`): they go outwards from one square and
test for each piece found if its type captures from there.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.jit import Number, Truth, array, element, inlined, njit
from variant_ai.core.rules.kernel.move_programs import (
    CAPTURE,
    END,
    HOP,
    HOP_BEHIND,
    HOPS,
    LAME,
    LEAP,
    LEAPS,
    RAY,
    SQUARE_MASK,
    TYPE_SHIFT,
)
from variant_ai.core.rules.kernel.table_layout import AVOIDS, EXPLODES, TablesRow
from variant_ai.core.rules.position import COLOUR_STRIDE, MAX_SQUARES, PositionRow

COLOUR_BIT = COLOUR_STRIDE.bit_length() - 1
TYPE_MASK = COLOUR_STRIDE - 1

# Marks of `scan_king` on squares whose change may give or end a check.
LEAVING_MATTERS = 1
"""A piece there is pinned, blocks a leg, or is one of two hurdles: moving it may give check."""
ENTERING_MATTERS = 2
"""An empty square on which a piece would become a hurdle."""
ENTERING_SAVES = 4
"""A piece moved there may end a check, by capturing or blocking."""
LEAVING_SAVES = 8
"""A piece moved from there may end a check, since it is the hurdle."""
ANYTHING = LEAVING_MATTERS | ENTERING_MATTERS | ENTERING_SAVES | LEAVING_SAVES

WORK = np.dtype(
    [("marks", "i1", (MAX_SQUARES,)), ("kept", "i1", (MAX_SQUARES,)), ("check", "i4")], align=True
)
"""Scratch memory of move generation: marks of `scan_king`, a board before an explosion, and 1 if the
side to move is in check."""
MoveWork: TypeAlias = Annotated[NDArray[np.void], array(WORK)]
MoveWorkRow: TypeAlias = Annotated[Any, element(WORK)]


@inlined
def captures(piece: Number, colour: Number, entry: Number) -> Truth:
    """Return True if a piece code has the colour and its type is in the mask of the entry."""
    return piece != 0 and (
        ((piece - 1) >> COLOUR_BIT) == colour
        and ((entry >> (TYPE_SHIFT + ((piece - 1) & TYPE_MASK))) & 1) != 0
    )


@inlined
def avoids(t: TablesRow, piece: Number, other: Number) -> Truth:
    """Return True if a piece, a code, neither captures the other nor jumps over it. other: 0 is none."""
    return (
        t["features"] & AVOIDS != 0
        and other != 0
        and (t["avoided_by"][(other - 1) & TYPE_MASK] >> ((piece - 1) & TYPE_MASK)) & 1 != 0
    )


@njit
def attacked(t: TablesRow, p: PositionRow, colour: Number, square: Number) -> Truth:
    """Return True if `colour` captures on the square. Records; a facing king counts as attacker."""
    board = p["board"]
    program = t["reverse"]
    at = t["reverse_start"][colour * MAX_SQUARES + square]
    while True:
        opcode = program[at]
        if opcode == END:
            return False
        n = program[at + 1]
        at += 2
        if opcode == RAY:
            for i in range(n):
                entry = program[at + i]
                piece = board[entry & SQUARE_MASK]
                if piece != 0:
                    if captures(piece, colour, entry):
                        return True
                    break
            at += n
        elif opcode == LEAPS:
            for i in range(n):
                entry = program[at + i]
                if captures(board[entry & SQUARE_MASK], colour, entry):
                    return True
            at += n
        elif opcode == LAME:  # n holds the legs
            entry = program[at]
            if (
                captures(board[entry & SQUARE_MASK], colour, entry)
                and board[n & SQUARE_MASK] == 0
                and board[n >> 7] == 0
            ):
                return True
            at += 1
        elif opcode == HOPS:
            hurdle = np.int64(0)
            for i in range(n):
                entry = program[at + 2 * i]
                piece = np.int64(board[entry & SQUARE_MASK])
                if piece != 0:
                    if hurdle != 0:
                        entry = program[at + 2 * i + 1] << TYPE_SHIFT
                    if captures(piece, colour, entry) and not avoids(t, piece, hurdle):
                        return True
                    if hurdle != 0:
                        break
                    hurdle = piece
            at += 2 * n
        else:  # BEHIND
            hurdle = np.int64(board[program[at] & SQUARE_MASK])
            if hurdle != 0:
                for i in range(1, n):
                    entry = program[at + i]
                    piece = np.int64(board[entry & SQUARE_MASK])
                    if piece != 0:
                        if captures(piece, colour, entry) and not avoids(t, piece, hurdle):
                            return True
                        break
            at += n


@inlined
def touch(t: TablesRow, one: Number, other: Number) -> Truth:
    """Return True if two squares are the same or neighbours, diagonally too."""
    files = t["files"]
    return abs(one % files - other % files) <= 1 and abs(one // files - other // files) <= 1


@inlined
def is_blown_up(t: TablesRow, piece: Number, square: Number, centre: Number) -> Truth:
    """Return True if a capture on `centre` removes the piece on the square (a code, 0 for none)."""
    spared = (t["spared"] >> ((piece - 1) & TYPE_MASK)) & 1
    return piece != 0 and touch(t, square, centre) and (square == centre or not spared)


@inlined
def exposed(t: TablesRow, p: PositionRow, colour: Number, square: Number) -> Truth:
    """Return True if a king of `colour` on the square would be in check. Where captures explode, it
    is safe beside the other king, which would explode with it."""
    if t["features"] & EXPLODES:
        other = np.int64(p["kings"][1 - colour])
        if other >= 0 and touch(t, square, other):
            return False
    return attacked(t, p, 1 - colour, square)


@inlined
def kings_face(t: TablesRow, p: PositionRow) -> Truth:
    """Return True if both kings are on one line, with nothing between."""
    one, other = np.int64(p["kings"][0]), np.int64(p["kings"][1])
    low, high = min(one, other), max(one, other)
    if low < 0:
        return False
    files = np.int64(t["files"])
    step = np.int64(0)
    if low % files == high % files:
        step = files
    elif low // files == high // files:
        step = np.int64(1)
    if step == 0:
        return False
    square = low + step
    while square < high and p["board"][square] == 0:
        square += step
    return square >= high


@njit
def attacked_squares(
    t: TablesRow, p: PositionRow, origin: Number, out: NDArray[np.int64]
) -> Number:
    """Write the squares that the piece on `origin` attacks to `out`, and return how many: those where
    it could capture an enemy, occupied or not, and those of its own side that it defends. A square may
    occur twice."""
    board = p["board"]
    program = t["forward"]
    at = t["forward_start"][np.int64(board[origin]) * MAX_SQUARES + origin]
    piece = np.int64(board[origin])
    us = (piece - 1) >> COLOUR_BIT
    n = 0
    while True:
        flags = np.int64(program[at])
        if flags == END:
            return n
        legs = np.int64(program[at + 1])
        count = np.int64(program[at + 2])
        at += 3
        if flags & CAPTURE and (
            legs < 0 or (board[legs & SQUARE_MASK] == 0 and board[legs >> 7] == 0)
        ):
            hurdles = 1 if flags & HOP else 0
            for i in range(count):
                target = np.int64(program[at + i])
                met = np.int64(board[target])
                if avoids(t, piece, met) and (hurdles > 0 or (met - 1) >> COLOUR_BIT != us):
                    if flags & LEAP:
                        continue
                    break
                if hurdles == 0:
                    out[n] = target
                    n += 1
                    if flags & HOP_BEHIND:
                        break
                if board[target] != 0 and not flags & LEAP:
                    if hurdles == 0:
                        break
                    hurdles = 0
        at += count


@njit
def scan_king(t: TablesRow, p: PositionRow, them: Number, king: Number, work: MoveWorkRow) -> Truth:
    """Return True if `them` attack the king; set `work["marks"]`, which must be zero before.

    Every square whose change may expose the king is marked, and some others. Every square that a
    move must enter or leave to end a check is marked, too.
    """
    board = p["board"]
    marks = work["marks"]
    program = t["reverse"]
    at = t["reverse_start"][them * MAX_SQUARES + king]
    check = False
    while True:
        opcode = program[at]
        if opcode == END:
            return check
        n = program[at + 1]
        at += 2
        if opcode == RAY:
            blocker = -1
            for i in range(n):
                entry = program[at + i]
                square = entry & SQUARE_MASK
                piece = board[square]
                if piece != 0:
                    hits = captures(piece, them, entry)
                    if blocker >= 0:
                        if hits:
                            marks[blocker] |= LEAVING_MATTERS
                        break
                    if hits:
                        check = True
                        for j in range(i + 1):
                            marks[program[at + j] & SQUARE_MASK] |= ENTERING_SAVES
                    if ((piece - 1) >> COLOUR_BIT) == them:
                        break  # only they can move it out of the way
                    blocker = square
            at += n
        elif opcode == LEAPS:
            for i in range(n):
                entry = program[at + i]
                if captures(board[entry & SQUARE_MASK], them, entry):
                    check = True
                    marks[entry & SQUARE_MASK] |= ENTERING_SAVES
            at += n
        elif opcode == LAME:  # n holds the legs
            entry = program[at]
            if captures(board[entry & SQUARE_MASK], them, entry):
                near, far = n & SQUARE_MASK, n >> 7
                if board[near] == 0 and board[far] == 0:
                    check = True
                    for square in (entry & SQUARE_MASK, near, far):
                        marks[square] |= ENTERING_SAVES
                else:
                    marks[near] |= LEAVING_MATTERS
                    marks[far] |= LEAVING_MATTERS
            at += 1
        elif opcode == HOPS:
            check |= scan_hops(t, p, them, at, n, work)
            at += 2 * n
        else:  # BEHIND: rare enough to test every change of the ray
            hurdle = np.int64(board[program[at] & SQUARE_MASK])
            for i in range(n):
                entry = program[at + i]
                marks[entry & SQUARE_MASK] |= ANYTHING
                piece = np.int64(board[entry & SQUARE_MASK])
                if i > 0 and hurdle != 0 and piece != 0:
                    if captures(piece, them, entry) and not avoids(t, piece, hurdle):
                        check = True
                    hurdle = np.int64(0)
            at += n


@inlined
def open_hops(program: Any, at: Number, i: Number, marks: Any) -> None:
    """Mark the squares of a ray of pairs up to the i-th, which holds the checking piece."""
    for j in range(i + 1):
        marks[program[at + 2 * j] & SQUARE_MASK] |= ENTERING_SAVES


@inlined
def scan_hops(
    t: TablesRow, p: PositionRow, them: Number, at: Number, n: Number, work: MoveWorkRow
) -> Truth:
    """Scan one ray of `scan_king` on which enemies capture directly or over one piece."""
    board = p["board"]
    marks = work["marks"]
    program = t["reverse"]
    check = False
    met = 0
    first = second = -1
    for i in range(n):
        entry = program[at + 2 * i]
        square = entry & SQUARE_MASK
        piece = board[square]
        if piece == 0:
            continue
        hits = captures(piece, them, entry)
        hops = captures(piece, them, program[at + 2 * i + 1] << TYPE_SHIFT)
        if met == 0:
            if hits:
                check = True
                open_hops(program, at, i, marks)
            if hops:
                for j in range(i):
                    marks[program[at + 2 * j] & SQUARE_MASK] |= ENTERING_MATTERS
            first = square
        elif met == 1:
            if hits:
                marks[first] |= LEAVING_MATTERS
            if hops and avoids(t, np.int64(piece), np.int64(board[first])):
                marks[first] |= ENTERING_MATTERS  # another piece there would be a hurdle
            elif hops:
                check = True
                open_hops(program, at, i, marks)
                marks[first] |= LEAVING_SAVES
            second = square
        else:
            if hops:
                marks[first] |= LEAVING_MATTERS
                marks[second] |= LEAVING_MATTERS
            break
        met += 1
    return check
