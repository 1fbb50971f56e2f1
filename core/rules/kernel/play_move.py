"""Moves played on a position, with an incremental key.

The key (Zobrist) covers board, side, hands, castling rights and the squares of their kings and rooks,
the e.p. square (set only if a capture is possible there), and the checks left to win. Promoted pieces
are types of their own, so they differ in it. All key arithmetic stays uint64: numba makes it signed if it is mixed with int64.
"""

from __future__ import annotations

import numpy as np

from variant_ai.core.jit import Number, Truth, inlined, njit
from variant_ai.core.rules.kernel.attacks import (
    COLOUR_BIT,
    TYPE_MASK,
    exposed,
    is_blown_up,
    kings_face,
)
from variant_ai.core.rules.kernel.table_layout import (
    ASEAN,
    CAMBODIAN,
    CAPTURES_RESET,
    COUNTS_CHECKS,
    COUNTS_PIECES,
    DROPS_RESET,
    EXPLODES,
    FACING_PARTS,
    HAND_COUNTS,
    MAX_HOMES,
    MAX_PASSANT,
    PASSES,
    PROMOTIONS_RESET,
    SHUFFLED,
    WINS_BY_CHECKS,
    ZOBRIST_CASTLING,
    ZOBRIST_HANDS,
    ZOBRIST_HOMES,
    ZOBRIST_PASSANT,
    ZOBRIST_SIDE,
    ZOBRIST_WINS,
    Tables,
    TablesRow,
)
from variant_ai.core.rules.position import (
    CASTLING,
    COLOUR_STRIDE,
    DOUBLE_STEP,
    DROP,
    EN_PASSANT,
    MAX_CLOCK,
    MAX_HAND_KINDS,
    MAX_SQUARES,
    PASS,
    PROMOTION,
    Position,
    PositionRow,
)

NO_SQUARE = -1


@njit
def play_into(t: Tables, p: Position, i: Number, q: Position, j: Number, move: Number) -> None:
    """Play a legal move of position i of p into position j of q, which may be the same record.

    t: TABLES, shape (1,); p, q: POSITION, any length. Legality is not checked. `repetitions` is set
    to 0.
    """
    q[j] = p[i]
    advance(t[0], q[j], move)
    if t[0]["features"] & COUNTS_CHECKS and is_in_check(t, q, j):
        count_given_check(t, q, j)


@njit
def replay_into(t: Tables, p: Position, i: Number, q: Position, j: Number, move: Number) -> None:
    """`play_into` without updating `checks`, for replaying known games and counting. Only the
    move-count rule needs `checks`, and updating it takes a search for a check after every move."""
    q[j] = p[i]
    advance(t[0], q[j], move)


@njit
def count_given_check(t: Tables, p: Position, i: Number) -> None:
    """Complete a `replay_into` whose move gave check; the result is that of `play_into`."""
    if t[0]["features"] & COUNTS_CHECKS and p[i]["clock"] > 0:
        # the check of a resetting move does not count
        p[i]["checks"][1 - np.int64(p[i]["side"])] += 1


@njit
def is_in_check(t: Tables, p: Position, i: Number) -> Truth:
    """Return True if the side to move of position i is in check; False if it has no king."""
    us = np.int64(p[i]["side"])
    king = np.int64(p[i]["kings"][us])
    return king >= 0 and exposed(t[0], p[i], us, king)


