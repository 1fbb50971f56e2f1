"""Compiled encoders: positions to planes, moves to actions and back; and the records that they read.

Both records, a program for input planes and policy tables, are passed as arrays of shape (1,)
(`core/rules/position.py`), as `E` and `A`. All variants use the same dtypes with fixed maximum sizes, so
that each compiled function has one signature. Functions also take position arrays of any length with an
index, and integers. They have no state and release the GIL.

A step `(dx, dy)` in the mover's view is looked up by the difference of two padded squares
(`rank * 32 + file`) plus `STEP_ORIGIN`: every step on a 12 x 10 board has its own number. There are four
views of a board, numbered `colour + 2 * mirrored`:

    0  first player          2  first player, left and right exchanged
    1  second player         3  second player, left and right exchanged

A move is a move integer, -1 if there is none. An action is an index `plane * squares + square` of the
policy map, -1 if the map has no plane for the move. The square is the origin, or the target of a drop,
in the mover's view, where row 0 is the mover's own first rank. A pass has square 0; as a move it goes
from the king to itself.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.jit import Number, array, njit
from variant_ai.core.jit.signatures import Floats2D
from variant_ai.core.rules.kernel.attacks import attacked_squares
from variant_ai.core.rules.kernel.play_move import replay_into
from variant_ai.core.rules.kernel.table_layout import MAX_PIECE_MOVES, Tables
from variant_ai.core.rules.position import (
    CASTLING,
    COLOUR_STRIDE,
    DOUBLE_STEP,
    DROP,
    EN_PASSANT,
    MAX_HAND_KINDS,
    MAX_RIGHTS,
    MAX_SQUARES,
    MAX_WALKS,
    NORMAL,
    PASS,
    PROMOTION,
    Position,
)

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
MAX_POLICY_RIGHTS = 16

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
        ("right_colour", "i1", (MAX_POLICY_RIGHTS,)),
        ("right_first", "i2", (MAX_POLICY_RIGHTS,)),  # first of its walks
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


# --- compiled functions ---------------------------------------------------------------------------

Planes = NDArray[np.float32]
Moves = NDArray[np.int32]


@njit
def encode_into(
    T: Tables,
    E: InputTables,
    P: Position,
    i: Number,
    out: Floats2D,
    j: Number,
    mirrored: Number,
    raw: Number,
) -> None:
    """Write the planes of `P[i]` to `out[j]`, out float32 [n, C * H * W], C-contiguous.

    T: rules tables, read for planes of attacks only. `mirrored` 1 exchanges left and right; `raw` 1 leaves counts undivided.
    """
    side = np.int64(P[i]["side"])
    squares = np.int64(E[0]["squares"])
    planes = np.int64(E[0]["planes"])
    row = out[j]
    for r in range(E[0]["runs"]):
        row[E[0]["run"][r, 0] * squares : E[0]["run"][r, 1] * squares] = np.float32(0)

    # Boards are unpredictable and mostly empty, so no branch depends on a square: an empty one adds
    # 0 to a plane. Pieces on the board are counted in the bytes of four words, one byte per plane.
    view = side + 2 * mirrored
    counting = E[0]["counting"] != 0
    twins = E[0]["twins"] != 0
    count0 = count1 = count2 = count3 = np.uint64(0)
    for s in range(squares):
        code = np.int64(P[i]["board"][s])
        square = np.int64(E[0]["turn"][view, s])
        row[np.uint64(E[0]["piece"][side, code] + square)] += E[0]["piece_mark"][side, code]
        if twins:
            row[np.uint64(E[0]["twin"][side, code] + square)] += E[0]["twin_mark"][side, code]
        if counting:
            count0 += E[0]["count"][0, side, code]
            count1 += E[0]["count"][1, side, code]
            count2 += E[0]["count"][2, side, code]
            count3 += E[0]["count"][3, side, code]
    if E[0]["attacks"] != 0:
        targets = np.empty(MAX_PIECE_MOVES, np.int64)
        for s in range(squares):
            plane = np.int64(E[0]["attack"][side, np.int64(P[i]["board"][s])])
            if plane != NO_PLANE:
                for k in range(attacked_squares(T[0], P[i], s, targets)):
                    row[plane + np.int64(E[0]["turn"][view, targets[k]])] = np.float32(1)
    if E[0]["en_passant"] != NO_PLANE and P[i]["ep"] >= 0:
        square = np.int64(E[0]["turn"][view, np.int64(P[i]["ep"])])
        row[np.int64(E[0]["en_passant"]) * squares + square] = np.float32(1)
    for k in range(E[0]["last_moves"]):
        move = np.int64(P[i]["last_moves"][k]) - 1
        if move < 0:
            break
        first = (np.int64(E[0]["last_move"]) + 2 * k) * squares
        if move >> 14 == 0:
            row[first + np.int64(E[0]["turn"][view, move >> 7])] = np.float32(1)
        row[first + squares + np.int64(E[0]["turn"][view, move & 127])] = np.float32(1)

    # Neighbouring planes often have the same value (nothing in hand, nothing captured); they are
    # filled together.
    begun = np.int64(0)
    filling = np.float32(0)
    for c in range(planes):
        op = np.int64(E[0]["op"][c])
        if op == SCATTER:
            row[begun * squares : c * squares] = filling
            begun = np.int64(c + 1)
            continue
        argument = np.int64(E[0]["argument"][c])
        colour = (side + np.int64(E[0]["who"][c])) & 1
        value = np.int64(0)
        if op == COLOUR:
            value = 1 - side
        elif op == MOVE_NUMBER:
            value = np.int64(P[i]["ply"]) // 2 + 1
        elif op == HALFMOVE:
            value = np.int64(P[i]["clock"])
        elif op == REPETITIONS:
            value = np.int64(1) if np.int64(P[i]["repetitions"]) >= argument else np.int64(0)
        elif op == HAND:
            value = np.int64(P[i]["hands"][colour, argument])
        elif op == CAPTURED:
            word = argument >> 3
            standing = count0
            if word == 1:
                standing = count1
            elif word == 2:
                standing = count2
            elif word == 3:
                standing = count3
            standing = (standing >> np.uint64((argument & 7) * 8)) & np.uint64(255)
            value = max(np.int64(E[0]["total"][1 - colour, c]) - np.int64(standing), np.int64(0))
        elif op == RIGHT:
            bit = colour * np.int64(E[0]["sides"]) + argument
            value = (np.int64(P[i]["castling"]) >> bit) & 1
        elif op == CHECKS:
            value = np.int64(E[0]["total"][0, c]) - np.int64(P[i]["wins_left"][colour])
        share = np.float32(np.float64(value) / E[0]["maximum"][raw, c])
        if share != filling:
            row[begun * squares : c * squares] = filling
            begun = np.int64(c)
            filling = share
    row[begun * squares : planes * squares] = filling


@njit
def encode_all(
    T: Tables, E: InputTables, P: Position, out: Floats2D, mirrored: Number, raw: Number
) -> None:
    """Write the planes of all positions: P of shape (n,), out float32 [n, C * H * W]."""
    for i in range(P.shape[0]):
        encode_into(T, E, P, i, out, i, mirrored, raw)


@njit
def action_of(A: PolicyTables, P: Position, i: Number, move: Number) -> Number:
    """Return the action of a legal move of `P[i]`, or -1."""
    side = np.int64(P[i]["side"])
    target = np.int64(move) & 127
    origin = (np.int64(move) >> 7) & 127
    kind = (np.int64(move) >> 14) & 7
    argument = (np.int64(move) >> 17) & 31
    square = origin
    if kind == DROP:
        plane = np.int64(A[0]["drop_plane"][argument])
        square = target
    elif kind == PASS:
        if A[0]["pass_plane"] == NO_PLANE:
            return np.int64(-1)
        return np.int64(A[0]["pass_plane"]) * np.int64(A[0]["squares"])
    else:
        step = (
            np.int64(A[0]["padded"][side, target])
            - np.int64(A[0]["padded"][side, origin])
            + STEP_ORIGIN
        )
        if kind == PROMOTION:
            plane = np.int64(A[0]["promotion_plane"][argument, step])
        else:
            plane = np.int64(A[0]["step_plane"][step])
    if plane == NO_PLANE:
        return np.int64(-1)
    return plane * np.int64(A[0]["squares"]) + np.int64(A[0]["turn"][side, square])


@njit
def move_of(A: PolicyTables, P: Position, i: Number, action: Number) -> Number:
    """Return the move of an action in `P[i]`, or -1 if the mover has no piece for it.

    Legality is not checked. Castling, en passant and double steps look like plain steps in the policy
    map, so their kind is determined from the piece and the position.
    """
    if action < 0 or action >= np.int64(A[0]["actions"]):
        return np.int64(-1)
    side = np.int64(P[i]["side"])
    move = np.int64(A[0]["move"][side, action])
    if move < 0:
        return move
    kind = (move >> 14) & 7
    if kind == DROP:
        return move if P[i]["hands"][side, (move >> 17) & 31] > 0 else np.int64(-1)
    if kind == PASS:
        king = max(np.int64(P[i]["kings"][side]), np.int64(0))
        return king | (king << 7) | (PASS << 14)
    target = move & 127
    origin = (move >> 7) & 127
    code = np.int64(P[i]["board"][origin]) - 1
    if code < 0 or (code >> 5) != side:
        return np.int64(-1)
    if kind != NORMAL:
        return move
    special = np.int64(A[0]["special"][code & 31])
    if special == 0:
        return move
    if special & CASTLES:
        for r in range(np.int64(A[0]["rights"])):
            walk = np.int64(A[0]["right_first"][r])
            if r < MAX_RIGHTS:
                walk += np.int64(P[i]["homes"][r])
            if (
                np.int64(A[0]["right_colour"][r]) == side
                and np.int64(A[0]["walk_from"][walk]) == origin
                and np.int64(A[0]["walk_target"][walk]) == target
                and (np.int64(P[i]["castling"]) >> r) & 1
            ):
                return move | (CASTLING << 14) | (np.int64(r) << 17)
    step = (
        np.int64(A[0]["padded"][side, target])
        - np.int64(A[0]["padded"][side, origin])
        + STEP_ORIGIN
    )
    may = np.int64(A[0]["step_kind"][code & 31, step])
    if may == DOUBLE_STEP:
        seen = np.int64(A[0]["turn"][side, origin])
        return move | (DOUBLE_STEP << 14) if A[0]["doubles"][code & 31, seen] else move
    if may == EN_PASSANT and np.int64(P[i]["ep"]) == target:
        return move | (EN_PASSANT << 14)
    return move


@njit
def actions_into(
    A: PolicyTables,
    P: Position,
    i: Number,
    moves: NDArray[np.int32],
    n: Number,
    out: NDArray[np.int64],
) -> None:
    """Write the actions of the first n of `moves` of `P[i]` to out, -1 for a move without one."""
    for k in range(n):
        out[k] = action_of(A, P, i, np.int64(moves[k]))


@njit
def encode_game_into(
    T: Tables, A: PolicyTables, P: Position, moves: NDArray[np.int32], codes: NDArray[np.uint16]
) -> Number:
    """Encode a game's moves from position `P[0]`, which is updated by them. T: rules tables.

    Returns the number of encoded plies: all, or those before the first move without a code.
    """
    only = np.int64(0)  # a literal would need another signature
    for ply in range(moves.shape[0]):
        move = np.int64(moves[ply])
        code = action_of(A, P, only, move)
        if code < 0:
            return ply
        codes[ply] = code
        replay_into(T, P, only, P, only, move)
    return moves.shape[0]


@njit
def decode_game_into(
    T: Tables, A: PolicyTables, P: Position, codes: NDArray[np.uint16], moves: NDArray[np.int32]
) -> Number:
    """Decode a game's codes from position `P[0]`, which is updated by the moves. T: rules tables.

    Returns the number of decoded plies: all, or those before the first invalid code.
    """
    only = np.int64(0)  # a literal would need another signature
    for ply in range(codes.shape[0]):
        move = move_of(A, P, only, np.int64(codes[ply]))
        if move < 0:
            return ply
        moves[ply] = move
        replay_into(T, P, only, P, only, move)
    return codes.shape[0]
