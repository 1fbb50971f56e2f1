"""Layout of what compiled code reads and fills: the tables of a variant, and lists of moves.

TABLES is everything that compiled code needs to know of a variant, in one record of fixed size, which
`rule_tables.py` fills. One dtype serves every variant, so that each compiled function has one signature
and is compiled once. Compiled code is fastest with records of arrays; the record is passed as an array of
shape (1,) and indexed inside.

Tables are flat for the same reason. The index by colour and square is `colour * 128 + square`, by
piece code and square `code * 128 + square` (see `position.py` for codes).
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.jit import array, element
from variant_ai.core.rules.position import (
    COLOUR_STRIDE,
    MAX_HAND_KINDS,
    MAX_RIGHTS,
    MAX_SQUARES,
    MAX_WALKS,
)

CODES = 2 * COLOUR_STRIDE
FORWARD_WORDS = 1 << 19
REVERSE_WORDS = 1 << 18
MAX_CHOICES = 24
MAX_WALK = 12
MAX_HOMES = 64
"""Walks of one right."""
MAX_PASSANT = 4
MAX_EXTINCTIONS = 8
HAND_COUNTS = 128
MAX_PIECE_MOVES = 256
"""Maximum moves of one piece from one square, with promotions; `movegen.py` reserves room for
them."""
MAX_DROPS = 1024
"""Maximum types in hand times squares."""

# Bits of `promotion`.
PROMOTES_TO, PROMOTES_FROM, PROMOTION_FORCED, LEAVING_FORCED = 1, 2, 4, 8

# Bits of `features`: rules that most variants do not have.
MUST_CAPTURE = 1 << 0
CAPTURED_CHOICES = 1 << 1
"""Pawns promote only to pieces that the mover has lost."""
COUNTS_CHECKS = 1 << 2
"""Checks beyond a number lengthen the move count."""
WINS_BY_CHECKS = 1 << 3
WINS_BY_REACHING = 1 << 4
WINS_BY_EXTINCTION = 1 << 5
PER_FILE = 1 << 6
NO_DROP_MATE = 1 << 7
"""Some piece may not mate by being dropped."""
REACHES_SAFELY = 1 << 8
DRAWS_DEAD_POSITIONS = 1 << 9
MAY_REPEAT = 1 << 10
"""A piece may have two moves to one square, such as a slide and a leap."""
COUNTS_PIECES = 1 << 11
"""A limit of moves to mate, depending on the pieces left, by one of COUNTINGS."""
SHUFFLED = 1 << 12
"""King and rooks may begin on any files."""
EXPLODES = 1 << 13
"""A capture removes the capturing piece and all pieces around, except those of `spared`."""

BARE_KING_LOSES = 1 << 14
NEVER_CHECKS = 1 << 15
HELD = 1 << 16
"""Reaching a goal counts only after the other player's reply."""
ONLY_CAPTURES = 1 << 17
"""A king in check may only capture what checks it."""
RACES = 1 << 18
"""If the second player can follow the first to the goal in the next move, that draws."""

PASSES = 1 << 19
"""A player may pass, and two passes in a row end the game."""
FACING_PARTS = 1 << 20
"""Kings that face each other must be parted, or a pass ends the game."""
COUNTS_POINTS = 1 << 21
"""Points decide games that passes, the move count or repetitions would draw."""
AVOIDS = 1 << 22
"""Some pieces neither capture nor jump over others."""

FEWER_WIN = 2
"""Value of `stalemate`: the side with fewer pieces on the board wins."""

COUNTINGS = ("makruk", "cambodian", "asean")
MAKRUK, CAMBODIAN, ASEAN = range(3)

# Bits of `resets` beyond those of the types.
CAPTURES_RESET, DROPS_RESET, PROMOTIONS_RESET = 1 << 30, 1 << 29, 1 << 28

# Values of `mating`: ability of a type to mate.
MATES, COLOUR_BOUND, NEEDS_HELP, NEVER_MATES = range(4)

# Layout of `zobrist`.
ZOBRIST_HANDS = CODES * MAX_SQUARES
ZOBRIST_CASTLING = ZOBRIST_HANDS + 2 * MAX_HAND_KINDS * HAND_COUNTS
ZOBRIST_PASSANT = ZOBRIST_CASTLING + (1 << MAX_RIGHTS)
ZOBRIST_WINS = ZOBRIST_PASSANT + MAX_SQUARES
ZOBRIST_SIDE = ZOBRIST_WINS + 2 * 16
ZOBRIST_HOMES = ZOBRIST_SIDE + 1
ZOBRIST_NUMBERS = ZOBRIST_HOMES + MAX_RIGHTS * MAX_HOMES