@inlined
def advance(t: TablesRow, r: PositionRow, move: Number) -> None:
    """Change the record into the position after the move, except for `checks`."""
    board = r["board"]
    zobrist = t["zobrist"]
    key = r["key"]
    us = np.int64(r["side"])
    them = 1 - us
    target = np.int64(move & 127)
    origin = np.int64((move >> 7) & 127)
    kind = np.int64((move >> 14) & 7)
    argument = np.int64((move >> 17) & 31)
    reset = False
    taken = np.int64(0)
    if r["ep"] >= 0:
        key ^= zobrist[ZOBRIST_PASSANT + np.int64(r["ep"])]
        r["ep"] = NO_SQUARE
    if kind == DROP:
        code = 1 + np.int64(t["hand_type"][argument]) + COLOUR_STRIDE * us
        key ^= take_in_hand(t, r, us, argument, -1)
        board[target] = code
        key ^= zobrist[code * MAX_SQUARES + target]
        reset = (t["resets"] & DROPS_RESET) != 0
    elif kind != PASS:
        piece = np.int64(board[origin])
        reset = ((t["resets"] >> ((piece - 1) & TYPE_MASK)) & 1) != 0
        board[origin] = 0
        key ^= zobrist[piece * MAX_SQUARES + origin]
        if kind == CASTLING:
            walk = np.int64(t["castle_first"][argument]) + r["homes"][argument]
            target = np.int64(t["castle_squares"][walk, 1])
            rook_from = np.int64(t["castle_squares"][walk, 2])
            rook_to = np.int64(t["castle_squares"][walk, 3])
            rook = np.int64(board[rook_from])
            board[rook_from] = 0
            board[rook_to] = rook
            key ^= zobrist[rook * MAX_SQUARES + rook_from]
            key ^= zobrist[rook * MAX_SQUARES + rook_to]
        else:
            square = target
            if kind == EN_PASSANT:
                square -= t["advance"][us]
            taken = np.int64(board[square])
            if taken != 0:
                board[square] = 0
                key ^= zobrist[taken * MAX_SQUARES + square]
                hand = np.int64(t["hand_of"][(taken - 1) & TYPE_MASK])
                if hand >= 0:
                    key ^= take_in_hand(t, r, us, hand, 1)
                reset |= (t["resets"] & CAPTURES_RESET) != 0
            if kind == PROMOTION:
                reset |= (t["resets"] & PROMOTIONS_RESET) != 0
                piece = 1 + argument + COLOUR_STRIDE * us
            elif kind == DOUBLE_STEP:
                jumped = (origin + target) >> 1
                if can_capture_passing(t, r, them, jumped):
                    r["ep"] = jumped
                    key ^= zobrist[ZOBRIST_PASSANT + jumped]
        board[target] = piece
        key ^= zobrist[piece * MAX_SQUARES + target]
        if origin == r["kings"][us]:
            r["kings"][us] = target
        if r["castling"] != 0:
            key ^= lose_rights(t, r, origin, target)
        if taken != 0 and t["features"] & EXPLODES:
            key ^= explode(t, r, target)
    if r["count_limit"] == 0 and reset:
        r["clock"] = 0
        r["checks"][0] = 0
        r["checks"][1] = 0
    elif r["clock"] < MAX_CLOCK:
        r["clock"] += 1
    if t["features"] & PASSES:
        count_pass(t, r, kind == PASS)
    r["ply"] += 1
    r["repetitions"] = 0
    r["side"] = them
    r["key"] = key ^ zobrist[ZOBRIST_SIDE]
    if t["keeps"] != 0:
        for k in range(t["keeps"] - 1, 0, -1):
            r["last_moves"][k] = r["last_moves"][k - 1]
        came_from = MAX_SQUARES if kind == DROP else origin
        r["last_moves"][0] = (
            1 + np.int64(move & 127) + came_from * MAX_SQUARES
        )  # `position.last_move`
    if t["features"] & WINS_BY_CHECKS:
        count_check(t, r, us)
    if t["features"] & COUNTS_PIECES:
        count_pieces(t, r, us, taken, kind == PROMOTION)


@njit
def explode(t: TablesRow, r: PositionRow, centre: Number) -> Number:
    """Remove the piece that has captured on `centre` and those around it, and return the change of the
    key."""
    board, zobrist = r["board"], t["zobrist"]
    change = zobrist[0] ^ zobrist[0]
    for square in range(t["squares"]):
        piece = np.int64(board[square])
        if not is_blown_up(t, piece, np.int64(square), centre):
            continue
        board[square] = 0
        change ^= zobrist[piece * MAX_SQUARES + square]
        for colour in range(2):
            if r["kings"][colour] == square:
                r["kings"][colour] = NO_SQUARE
        if r["castling"] != 0:
            change ^= lose_rights(t, r, np.int64(square), np.int64(square))
    return change


