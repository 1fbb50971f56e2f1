"""`PositionSearches`: many positions searched at once with shared batches, as `Search` would search
each of them; `analyse_many`: a report for each.

They have the settings and the reports of an ordinary search. What differs: a search has one waiting
leaf at a time, so that nothing is chosen by virtual losses; no tree is reused; and a proven position
keeps the first proof.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.inference.interface import Evaluation, Evaluator
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.kernel.kernel_rules import is_compiled
from variant_ai.core.rules.kernel.table_layout import MAX_MOVES
from variant_ai.core.search.compiled_settings import compile_settings
from variant_ai.core.search.forest.forest_arrays import (
    CHOICE,
    ENDED,
    IDLE,
    cells_for_visits,
    descent_of,
    graph_of,
    new_forest,
)
from variant_ai.core.search.forest.forest_kernels import gather_leaves
from variant_ai.core.search.forest.shared_batches import SharedBatches
from variant_ai.core.search.interface import BaseSearch
from variant_ai.core.search.move.limits import MOST, Limits
from variant_ai.core.search.move.variations import make_report, visited_moves
from variant_ai.core.search.net_view import encoder_and_rules, with_last_moves
from variant_ai.core.search.report import Report
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.search.tree.chases import Chases
from variant_ai.core.search.tree.descent import FULL
from variant_ai.core.search.tree.edges import (
    Edges,
    ReadableTree,
    edges_of,
    moves_to_search,
    prepare_root_edges,
)
from variant_ai.core.search.tree.leaf_batch import batch_for
from variant_ai.core.search.tree.nodes import CELL, UNPROVEN, Arrays
from variant_ai.core.spec.schema import VariantSpec

MOST_AT_ONCE = 256
"""Most positions that are searched at once when only visits limit them."""
USUAL_VISIT = 2048
"""Bytes that a visit takes if a hundred moves are legal."""
_NO_PRIORS = np.zeros(0, np.float32)


@dataclass
class _Search(ReadableTree):
    """The search of one position; its graph as reports read it."""

    game: Game
    rules: Rules
    rng: np.random.Generator
    allowed: Sequence[int] | None
    """Moves of the root to search; None: all."""
    arrays: Arrays
    memory: int
    begun: float
    root_priors: NDArray[np.float32]
    complete: bool = False
    root_edges: Edges | None = None
    """Those of a complete search, once they were read."""

    def edges(self, node: int) -> Edges:
        if node != self.root:
            return edges_of(self.arrays, node, _NO_PRIORS)
        edges = self.root_edges or edges_of(self.arrays, node, self.root_priors)
        self.root_edges = edges if self.complete else None
        return edges


class PositionSearches(SharedBatches):
    """Trees that share one evaluator, each for the search of one position at a time. Not for several
    threads."""

    def __init__(
        self,
        spec: VariantSpec,
        evaluator: Evaluator,
        params: SearchParams,
        trees: int,
        *,
        positions: int,
        nodes: int | None = None,
        rules: Rules | None = None,
    ) -> None:
        """Divide the memory of `params` among the trees, at least 1 MB each, or less if `nodes` visits
        need less. positions: most positions of a game up to the one that is searched, which is
        counted; nodes: most visits of a search.

        Raises DataError if the shapes of the evaluator and the spec's planes differ, or if the rules
        are not compiled.
        """
        super().__init__(spec, evaluator, trees, rules)
        # One waiting leaf a tree: other ways to back up differ in nothing that it needs memory for.
        self.params = params.fitted_to(evaluator, self.rules.spec).replace(
            backup="catch-up", virtual_loss=1.0
        )
        self._compiled = compile_settings(self.rules.spec, self.params)
        self._choice = np.zeros(1, CHOICE)
        self._choice[0]["full_share"] = 1.0
        cells = max(1, (params.memory_mb << 20) // trees, 1 << 20) // CELL
        if nodes is not None:
            cells = min(cells, cells_for_visits(nodes))
        depth = self.params.max_depth
        self._chases = Chases(self.rules)
        forest = new_forest(trees, cells, depth, positions, np.zeros((2, 1), np.int32))
        self.forest = forest._replace(verdicts=self._chases.verdicts)
        self._batch = batch_for(self.encoder, evaluator, trees, depth)
        self._progress = np.zeros(2, np.int64)
        self._searches: dict[int, _Search] = {}
        """By tree."""
        self._knows_draws = False
        self._uniform: Evaluation | None = None
        if evaluator.is_uniform:
            planes = np.zeros((trees, *evaluator.planes_shape), np.float32)
            self._uniform = evaluator.evaluate(planes)

    def start(self, tree: int, game: Game, nodes: int | None, rng: np.random.Generator) -> None:
        """Search the last position of a game, which must not be its end, with `nodes` visits (None:
        as many as the memory holds). rng: of the noise and the choice of the move."""
        searched = with_last_moves(game, self.rules)
        record = self.forest.trees[tree]
        record["game"] = tree
        record["priors"] = 0
        self._choice[0]["nodes"] = MOST if nodes is None else nodes
        self._begin(tree, searched)
        arrays = graph_of(self.forest, tree)
        self._searches[tree] = _Search(
            searched,
            self.rules,
            rng,
            moves_to_search(searched),
            arrays,
            arrays.nodes.nbytes,
            time.perf_counter(),
            _NO_PRIORS,
        )

    def step(self) -> list[int]:
        """Evaluate a leaf of each search; returns the trees whose searches are complete since the last
        call. Raises DataError for an evaluation that is not a number."""
        f = self.forest
        self._progress[:] = 0
        while not gather_leaves(
            self.rules.tables,
            self.encoder.input_record,
            self._compiled,
            f,
            self._batch,
            self._scratch,
            self.cache,
            self._owners,
            self._progress,
        ):
            self._judge(int(self._progress[0]))
        rows = int(self._progress[1])
        if rows:
            self._evaluate(rows)
        complete = np.flatnonzero(f.trees["state"] == ENDED)
        f.trees["state"][complete] = IDLE
        for tree in complete.tolist():
            self._searches[tree].complete = True
        return [int(tree) for tree in complete]

    def _judge(self, tree: int) -> None:
        """Judge the chase that the last descent of a tree has closed."""
        search = self._searches[tree]
        descent = descent_of(self.forest, tree)
        self._chases.judge(descent, search.arrays, self._batch.paths, list(search.game.moves))

    def _evaluate(self, rows: int) -> None:
        out = self._uniform
        if out is None:
            out = self._evaluated(rows)
            self._knows_draws = out.wdl is not None
        self._back_up(rows, out)
        owners = self._owners[:rows]
        for tree in owners[self.forest.trees["prepared"][owners] == 0].tolist():
            self._prepare_root(tree)

    def _prepare_root(self, tree: int) -> None:
        """Add noise to the priors of an evaluated root, and restrict its moves."""
        search, f = self._searches[tree], self.forest
        end, priors = prepare_root_edges(
            search.arrays, search.root, self.params, search.allowed, search.rng
        )
        f.path_infos[tree]["root_end"] = end
        f.root_scores[tree * MAX_MOVES : tree * MAX_MOVES + len(priors)] = priors
        f.trees[tree]["priors"] = len(priors)
        f.trees[tree]["prepared"] = 1
        search.root_priors = priors

    def report(self, tree: int, *, pv: bool = True) -> Report:
        """Report the last search of a tree. pv: with a whole line of play."""
        search = self._searches[tree]
        return make_report(
            search,
            self.params,
            multipv=1,
            allowed=search.allowed,
            knows_draws=self._knows_draws,
            seconds=time.perf_counter() - search.begun,
            stopped_by=self._reason(tree, search),
            rng=search.rng,
            pv=pv,
        )

    def _reason(self, tree: int, search: _Search) -> str:
        record = self.forest.trees[tree]
        if search.arrays.nodes[search.root]["proof"] != UNPROVEN:
            return "solved"
        if record["stuck"]:
            return "memory" if record["stuck"] == FULL else "solved"
        return "simulations" if search.counter("visits") >= record["nodes"] else "movetime"

    def root_visits(self, tree: int) -> list[tuple[int, int]]:
        """Return (move, visits) of the last search of a tree, as `Search.root_visits` does."""
        search = self._searches[tree]
        return visited_moves(search.edges(search.root), search.allowed)

    def root_value(self, tree: int) -> float:
        """Mean value of the last search of a tree for the player to move, in [-1, 1]."""
        search = self._searches[tree]
        return float(search.arrays.nodes[search.root]["q"])


def analyse_many(
    spec: VariantSpec,
    evaluator: Evaluator,
    games: Sequence[Game],
    params: SearchParams | None = None,
    *,
    nodes: int | None = None,
    movetime: float | None = None,
    rules: Rules | None = None,
) -> list[Report]:
    """Search the last positions of games; returns a report for each, in order.

    nodes: visits of each search. movetime: seconds for all of them together; with it all begin at
    once, otherwise as many as the memory of `params` is enough for. Rules that are not compiled are
    searched one position after the other. Raises DataError if the evaluator does not fit the spec.
    """
    deadline = None if movetime is None else time.perf_counter() + movetime
    params = params or SearchParams.of(spec)
    reports = [Report(best=None, stopped_by="game over") for _ in games]
    waiting = deque(index for index, game in enumerate(games) if game.outcome() is None)
    if not waiting:
        return reports
    _, known = encoder_and_rules(evaluator, spec, rules)
    if not is_compiled(known):
        from variant_ai.core.search.search import Search

        with Search(spec, evaluator, params, rules=known) as search:
            _analyse_in_turn(search, games, nodes, movetime, waiting, reports)
        return reports
    trees = len(waiting)
    if nodes is not None and movetime is None:
        fitting = (params.memory_mb << 20) // (USUAL_VISIT * (nodes + 1))
        trees = min(trees, MOST_AT_ONCE, max(1, fitting))
    searches = PositionSearches(
        spec,
        evaluator,
        params,
        trees,
        positions=max(len(games[index].positions) for index in waiting),
        nodes=nodes,
        rules=known,
    )
    game_of: dict[int, int] = {}
    """Index of the game that each tree searches."""

    def start(tree: int) -> None:
        game_of[tree] = waiting.popleft()
        rng = np.random.default_rng([params.seed, game_of[tree]])
        searches.start(tree, games[game_of[tree]], nodes, rng)

    for tree in range(trees):
        start(tree)
    while game_of and (deadline is None or time.perf_counter() < deadline):
        for tree in searches.step():
            reports[game_of.pop(tree)] = searches.report(tree)
            if waiting:
                start(tree)
    for tree, index in game_of.items():
        reports[index] = searches.report(tree)
    return reports


def _analyse_in_turn(
    search: BaseSearch,
    games: Sequence[Game],
    nodes: int | None,
    movetime: float | None,
    waiting: deque[int],
    reports: list[Report],
) -> None:
    """Search one position after the other; each gets its share of the time that is left."""
    begun = time.perf_counter()
    while waiting:
        share = None
        if movetime is not None:
            share = max(0.0, begun + movetime - time.perf_counter()) / len(waiting)
        index = waiting.popleft()
        search.clear()
        search.set_game(games[index])
        reports[index] = search.run(Limits(nodes=nodes, movetime=share))
