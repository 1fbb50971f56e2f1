"""Game ends that follow from a position alone, for compiled callers; repetition is in `game.py`."""

from __future__ import annotations

import numpy as np

from variant_ai.core.jit import Number, Truth, inlined, njit
from variant_ai.core.rules.kernel.attacks import COLOUR_BIT, TYPE_MASK, attacked
from variant_ai.core.rules.kernel.table_layout import (
    BARE_KING_LOSES,
    COLOUR_BOUND,
    COUNTS_POINTS,
    DRAWS_DEAD_POSITIONS,
    FEWER_WIN,
    HELD,
    MATES,
    NEVER_MATES,
    PASSES,
    RACES,
    REACHES_SAFELY,
    WINS_BY_CHECKS,
    WINS_BY_EXTINCTION,
    WINS_BY_REACHING,
    Tables,
    TablesRow,
)
from variant_ai.core.rules.position import MAX_SQUARES, Position, PositionRow

NO_END, CHECKMATE, STALEMATE, MOVE_COUNT, VARIANT_WIN, DEAD_POSITION = range(6)
DRAWN = 2
"""Result of `variant_winner` if the game is over and neither has won."""


@inlined
def variant_winner(t: TablesRow, p: PositionRow) -> Number:
    """Return the colour that has won by a rule of `wins:` or when two have passed, DRAWN, or -1 if the
    game goes on. Records.

    Checks and goals count for the side that has just moved; a goal that must be safe counts also
    for the side to move, since the other may have stopped attacking it (as in Fairy-Stockfish). A goal
    that must be held counts for the side to move alone. A bare king to move may bare the other, if that
    takes one capture.
    """
    features = t["features"]
    us = np.int64(p["side"])
    mover = 1 - us
    if features & PASSES and p["passes"] > 1:
        return winner_of_draw(t, p)
    if features & WINS_BY_CHECKS and p["wins_left"][mover] <= 0:
        return mover
    if features & WINS_BY_EXTINCTION:
        for colour in (mover, us):
            for n in range(t["extinctions"]):
                if not has_more(t, p, colour, t["extinct_types"][n], t["extinct_left"][n]):
                    return colour if t["extinct_wins"][n] else 1 - colour
    if features & BARE_KING_LOSES:
        ours, theirs = pieces_of(t, p, us), pieces_of(t, p, mover)
        if theirs == 1 and ours > 1:
            return us
        if ours == 1 and theirs > 2:
            return mover
    if features & RACES:
        return winner_of_race(t, p, us)
    if features & HELD:
        return us if has_reached(t, p, us) else np.int64(-1)
    if features & WINS_BY_REACHING:
        if has_reached(t, p, mover):
            return mover
        if features & REACHES_SAFELY and has_reached(t, p, us):
            return us
    return np.int64(-1)


@njit
def winner_of_draw(t: TablesRow, p: PositionRow) -> Number:
    """Return the colour that wins by `points` a game that would be drawn without them, or DRAWN."""
    if not t["features"] & COUNTS_POINTS:
        return np.int64(DRAWN)
    ahead = -np.int64(t["second_points"])
    for square in range(t["squares"]):
        piece = np.int64(p["board"][square]) - 1
        if piece >= 0:
            points = np.int64(t["points"][piece & TYPE_MASK])
            ahead += -points if piece >> COLOUR_BIT else points
    return np.int64(DRAWN if ahead == 0 else ahead < 0)


@inlined
def winner_of_race(t: TablesRow, p: PositionRow, us: Number) -> Number:
    """Return the winner of a race to squares that are the goal of both, as `variant_winner` does.

    The second player moves last, so he wins at once by reaching the goal. After the first player has
    reached it, the second may follow in his next move (`awaits_answer`), which draws; if no move of
    his does, the first has won (`end_of`, `legal_moves_into`).
    """
    we, they = has_reached(t, p, us), has_reached(t, p, 1 - us)
    if we:
        return np.int64(DRAWN) if they and us == 0 else us
    return np.int64(1) if they and us == 0 else np.int64(-1)


@inlined
def awaits_answer(t: TablesRow, p: PositionRow) -> Truth:
    """Return True if the first player has just reached the goal of a race, and the second may follow."""
    return t["features"] & RACES != 0 and p["side"] == 1 and has_reached(t, p, np.int64(0))


@inlined
def has_reached(t: TablesRow, p: PositionRow, colour: Number) -> Truth:
    """Return True if a piece of the colour is on its goal, and safe there if it must be."""
    for square in range(t["squares"]):
        piece = np.int64(p["board"][square]) - 1
        if (
            t["reach"][colour * MAX_SQUARES + square]
            and piece >= 0
            and piece >> COLOUR_BIT == colour
            and (t["reach_types"] >> (piece & TYPE_MASK)) & 1
            and not (
                t["features"] & REACHES_SAFELY and attacked(t, p, 1 - colour, np.int64(square))
            )
        ):
            return True
    return False