@inlined
def count_pass(t: TablesRow, r: PositionRow, passed: Truth) -> None:
    """Update the number of passes in a row; a pass between facing kings ends the game at once."""
    if not passed:
        r["passes"] = 0
    elif r["passes"] > 0 or (t["features"] & FACING_PARTS != 0 and kings_face(t, r)):
        r["passes"] = 2
    else:
        r["passes"] = 1


@inlined
def lose_rights(t: TablesRow, r: PositionRow, origin: Number, target: Number) -> Number:
    """Remove the castling rights that end when a piece goes from `origin` to `target`, and return the
    change of the key."""
    zobrist = t["zobrist"]
    change = zobrist[0] ^ zobrist[0]
    rights = np.int64(r["castling"])
    kept = rights & t["rights_kept"][origin] & t["rights_kept"][target]
    if t["features"] & SHUFFLED:
        kept = rights_kept(t, r, rights, origin, target)
        change ^= forget_homes(t, r, rights ^ kept)
    if kept != rights:
        r["castling"] = kept
        change ^= zobrist[ZOBRIST_CASTLING + rights] ^ zobrist[ZOBRIST_CASTLING + kept]
    return change


@inlined
def rights_kept(
    t: TablesRow, r: PositionRow, rights: Number, origin: Number, target: Number
) -> Number:
    """Castling rights that are left when a piece goes from `origin` to `target`, with `shuffle:`."""
    kept = rights
    for right in range(t["rights"]):
        if (rights >> right) & 1:
            walk = np.int64(t["castle_first"][right]) + r["homes"][right]
            king, rook = t["castle_squares"][walk, 0], t["castle_squares"][walk, 2]
            if origin in (king, rook) or target in (king, rook):
                kept &= ~(1 << right)
    return kept


@inlined
def forget_homes(t: TablesRow, r: PositionRow, lost: Number) -> Number:
    """Clear the homes of lost rights, a bit mask, and return the change of the key."""
    change = t["zobrist"][0] ^ t["zobrist"][0]
    for right in range(t["rights"]):
        if (lost >> right) & 1:
            change ^= t["zobrist"][ZOBRIST_HOMES + right * MAX_HOMES + np.int64(r["homes"][right])]
            r["homes"][right] = 0
    return change


@inlined
def take_in_hand(
    t: TablesRow, r: PositionRow, colour: Number, hand: Number, change: Number
) -> Number:
    """Change a count in hand by one and return the change of the key."""
    zobrist = t["zobrist"]
    count = np.int64(r["hands"][colour, hand])
    row = ZOBRIST_HANDS + (colour * MAX_HAND_KINDS + hand) * HAND_COUNTS
    r["hands"][colour, hand] = count + change
    return zobrist[row + count] ^ zobrist[row + count + change]


@inlined
def can_capture_passing(t: TablesRow, r: PositionRow, colour: Number, square: Number) -> Truth:
    """Return True if a piece of the colour can capture en passant on the square."""
    row = (colour * MAX_SQUARES + square) * MAX_PASSANT
    for k in range(MAX_PASSANT):
        origin = np.int64(t["passant"][row + k])
        if origin < 0:
            return False
        if r["board"][origin & 127] == 1 + (origin >> 7) + COLOUR_STRIDE * colour:
            return True
    return False


@inlined
def count_check(t: TablesRow, r: PositionRow, us: Number) -> None:
    """Decrease the checks left to win of the side that has just moved, if it gave check."""
    left = np.int64(r["wins_left"][us])
    king = np.int64(r["kings"][1 - us])
    if left > 0 and king >= 0 and exposed(t, r, 1 - us, king):
        row = ZOBRIST_WINS + 16 * us + left
        r["wins_left"][us] = left - 1
        r["key"] ^= t["zobrist"][row] ^ t["zobrist"][row - 1]


