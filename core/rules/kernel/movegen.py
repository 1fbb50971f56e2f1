"""Legal moves of a position.

One scan outwards from the king finds checks and marks the few squares whose change could expose it:
pinned pieces, legs of lame leapers, hurdles of hoppers. Only moves that leave or enter a marked
square, king moves and en passant captures are tested by making them; all others are legal. In
check, and where captures explode, every move is tested.

Functions here take records (`tables[0]`, `positions[i]`), except `legal_moves_into` and
`legal_captures_into`, which are for other rooms and take arrays. Moves are made and taken back on
the position's own board (`move_filters.py`), so two threads must not use one record at the same time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.jit import Number, Truth, inlined, njit
from variant_ai.core.rules.kernel.attacks import (
    COLOUR_BIT,
    ENTERING_MATTERS,
    ENTERING_SAVES,
    LEAVING_MATTERS,
    LEAVING_SAVES,
    WORK,
    MoveWork,
    MoveWorkRow,
    attacked,
    avoids,
    exposed,
    kings_face,
    scan_king,
)
from variant_ai.core.rules.kernel.game_ends import awaits_answer, variant_winner
from variant_ai.core.rules.kernel.move_filters import (
    add_pass,
    no_evasions,
    only_captures,
    reaches_goal,
    safe_after,
    safe_castled,
    safe_explosion,
    without_checks,
    without_facing,
    without_repeats,
)
from variant_ai.core.rules.kernel.move_programs import (
    CAPTURE,
    DOUBLE,
    END,
    HOP,
    HOP_BEHIND,
    HOP_QUIET,
    LEAP,
    PASSANT,
    QUIET,
)
from variant_ai.core.rules.kernel.table_layout import (
    ARGUMENT,
    BARE_KING_LOSES,
    CAPTURED_CHOICES,
    EXPLODES,
    FACING_PARTS,
    KIND,
    LEAVING_FORCED,
    MAX_CHOICES,
    MAX_MOVES,
    MAX_PIECE_MOVES,
    MAY_REPEAT,
    MUST_CAPTURE,
    NEVER_CHECKS,
    NO_DROP_MATE,
    OFF_BOARD,
    ONLY_CAPTURES,
    ORIGIN,
    PASSES,
    PER_FILE,
    PROMOTES_FROM,
    PROMOTES_TO,
    PROMOTION_FORCED,
    WINS_BY_CHECKS,
    WINS_BY_EXTINCTION,
    WINS_BY_REACHING,
    MoveListRow,
    MoveLists,
    Tables,
    TablesRow,
)
from variant_ai.core.rules.position import (
    CASTLING,
    COLOUR_STRIDE,
    DOUBLE_STEP,
    DROP,
    EN_PASSANT,
    MAX_HAND_KINDS,
    MAX_SQUARES,
    PROMOTION,
    Position,
    PositionRow,
)

ANY = -1
"""Every flag of a move program: all moves."""
CAPTURES = ANY ^ (QUIET | HOP_QUIET)
"""The flags of moves that capture."""
VARIANT_ENDS = WINS_BY_CHECKS | WINS_BY_EXTINCTION | WINS_BY_REACHING | BARE_KING_LOSES | PASSES


def new_work() -> NDArray[np.void]:
    """Scratch memory of one thread: two records, the second for replies to a drop that may not
    mate."""
    return np.zeros(2, WORK)


@njit
def legal_moves_into(t: Tables, p: Position, i: Number, out: MoveLists, work: MoveWork) -> Number:
    """Write the legal moves of position i to `out` and return how many there are.

    t: TABLES, shape (1,). p: POSITION, shape (n,). out: `new_moves(2)`, the list is
    `out["move"][0, :count]` and the second record is scratch. work: `new_work()`; afterwards
    `work["check"][0]` is 1 if the side to move is in check. After a variant end (king on the hill,
    third check) there are no moves.
    """
    return moves_by_rules(t, p, i, out, work, np.int64(ANY))


@njit
def legal_captures_into(
    t: Tables, p: Position, i: Number, out: MoveLists, work: MoveWork
) -> Number:
    """Write the legal moves of position i that capture to `out`, in the order of `legal_moves_into`, and
    return how many there are. Arguments as there. After the first player of a race has reached the goal,
    only captures that reach it too are listed."""
    return moves_by_rules(t, p, i, out, work, np.int64(CAPTURES))


@inlined
def moves_by_rules(
    t: Tables, p: Position, i: Number, out: MoveLists, work: MoveWork, wanted: Number
) -> Number:
    """Write the legal moves to `out`, all of them (ANY) or CAPTURES."""
    table, position = t[0], p[i]
    features = table["features"]
    work[0]["check"] = 0
    if features & VARIANT_ENDS and variant_winner(table, position) >= 0:
        return 0
    us = np.int64(position["side"])
    n = moves_of(table, position, us, np.int64(position["ep"]), wanted, out[0], work[0])
    if wanted == ANY and position["castling"] != 0 and work[0]["check"] == 0:
        n = castling_moves(table, position, us, out[0], n)
    if features & ONLY_CAPTURES and work[0]["check"] != 0:
        n = no_evasions(table, position, us, out[0], n)
    if features & NEVER_CHECKS:
        n = without_checks(table, position, out[0], n)
    if features & FACING_PARTS and kings_face(table, position):
        n = without_facing(table, position, us, out[0], n)
    if features & MUST_CAPTURE and wanted == ANY:
        n = only_captures(position, out[0], n)
    if features & PASSES and wanted == ANY:
        n = add_pass(table, position, us, work[0]["check"], out[0], n)
    if features & NO_DROP_MATE and wanted == ANY:
        n = without_drop_mates(table, position, out, n, work)
    if awaits_answer(table, position) and not reaches_goal(table, position, out[0], n):
        return 0
    return n


@inlined
def without_drop_mates(
    t: TablesRow, p: PositionRow, out: MoveListRow, n: Number, work: MoveWorkRow
) -> Number:
    """Remove drops that mate with a piece that may not (shogi's pawn)."""
    moves = out[0]["move"]
    board = p["board"]
    us = np.int64(p["side"])
    them = 1 - us
    king = np.int64(p["kings"][them])
    kept = 0
    for i in range(n):
        move = moves[i]
        hand = (move >> ARGUMENT) & 31
        mates = False
        if (move >> KIND) & 7 == DROP and t["no_drop_mate"][hand] and king >= 0:
            to = move & 127
            board[to] = 1 + t["hand_type"][hand] + COLOUR_STRIDE * us
            if attacked(t, p, us, king):
                mates = (
                    moves_of(t, p, them, np.int64(OFF_BOARD), np.int64(ANY), out[1], work[1]) == 0
                )
            board[to] = 0
        if not mates:
            moves[kept] = move
            kept += 1
    return kept


@inlined
def moves_of(
    t: TablesRow,
    p: PositionRow,
    us: Number,
    ep: Number,
    wanted: Number,
    out: MoveListRow,
    work: MoveWorkRow,
) -> Number:
    """Moves of the side `us` that leave its king safe, without castling: all of them (ANY) or CAPTURES. The
    caller applies further rules of the variant."""
    king = np.int64(p["kings"][us])
    check = False
    marks = work["marks"]
    for square in range(MAX_SQUARES):
        marks[square] = 0
    if king >= 0:
        check = scan_king(t, p, 1 - us, king, work)
        if t["features"] & EXPLODES:
            check = exposed(t, p, us, king)
    work["check"] = check
    n = board_moves(t, p, us, ep, wanted, king, check, out, work)
    if t["features"] & MAY_REPEAT:
        n = without_repeats(out, n)
    if t["hand_kinds"] > 0 and wanted == ANY:
        n = drop_moves(t, p, us, king, check, out, n, work)
    return n


@njit
def board_moves(
    t: TablesRow,
    p: PositionRow,
    us: Number,
    ep: Number,
    wanted: Number,
    king: Number,
    check: bool,
    out: MoveListRow,
    work: MoveWorkRow,
) -> Number:
    """Moves of pieces on the board, with promotions and en passant, without castling."""
    board = p["board"]
    marks = work["marks"]
    moves = out["move"]
    program = t["forward"]
    promotion = t["promotion"]
    them = 1 - us
    low = COLOUR_STRIDE * us
    exploding = (t["features"] & EXPLODES) != 0
    n = 0
    for origin in range(t["squares"]):
        piece = np.int64(board[origin])
        if piece <= low or piece > low + COLOUR_STRIDE:
            continue
        is_king = origin == king
        tested = check or is_king or exploding or (marks[origin] & LEAVING_MATTERS) != 0
        stays = check and not is_king and not exploding and marks[origin] & LEAVING_SAVES == 0
        choices = np.int64(t["choices"][piece * MAX_CHOICES])
        row = piece * MAX_SQUARES
        at = t["forward_start"][row + origin]
        if n > MAX_MOVES - MAX_PIECE_MOVES:
            break  # never in a game; FENs with so many moves are rejected
        while True:
            flags = np.int64(program[at])
            if flags == END:
                break
            flags &= wanted
            legs = np.int64(program[at + 1])
            count = np.int64(program[at + 2])
            at += 3
            if legs >= 0 and (board[legs & 127] != 0 or board[legs >> 7] != 0):
                at += count
                continue
            jumped = False
            for i in range(count):
                target = np.int64(program[at + i])
                met = np.int64(board[target])
                gone = np.int64(OFF_BOARD)
                move_kind = 0
                last = False
                if met == 0:
                    if jumped:
                        last = (flags & HOP_BEHIND) != 0
                        if not flags & HOP_QUIET:
                            if last:
                                break
                            continue
                    elif flags & QUIET:
                        if flags & DOUBLE:
                            move_kind = DOUBLE_STEP
                    elif flags & PASSANT and target == ep:
                        gone = target - t["advance"][us]
                        move_kind = EN_PASSANT
                    else:
                        continue
                else:
                    if flags & LEAP:
                        if not flags & CAPTURE or ((met - 1) >> COLOUR_BIT) == us:
                            continue
                        if avoids(t, piece, met):
                            continue
                    elif not jumped and flags & HOP:
                        if avoids(t, piece, met):
                            break
                        jumped = True
                        continue
                    else:
                        last = True
                        if not flags & CAPTURE or ((met - 1) >> COLOUR_BIT) == us:
                            break
                        if avoids(t, piece, met):
                            break
                if (tested or gone >= 0 or (marks[target] & ENTERING_MATTERS) != 0) and king >= 0:
                    after = target if is_king else king
                    if exploding:
                        safe = safe_explosion(
                            t, p, np.int64(origin), target, piece, gone, after, us, work
                        )
                    elif stays and gone < 0 and marks[target] & ENTERING_SAVES == 0:
                        safe = False
                    else:
                        safe = safe_after(t, p, origin, target, piece, gone, after, them)
                    if not safe:
                        if last:
                            break
                        continue
                move = target | (origin << ORIGIN)
                if choices > 0:
                    zone = (promotion[row + target] & (PROMOTES_TO | PROMOTION_FORCED)) | (
                        promotion[row + origin] & (PROMOTES_FROM | LEAVING_FORCED)
                    )
                    if zone & (PROMOTES_TO | PROMOTES_FROM):
                        n = promotions(t, p, us, piece, move, out, n)
                    if not zone & (PROMOTION_FORCED | LEAVING_FORCED):
                        moves[n] = move | (move_kind << KIND)
                        n += 1
                else:
                    moves[n] = move | (move_kind << KIND)
                    n += 1
                if last:
                    break
            at += count
    return n


@inlined
def promotions(
    t: TablesRow,
    p: PositionRow,
    us: Number,
    piece: Number,
    move: Number,
    out: MoveListRow,
    n: Number,
) -> Number:
    """Add a move for each piece that the mover, a piece code, may promote to."""
    moves = out["move"]
    choices = t["choices"]
    row = piece * MAX_CHOICES
    limited = t["features"] & CAPTURED_CHOICES
    for i in range(1, 1 + choices[row]):
        choice = np.int64(choices[row + i])
        if limited:
            code = 1 + choice + COLOUR_STRIDE * us
            standing = 0
            for square in range(t["squares"]):
                standing += p["board"][square] == code
            if standing >= t["start_count"][code]:
                continue
        moves[n] = move | (PROMOTION << KIND) | (choice << ARGUMENT)
        n += 1
    return n


@inlined
def castling_moves(t: TablesRow, p: PositionRow, us: Number, out: MoveListRow, n: Number) -> Number:
    """Add castling of a side that is not in check."""
    board = p["board"]
    for right in range(t["rights"]):
        if t["castle_colour"][right] != us or (p["castling"] >> right) & 1 == 0:
            continue
        walk = np.int64(t["castle_first"][right]) + p["homes"][right]
        free = True
        i = 0
        while free and t["castle_empty"][walk, i] >= 0:
            free = board[t["castle_empty"][walk, i]] == 0
            i += 1
        home = np.int64(t["castle_squares"][walk, 0])
        king = board[home]
        board[home] = 0  # beside the other king it may stand between an attacker and its path
        i = 0
        royal = p["kings"][us] >= 0
        while free and royal and t["castle_safe"][walk, i] >= 0:
            free = not exposed(t, p, us, np.int64(t["castle_safe"][walk, i]))
            i += 1
        board[home] = king
        target = np.int64(t["castle_squares"][walk, 4])
        if free and (not royal or safe_castled(t, p, walk, us)):
            out["move"][n] = target | (home << ORIGIN) | (CASTLING << KIND) | (right << ARGUMENT)
            n += 1
    return n


@njit
def drop_moves(
    t: TablesRow,
    p: PositionRow,
    us: Number,
    king: Number,
    check: bool,
    out: MoveListRow,
    n: Number,
    work: MoveWorkRow,
) -> Number:
    """Add drops from the hand. The safety of the king is tested once for each square."""
    board = p["board"]
    hands = p["hands"]
    marks = work["marks"]
    moves = out["move"]
    kinds = t["hand_kinds"]
    held = 0
    for hand in range(kinds):
        held += hands[us, hand]
    if held == 0 or n + kinds * t["squares"] >= MAX_MOVES:
        return n
    low = COLOUR_STRIDE * us
    per_file = t["features"] & PER_FILE
    for target in range(t["squares"]):
        if board[target] != 0 or (check and marks[target] & ENTERING_SAVES == 0):
            continue
        if (
            (check or (marks[target] & ENTERING_MATTERS) != 0)
            and king >= 0
            and not safe_after(t, p, OFF_BOARD, target, low + 1, OFF_BOARD, king, 1 - us)
        ):
            continue
        for hand in range(kinds):
            if (
                hands[us, hand] > 0
                and t["drop"][(us * MAX_HAND_KINDS + hand) * MAX_SQUARES + target]
            ):
                if per_file and not file_has_room(t, p, us, hand, target):
                    continue
                moves[n] = target | (DROP << KIND) | (hand << ARGUMENT)
                n += 1
    return n


@inlined
def file_has_room(t: TablesRow, p: PositionRow, us: Number, hand: Number, target: Number) -> Truth:
    """Return True if the file has fewer of the piece than it may have (two-pawns rule)."""
    most = t["per_file"][hand]
    if most == 0:
        return True
    code = 1 + t["hand_type"][hand] + COLOUR_STRIDE * us
    files = t["files"]
    found = 0
    square = target % files
    while square < t["squares"]:
        found += p["board"][square] == code
        square += files
    return found < most
