"""Repetition on the path: what closing a cycle is worth.

A repetition belongs to the path and not to the node: the same position reached another way is not
repeated. The second occurrence of a position counts as the end of the game where the first one lies
after the root, since the cycle can be gone round again; otherwise the spec's full fold is needed,
as in the game itself. The verdict is that of the cycle's moves (`core/rules/game.py`).

The line, POSITION records, holds the game's positions up to the root at index `root`, and the path
behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.jit import Number, Truth, array, borrowing
from variant_ai.core.jit.arrays import Key
from variant_ai.core.rules.kernel.make_move import is_in_check
from variant_ai.core.rules.kernel.rule_tables import Tables
from variant_ai.core.rules.position import Position
from variant_ai.core.search.compiled_settings import IDLE_DRAW, IDLE_FIRST_LOSES, Settings
from variant_ai.core.search.tree.nodes import UNKNOWN
from variant_ai.core.search.tree.transpositions import READS_PLY, mixed

if TYPE_CHECKING:
    from variant_ai.core.rules.game import Game

NO_CYCLE = -1

PAST = np.dtype([("key", "u8"), ("times", "i4"), ("last", "i4")])
Past: TypeAlias = Annotated[NDArray[np.void], array(PAST)]
"""How often a position occurred in the game up to the root, and its last index. An open hash
table, a power of two of entries, `times` 0 where empty."""


def past_of(keys: NDArray[np.uint64]) -> NDArray[np.void]:
    """The table of a game's position keys, the root's last."""
    size = 1 << (2 * len(keys)).bit_length()
    held, times, last = [0] * size, [0] * size, [0] * size
    for index, key in enumerate(keys.tolist()):
        at = key & (size - 1)
        while times[at] and held[at] != key:
            at = (at + 1) & (size - 1)
        held[at] = key
        times[at] += 1
        last[at] = index
    past = np.empty(size, PAST)
    past["key"], past["times"], past["last"] = np.array(held, np.uint64), times, last
    return past


def earlier(game: Game) -> list[int]:
    """Keys of the positions before a game's last one that may come again, in their order: where there
    are no hands, what a capture took does not come back."""
    has_hands = game.rules.spec.hands is not None
    pieces = np.count_nonzero(game.position["board"])
    keys: list[int] = []
    for position in reversed(game.positions[:-1]):
        if not has_hands and np.count_nonzero(position["board"]) != pieces:
            break
        keys.append(int(position["key"][0]))
    return keys[::-1]


def is_single(past: NDArray[np.void], fold: int) -> bool:
    """Whether no position occurred so often that its next occurrence ends the game: then nothing
    that was searched from the game's last position depends on the positions before it."""
    return int(past["times"].max()) < fold - 1


@borrowing
def times_before(past: Past, key: Key) -> Number:
    """Occurrences of a position in the game up to the root."""
    mask = np.uint64(past.shape[0] - 1)
    at = np.int64(key & mask)
    while past[at]["times"] != 0:
        if past[at]["key"] == key:
            return np.int64(past[at]["times"])
        at = np.int64(np.uint64(at + 1) & mask)
    return np.int64(0)


@borrowing
def cycle_start(s: Settings, line: Position, root: Number, at: Number, past: Past) -> Number:
    """Index in the line from which position `at` has gone round, NO_CYCLE where the game goes on.

    Writes the position's `repetitions`.
    """
    key = line[at]["key"]
    # with the ply in the node keys a root cannot come back as a node of its own graph
    first = root if s[0]["read"] & READS_PLY else root - 1
    k = at - 2
    while k > first:
        if line[k]["key"] == key:
            return k
        k -= 2
    times = times_before(past, key)
    if times == 0:
        return np.int64(NO_CYCLE)
    line[at]["repetitions"] = min(times, np.int64(127))
    if times + 1 < s[0]["fold"]:
        return np.int64(NO_CYCLE)
    missing = np.int64(s[0]["fold"]) - 1
    k = root
    while k >= 0:
        if line[k]["key"] == key:
            missing -= 1
            if missing == 0:
                return k
        k -= 1
    return np.int64(NO_CYCLE)


@borrowing
def checks_all_along(t: Tables, line: Position, first: Number, last: Number) -> Truth:
    """Whether the side to move was in check at `last` and every second position back to `first`."""
    k = last
    while k >= first:
        if not is_in_check(t, line, k):
            return False
        k -= 2
    return True


@borrowing
def check_verdict(t: Tables, s: Settings, line: Position, first: Number, at: Number) -> Number:
    """Value of the cycle from `first` to `at` for the side to move at its end by the rule of
    perpetual check: -1, 1, 0 where both check all along; UNKNOWN where it does not decide."""
    if not s[0]["check_loses"]:
        return np.int64(UNKNOWN)
    opponent = checks_all_along(t, line, first, at)
    mover = checks_all_along(t, line, first, at - 1)
    if opponent and mover:
        return np.int64(0)
    if opponent:
        return np.int64(1)
    if mover:
        return np.int64(-1)
    return np.int64(UNKNOWN)


@borrowing
def idle_verdict(s: Settings, line: Position, at: Number) -> Number:
    """Value of a repetition in which nobody checks or chases, for the side to move."""
    if s[0]["idle"] == IDLE_DRAW:
        return np.int64(0)
    if s[0]["idle"] == IDLE_FIRST_LOSES:
        return np.int64(-1) if line[at]["side"] == 0 else np.int64(1)
    return np.int64(1)  # `loss of mover`: who made the move has lost


JUDGED = np.dtype([("key", "u8"), ("value", "i1"), ("used", "i1")])
"""Verdicts on cycles that a judge of chases has given: an open hash table, a power of two."""
Judged: TypeAlias = Annotated[NDArray[np.void], array(JUDGED)]
ASK_FROM = 16
"""Visits that close a cycle through one edge before its chase is looked into."""
ASK_SHARE = 64
"""And one in so many of the root's visits: a judge takes as long as a thousand visits do."""


def new_judged() -> NDArray[np.void]:
    """An empty table of verdicts; half of it may be filled."""
    return np.zeros(4096, JUDGED)


@borrowing
def judged_place(judged: Judged, key: Key) -> Number:
    """Where a cycle's verdict stands, or would stand."""
    mask = np.uint64(judged.shape[0] - 1)
    at = np.int64(key & mask)
    while judged[at]["used"] and judged[at]["key"] != key:
        at = np.int64(np.uint64(at + 1) & mask)
    return at


@borrowing
def cycle_key(line: Position, first: Number, at: Number) -> Number:
    """A key of the cycle's positions in their order, uint64."""
    key = line[first]["key"]
    for k in range(first + 1, at + 1):
        key = mixed(key ^ (line[k]["key"] >> np.uint64(1)))
    return key