@inlined
def pieces_of(t: TablesRow, p: PositionRow, colour: Number) -> Number:
    """Number of pieces of the colour, on the board and in hand."""
    found = pieces_on_board(t, p, colour)
    for hand in range(t["hand_kinds"]):
        found += p["hands"][colour, hand]
    return found


@inlined
def pieces_on_board(t: TablesRow, p: PositionRow, colour: Number) -> Number:
    """Number of pieces of the colour on the board."""
    found = np.int64(0)
    for square in range(t["squares"]):
        piece = np.int64(p["board"][square]) - 1
        found += piece >= 0 and piece >> COLOUR_BIT == colour
    return found


@inlined
def has_more(t: TablesRow, p: PositionRow, colour: Number, types: Number, left: Number) -> Truth:
    """Return True if the colour has more than `left` pieces of these types, on the board or in hand.
    types: a bit for each."""
    found = np.int64(0)
    for hand in range(t["hand_kinds"]):
        if (types >> t["hand_type"][hand]) & 1:
            found += p["hands"][colour, hand]
    for square in range(t["squares"]):
        if found > left:
            return True
        piece = np.int64(p["board"][square]) - 1
        found += piece >= 0 and piece >> COLOUR_BIT == colour and (types >> (piece & TYPE_MASK)) & 1
    return found > left


@inlined
def value_of_stuck(t: TablesRow, p: PositionRow, check: Number) -> Number:
    """Value for the side to move, -1, 0 or 1, if it has no legal move. check: 1 in check."""
    value = np.int64(t["checkmate"] if check else t["stalemate"])
    if value != FEWER_WIN:
        return value
    us = np.int64(p["side"])
    more = pieces_on_board(t, p, 1 - us) - pieces_on_board(t, p, us)
    return np.int64(more > 0) - np.int64(more < 0)


@inlined
def move_count_reached(t: TablesRow, p: PositionRow) -> Truth:
    """Return True if the move-count rule ends the game.

    Each check beyond `checks_counted` of the side that gave more checks lengthens the limit by two
    plies, the check and the reply (Fairy-Stockfish's interpretation of the Asian rule).
    """
    plies = np.int64(t["plies"])
    if plies == 0:
        return False
    clock = np.int64(p["clock"])
    if t["checks_counted"] >= 0:
        most = max(np.int64(p["checks"][0]), np.int64(p["checks"][1]))
        clock -= 2 * max(most - t["checks_counted"], 0)
    return clock >= plies


@njit
def cannot_mate(t: TablesRow, p: PositionRow, colour: Number) -> Truth:
    """Return True if no sequence of moves lets the colour mate with the pieces on the board.

    A colour-bound piece needs another piece, or one on the other colour of squares; a knight needs
    any other piece, of either side. For variants without hands and without other ways to win.
    """
    bound = bound_dark = bound_light = free = free_mine = 0
    for square in range(t["squares"]):
        piece = np.int64(p["board"][square]) - 1
        if piece < 0:
            continue
        mine = (piece >> COLOUR_BIT) == colour
        mating = t["mating"][piece & TYPE_MASK]
        if mating == MATES and mine:
            return False
        if mating == COLOUR_BOUND:
            bound += mine
            dark = (square % t["files"] + square // t["files"]) % 2 == 0
            bound_dark += dark
            bound_light += not dark
        elif mating != NEVER_MATES:
            free += 1
            free_mine += mine
    if bound > 0 and (free > 0 or (bound_dark > 0 and bound_light > 0)):
        return False
    return not (free_mine > 0 and free + bound_dark + bound_light >= 2)


@njit
def end_of(t: Tables, p: Position, i: Number, moves: Number, check: Number) -> Number:
    """Return the end of the game at position i. moves: number of legal moves. check: 1 in check.

    Arrays: TABLES shape (1,), POSITION shape (n,). Returns reason + 8 * (1 + winner), winner -1
    for a draw: `end & 7` is the reason (NO_END, CHECKMATE, ...), `(end >> 3) - 1` the winner.
    """
    table, position = t[0], p[i]
    winner: Number = variant_winner(table, position)
    if winner >= 0:
        return VARIANT_WIN + 8 * (0 if winner == DRAWN else 1 + winner)
    if moves == 0 and awaits_answer(table, position):
        return VARIANT_WIN + 8
    us = np.int64(position["side"])
    if moves == 0:
        value = value_of_stuck(table, position, check)
        winner = -1 if value == 0 else (us if value > 0 else 1 - us)
        return (CHECKMATE if check else STALEMATE) + 8 * (1 + winner)
    if move_count_reached(table, position):
        winner = winner_of_draw(table, position)
        return MOVE_COUNT + 8 * (0 if winner == DRAWN else 1 + winner)
    if position["count_limit"] > 0 and position["clock"] > position["count_limit"]:
        return MOVE_COUNT
    if (
        table["features"] & DRAWS_DEAD_POSITIONS
        and cannot_mate(table, position, np.int64(0))
        and cannot_mate(table, position, np.int64(1))
    ):
        return DEAD_POSITION
    return NO_END
