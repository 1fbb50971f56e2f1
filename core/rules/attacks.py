"""Is a square attacked, is the king in check, and which squares matter to that answer.

All three read the reverse programs (`programs.py`): they walk outwards from one square and ask of
each piece met whether its type captures from there.
"""

from __future__ import annotations

from typing import Any

from variant_ai.core.rules.cache import njit
from variant_ai.core.rules.position import COLOUR_STRIDE, MAX_SQUARES
from variant_ai.core.rules.programs import (
    BEHIND,
    END,
    HOPS,
    LAME,
    LEAPS,
    RAY,
    SQUARE_MASK,
    TYPE_SHIFT,
)

COLOUR_BIT = COLOUR_STRIDE.bit_length() - 1
TYPE_MASK = COLOUR_STRIDE - 1

# Marks that `scan_king` leaves on squares, by how the king could be exposed to check.
LEAVING_MATTERS = 1
"""A piece there pins, blocks a leg, or serves as a hurdle: moving it away may give check."""
ENTERING_MATTERS = 2
"""The square is empty, and a piece put there becomes a hurdle."""


@njit
def attacked(t: Any, p: Any, colour: int, square: int) -> bool:
    """Whether `colour` captures on the square (record arguments; a facing king counts)."""
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
                    piece -= 1
                    if (piece >> COLOUR_BIT) == colour and (
                        entry >> (TYPE_SHIFT + (piece & TYPE_MASK))
                    ) & 1:
                        return True
                    break
            at += n
        elif opcode == LEAPS:
            for i in range(n):
                entry = program[at + i]
                piece = board[entry & SQUARE_MASK]
                if piece != 0:
                    piece -= 1
                    if (piece >> COLOUR_BIT) == colour and (
                        entry >> (TYPE_SHIFT + (piece & TYPE_MASK))
                    ) & 1:
                        return True
            at += n
        elif opcode == LAME:  # n holds the legs
            entry = program[at]
            piece = board[entry & SQUARE_MASK]
            if piece != 0:
                piece -= 1
                if (
                    (piece >> COLOUR_BIT) == colour
                    and (entry >> (TYPE_SHIFT + (piece & TYPE_MASK))) & 1
                    and board[n & SQUARE_MASK] == 0
                    and board[n >> 7] == 0
                ):
                    return True
            at += 1
        elif opcode == HOPS:
            jumped = False
            for i in range(n):
                entry = program[at + 2 * i]
                piece = board[entry & SQUARE_MASK]
                if piece != 0:
                    piece -= 1
                    if jumped:
                        entry = program[at + 2 * i + 1] << TYPE_SHIFT
                    if (piece >> COLOUR_BIT) == colour and (
                        entry >> (TYPE_SHIFT + (piece & TYPE_MASK))
                    ) & 1:
                        return True
                    if jumped:
                        break
                    jumped = True
            at += 2 * n
        else:  # BEHIND
            if board[program[at] & SQUARE_MASK] != 0:
                for i in range(1, n):
                    entry = program[at + i]
                    piece = board[entry & SQUARE_MASK]
                    if piece != 0:
                        piece -= 1
                        if (piece >> COLOUR_BIT) == colour and (
                            entry >> (TYPE_SHIFT + (piece & TYPE_MASK))
                        ) & 1:
                            return True
                        break
            at += n