@njit
def count_pieces(t: TablesRow, r: PositionRow, us: Number, taken: Number, promoted: Truth) -> None:
    """Start or restart the counting of the makruk family after a move of `us`.

    In makruk, without pawns on the board the weaker side counts: the other has 64 moves to mate, and
    fewer against a bare king, depending on its pieces, with the pieces on the board counted as moves
    made. In ASEAN chess only a bare king counts, from 0. The limit is in plies. Follows
    Fairy-Stockfish (`countingRule`).
    """
    asean = t["counting"] == ASEAN
    them = 1 - us
    limit, counted = count_limit(t, r, us)
    lone = counted & 1 != 0
    pawn = taken != 0 and (taken - 1) & TYPE_MASK == t["count_types"][0]
    if pawn and lone and limit > 0 and not asean:
        r["count_limit"] = 2 * limit
        r["clock"] = 2 * (counted >> 1) - 1
    limit, counted = count_limit(t, r, them)
    lone = counted & 1 != 0
    if limit > 0 and (r["count_limit"] == 0 or (lone and (taken != 0 or promoted))):
        r["count_limit"] = 2 * limit
        r["clock"] = 2 * (counted >> 1) if lone and not asean else 0


@njit
def count_limit(t: TablesRow, r: PositionRow, counting: Number) -> Number:
    """Return the number of moves in which the other side must mate `counting`, 0 if nothing is
    counted; and 2 * (pieces on the board) + (1 if `counting` has a bare king)."""
    mine = pawns = others = rooks = khons = knights = 0
    types = t["count_types"]
    for square in range(t["squares"]):
        piece = np.int64(r["board"][square]) - 1
        if piece < 0:
            continue
        kind = piece & TYPE_MASK
        pawns += kind == types[0]
        if piece >> COLOUR_BIT == counting:
            mine += 1
        else:
            others += 1
            rooks += kind == types[1]
            khons += kind == types[2]
            knights += kind == types[3]
    counted = 2 * (mine + others) + (mine == 1)
    if t["counting"] == ASEAN:
        if pawns > 0 or mine > 1:
            return 0, counted
        return 16 if rooks > 0 else 44 if khons > 0 else 64 if knights > 0 else 0, counted
    less = np.int64(t["counting"] == CAMBODIAN)  # one move less, and up to three pieces count
    limit: Number = 64 - less
    if others == 1 or (less == 0 and pawns > 0) or (less == 1 and mine > 3):
        limit = 0
    elif mine == 1:
        if pawns > 0:
            limit = 0
        elif rooks > 0:
            limit = (8 if rooks > 1 else 16) - less
        elif khons > 1:
            limit = 22 - less
        elif knights > 1:
            limit = 32 - less
        elif khons == 1:
            limit = 44 - less
    return limit, counted


@njit
def full_key(t: Tables, p: Position, i: Number) -> Number:
    """Return the key computed from scratch, which `play_into` updates. Arrays."""
    table, r = t[0], p[i]
    zobrist = table["zobrist"]
    key = zobrist[0] ^ zobrist[0]
    for square in range(table["squares"]):
        piece = np.int64(r["board"][square])
        if piece != 0:
            key ^= zobrist[piece * MAX_SQUARES + square]
    for colour in range(2):
        for hand in range(table["hand_kinds"]):
            row = ZOBRIST_HANDS + (colour * MAX_HAND_KINDS + hand) * HAND_COUNTS
            key ^= zobrist[row + np.int64(r["hands"][colour, hand])]
        key ^= zobrist[ZOBRIST_WINS + 16 * colour + np.int64(r["wins_left"][colour])]
    key ^= zobrist[ZOBRIST_CASTLING + np.int64(r["castling"])]
    if table["features"] & SHUFFLED:
        for right in range(table["rights"]):
            if (np.int64(r["castling"]) >> right) & 1:
                key ^= zobrist[ZOBRIST_HOMES + right * MAX_HOMES + np.int64(r["homes"][right])]
    if r["ep"] >= 0:
        key ^= zobrist[ZOBRIST_PASSANT + np.int64(r["ep"])]
    if r["side"] == 1:
        key ^= zobrist[ZOBRIST_SIDE]
    return key
