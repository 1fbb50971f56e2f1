"""One graph and the game it belongs to: the face of the compiled search for Python.

A tree belongs to one thread at a time; `Search` guards it with a lock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.encoding.encoder import Encoder
from variant_ai.core.errors import DataError
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.kernel.giving_check import new_checks, new_trial
from variant_ai.core.rules.kernel.kernel_rules import KernelRules
from variant_ai.core.rules.kernel.movegen import new_moves, new_work
from variant_ai.core.rules.kernel.rule_tables import Tables
from variant_ai.core.rules.position import POSITION, Position
from variant_ai.core.search.compiled_settings import compile_settings
from variant_ai.core.search.mate.shortest_mate import Gardener
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.search.tree.chases import Chases
from variant_ai.core.search.tree.descent import ASK, TRIP, Bench, Trail, make_node
from variant_ai.core.search.tree.edges import Edges, edge_arrays, edges_of
from variant_ai.core.search.tree.leaf_batch import Batch, abandon, complete, fill, new_batch
from variant_ai.core.search.tree.nodes import (
    CLOSES,
    IDLE,
    JOINING,
    LOST,
    MARKING,
    MOST_VISITS,
    OPEN,
    SWEEPING,
    TABLE_SHARE,
    UNPROVEN,
    WON,
    Arrays,
    bytes_used,
    clear,
    new_arrays,
    reset_counters,
    share,
)
from variant_ai.core.search.tree.priors import EXPANDER
from variant_ai.core.search.tree.repetition import earlier, is_single, past_of
from variant_ai.core.search.tree.reuse import SLICE, begin_reclaim, reclaim
from variant_ai.core.search.tree.root_noise import arrange
from variant_ai.core.search.tree.transpositions import find, grown, insert, node_key

FULL_COUNT = MOST_VISITS - (1 << 20)
"""Visits of the root at which a search ends: below the greatest count by more than one slice makes."""
ASKED_AT_ONCE = 4
"""Chases judged before the caller may see to other things, at about 5 ms each."""
_NOTHING = np.zeros(0, np.float32)
_warm: set[str] = set()
"""Variants for which everything compiled was called once in this process."""


class Tree:
    """The graph of one game."""

    def __init__(self, encoder: Encoder, rules: Rules, params: SearchParams) -> None:
        self.rules = rules
        self.encoder = encoder
        self.params = params
        self.settings = compile_settings(rules.spec, params)
        self.tables = self._new_tables()
        self.arrays: Arrays = new_arrays(params.memory_mb << 20, params.backup != "catch-up")
        self.root = 0
        self.game: Game | None = None
        self._moves: list[int] = []
        """Of the game when it was set: its owner may play on it."""
        self._start: Position | None = None
        self._earlier: list[int] = []
        """Keys of its positions that may come again."""
        self._loose = False
        """Whether there may be nodes which the root does not reach and nobody looks for."""
        self._chases = Chases(rules)
        self.trail = self._new_trail(None)
        """Of the present game and search; replaced by `set_game` and `prepare_root`."""
        self.bench: Bench = Bench(np.zeros(1, EXPANDER), new_checks(), new_trial())
        if rules.spec.variant not in _warm:
            self._warm_up()
            _warm.add(rules.spec.variant)

    def _new_tables(self) -> Tables:
        """What compiled code knows of the rules."""
        assert isinstance(self.rules, KernelRules)
        return self.rules.tables

    def _warm_up(self) -> None:
        """Load or compile what a search calls only now and then: a minute's compilation must not
        fall into the first game."""
        batch = new_batch(1, 0, 1)
        self.set_game(Game(self.rules))
        self.fill(batch, 0, 1, 1)
        self.abandon(batch, 0, 1)
        self.fill(batch, 0, 1, 1)
        logits = np.zeros((1, self.encoder.actions), np.float32)
        self.complete(batch, 0, 1, np.zeros(1, np.float32), logits, None)
        grown(self.arrays)
        find(self.arrays, self._key(self.trail.line[:1].copy()))
        share(self.arrays, np.int64(self.root))
        begin_reclaim(self.arrays)
        self.finish_reclaim()
        self._chases.warm_up(self.trail)
        self._warm_up_rare(batch)
        self.forget()

    def _warm_up_rare(self, batch: Batch) -> None:
        """What only some searches come to; the root is evaluated, the graph forgotten afterwards."""
        Gardener(self, 1, lambda: False).warm_up()

    # --- the game --------------------------------------------------------------------------------

    def set_game(self, game: Game) -> bool:
        """Search from the game's last position. Returns whether what is known of it was kept."""
        searched = self.root != 0 and self.params.reuse_tree
        kept = searched and self._go_on(game)
        if not kept:
            if searched and self._goes_back(game):
                self._loose = True
            else:
                self._uproot()
        self.game = game
        self._moves, self._start = list(game.moves), game.positions[0].copy()
        self._earlier = earlier(game)
        self.trail = self._new_trail(game)
        if not kept:
            self._plant()
        self.trail.trip[0]["root_end"] = int(self.arrays.nodes[self.root]["count"])
        if kept and self.params.deterministic:
            self.finish_reclaim()
        return kept

    def _uproot(self) -> None:
        """Nothing is known any more."""
        clear(self.arrays)
        self.root = 0
        self._loose = False
        self._chases.forget()

    def after(self, position: Position, move: int, child: int) -> Position:
        """The position after a move that leads to the node `child`, or to none (0)."""
        return self.rules.play(position, move)

    def judge_chases(self, on: bool) -> None:
        """See `Search.judge_chases`."""
        knows = self.rules.spec.rules.repetition.perpetual_chase != "none"
        self.settings[0]["chase_loses"] = on and knows

    def forget(self) -> None:
        """Drop the graph."""
        self._uproot()
        self.game = None

    def close(self) -> None:
        """Let go what the tree holds besides memory."""

    def _new_trail(self, game: Game | None) -> Trail:
        positions: Sequence[Position] = game.positions if game else ()
        line = np.zeros(len(positions) + self.params.max_depth + 2, POSITION)
        for index, position in enumerate(positions):
            line[index] = position[0]
        trip = np.zeros(1, TRIP)
        trip[0]["root_at"] = len(positions) - 1
        keys = line["key"][: len(positions)].copy()
        return Trail(
            line=line,
            past=past_of(keys),
            judged=self._chases.judged,
            root_priors=_NOTHING,
            no_priors=_NOTHING,
            trip=trip,
            out=new_moves(2),
            work=new_work(),
        )

    def _key(self, position: Position) -> np.uint64:
        key: int = node_key(position, 0, np.int64(self.settings[0]["read"]))
        return np.uint64(key)

    def _plant(self) -> None:
        """The first node."""
        trail = self.trail
        at = np.int64(trail.trip[0]["root_at"])
        key = self._key(trail.line[at : at + 1].copy())
        node = make_node(self.tables, self.settings, self.arrays, trail, at, key)
        if node == 0:  # what was searched before moves were taken back fills the memory
            self._uproot()
            node = make_node(self.tables, self.settings, self.arrays, trail, at, key)
        insert(self.arrays, np.int64(node), key)
        self._take_root(int(node))

    def _take_root(self, node: int) -> None:
        self.root = node
        self.arrays.state[0]["root"] = node

    def _go_on(self, game: Game) -> bool:
        """Make the node of the game's last position the root, if there is one, and its graph was
        searched with the same past: values and proofs hold where the same lines repeat."""
        continues = self._continues(game)
        if not continues and earlier(game) != self._earlier and not self._goes_back(game):
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
        if int(g.nodes[node]["count"]) == 0:  # an end that the game does not see
            return False
        if node != self.root:
            self._finish_sweep()
            share(g, np.int64(node))  # its parents are about to go
            self._take_root(node)
            begin_reclaim(g)
            self._loose = False
        self._check_proof(game)
        return True

    def _continues(self, game: Game) -> bool:
        """Whether the game is the present one, played on or as it is."""
        assert self._start is not None
        same = game.moves[: len(self._moves)] == self._moves
        return same and np.array_equal(game.positions[0], self._start)

    def _goes_back(self, game: Game) -> bool:
        """Whether moves were taken back, the graph holds for the game before them, and leaves room
        for more: a new root will meet its nodes by their keys."""
        whole = int(self.trip["root_end"]) == int(self.arrays.nodes[self.root]["count"])
        if not (whole and self.settings[0]["transpositions"] and self.hashfull <= 500):
            return False
        assert self._start is not None
        back = game.moves == self._moves[: len(game.moves)]
        same = back and np.array_equal(game.positions[0], self._start)
        return same and is_single(self.trail.past, self.rules.spec.rules.repetition.fold)

    def _walk_to(self, game: Game) -> int:
        """Without a table: follow the moves that were played since."""
        node = self.root
        for move in game.moves[len(self._moves) :]:
            edges = self.edges(node)
            places = np.flatnonzero(edges.moves == move)
            node = int(edges.children[places[0]]) if len(places) else 0
            if node == 0:
                return 0
        return node

    def _check_proof(self, game: Game) -> None:
        """A proof holds for every path; the game's own history may still cut the line short."""
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
                g.nodes[node]["flags"] |= CLOSES
                share(g, np.int64(node))  # no slot may keep the proof

    def proven_line(self, node: int) -> list[tuple[int, int]]:
        """Moves and nodes of the shortest proven win or the longest defence from a proven node."""
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
    ) -> Gardener | None:
        """Look for a shorter end of a proven root (`shortest.py`): who can plant it, or None where
        none was found. No batch may be at the evaluator."""
        gardener = Gardener(self, positions, goes_on)
        return gardener if gardener.find(allowed) else None

    def move_of(self, node: int, edge: int) -> int:
        return int(edge_arrays(self.arrays, node)[0][edge])

    def bring_forward(self, node: int, move: int) -> int:
        """The edge of a legal move; an untried one becomes the first of these."""
        record = self.arrays.nodes[node]
        moves, codes = edge_arrays(self.arrays, node)
        edge, opened = int(np.flatnonzero(moves == move)[0]), int(record["opened"])
        if edge <= opened:
            return edge
        orders: list[NDArray[Any]] = [moves, codes]
        if node == self.root and len(self.trail.root_priors):
            orders.append(self.trail.root_priors)
        for values in orders:
            values[opened : edge + 1] = np.roll(values[opened : edge + 1], 1)
        return opened

    # --- before a search -------------------------------------------------------------------------

    @property
    def root_is_open(self) -> bool:
        """Whether the root has been evaluated."""
        return bool(self.arrays.nodes[self.root]["state"] == OPEN)

    def visits_at_root(self) -> int:
        """0 until it has been evaluated."""
        return int(self.arrays.nodes[self.root]["visits"])

    @property
    def counts_are_full(self) -> bool:
        """Whether more visits could not be counted."""
        return self.visits_at_root() >= FULL_COUNT

    def begin(self) -> None:
        """Start the counts of a search."""
        reset_counters(self.arrays)

    def worth_searching(self) -> list[int] | None:
        """Moves to search where nobody names any: without those that lose at once by repetition,
        unless all do. None: all.

        A policy that likes nothing else would give a lost move most visits of a short search.
        """
        assert self.game is not None
        lost = self.game.lost_at_once()
        kept = [int(move) for move in self.game.legal_moves() if move not in lost]
        return kept if lost and kept else None

    def prepare_root(self, allowed: Sequence[int] | None, rng: np.random.Generator) -> None:
        """Noise in the root's priors, and the moves the search may use (None: all).

        The root must have been evaluated. Its untried edges are sorted anew, those left out last.
        """
        end, priors = arrange(self.arrays, self.root, self.params, allowed, rng)
        self.trail.trip[0]["root_end"] = end
        self.trail = self.trail._replace(root_priors=priors)

    # --- the search ------------------------------------------------------------------------------

    def fill(
        self,
        batch: Batch,
        first: int,
        end: int,
        most: int,
        enough: int | None = None,
        goes_on: Callable[[], bool] = lambda: True,
    ) -> tuple[int, int]:
        """Gather leaves: (row behind the last, outcome), see `batch.fill`. ASK: chases were judged,
        which took milliseconds, and there is more to gather. `enough`: the evaluator is uniform.
        `goes_on` is asked before each descent that takes milliseconds, and ends them."""
        made = 0
        for _ in range(ASKED_AT_ONCE):
            before = int(self.arrays.state[0]["visits"])
            result = fill(
                self.tables,
                self.encoder.input_record,
                self.settings,
                self.arrays,
                self.trail,
                batch,
                self.bench,
                np.int64(first),
                np.int64(end),
                np.int64((enough or 0) - made),
                np.int64(most - made),
                np.int64(enough is not None),
            )
            row, outcome = int(result) >> 3, int(result) & 7
            if outcome != ASK:
                return row, outcome
            assert self.game is not None
            self._chases.ask(self.trail, self.arrays, batch.paths, list(self.game.moves))
            made += int(self.arrays.state[0]["visits"]) - before + max(row - first, 0)
            first = row
        return first, ASK

    def complete(
        self,
        batch: Batch,
        first: int,
        end: int,
        values: NDArray[np.float32],
        logits: NDArray[np.float32],
        draws: NDArray[np.float32] | None,
    ) -> None:
        """Take the evaluator's answer for rows `first` to `end`.

        Raises DataError where it is not a number; those rows are given up.
        """
        done = int(
            complete(
                self.tables,
                self.encoder.policy_record,
                self.encoder.action_table,
                self.settings,
                self.arrays,
                batch,
                self.bench,
                np.int64(first),
                np.int64(end),
                np.ascontiguousarray(values, np.float32),
                np.ascontiguousarray(logits, np.float32),
                _NOTHING if draws is None else np.ascontiguousarray(draws, np.float32),
            )
        )
        if done != end:
            fen = self.rules.fen(batch.positions[done : done + 1].copy())
            self.abandon(batch, done, end)
            raise DataError(
                f"the net's answer is not a number (value {values[done]}) for the position {fen}"
            )

    def abandon(self, batch: Batch, first: int, end: int) -> None:
        """Undo rows `first` to `end`."""
        abandon(self.arrays, batch, np.int64(first), np.int64(end))

    # --- memory ----------------------------------------------------------------------------------

    def reclaim(self, steps: int = SLICE) -> bool:
        """Free a little of what cannot be reached any more, and let the hash table grow with the
        graph: what there is to do between batches. False when nothing is left to free."""
        g = self.arrays
        crowded = 2 * int(g.state[0]["node_count"]) > len(g.heads)
        crowded &= 2 * g.heads.nbytes <= (self.params.memory_mb << 20) // TABLE_SHARE
        if crowded and g.state[0]["phase"] in (IDLE, MARKING):
            self.arrays = grown(g)
        if self.arrays.state[0]["phase"] == IDLE:
            return False
        return bool(reclaim(self.arrays, np.int64(steps)) != IDLE)

    def make_room(self) -> bool:
        """Free all that cannot be reached any more; False where there was nothing to free."""
        if self._loose:
            self._finish_sweep()
            begin_reclaim(self.arrays)
            self._loose = False
        if not self.reclaim():
            return False
        self.finish_reclaim()
        return True

    def finish_reclaim(self) -> None:
        while self.reclaim(1 << 20):
            pass

    def _finish_sweep(self) -> None:
        while self.arrays.state[0]["phase"] in (SWEEPING, JOINING):
            reclaim(self.arrays, np.int64(1 << 20))

    @property
    def hashfull(self) -> int:
        """Share of the memory in use, per mille."""
        limit = self.params.memory_mb << 20
        return min(1000, bytes_used(self.arrays) * 1000 // limit)

    # --- what it knows ---------------------------------------------------------------------------

    def edges(self, node: int) -> Edges:
        """The edges of a node."""
        priors = self.trail.root_priors if node == self.root else _NOTHING
        return edges_of(self.arrays, node, priors)

    @property
    def trip(self) -> np.void:
        """TRIP record of the last descent."""
        return self.trail.trip[0]  # type: ignore[no-any-return]

    def counter(self, name: str) -> int:
        """A counter of the present search: visits, evaluations, terminals, collisions, merges..."""
        return int(self.arrays.state[0][name])

    @property
    def solved(self) -> bool:
        return bool(self.arrays.nodes[self.root]["proof"] != UNPROVEN)
