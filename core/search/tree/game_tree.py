"""`Tree`: the search graph of one game, the Python interface to the compiled search.

A tree belongs to one thread at a time; `Search` protects it with a lock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.encoding.encoder import Encoder
from variant_ai.core.errors import DataError
from variant_ai.core.jit.functions import load
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.kernel.kernel_rules import KernelRules
from variant_ai.core.rules.kernel.movegen import new_work
from variant_ai.core.rules.kernel.table_layout import Tables, new_moves
from variant_ai.core.rules.position import POSITION, Position
from variant_ai.core.search.compiled_settings import compile_settings
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.search.tree.chases import Chases
from variant_ai.core.search.tree.descent import NEEDS_JUDGE
from variant_ai.core.search.tree.edges import Edges, ReadableTree, edges_of, prepare_root_edges
from variant_ai.core.search.tree.growth import make_node
from variant_ai.core.search.tree.leaf_batch import LeafBatch, abandon, complete, fill
from variant_ai.core.search.tree.look_ahead.shortest_mate import MateShortener
from variant_ai.core.search.tree.nodes import (
    CLOSES_CYCLE,
    IDLE,
    JOINING,
    LOST,
    MARKING,
    MAX_VISITS,
    OPEN,
    SWEEPING,
    TABLE_SHARE,
    UNPROVEN,
    WON,
    clear,
    first_move,
    first_prior,
    new_arrays,
    reset_counters,
    share,
)
from variant_ai.core.search.tree.repetition import fill_past, is_single, past_of, repeatable
from variant_ai.core.search.tree.reuse import SLICE, begin_reclaim, reclaim
from variant_ai.core.search.tree.transpositions import find, grown, insert, move_chains, node_key
from variant_ai.core.search.tree.working_memory import (
    MATERIAL_PLIES,
    PATH_INFO,
    Descent,
    new_scratch,
)

FULL_COUNT = MAX_VISITS - (1 << 20)
"""Visits of the root at which a search ends: so far below the maximum that one slice cannot reach it."""
JUDGED_AT_ONCE = 4
"""Number of chases judged before control returns to the caller; each takes about 5 ms."""
_NOTHING = np.zeros(0, np.float32)


class Tree(ReadableTree):
    """The graph of one game."""

    shared: tuple[Callable[..., Any], ...] = (
        find,
        insert,
        move_chains,
        first_move,
        first_prior,
        complete,
        abandon,
        clear,
        reset_counters,
        share,
        fill_past,
        begin_reclaim,
        reclaim,
    )
    compiled = (
        *shared,
        node_key,
        make_node,
        fill,
        *Chases.compiled,
        *MateShortener.compiled,
    )
    """Functions that are loaded before the first game, so that it is not interrupted by a minute of
    compilation. `shared`: those that other kinds of trees need, too."""

    memory_divisor = 1
    """The graph gets `memory_mb` divided by this."""

    def __init__(self, encoder: Encoder, rules: Rules, params: SearchParams) -> None:
        self.rules = rules
        self.encoder = encoder
        self.params = params
        self.settings = compile_settings(rules.spec, params)
        self.tables = self._new_tables()
        self.memory = (params.memory_mb << 20) // self.memory_divisor
        self.arrays = new_arrays(self.memory, params.backup != "catch-up")
        self.game = None
        self._has_garbage = False
        """True if there may be nodes that the root does not reach and that no reclaim looks for."""
        self._chases = Chases(rules)
        self.descent = self._new_descent(None)
        """Arrays of the present game and search; replaced by `set_game` and `prepare_root`."""
        self.scratch = new_scratch()
        load(*self.compiled)

    def _new_tables(self) -> Tables:
        """Rules tables for compiled code."""
        assert isinstance(self.rules, KernelRules)
        return self.rules.tables

    # --- the game --------------------------------------------------------------------------------

    def set_game(self, game: Game) -> bool:
        """Set the game, which must not change afterwards; searches start from its last position. Returns
        True if the graph was kept."""
        searched = self.root != 0 and self.params.reuse_tree
        kept = searched and self._keep_graph(game)
        if not kept:
            if searched and self._is_takeback(game):
                self._has_garbage = True
            else:
                self._clear()
        self.game = game
        self.descent = self._new_descent(game)
        if not kept:
            self._make_root()
        self.descent.path_info[0]["root_end"] = int(self.arrays.nodes[self.root]["count"])
        if kept and self.params.deterministic:
            self.finish_reclaim()
        return kept

    def _clear(self) -> None:
        """Remove all nodes."""
        clear(self.arrays)
        self._has_garbage = False
        self._chases.forget()

    def judge_chases(self, on: bool) -> None:
        """Switch the judging of chases on or off; see `Search.judge_chases`."""
        knows = self.rules.spec.rules.repetition.forbids_chases
        self.settings[0]["chase_loses"] = on and knows

    def forget(self) -> None:
        """Remove all nodes, and begin again at the root."""
        assert self.game is not None
        self.arrays.state[0]["root"] = 0
        self.set_game(self.game)

    def close(self) -> None:
        """Release what the tree holds besides memory."""

    def _new_descent(self, game: Game | None) -> Descent:
        positions: Sequence[Position] = game.positions if game else ()
        line = np.zeros(len(positions) + self.params.max_depth + 2 + MATERIAL_PLIES, POSITION)
        for index, position in enumerate(positions):
            line[index] = position[0]
        path_info = np.zeros(1, PATH_INFO)
        path_info[0]["root_at"] = len(positions) - 1
        return Descent(
            line=line,
            past=past_of(line, len(positions)),
            verdicts=self._chases.verdicts,
            root_priors=_NOTHING,
            no_priors=_NOTHING,
            path_info=path_info,
            out=new_moves(2),
            work=new_work(),
        )

    def _key(self, position: Position) -> np.uint64:
        key: int = node_key(position, 0, np.int64(self.settings[0]["read"]))
        return np.uint64(key)

    def _make_root(self) -> None:
        """Create the root of a game whose position has no node."""
        descent = self.descent
        at = np.int64(descent.path_info[0]["root_at"])
        key = self._key(descent.line[at : at + 1].copy())
        node = make_node(self.tables, self.settings, self.arrays, descent, at, key)
        if node == 0:  # after a takeback, the graph searched before fills the memory
            self._clear()
            node = make_node(self.tables, self.settings, self.arrays, descent, at, key)
        insert(self.arrays, np.int64(node), key)
        self.arrays.state[0]["root"] = node

    def _keep_graph(self, game: Game) -> bool:
        """Make the node of the game's last position the root and return True, if there is such a node
        and the same positions can be repeated as when the graph was searched: values and proofs
        depend on them."""
        assert self.game is not None
        continues = self._is_continued(game)
        repeats = continues or repeatable(game) == repeatable(self.game)
        if not repeats and not self._is_takeback(game):
            return False
        key = self._key(game.position)
        g = self.arrays
        if self.settings[0]["transpositions"]:
            self._finish_sweep()
            node = int(find(g, key))
        else:
            node = self._walk_to(game) if continues else 0
        if node == 0 or g.nodes[node]["key"] != key:
            return False
        if int(g.nodes[node]["count"]) == 0:  # an end of the game that `Game` does not know
            return False
        if node != self.root:
            self._finish_sweep()
            share(g, np.int64(node))  # its parents will be freed
            g.state[0]["root"] = node
            begin_reclaim(g)
            self._has_garbage = False
        self._check_proof(game)
        return True

    def _is_continued(self, game: Game) -> bool:
        """Return True if the game is the present one, with or without new moves."""
        assert self.game is not None
        same = game.moves[: len(self.game.moves)] == self.game.moves
        return same and np.array_equal(game.positions[0], self.game.positions[0])

    def _is_takeback(self, game: Game) -> bool:
        """Return True if moves were taken back, and the graph is still valid and leaves enough
        memory: a new root finds its nodes by their keys."""
        whole = int(self.path_info["root_end"]) == int(self.arrays.nodes[self.root]["count"])
        if not (whole and self.settings[0]["transpositions"] and self.hashfull <= 500):
            return False
        assert self.game is not None
        back = game.moves == self.game.moves[: len(game.moves)]
        same = back and np.array_equal(game.positions[0], self.game.positions[0])
        return same and is_single(self.descent.past, self.rules.spec.rules.repetition.fold)

    def _walk_to(self, game: Game) -> int:
        """Without a transposition table: follow the new moves of the game. 0: there is no node."""
        assert self.game is not None
        node = self.root
        for move in game.moves[len(self.game.moves) :]:
            edges = self.edges(node)
            found = np.flatnonzero(edges.moves == move)
            node = int(edges.children[found[0]]) if len(found) else 0
            if node == 0:
                return 0
        return node

    def _check_proof(self, game: Game) -> None:
        """Remove the root's proof if, with the positions of the game, its line ends in a repetition.

        A proof is valid for every path in the graph, but not for every game before it.
        """
        g = self.arrays
        if g.nodes[self.root]["proof"] == UNPROVEN:
            return
        line = game.copy()
        nodes = [self.root]
        for move, child in self.proven_line(self.root):
            line.push(move)
            nodes.append(child)
            outcome = line.outcome()
            if outcome is not None:
                if outcome.reason in ("repetition", "perpetual check", "perpetual chase"):
                    break
                return
        else:
            return
        for node in nodes:
            if int(g.nodes[node]["count"]):
                g.nodes[node]["proof"] = UNPROVEN
                g.nodes[node]["flags"] |= CLOSES_CYCLE
                share(g, np.int64(node))  # no slot may keep a copy of the proof

    def proven_line(self, node: int) -> list[tuple[int, int]]:
        """Moves and nodes of the shortest proven win, or the longest defence, from a proven node."""
        line: list[tuple[int, int]] = []
        while int(self.arrays.nodes[node]["count"]) and len(line) < 1000:
            edges = self.edges(node)
            if self.arrays.nodes[node]["proof"] == WON:
                wins = np.flatnonzero(edges.mates > 0)
                if not len(wins):
                    break
                best = int(wins[edges.mates[wins].argmin()])
            elif self.arrays.nodes[node]["proof"] == LOST:
                best = int(edges.mates.argmin())
            else:
                break
            node = int(edges.children[best])
            line.append((int(edges.moves[best]), node))
        return line

    def shorten(
        self, positions: int, allowed: Sequence[int] | None, goes_on: Callable[[], bool]
    ) -> MateShortener | None:
        """Search for a shorter end from a proven root (`shortest_mate.py`). Returns the object that
        writes it into the graph, or None if none was found. No batch may be pending."""
        shortener = MateShortener(self, positions, goes_on)
        return shortener if shortener.find(allowed) else None

    # --- before a search -------------------------------------------------------------------------

    @property
    def root_is_open(self) -> bool:
        """True if the root has been evaluated."""
        return bool(self.arrays.nodes[self.root]["state"] == OPEN)

    def visits_at_root(self) -> int:
        """Return the visits of the root; 0 until it has been evaluated."""
        return int(self.arrays.nodes[self.root]["visits"])

    @property
    def counts_are_full(self) -> bool:
        """True if more visits could not be counted."""
        return self.visits_at_root() >= FULL_COUNT

    def begin(self) -> None:
        """Reset the counters for a new search."""
        reset_counters(self.arrays)

    def prepare_root(self, allowed: Sequence[int] | None, rng: np.random.Generator) -> None:
        """Add noise to the root's priors and set the moves that may be searched (None: all).

        The root must have been evaluated. Its untried edges are sorted, with excluded ones last.
        """
        end, priors = prepare_root_edges(self.arrays, self.root, self.params, allowed, rng)
        self.descent.path_info[0]["root_end"] = end
        self.descent = self.descent._replace(root_priors=priors)

    # --- the search ------------------------------------------------------------------------------

    def fill(
        self,
        batch: LeafBatch,
        first: int,
        end: int,
        most: int,
        enough: int | None = None,
        goes_on: Callable[[], bool] = lambda: True,
    ) -> tuple[int, int]:
        """Collect leaves: (row after the last one, outcome), see `leaf_batch.fill`.

        NEEDS_JUDGE: chases were judged, which took milliseconds, and there is more to collect.
        enough: given if the evaluator is uniform. goes_on: called before each descent that takes
        milliseconds; returns False to stop.
        """
        made = 0
        for _ in range(JUDGED_AT_ONCE):
            before = int(self.arrays.state[0]["visits"])
            result = fill(
                self.tables,
                self.encoder.input_record,
                self.settings,
                self.arrays,
                self.descent,
                batch,
                self.scratch,
                np.int64(first),
                np.int64(end),
                np.int64((enough or 0) - made),
                np.int64(most - made),
                np.int64(enough is not None),
            )
            row, outcome = int(result) >> 3, int(result) & 7
            if outcome != NEEDS_JUDGE:
                return row, outcome
            assert self.game is not None
            self._chases.judge(self.descent, self.arrays, batch.paths, list(self.game.moves))
            made += int(self.arrays.state[0]["visits"]) - before + max(row - first, 0)
            first = row
        return first, NEEDS_JUDGE

    def complete(
        self,
        batch: LeafBatch,
        rows: int,
        values: NDArray[np.float32],
        logits: NDArray[np.float32],
        draws: NDArray[np.float32] | None,
    ) -> None:
        """Expand and back up the first rows with their evaluations.

        Raises DataError if one is not a number; it and the rows after it are abandoned.
        """
        done = int(
            complete(
                self.tables,
                self.encoder.policy_record,
                self.encoder.action_table,
                self.settings,
                self.arrays,
                batch,
                self.scratch,
                np.int64(0),
                np.int64(rows),
                np.ascontiguousarray(values, np.float32),
                np.ascontiguousarray(logits, np.float32),
                _NOTHING if draws is None else np.ascontiguousarray(draws, np.float32),
            )
        )
        if done != rows:
            fen = self.rules.fen(batch.positions[done : done + 1].copy())
            self.abandon(batch, done, rows)
            raise DataError(
                f"the net's output is not a number (value {values[done]}) for the position {fen}"
            )

    def abandon(self, batch: LeafBatch, first: int, end: int) -> None:
        """Remove the virtual loss of rows `first` to `end`, whose evaluations are not needed."""
        abandon(self.arrays, batch, np.int64(first), np.int64(end))

    # --- memory ----------------------------------------------------------------------------------

    def reclaim(self, steps: int = SLICE) -> bool:
        """Free some unreachable nodes and let the hash table grow with the graph; called between
        batches. Returns False when nothing is left to free."""
        g = self.arrays
        crowded = 2 * int(g.state[0]["node_count"]) > len(g.heads)
        crowded &= 2 * g.heads.nbytes <= self.memory // TABLE_SHARE
        if crowded and g.state[0]["phase"] in (IDLE, MARKING):
            self.arrays = grown(g)
        if self.arrays.state[0]["phase"] == IDLE:
            return False
        return bool(reclaim(self.arrays, np.int64(steps)) != IDLE)

    def make_room(self) -> bool:
        """Free all unreachable nodes; returns False if there was nothing to free."""
        if self._has_garbage:
            self._finish_sweep()
            begin_reclaim(self.arrays)
            self._has_garbage = False
        if self.arrays.state[0]["phase"] == IDLE:
            return False
        self.finish_reclaim()
        return True

    def finish_reclaim(self) -> None:
        while self.reclaim(1 << 20):
            pass

    def _finish_sweep(self) -> None:
        while self.arrays.state[0]["phase"] in (SWEEPING, JOINING):
            reclaim(self.arrays, np.int64(1 << 20))

    # --- results ---------------------------------------------------------------------------------

    def edges(self, node: int) -> Edges:
        priors = self.descent.root_priors if node == self.root else _NOTHING
        return edges_of(self.arrays, node, priors)

    @property
    def path_info(self) -> np.void:
        """PATH_INFO record: root and result of the last descent."""
        return self.descent.path_info[0]  # type: ignore[no-any-return]

    @property
    def solved(self) -> bool:
        """True if the root is proven won, lost or drawn."""
        return bool(self.arrays.nodes[self.root]["proof"] != UNPROVEN)
