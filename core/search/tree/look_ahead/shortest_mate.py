"""Shortest mate: after a proof, a search for a win with fewer plies.

A proof ends the search at the first win found, and its distance is that of this win. So all moves are
then tried, 1, 3, 5, ... plies deep (2, 4, 6, ... for a lost side), until a win is found or the known
distance is reached. The result is written into the graph as nodes and proofs, so that lines of play,
reports and later searches use it like every other proof.

    search_mate      compiled depth-first search of all moves, without graph and evaluator
    MateShortener    calls it until every reply has an answer, and writes all of that into the graph

A line that closes a cycle is not a win here (`repetition.py`), as in a proof.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.jit import Number, Truth, array, borrowing
from variant_ai.core.jit.signatures import Ints2D
from variant_ai.core.rules.kernel.game_ends import NO_END, end_of
from variant_ai.core.rules.kernel.giving_check import checks_into
from variant_ai.core.rules.kernel.movegen import VARIANT_ENDS, legal_moves_into
from variant_ai.core.rules.kernel.play_move import play_into
from variant_ai.core.rules.kernel.table_layout import MAX_MOVES, Tables
from variant_ai.core.search.compiled_settings import Settings
from variant_ai.core.search.tree.backup import recompute
from variant_ai.core.search.tree.edges import edge_arrays
from variant_ai.core.search.tree.growth import find_or_make, link
from variant_ai.core.search.tree.look_ahead.by_checks import opened_child
from variant_ai.core.search.tree.nodes import (
    END,
    LOST,
    OPEN,
    WON,
    copy_child,
    open_edge,
)
from variant_ai.core.search.tree.priors import expand_uniform
from variant_ai.core.search.tree.repetition import NO_CYCLE, cycle_start
from variant_ai.core.search.tree.working_memory import Descent, Scratch

if TYPE_CHECKING:
    from variant_ai.core.search.tree.game_tree import Tree

POSITIONS = 200_000
"""Positions searched for a shorter win: about a fifth of a second."""
PATIENT = 50
"""Factor of `POSITIONS` if a mate was asked for, or if time does not matter."""
SLICE = 2048
"""Positions between two checks of the clock: about two milliseconds."""

DEEPEST = 15
"""Plies of the longest win that is searched for."""
MATE_SEARCH = np.dtype([("ply", "i8"), ("positions", "i8"), ("move", "i8")])
FRAME = np.dtype([("count", "i8"), ("next", "i8"), ("refuter", "i8")])
NO, YES, AGAIN = range(3)
"""Results of `search_mate`."""


class DeepeningState(NamedTuple):
    """State of one `search_mate`, which can be interrupted and continued."""

    state: Annotated[NDArray[np.void], array(MATE_SEARCH)]
    """MATE_SEARCH (1,): ply to enter next, positions searched, and the winning move."""
    frames: Annotated[NDArray[np.void], array(FRAME)]
    """FRAME by ply: number of moves, next one to try, and the last one that refuted a win."""
    moves: Ints2D
    """Moves by ply, [DEEPEST + 1, MAX_MOVES]."""


def new_deepening_state() -> DeepeningState:
    """Create the state of a new search."""
    frames = np.zeros(DEEPEST + 1, FRAME)
    frames["refuter"] = -1
    return DeepeningState(
        np.zeros(1, MATE_SEARCH), frames, np.zeros((DEEPEST + 1, MAX_MOVES), np.int32)
    )


@borrowing
def search_mate(
    t: Tables,
    s: Settings,
    w: Descent,
    k: Scratch,
    q: DeepeningState,
    start: Number,
    plies: Number,
    lost: Number,
    allowed: NDArray[np.int32],
    budget: Number,
) -> Number:
    """Search for a forced win from position `start` of the line in at most `plies` plies.

    Returns YES, NO, or AGAIN if `budget` positions were not enough; then the same call continues.
    The winner is the side to move, with `lost` 1 the other side. `allowed`: moves of the first ply;
    empty: all. t: TABLES, s: SETTINGS. Overwrites the line after `start`.
    """
    state = q.state[0]
    root = np.int64(w.path_info[0]["root_at"])
    winner = np.int64(w.line[start]["side"]) ^ lost
    # if only checkmate wins, the last move is a check
    checks_only = (
        t[0]["checkmate"] < 0
        and (t[0]["stalemate"] == 0 or t[0]["stalemate"] == 1)
        and t[0]["features"] & VARIANT_ENDS == 0
    )
    ply = np.int64(state["ply"])
    end_at = np.int64(state["positions"]) + budget
    while True:
        if state["positions"] >= end_at:
            state["ply"] = ply
            return np.int64(AGAIN)
        state["positions"] += 1
        won = enter(t, s, w, k, q, start, ply, plies, lost, root, winner, checks_only, allowed)
        # back to the deepest ply that has another move to try
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
    w: Descent,
    k: Scratch,
    q: DeepeningState,
    start: Number,
    ply: Number,
    plies: Number,
    lost: Number,
    root: Number,
    winner: Number,
    checks_only: Truth,
    allowed: NDArray[np.int32],
) -> Number:
    """Evaluate the position of a ply: YES, NO, or -1 if its moves, now in the frame, must be
    tried."""
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


class Mate(NamedTuple):
    """Forced end of the game."""

    plies: int
    """Odd: the side to move wins; even: it loses."""
    move: int
    """First move of the win; 0 for a loss."""


class Proof(NamedTuple):
    """Moves of a position that prove its mate, each with the proof of the position behind it: the
    winning move, or all moves of the losing side. None: proven by the graph or the rules."""

    moves: dict[int, Proof | None]


class MateShortener:
    """Searches for a shorter end from a tree's proven root, and writes it into the graph.

    No batch may be pending. `find` searches and leaves the graph unchanged, `write` searches nothing.
    """

    compiled = (
        search_mate,
        cycle_start,
        play_into,
        find_or_make,
        expand_uniform,
        open_edge,
        link,
        opened_child,
        copy_child,
        recompute,
    )

    def __init__(self, tree: Tree, positions: int, goes_on: Callable[[], bool]) -> None:
        """positions: most positions to search. goes_on: called every two milliseconds; returns
        False to end the search."""
        self._tree = tree
        self._left = positions
        self._goes_on = goes_on
        self._root_at = int(tree.descent.path_info[0]["root_at"])
        self._proof: Proof | None = None

    def find(self, allowed: Sequence[int] | None) -> bool:
        """Return True if there is a shorter win than the known one, or for a lost root a quicker
        loss, with an answer to every reply.

        allowed: moves of the root to consider; None: all.
        """
        record = self._tree.arrays.nodes[self._tree.root]
        lost = bool(record["proof"] == LOST)
        if record["proof"] not in (WON, LOST) or (lost and allowed is not None):
            return False
        mate = self.quickest(int(record["distance"]) - 2, lost=lost, allowed=allowed)
        if mate is not None:
            self._proof = self._proof_of(self._tree.root, 0, mate)
        return self._proof is not None

    def quickest(
        self, most: int, *, lost: bool = False, allowed: Sequence[int] | None = None, ply: int = 0
    ) -> Mate | None:
        """Return the quickest win of the side to move, or with `lost` its loss, in at most `most`
        plies; None if there is none, or if positions or time ran out.

        allowed: first moves to consider; None: all. ply: index of the position on the line, counted
        from the root.
        """
        first = np.array(() if allowed is None else allowed, np.int32)
        for plies in range(1 + lost, min(most, DEEPEST, self._tree.params.max_depth) + 1, 2):
            result, move = self._search(ply, plies, lost, first)
            if result == YES:
                return Mate(plies, 0 if lost else move)
            if result == AGAIN:
                break
        return None

    def write(self) -> None:
        """Write the proof that was found into the graph. Without enough memory, nodes stay unproven."""
        if self._proof is not None:
            self._write(self._tree.root, 0, self._proof)

    def _search(
        self, ply: int, plies: int, lost: bool, allowed: NDArray[np.int32]
    ) -> tuple[int, int]:
        """Call `search_mate`, as long as positions and time last: (its result, the winning move)."""
        tree, search = self._tree, new_deepening_state()
        while True:
            before = int(search.state[0]["positions"])
            result = search_mate(
                tree.tables,
                tree.settings,
                tree.descent,
                tree.scratch,
                search,
                np.int64(self._root_at + ply),
                np.int64(plies),
                np.int64(lost),
                allowed,
                np.int64(min(SLICE, max(self._left, 1))),
            )
            self._left -= int(search.state[0]["positions"]) - before
            if result != AGAIN or self._left <= 0 or not self._goes_on():
                return int(result), int(search.state[0]["move"])

    def _proof_of(self, node: int, ply: int, mate: Mate) -> Proof | None:
        """Return the proof of a mate in the position of a ply on the line; None if positions or time
        ran out. node: of the position; 0: none."""
        line, at = self._tree.descent.line, self._root_at + ply
        moves = [mate.move]
        if mate.plies % 2 == 0:
            moves = self._tree.rules.legal_moves(line[at : at + 1]).tolist()
        proof = Proof({})
        for move in moves:
            self._play(ply, move)
            child = int(opened_child(self._tree.arrays, np.int64(node), np.int64(move)))
            if self._is_decided(child, ply + 1, mate.plies - 1):
                proof.moves[move] = None
                continue
            left = mate.plies - 1
            after = self.quickest(left, ply=ply + 1) if left % 2 else Mate(left, 0)
            below = None if after is None else self._proof_of(child, ply + 1, after)
            if below is None:
                return None
            proof.moves[move] = below
        return proof

    def _is_decided(self, node: int, ply: int, most: int) -> bool:
        """Return True if a position on the line is known to end in at most `most` plies: won for the
        side to move if `most` is odd, otherwise lost."""
        record = self._tree.arrays.nodes[node]
        if node:
            decided = record["proof"] == (WON if most % 2 else LOST)
            return bool(decided and record["distance"] <= most)
        at = self._root_at + ply
        position = self._tree.descent.line[at : at + 1]
        outcome = self._tree.rules.outcome(position)
        if outcome is None or outcome.winner is None:
            return False
        return (outcome.winner == int(position["side"][0])) == bool(most % 2)

    def _play(self, ply: int, move: int) -> None:
        """Play a move on the line, from the position of a ply."""
        tree, at = self._tree, np.int64(self._root_at + ply)
        line = tree.descent.line
        play_into(tree.tables, line, at, line, at + 1, np.int64(move))
        cycle_start(tree.settings, line, np.int64(self._root_at), at + 1, tree.descent.past)

    def _write(self, node: int, ply: int, proof: Proof) -> bool:
        """Prove a node, whose position is on the line. Returns False if memory is full."""
        g = self._tree.arrays
        self._open(node, ply)
        for move, below in proof.moves.items():
            edge = self._edge_of(node, move)
            if edge == int(g.nodes[node]["opened"]) and not open_edge(g, np.int64(node)):
                return False
            child = self._child(node, edge, ply)
            if not child or (below is not None and not self._write(child, ply + 1, below)):
                return False
        self._recompute(node)
        return True

    def _open(self, node: int, ply: int) -> None:
        """Give a node priors if it has none; a proven node needs no evaluation."""
        tree = self._tree
        record = tree.arrays.nodes[node]
        if record["state"] in (OPEN, END):
            return
        expand_uniform(
            tree.tables,
            tree.settings,
            tree.arrays,
            np.int64(node),
            tree.descent.line,
            np.int64(self._root_at + ply),
            tree.scratch,
        )

    def _edge_of(self, node: int, move: int) -> int:
        """Return the edge of a legal move; an untried one becomes the first of the untried."""
        moves, codes = edge_arrays(self._tree.arrays, node)
        edge = int(np.flatnonzero(moves == move)[0])
        opened = int(self._tree.arrays.nodes[node]["opened"])
        if edge <= opened:
            return edge
        ordered: list[NDArray[Any]] = [moves, codes]
        if node == self._tree.root and len(self._tree.descent.root_priors):
            ordered.append(self._tree.descent.root_priors)
        for values in ordered:
            values[opened : edge + 1] = np.roll(values[opened : edge + 1], 1)
        return opened

    def _child(self, node: int, edge: int, ply: int) -> int:
        """Return the child at an edge, created if needed, with its position on the line; 0 if memory
        is full."""
        tree, g = self._tree, self._tree.arrays
        at = np.int64(self._root_at + ply)
        self._play(ply, int(edge_arrays(g, node)[0][edge]))
        slot = int(g.nodes[node]["slots"]) + edge
        child = int(g.slots[slot]["child"])
        if child:
            return child
        child, known = find_or_make(tree.tables, tree.settings, g, tree.descent, at + 1)
        if child == 0:
            return 0
        link(g, np.int64(node), np.int64(edge), np.int64(child), np.bool_(known))
        return int(child)

    def _recompute(self, node: int) -> None:
        """Update a node from its children."""
        g = self._tree.arrays
        record = g.nodes[node]
        first = int(record["slots"])
        for slot in range(first, first + int(record["opened"])):
            copy_child(g, np.int64(slot))
        recompute(g, self._tree.settings, np.int64(node))
