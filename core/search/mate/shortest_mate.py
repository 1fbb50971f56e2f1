"""The shortest win: after a proof, all that could end the game sooner.

A proof ends the search with the first win it came upon, and its distance is that win's. Here every
move is tried, 1, 3, 5, ... plies deep (2, 4, 6, ... for the side that has lost), until one of these
depths is won or the known distance is reached (`seek.py`). What is found is written into the graph,
nodes and proofs, so lines of play, reports and later searches know it as they know every other proof.

A line that closes a cycle is not a win here (`repetition.py`), as it is none in a proof.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.rules.kernel.make_move import play_into
from variant_ai.core.search.mate.mate_search import AGAIN, DEEPEST, YES, new_quest, seek
from variant_ai.core.search.tree.backup import recompute
from variant_ai.core.search.tree.descent import link, make_node
from variant_ai.core.search.tree.nodes import ASKS, END, LOOKED, LOST, MATES, OPEN, WON, open_edge
from variant_ai.core.search.tree.priors import expand_uniform
from variant_ai.core.search.tree.repetition import cycle_start
from variant_ai.core.search.tree.transpositions import find, insert, node_key

if TYPE_CHECKING:
    from variant_ai.core.search.tree.game_tree import Tree

POSITIONS = 200_000
"""Positions looked at for a shorter win: about a fifth of a second."""
PATIENT = 50
"""So many times more where a mate was asked for, or time does not matter."""
SLICE = 2048
"""Positions between two looks at the clock: about two milliseconds."""


class Gardener:
    """Looks for a shorter end of a tree's proven root, and plants the nodes of what it found.

    No batch may be at the evaluator. `find` leaves the graph as it is, `plant` does not.
    """

    def __init__(self, tree: Tree, positions: int, goes_on: Callable[[], bool]) -> None:
        """positions: most that are looked at. goes_on: asked every two milliseconds."""
        self._tree = tree
        self._left = positions
        self._goes_on = goes_on
        self._all = np.zeros(0, np.int32)
        self._root_at = int(tree.trail.trip[0]["root_at"])
        self._found = (0, 0)

    def find(self, allowed: Sequence[int] | None) -> bool:
        """Whether there is a shorter win, or for a lost root a quicker loss, than the known one.

        allowed: the root's moves to consider, None for all.
        """
        tree = self._tree
        record = tree.arrays.nodes[tree.root]
        lost = int(record["proof"] == LOST)
        if record["proof"] not in (WON, LOST) or (lost and allowed is not None):
            return False
        found = self.quickest(int(record["distance"]) - 2, lost=bool(lost), allowed=allowed)
        if isinstance(found, tuple):
            self._found = found
            return True
        return False

    def quickest(
        self, most: int, *, lost: bool = False, allowed: Sequence[int] | None = None
    ) -> tuple[int, int] | bool:
        """Plies and first move of the quickest win of the root's position that takes at most `most`
        plies (with `lost`: plies to its loss, and no move). False: there is none; True: there was
        not enough of positions or patience to tell.
        """
        tree = self._tree
        first = self._all if allowed is None else np.array(allowed, np.int32)
        for plies in range(1 + lost, min(most, DEEPEST, tree.params.max_depth) + 1, 2):
            answer, move = self._ask(0, plies, int(lost), first)
            if answer == YES:
                return plies, move
            if answer == AGAIN:
                return True
        return False

    def plant(self) -> None:
        """Write what was found into the graph; what memory or time cut short stays unproven."""
        root = self._tree.root
        plies, move = self._found
        if plies & 1:
            self._plant_move(root, 0, plies, move)
        elif plies:
            self._plant_loss(root, 0, plies)

    def warm_up(self) -> None:
        """Load or compile what finding and planting call. The root must be evaluated."""
        root = self._tree.root
        self.quickest(1)
        edge = self._edge_of(root, self._tree.move_of(root, 0))
        assert edge is not None  # nothing is searched yet, there is memory
        self._open(self._child(root, edge, 0), 1)
        self._settle(root)

    def _ask(self, ply: int, plies: int, lost: int, allowed: NDArray[np.int32]) -> tuple[int, int]:
        """`seek` from a ply behind the root: its answer and the winning move."""
        tree, quest = self._tree, new_quest()
        while True:
            seen = int(quest.state[0]["positions"])
            answer = seek(
                tree.tables,
                tree.settings,
                tree.trail,
                tree.bench,
                quest,
                np.int64(self._root_at + ply),
                np.int64(plies),
                np.int64(lost),
                allowed,
                np.int64(min(SLICE, max(self._left, 1))),
            )
            self._left -= int(quest.state[0]["positions"]) - seen
            if answer != AGAIN or self._left <= 0 or not self._goes_on():
                return int(answer), int(quest.state[0]["move"])

    def _plant_win(self, node: int, ply: int, most: int) -> bool:
        """Prove a node, whose position stands at a ply of the line, won in at most `most` plies,
        which it is known to be. False where that had to be left undone."""
        for plies in range(1, most + 1, 2):
            answer, move = self._ask(ply, plies, 0, self._all)
            if answer == YES:
                return self._plant_move(node, ply, plies, move)
            if answer == AGAIN:
                return False
        return False

    def _plant_move(self, node: int, ply: int, plies: int, move: int) -> bool:
        self._open(node, ply)
        edge = self._edge_of(node, move)
        child = self._child(node, edge, ply) if edge is not None else 0
        if edge is None or not child:
            return False
        planted = self._is_proven(child, LOST, plies - 1)
        planted = planted or self._plant_loss(child, ply + 1, plies - 1)
        self._settle(node)
        return planted

    def _plant_loss(self, node: int, ply: int, plies: int) -> bool:
        """Prove a node lost in at most so many plies, which it is known to be."""
        g = self._tree.arrays
        record = g.nodes[node]
        self._open(node, ply)
        planted = True
        for edge in range(int(record["count"])):
            if edge == int(record["opened"]) and not open_edge(g, np.int64(node)):
                return False
            child = self._child(node, edge, ply)
            if not child:
                return False
            if not self._is_proven(child, WON, plies - 1):
                planted = self._plant_win(child, ply + 1, plies - 1) and planted
        self._settle(node)
        return planted

    def _is_proven(self, node: int, proof: int, most: int) -> bool:
        record = self._tree.arrays.nodes[node]
        return bool(record["proof"] == proof and record["distance"] <= most)

    def _open(self, node: int, ply: int) -> None:
        """Give a node priors if it has none: proven, it needs no evaluator any more."""
        tree = self._tree
        record = tree.arrays.nodes[node]
        if record["state"] in (OPEN, END):
            if int(record["flags"]) & MATES:  # the order of its untried edges is about to change
                record["flags"] = int(record["flags"]) & ~(MATES | LOOKED)
            return
        expand_uniform(
            tree.tables,
            tree.settings,
            tree.arrays,
            np.int64(node),
            tree.trail.line,
            np.int64(self._root_at + ply),
            tree.bench.expander,
            tree.bench.checks,
            tree.bench.trial,
        )

    def _edge_of(self, node: int, move: int) -> int | None:
        """The edge of a move, opened; None where memory is full."""
        g = self._tree.arrays
        edge = self._tree.bring_forward(node, move)
        if edge == int(g.nodes[node]["opened"]) and not open_edge(g, np.int64(node)):
            return None
        return edge

    def _child(self, node: int, edge: int, ply: int) -> int:
        """The node behind an edge, made if need be, with its position on the line; 0 where memory
        is full."""
        tree, g = self._tree, self._tree.arrays
        trail, at = tree.trail, np.int64(self._root_at + ply)
        play_into(
            tree.tables, trail.line, at, trail.line, at + 1, np.int64(tree.move_of(node, edge))
        )
        cycle_start(tree.settings, trail.line, np.int64(self._root_at), at + 1, trail.past)
        slot = int(g.nodes[node]["slots"]) + edge
        child = int(g.slots[slot]["child"])
        if child:
            return child
        key = np.uint64(node_key(trail.line, at + 1, np.int64(tree.settings[0]["read"])))
        if tree.settings[0]["transpositions"]:
            child = int(find(g, key))
        known = child != 0
        if not known:
            child = int(make_node(tree.tables, tree.settings, g, trail, at + 1, key))
            if child == 0:
                return 0
            insert(g, np.int64(child), key)
        link(g, np.int64(node), np.int64(edge), np.int64(child), np.bool_(known))
        return child

    def _settle(self, node: int) -> None:
        """Bring a node up to date with its children."""
        g = self._tree.arrays
        record = g.nodes[node]
        first = int(record["slots"])
        for slot in g.slots[first : first + int(record["opened"])]:
            if slot["child"] and not int(slot["flags"]) & ASKS:
                slot["q"] = g.nodes[slot["child"]]["q"]
                slot["proof"] = g.nodes[slot["child"]]["proof"]
        recompute(g, self._tree.settings, np.int64(node))
