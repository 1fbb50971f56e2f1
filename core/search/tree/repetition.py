"""Repetition on the path: the value of a move that closes a cycle.

A repetition belongs to the path and not to the node: the same position reached in another way is not
a repetition. If the first occurrence of a position is after the root, the second one counts as the
end of the game, because the cycle can be repeated. Otherwise the spec's full fold is needed, as in the
game itself. The verdict depends on the moves of the cycle (`core/rules/game.py`).

The line, POSITION records, holds the game's positions up to the root at index `root`, then the path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.jit import Number, Truth, array, borrowing
from variant_ai.core.jit.random_numbers import mixed
from variant_ai.core.jit.signatures import Key
from variant_ai.core.rules.kernel.game_ends import DRAWN, winner_of_draw
from variant_ai.core.rules.kernel.play_move import is_in_check
from variant_ai.core.rules.kernel.table_layout import Tables
from variant_ai.core.rules.position import Position
from variant_ai.core.search.compiled_settings import IDLE_DRAW, IDLE_FIRST_LOSES, Settings
from variant_ai.core.search.tree.nodes import UNKNOWN
from variant_ai.core.search.tree.transpositions import READS_PLY

if TYPE_CHECKING:
    from variant_ai.core.rules.game import Game

NO_CYCLE = -1

PAST = np.dtype([("key", "u8"), ("times", "i8")])
Past: TypeAlias = Annotated[NDArray[np.void], array(PAST)]
"""Number of occurrences of each position in the game up to the root: an open hash table with a power
of two of entries; `times` is 0 in empty ones."""


def past_of(line: Position, count: int) -> NDArray[np.void]:
    """Build the table of a game from the first `count` positions of its line."""
    past = np.empty(1 << (2 * count).bit_length(), PAST)
    fill_past(past, line, np.int64(count))
    return past


def repeatable(game: Game) -> list[int]:
    """Keys of the positions before a game's last one that may occur again, in their order. Without
    hands, a position from before the last capture cannot."""
    has_hands = game.rules.spec.hands is not None
    pieces = np.count_nonzero(game.position["board"])
    keys: list[int] = []
    for position in reversed(game.positions[:-1]):
        if not has_hands and np.count_nonzero(position["board"]) != pieces:
            break
        keys.append(int(position["key"][0]))
    return keys[::-1]


def is_single(past: NDArray[np.void], fold: int) -> bool:
    """Return True if no position occurred so often that its next occurrence ends the game: then the
    search from the game's last position did not depend on the positions before it."""
    return int(past["times"].max()) < fold - 1


@borrowing
def past_index(past: Past, key: Key) -> Number:
    """Index of a position's entry, or of the empty entry for it."""
    mask = np.uint64(past.shape[0] - 1)
    at = np.int64(key & mask)
    while past[at]["times"] != 0 and past[at]["key"] != key:
        at = np.int64(np.uint64(at + 1) & mask)
    return at


@borrowing
def remember(past: Past, key: Key) -> Number:
    """Add a position to the past; returns its number of occurrences before."""
    entry = past[past_index(past, key)]
    before = np.int64(entry["times"])
    entry["key"] = key
    entry["times"] = before + 1
    return before


@borrowing
def fill_past(past: Past, line: Position, count: Number) -> None:
    """Make the table from the first `count` positions of a line."""
    for k in range(past.shape[0]):
        past[k]["times"] = 0
    for k in range(count):
        remember(past, line[k]["key"])


@borrowing
def times_before(past: Past, key: Key) -> Number:
    """Number of occurrences of a position in the game up to the root."""
    return np.int64(past[past_index(past, key)]["times"])


@borrowing
def cycle_start(s: Settings, line: Position, root: Number, at: Number, past: Past) -> Number:
    """Index in the line where the cycle that ends at position `at` begins; NO_CYCLE if there is none, or
    two passes have ended the game.

    Writes the position's `repetitions`.
    """
    key = line[at]["key"]
    if line[at]["passes"] > 1:
        return np.int64(NO_CYCLE)
    # with the ply in the node keys the root cannot occur again in its own graph
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
    """Return True if the side to move was in check at `last` and at every second position back to
    `first`."""
    k = last
    while k >= first:
        if not is_in_check(t, line, k):
            return False
        k -= 2
    return True


@borrowing
def check_verdict(t: Tables, s: Settings, line: Position, first: Number, at: Number) -> Number:
    """Value of the cycle from `first` to `at` by the rule of perpetual check, for the side to move at
    its end: -1, 1, that of a draw if both sides always give check, UNKNOWN if the rule does not
    apply."""
    if not s[0]["check_loses"]:
        return np.int64(UNKNOWN)
    opponent = checks_all_along(t, line, first, at)
    mover = checks_all_along(t, line, first, at - 1)
    if opponent and mover:
        return drawn_verdict(t, line, at)
    if opponent:
        return np.int64(1)
    if mover:
        return np.int64(-1)
    return np.int64(UNKNOWN)


@borrowing
def drawn_verdict(t: Tables, line: Position, at: Number) -> Number:
    """Value of a draw for the side to move: 0, or that of `points`."""
    winner = winner_of_draw(t[0], line[at])
    if winner == DRAWN:
        return np.int64(0)
    return np.int64(1) if winner == line[at]["side"] else np.int64(-1)


@borrowing
def idle_verdict(t: Tables, s: Settings, line: Position, at: Number) -> Number:
    """Value of a repetition without perpetual check or chase, for the side to move."""
    if s[0]["idle"] == IDLE_DRAW:
        return drawn_verdict(t, line, at)
    if s[0]["idle"] == IDLE_FIRST_LOSES:
        return np.int64(-1) if line[at]["side"] == 0 else np.int64(1)
    return np.int64(1)  # `loss of mover`: the side that made the last move loses


VERDICT = np.dtype([("key", "u8"), ("value", "i1"), ("used", "i1")])
"""Verdict of the chase judge on a cycle; in an open hash table with a power of two of entries."""
Verdicts: TypeAlias = Annotated[NDArray[np.void], array(VERDICT)]
JUDGE_FROM = 16
"""Visits of an edge that close a cycle before its chase is judged."""
JUDGE_SHARE = 64
"""These visits must also be at least 1/64 of the root's visits: judging takes as long as a thousand
visits."""


def new_verdicts() -> NDArray[np.void]:
    """Create an empty table of verdicts; at most half of it may be filled."""
    return np.zeros(4096, VERDICT)


@borrowing
def verdict_index(verdicts: Verdicts, key: Key) -> Number:
    """Index of a cycle's verdict, or of the empty entry for it."""
    mask = np.uint64(verdicts.shape[0] - 1)
    at = np.int64(key & mask)
    while verdicts[at]["used"] and verdicts[at]["key"] != key:
        at = np.int64(np.uint64(at + 1) & mask)
    return at


@borrowing
def cycle_key(line: Position, first: Number, at: Number) -> Number:
    """Hash of the cycle's positions in their order, uint64."""
    key = line[first]["key"]
    for k in range(first + 1, at + 1):
        key = mixed(key ^ (line[k]["key"] >> np.uint64(1)))
    return key
