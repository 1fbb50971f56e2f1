"""Positions, records of fixed size, and moves, integers.

Squares are numbered from the first player's first rank: `square = rank * files + file`, a1 = 0.
A piece on the board is a code, `1 + type + 32 * colour`; 0 is an empty square. Colour 0 is the
first player (White, Red, sente), 1 the second. Types are numbered in `pieces.py`.

A `Position` is a numpy array of shape (1,) and dtype `POSITION`: passing the array to compiled code
and indexing inside takes a fifth of the time of passing a scalar record.

    move integer, int32
      bits  0-6   target square
      bits  7-13  origin square (0 for drops)
      bits 14-16  kind: NORMAL, PROMOTION, DROP, CASTLING, EN_PASSANT, DOUBLE_STEP, PASS
      bits 17-21  argument: type promoted to, hand index dropped, castling right used; else 0.
                  The target of castling is the king's; with `shuffle:` it is the rook's square
      bits 22-28  extra, for some variants of the engine `fairy`: 1 + the square of a wall that the
                  move places, or `TURNED` for a piece that is turned over (dropped with its
                  promoted side up, or demoted by moving); else 0
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.jit import array, element
from variant_ai.core.renamed import moved_names

__getattr__ = moved_names(__name__, {"view": "variant_ai.core.spec.zones"})

MAX_SQUARES = 128
MAX_LAST_MOVES = 8
MAX_CLOCK = 32_000
"""Greatest clock of a record."""
MAX_HAND_KINDS = 16
MAX_RIGHTS = 6
"""Castling rights of both colours."""
MAX_WALKS = 144
"""Castlings of both colours from all squares that king and rook may begin on."""
COLOUR_STRIDE = 32

POSITION = np.dtype(
    [
        ("board", "i1", (MAX_SQUARES,)),  # piece codes, 0 empty
        ("hands", "i1", (2, MAX_HAND_KINDS)),  # [colour][index into hands.order]
        ("key", "u8"),  # Zobrist: board, side, hands, castling, capturable e.p., checks left
        ("ply", "i4"),  # 2 * (full move number - 1) + side
        ("clock", "i2"),  # plies since the last resetting event, as FEN's halfmove clock
        ("checks", "i2", (2,)),  # checks this colour has given since the clock was reset
        ("side", "i1"),  # colour to move
        ("castling", "i1"),  # bit i: right i of pieces.castling_rights still held
        # with `shuffle:`, squares that king and rook of held right i came from: number of the walk
        # among those of the right (`pieces.castling_walks`); else 0
        ("homes", "i1", (MAX_RIGHTS,)),
        ("ep", "i1"),  # square a passant piece may capture on, -1 none; set only if one can
        ("kings", "i1", (2,)),  # square of the royal piece, -1 none
        ("wins_left", "i1", (2,)),  # checks this colour still has to give to win (three-check), 0
        ("passes", "i1"),  # made last, in a row; 2 ends the game; by the kernel only
        ("count_limit", "i2"),  # spec with `counting:`: draw when clock exceeds it, 0 no counting
        (
            "last_moves",
            "u2",
            (MAX_LAST_MOVES,),
        ),  # newest first, encoded by `last_move`; as many as the planes show
        ("repetitions", "i1"),  # earlier occurrences of this position; set by `Game` and search
    ],
    align=True,
)

Position: TypeAlias = Annotated[NDArray[np.void], array(POSITION)]
"""Array of shape (1,), dtype `POSITION`; of more in compiled code."""
PositionRow: TypeAlias = Annotated[Any, element(POSITION)]
"""One position of a `Position` array."""

NOT_IN_FEN = ("repetitions", "checks", "last_moves", "passes")
"""Fields that a FEN does not hold: they depend on the moves before the position."""

NORMAL, PROMOTION, DROP, CASTLING, EN_PASSANT, DOUBLE_STEP, PASS = range(7)


def new_position(n: int = 1) -> Position:
    """n empty positions, shape (n,): no piece, first player to move, ply 0."""
    positions = np.zeros(n, POSITION)
    positions["ep"] = -1
    positions["kings"] = -1
    return positions


TURNED = 127
"""Value of `move_extra` for a piece that is turned over."""


def make_move(
    origin: int, target: int, kind: int = NORMAL, argument: int = 0, extra: int = 0
) -> int:
    """Move integer of its parts."""
    return target | origin << 7 | kind << 14 | argument << 17 | extra << 22


def move_target(move: int) -> int:
    return move & 127


def move_origin(move: int) -> int:
    return move >> 7 & 127


def move_kind(move: int) -> int:
    return move >> 14 & 7


def move_argument(move: int) -> int:
    return move >> 17 & 31


def move_extra(move: int) -> int:
    """0, 1 + the square of the placed wall, or `TURNED`."""
    return move >> 22 & 127


def is_capture(position: Position, move: int) -> bool:
    """Return True if a move takes a piece, also en passant; a promotion in place takes none."""
    kind, target = move_kind(move), move_target(move)
    if kind in (DROP, CASTLING, PASS) or target == move_origin(move):
        return False
    return kind == EN_PASSANT or bool(position["board"][0, target])


def move_squares(move: int) -> tuple[int, ...]:
    """Target and origin of a move; only the target of a drop, none of a pass."""
    if move_kind(move) == PASS:
        return ()
    return (
        (move_target(move),) if move_kind(move) == DROP else (move_target(move), move_origin(move))
    )


def piece_type(code: int) -> int:
    """Type of a non-empty piece code."""
    return (code - 1) & 31


def piece_colour(code: int) -> int:
    """Colour of a non-empty piece code."""
    return (code - 1) >> 5


def piece_code(kind: int, colour: int) -> int:
    return 1 + kind + COLOUR_STRIDE * colour


def last_move(move: int) -> int:
    """A move as stored in `last_moves`: 1 + target + 128 * origin, for drops 1 + target + 128 *
    128; 0 stands for an unknown move."""
    origin = MAX_SQUARES if move_kind(move) == DROP else move_origin(move)
    return 1 + move_target(move) + origin * MAX_SQUARES


def add_last_move(after: Position, before: Position, move: int, kept: int) -> None:
    """Set the `kept` last moves of the position after a move."""
    if kept:
        after["last_moves"][0, 1:kept] = before["last_moves"][0, : kept - 1]
        after["last_moves"][0, 0] = last_move(move)


_SQUARE = re.compile(r"([a-z])([1-9][0-9]?)\Z")


def square_index(name: str, files: int, ranks: int) -> int | None:
    """Square number of `e4`, or None if it is not on the board."""
    match = _SQUARE.match(name)
    if match is None:
        return None
    file, rank = ord(match[1]) - 97, int(match[2]) - 1
    return rank * files + file if file < files and rank < ranks else None


def same_position(a: Position, b: Position) -> bool:
    """Return True if two positions agree in every field."""
    names: Any = POSITION.names
    return all(np.array_equal(a[0][name], b[0][name]) for name in names)


def position_key(position: Position, more: Sequence[str] = ()) -> np.uint64:
    """Stable 64-bit hash of a position: board with promoted pieces, hands, side, castling rights,
    e.p. square, checks left to win; and `more` that a record does not hold."""
    record = position[0]
    digest = hashlib.blake2b(digest_size=8)
    if record["homes"].any():
        digest.update(record["homes"].tobytes())
    for field in ("board", "hands", "side", "castling", "ep", "wins_left"):
        digest.update(record[field].tobytes())
    digest.update(" ".join(more).encode())
    return np.uint64(int.from_bytes(digest.digest(), "little"))
