"""Seeking a win by trying everything: plain depth-first search, no graph, no evaluator.

For short wins it is exact and quick: every move is tried, 1, 3, 5, ... plies deep. The question can
be interrupted and gone on with, since who asks has other things to see to.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.jit import Number, Truth, array, borrowing
from variant_ai.core.jit.arrays import Ints2D
from variant_ai.core.rules.kernel.game_ends import NO_END, end_of
from variant_ai.core.rules.kernel.giving_check import checks_into
from variant_ai.core.rules.kernel.make_move import play_into
from variant_ai.core.rules.kernel.movegen import MAX_MOVES, VARIANT_ENDS, legal_moves_into
from variant_ai.core.rules.kernel.rule_tables import Tables
from variant_ai.core.search.compiled_settings import Settings
from variant_ai.core.search.tree.descent import Bench, Trail
from variant_ai.core.search.tree.repetition import NO_CYCLE, cycle_start

DEEPEST = 15
"""Plies of the longest win looked for."""
QUEST = np.dtype([("ply", "i8"), ("positions", "i8"), ("move", "i8")])
FRAME = np.dtype([("count", "i8"), ("next", "i8"), ("refuter", "i8")])
NO, YES, AGAIN = range(3)


class Quest(NamedTuple):
    """What `seek` remembers; one per question."""

    state: Annotated[NDArray[np.void], array(QUEST)]
    """QUEST (1,): the ply to be entered next, positions seen, and the move that wins."""
    frames: Annotated[NDArray[np.void], array(FRAME)]
    """FRAME by ply: moves, those tried, and the last one that refuted a win."""
    moves: Ints2D
    """By ply, [DEEPEST + 1, MAX_MOVES]."""


def new_quest() -> Quest:
    """A question not asked yet."""
    frames = np.zeros(DEEPEST + 1, FRAME)
    frames["refuter"] = -1
    return Quest(np.zeros(1, QUEST), frames, np.zeros((DEEPEST + 1, MAX_MOVES), np.int32))


@borrowing
def seek(
    t: Tables,
    s: Settings,
    w: Trail,
    k: Bench,
    q: Quest,
    start: Number,
    plies: Number,
    lost: Number,
    allowed: NDArray[np.int32],
    budget: Number,
) -> Number:
    """Whether the game is won from position `start` of the line in at most `plies` plies, whatever
    the loser does: YES, NO, or AGAIN where `budget` positions did not suffice; the same call again
    goes on.

    The winner is the side to move, with `lost` 1 the other side. `allowed`: moves of the first ply,
    empty for all. t: TABLES, s: SETTINGS. Overwrites the line behind `start`.
    """
    state = q.state[0]
    root = np.int64(w.trip[0]["root_at"])
    winner = np.int64(w.line[start]["side"]) ^ lost
    # where nothing but checkmate wins, the last move is a check
    checks_only = t[0]["stalemate"] >= 0 and t[0]["features"] & VARIANT_ENDS == 0
    ply = np.int64(state["ply"])
    end_at = np.int64(state["positions"]) + budget
    while True:
        if state["positions"] >= end_at:
            state["ply"] = ply
            return np.int64(AGAIN)
        state["positions"] += 1
        won = enter(t, s, w, k, q, start, ply, plies, lost, root, winner, checks_only, allowed)
        # up to the deepest ply that has another move to try
        while won >= 0:
            if ply == 0:
                state["ply"] = 0
                return won
            ply -= 1
            frame = q.frames[ply]
            attacks = (ply & 1) == lost
            tried = np.int64(frame["next"]) - 1
            if attacks and won == YES:
                if ply == 0:
                    state["move"] = q.moves[ply, tried]
            elif not attacks and won == NO:
                frame["refuter"] = q.moves[ply, tried]
            elif frame["next"] < frame["count"]:
                won = np.int64(-1)
        frame = q.frames[ply]
        move = np.int64(q.moves[ply, np.int64(frame["next"])])
        frame["next"] += 1
        play_into(t, w.line, start + ply, w.line, start + ply + 1, move)
        ply += 1


@borrowing
def enter(
    t: Tables,
    s: Settings,
    w: Trail,
    k: Bench,
    q: Quest,
    start: Number,
    ply: Number,
    plies: Number,
    lost: Number,
    root: Number,
    winner: Number,
    checks_only: Truth,
    allowed: NDArray[np.int32],
) -> Number:
    """Look at the position of a ply: YES or NO where it is decided, -1 where its moves, now in the
    frame, have to be tried."""
    at = start + ply
    if ply > 0 and cycle_start(s, w.line, root, at, w.past) != NO_CYCLE:
        return np.int64(NO)
    n = np.int64(legal_moves_into(t, w.line, at, w.out, w.work))
    end = np.int64(end_of(t, w.line, at, n, np.int64(w.work[0]["check"])))
    if end != NO_END:
        return np.int64(YES) if (end >> 3) - 1 == winner else np.int64(NO)
    if ply == plies:
        return np.int64(NO)
    moves = q.moves[ply]
    count = np.int64(0)
    for e in range(n):
        move = w.out[0]["move"][e]
        kept = ply > 0 or allowed.shape[0] == 0
        for j in range(allowed.shape[0] if ply == 0 else 0):
            kept = kept or allowed[j] == move
        if kept:
            moves[count] = move
            count += 1
    frame = q.frames[ply]
    front = np.int64(0)
    if (ply & 1) == lost:
        gives = k.expander[0]["gives"]
        checks_into(t, w.line, at, moves, np.int64(0), count, k.checks, k.trial, gives)
        for e in range(count):
            if gives[e]:
                move = moves[e]
                moves[e] = moves[front]
                moves[front] = move
                front += 1
        if checks_only and ply == plies - 1:
            count = front
    else:
        for e in range(count):
            if moves[e] == frame["refuter"]:
                moves[e] = moves[0]
                moves[0] = np.int32(frame["refuter"])
    frame["count"] = count
    frame["next"] = 0
    return np.int64(-1) if count > 0 else np.int64(NO)
