"""Records that the compiled encoders read: an input plane program, and a policy table.

One dtype of fixed maximum sizes serves every variant, so that each compiled function has one
signature. Both travel as arrays of shape (1,) and are indexed inside (`core/rules/position.py`).

A step `(dx, dy)` in the mover's view is looked up by the difference of two padded squares
(`rank * 32 + file`), shifted by `STEP_ORIGIN`: any step of a 12 x 10 board has its own number.

A board is seen in one of four ways, numbered `colour + 2 * mirrored`:

    0  first player          2  first player, left and right exchanged
    1  second player         3  second player, left and right exchanged
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.jit import array
from variant_ai.core.rules.position import COLOUR_STRIDE, MAX_HAND_KINDS, MAX_SQUARES

MAX_INPUT_PLANES = 256
MAX_ACTIONS = 65536
"""Actions of a policy table: a store code is one of them in 16 bits."""

CODES = 2 * COLOUR_STRIDE + 1
"""Piece codes, 0 (empty) included."""
COUNT_WORDS = 4
MAX_COUNTED = 8 * COUNT_WORDS
"""CAPTURED planes: each has a byte of the counting words."""

PAD = 32
STEPS = 1024
STEP_ORIGIN = STEPS // 2
NO_PLANE = -1
MAX_RIGHTS = 16

# What fills an input plane. SCATTER planes are zeroed and then marked square by square.
(SCATTER, COLOUR, MOVE_NUMBER, HALFMOVE, REPETITIONS, HAND, CAPTURED, RIGHT, CHECKS) = range(9)

INPUT = np.dtype(
    [
        ("planes", "i4"),
        ("squares", "i4"),
        ("turn", "i2", (4, MAX_SQUARES)),  # [view][square] -> row * files + file in that view
        ("op", "i1", (MAX_INPUT_PLANES,)),  # how the plane is filled, see above
        ("runs", "i4"),  # number of runs of SCATTER planes
        ("run", "i2", (MAX_INPUT_PLANES, 2)),  # first plane of a run, first behind it
        ("who", "i1", (MAX_INPUT_PLANES,)),  # 0 the mover's, 1 the other player's
        ("argument", "i2", (MAX_INPUT_PLANES,)),  # hand index, repetition, castling side, counter
        ("total", "i2", (2, MAX_INPUT_PLANES)),  # [whose], CAPTURED: start count; CHECKS: to win
        ("maximum", "f8", (2, MAX_INPUT_PLANES)),  # [raw]: what counts are divided by; raw: 1
        ("sides", "i4"),  # castling rights of each colour
        ("piece", "i4", (2, CODES)),  # [side to move][piece code] -> plane * squares
        ("piece_mark", "f4", (2, CODES)),  # what is added there: 1, or 0 where no plane shows it
        ("twins", "i4"),  # whether promoted twins mark a second plane, given by
        ("twin", "i4", (2, CODES)),
        ("twin_mark", "f4", (2, CODES)),
        ("counting", "i4"),  # whether there are CAPTURED planes; byte k of the words counts for
        ("count", "u8", (COUNT_WORDS, 2, CODES)),  # [word][side][code], k a plane's `argument`
        ("en_passant", "i2"),  # plane
        ("last_moves", "i4"),  # how many of the last moves are shown, from the plane of
        ("last_move", "i4"),  # the newest one's origin on
    ],
    align=True,
)

POLICY = np.dtype(
    [
        ("planes", "i4"),
        ("squares", "i4"),
        ("actions", "i4"),
        ("turn", "i2", (2, MAX_SQUARES)),  # [colour][square] -> as that colour sees it
        ("padded", "i2", (2, MAX_SQUARES)),  # the same square as rank * 32 + file
        ("step_plane", "i2", (STEPS,)),  # step -> plane
        ("promotion_plane", "i2", (COLOUR_STRIDE, STEPS)),  # [type promoted to][step] -> plane
        ("drop_plane", "i2", (MAX_HAND_KINDS,)),  # [hand index] -> plane
        ("pass_plane", "i2"),
        ("move", "i4", (2, MAX_ACTIONS)),  # [colour][action] -> move integer, -1 off the board
        ("special", "i1", (COLOUR_STRIDE,)),  # [type]: bits CASTLES, STEPS_SPECIALLY
        ("step_kind", "i1", (COLOUR_STRIDE, STEPS)),  # [type][step] -> move kind it may have
        ("doubles", "i1", (COLOUR_STRIDE, MAX_SQUARES)),  # [type][seen origin]: steps doubly there
        ("rights", "i4"),
        ("right_colour", "i1", (MAX_RIGHTS,)),
        ("right_from", "i2", (MAX_RIGHTS,)),
        ("right_to", "i2", (MAX_RIGHTS,)),
    ],
    align=True,
)

CASTLES, STEPS_SPECIALLY = 1, 2

InputTables: TypeAlias = Annotated[NDArray[np.void], array(INPUT)]
"""Array of shape (1,), dtype `INPUT`."""
PolicyTables: TypeAlias = Annotated[NDArray[np.void], array(POLICY)]
"""Array of shape (1,), dtype `POLICY`."""