TABLES = np.dtype(
    [
        ("squares", "i4"),
        ("files", "i4"),
        ("features", "i4"),
        ("hand_kinds", "i4"),
        ("rights", "i4"),  # number of castling rights of both colours
        ("advance", "i4", (2,)),  # difference of squares one step forward of each colour
        ("keeps", "i4"),  # number of last moves kept in a position
        # moves
        ("forward_start", "i4", (CODES * MAX_SQUARES,)),
        ("forward", "i2", (FORWARD_WORDS,)),
        ("reverse_start", "i4", (2 * MAX_SQUARES,)),  # by the colour that captures
        ("reverse", "i4", (REVERSE_WORDS,)),
        ("avoided_by", "i4", (COLOUR_STRIDE,)),  # per type: mask of types that avoid it
        ("promotion", "i1", (CODES * MAX_SQUARES,)),
        ("choices", "i1", (CODES * MAX_CHOICES,)),  # per piece code: count, then types
        ("start_count", "i1", (CODES,)),  # pieces of a code in the start position
        ("passant", "i2", (2 * MAX_SQUARES * MAX_PASSANT,)),  # square | type << 7, -1: origins
        # hands
        ("hand_of", "i1", (COLOUR_STRIDE,)),  # hand index the captor of a type gains, -1
        ("hand_type", "i1", (MAX_HAND_KINDS,)),  # type that a hand index is dropped as
        ("drop", "i1", (2 * MAX_HAND_KINDS * MAX_SQUARES,)),  # 1: may be dropped there
        ("per_file", "i1", (MAX_HAND_KINDS,)),  # most pieces on one file for a drop, 0 any
        ("no_drop_mate", "i1", (MAX_HAND_KINDS,)),
        # castling, per right
        ("castle_colour", "i1", (MAX_RIGHTS,)),
        ("castle_first", "i1", (MAX_RIGHTS,)),  # first of its walks
        # castling, per walk
        ("castle_squares", "i1", (MAX_WALKS, 5)),  # king from, to, rook from, to, move's target
        ("castle_empty", "i1", (MAX_WALKS, MAX_WALK)),  # ended by -1
        ("castle_safe", "i1", (MAX_WALKS, MAX_WALK)),  # squares between its ends, ended by -1
        ("rights_kept", "i1", (MAX_SQUARES,)),  # mask when something leaves or enters a square
        # ends
        ("checkmate", "i4"),  # value for the side without a move, in check: -1, 0, 1
        ("stalemate", "i4"),  # the same without check, or FEWER_WIN
        ("plies", "i4"),  # move-count rule, 0 none
        ("checks_counted", "i4"),  # -1 all
        ("resets", "i4"),  # types whose move resets the clock, and bits of events
        ("mating", "i1", (COLOUR_STRIDE,)),  # MATES, COLOUR_BOUND, NEEDS_HELP or NEVER_MATES
        ("reach_types", "i4"),
        ("reach", "i1", (2 * MAX_SQUARES,)),  # 1 where one of the types wins by standing there
        ("points", "i4", (COLOUR_STRIDE,)),  # per type, doubled
        ("second_points", "i4"),  # extra points of the second player, doubled
        ("counting", "i4"),  # index in COUNTINGS
        ("count_types", "i4", (4,)),  # pawn, rook, khon, knight, for counting
        # sets of types that decide the game when a side has `left` of them or fewer
        ("extinctions", "i4"),
        ("extinct_types", "i4", (MAX_EXTINCTIONS,)),
        ("extinct_left", "i4", (MAX_EXTINCTIONS,)),
        ("extinct_wins", "i1", (MAX_EXTINCTIONS,)),  # 1: that side has won, 0: lost
        ("spared", "i4"),  # types that an explosion beside them leaves on the board
        ("zobrist", "u8", (ZOBRIST_NUMBERS,)),
    ],
    align=True,
)
Tables: TypeAlias = Annotated[NDArray[np.void], array(TABLES)]
"""Array of shape (1,), dtype `TABLES`."""
TablesRow: TypeAlias = Annotated[Any, element(TABLES)]
"""Its one element."""


# --- lists of moves -------------------------------------------------------------------------------

MAX_MOVES = 2048

MOVES = np.dtype([("move", "i4", (MAX_MOVES,))])
MoveLists: TypeAlias = Annotated[NDArray[np.void], array(MOVES)]
MoveListRow: TypeAlias = Annotated[Any, element(MOVES)]

# Shifts of a move's parts (`position.py`).
ORIGIN = 7
KIND = 14
ARGUMENT = 17

OFF_BOARD = -1


def new_moves(n: int = 1) -> NDArray[np.void]:
    """n move lists, shape (n,), dtype MOVES; a list is `lists["move"][i, :count]`."""
    return np.zeros(n, MOVES)
