"""Records read by the compiled encoders: a program for input planes, and policy tables.

All variants use the same dtype with fixed maximum sizes, so that each compiled function has one
signature. Both records are passed as arrays of shape (1,) (`core/rules/position.py`).

A step `(dx, dy)` in the mover's view is looked up by the difference of two padded squares
(`rank * 32 + file`) plus `STEP_ORIGIN`: every step on a 12 x 10 board has its own number.

There are four views of a board, numbered `colour + 2 * mirrored`:

    0  first player          2  first player, left and right exchanged
    1  second player         3  second player, left and right exchanged
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.jit import array
from variant_ai.core.rules.position import COLOUR_STRIDE, MAX_HAND_KINDS, MAX_SQUARES, MAX_WALKS

MAX_INPUT_PLANES = 256
MAX_ACTIONS = 65536
"""Maximum number of actions: a code in a game store is an action in 16 bits."""

CODES = 2 * COLOUR_STRIDE + 1
"""Number of piece codes, including 0 (empty)."""
COUNT_WORDS = 4
MAX_COUNTED = 8 * COUNT_WORDS
"""Maximum number of CAPTURED planes: each uses one byte of the counting words."""

PAD = 32
STEPS = 1024
STEP_ORIGIN = STEPS // 2
NO_PLANE = -1
MAX_RIGHTS = 16

# Operations that fill an input plane. SCATTER planes are set to 0 and then marked square by square.
(SCATTER, COLOUR, MOVE_NUMBER, HALFMOVE, REPETITIONS, HAND, CAPTURED, RIGHT, CHECKS) = range(9)

INPUT = np.dtype(
    [
        ("planes", "i4"),
        ("squares", "i4"),
        ("turn", "i2", (4, MAX_SQUARES)),  # [view][square] -> row * files + file in that view
        ("op", "i1", (MAX_INPUT_PLANES,)),  # operation, see above
        ("runs", "i4"),  # number of runs of SCATTER planes
        ("run", "i2", (MAX_INPUT_PLANES, 2)),  # first plane of a run, first plane after it
        ("who", "i1", (MAX_INPUT_PLANES,)),  # 0: the mover's, 1: the opponent's
        ("argument", "i2", (MAX_INPUT_PLANES,)),  # hand index, repetition, castling side, counter
        ("total", "i2", (2, MAX_INPUT_PLANES)),  # [colour], CAPTURED: start count; CHECKS: to win
        ("maximum", "f8", (2, MAX_INPUT_PLANES)),  # [raw]: divisor of counts; 1 if raw
        ("sides", "i4"),  # castling rights per colour
        ("piece", "i4", (2, CODES)),  # [side to move][piece code] -> plane * squares
        ("piece_mark", "f4", (2, CODES)),  # value to add there: 1, or 0 if no plane shows the piece
        ("twins", "i4"),  # 1: promoted twins also mark a second plane, as in the next two fields
        ("twin", "i4", (2, CODES)),
        ("twin_mark", "f4", (2, CODES)),
        ("attacks", "i4"),  # 1: squares attacked by each piece are marked, as in the next field
        ("attack", "i4", (2, CODES)),  # [side to move][piece code] -> plane * squares, or NO_PLANE
        ("counting", "i4"),  # number of CAPTURED planes; byte k of the words counts for the plane
        ("count", "u8", (COUNT_WORDS, 2, CODES)),  # [word][side][code]  with `argument` k
        ("en_passant", "i2"),  # plane
        ("last_moves", "i4"),  # number of last moves in the planes
        ("last_move", "i4"),  # first of their planes: the origin of the newest move
    ],
    align=True,
)

POLICY = np.dtype(
    [
        ("squares", "i4"),
        ("actions", "i4"),
        ("turn", "i2", (2, MAX_SQUARES)),  # [colour][square] -> square in that colour's view
        ("padded", "i2", (2, MAX_SQUARES)),  # the same square, as rank * 32 + file
        ("step_plane", "i2", (STEPS,)),  # step -> plane
        ("promotion_plane", "i2", (COLOUR_STRIDE, STEPS)),  # [new type][step] -> plane
        ("drop_plane", "i2", (MAX_HAND_KINDS,)),  # [hand index] -> plane
        ("pass_plane", "i2"),
        ("move", "i4", (2, MAX_ACTIONS)),  # [colour][action] -> move integer, -1 off the board
        ("special", "i1", (COLOUR_STRIDE,)),  # [type]: bits CASTLES, STEPS_SPECIALLY
        ("step_kind", "i1", (COLOUR_STRIDE, STEPS)),  # [type][step] -> move kind that it may have
        ("doubles", "i1", (COLOUR_STRIDE, MAX_SQUARES)),  # [type][origin as seen]: 1: double step
        ("rights", "i4"),
        ("right_colour", "i1", (MAX_RIGHTS,)),
        ("right_first", "i2", (MAX_RIGHTS,)),  # first of its walks
        ("walk_from", "i2", (MAX_WALKS,)),  # origin of the move, per walk
        ("walk_target", "i2", (MAX_WALKS,)),
    ],
    align=True,
)

CASTLES, STEPS_SPECIALLY = 1, 2

InputTables: TypeAlias = Annotated[NDArray[np.void], array(INPUT)]
"""Array of shape (1,), dtype `INPUT`."""
PolicyTables: TypeAlias = Annotated[NDArray[np.void], array(POLICY)]
"""Array of shape (1,), dtype `POLICY`."""
