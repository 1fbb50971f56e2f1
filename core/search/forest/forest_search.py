"""`ForestSearch`: many games searched and played on at once in one process, with shared batches.

Each call of `step` takes a leaf of every tree, evaluates the batch and backs it up; moves are chosen
and played in compiled code. The log of finished searches is read with `entries`. With `moves=1` a tree
searches one position and ends: for matches of two nets, and for many positions of other games.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.errors import DataError
from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.kernel.table_layout import MAX_MOVES
from variant_ai.core.search.compiled_settings import Settings, compile_settings
from variant_ai.core.search.forest.evaluation_cache import EvaluationCache
from variant_ai.core.search.forest.forest_arrays import (
    CHOICE,
    IDLE,
    SEARCHING,
    cells_for_visits,
    new_forest,
)
from variant_ai.core.search.forest.forest_kernels import gather
from variant_ai.core.search.forest.root_moves import schedule_table
from variant_ai.core.search.forest.shared_batches import SharedBatches
from variant_ai.core.search.net_view import with_last_moves
from variant_ai.core.search.settings import SearchParams, self_play_settings
from variant_ai.core.search.tree.leaf_batch import new_batch
from variant_ai.core.spec.schema import VariantSpec


@dataclass(frozen=True, kw_only=True)
class ForestSettings:
    """Settings of the searches.

    Self-play fills fields from those of `SearchChoice` and `Variety` with the same names
    (`core/reinforce/reinforce_settings.py:forest_settings`).
    """

    gumbel: bool = True
    nodes: int = 16
    fast_nodes: int = 0
    """0: a sixth of `nodes`."""
    full_share: float = 1.0
    considered: int = 16
    visit_offset: float = 50.0
    value_scale: float = 1.0
    minmax: bool = False
    noise: bool = True
    noise_epsilon: float = 0.25
    noise_alpha: float | None = None
    fpu_reduction: float = 0.2
    cpuct: float = 1.5
    forced_playouts: float = 2.0
    sampled_plies: int = 0
    temperature: float = 1.0
    temperature_end: float = 1.0
    resign_below: float | None = None
    resign_plies: int = 4
    max_plies: int = 512
    solver: bool = True
    transpositions: bool = False
    look_for_material: bool = False


class SearchedMove(NamedTuple):
    """A finished search of one position."""

    game: int
    """Number of the game."""
    ply: int
    """Index of the position in the game, 0 for the first."""
    move: int
    """Move played."""
    full: bool
    """False for a fast move, which has no policy target."""
    root_value: float
    """Value of the search for the player to move, in [-1, 1] (`root_moves.target_of`)."""
    moves: NDArray[np.int32]
    """[n] moves of the policy target."""
    weights: NDArray[np.float32]
    """[n] their weights, the sum is 1."""


DEEPEST = 1000
"""Longest path from a root, in plies: as long as the search allows."""


def params_of(spec: VariantSpec, settings: ForestSettings, reduction: float) -> SearchParams:
    """Search settings of the trees: the net's own logits, one waiting leaf a tree."""
    return SearchParams.of(
        spec,
        **self_play_settings(cpuct=settings.cpuct, reduction=reduction),
        look_for_material=settings.look_for_material,
        solver=settings.solver,
        transpositions=settings.transpositions,
        backup="catch-up",
        virtual_loss=1.0,
        max_depth=min(settings.nodes + 2, DEEPEST),
    )


class ForestSearch(SharedBatches):
    """Trees of G games that share one evaluator. Not for several threads."""

    def __init__(
        self,
        spec: VariantSpec,
        evaluator: Evaluator,
        settings: ForestSettings,
        games: int,
        *,
        rules: Rules | None = None,
        cache: EvaluationCache | None = None,
    ) -> None:
        """Reserve the memory of `games` trees. cache: see `SharedBatches`. Raises DataError if the shapes of the evaluator and the
        spec's planes differ, or if the rules are not compiled."""
        super().__init__(spec, evaluator, games, rules, cache)
        self.settings = settings
        own = self.rules.spec
        self._compiled = _compiled_settings(own, evaluator, settings, settings.fpu_reduction)
        self._noisy = _compiled_settings(own, evaluator, settings, 0.0)
        self._choice = _choice_of(own, settings)
        fast = int(self._choice[0]["fast_nodes"])
        most = max(settings.nodes, fast)
        table = np.concatenate(
            [schedule_table(n, settings.considered, most) for n in (settings.nodes, fast)]
        )
        self.forest = new_forest(
            games,
            cells_for_visits(most),
            most + 2,
            settings.max_plies + 1,
            table,
        )
        self.forest.trees["priors"] = MAX_MOVES
        planes = int(np.prod(self.encoder.shape)) if self.encoder.compiled else 0
        self._batch = new_batch(games, planes, most + 2)

    @property
    def states(self) -> NDArray[np.int64]:
        """State of each tree, [G]: IDLE, SEARCHING, ENDED or RESIGNED."""
        states: NDArray[np.int64] = self.forest.trees["state"]
        return states

    @property
    def visits(self) -> int:
        """Visits of the searches that have finished."""
        return int(self.forest.counters[0]["visits"])

    def start(
        self,
        tree: int,
        game: Game,
        number: int,
        seed: int,
        *,
        moves: int | None = None,
        resigns: bool = False,
    ) -> None:
        """Play a game on from its last position, which must not be the end of it. number: returned
        with its moves. seed: of its noise and sampled moves, 64 bits. moves: to search and play
        before the tree has ended; with 1 it searches this position, and another forest or a caller
        goes on. None: up to `max_plies`. Raises DataError if the game has that length already."""
        limit = self.settings.max_plies
        if game.ply >= limit:
            raise DataError(f"the game has {game.ply} plies; these trees are for less than {limit}")
        record = self.forest.trees[tree]
        record["game"] = number
        record["first"] = game.ply
        record["limit"] = limit if moves is None else min(limit, game.ply + moves)
        record["resigns"] = resigns
        self.forest.randoms[tree] = np.uint64(seed & 0xFFFFFFFFFFFFFFFF)
        self._begin(tree, with_last_moves(game, self.rules))

    def stop(self, tree: int) -> None:
        """End the game of a tree."""
        self.forest.trees[tree]["state"] = IDLE

    def go_on(self, tree: int) -> None:
        """Search a game on that the rules did not end after all."""
        self.forest.trees[tree]["state"] = SEARCHING

    def step(self) -> int:
        """Evaluate a leaf of each searched tree. Returns the number of leaves; 0 if all games have
        ended, the log is full, or all visits of this step ended without a leaf. Raises DataError for
        an evaluation that is not a number."""
        rows = int(
            gather(
                self.rules.tables,
                self.encoder.input_record,
                self._choice,
                self._compiled,
                self._noisy,
                self.forest,
                self._batch,
                self._scratch,
                self.cache,
                self._owners,
            )
        )
        if rows:
            self._back_up(rows, self._evaluated(rows))
        return rows

    def entries(self) -> list[SearchedMove]:
        """Return the searches that have finished since the last call, and empty the log."""
        f = self.forest
        counters = f.counters[0]
        total = int(counters["entries"])
        if total == 0:
            return []
        used = int(counters["weights"])
        moves, weights = f.weight_moves[:used].copy(), f.weights[:used].copy()
        rows = f.entries[:total].tolist()
        counters["entries"] = counters["weights"] = 0
        return [
            SearchedMove(
                game,
                ply,
                move,
                bool(full),
                value,
                moves[first : first + count],
                weights[first : first + count],
            )
            for game, ply, move, first, count, full, value in rows
        ]


def _compiled_settings(
    spec: VariantSpec, evaluator: Evaluator, settings: ForestSettings, reduction: float
) -> Settings:
    params = params_of(spec, settings, reduction).fitted_to(evaluator, spec)
    compiled = compile_settings(spec, params)
    record = compiled[0]
    record["chase_loses"] = 0
    record["improved"] = settings.gumbel
    record["minmax"] = settings.minmax
    record["visit_offset"] = settings.visit_offset
    record["value_scale"] = settings.value_scale
    return compiled


def _choice_of(spec: VariantSpec, settings: ForestSettings) -> NDArray[np.void]:
    choice = np.zeros(1, CHOICE)
    c = choice[0]
    for name, value in dataclasses.asdict(settings).items():
        if name in (CHOICE.names or ()):
            c[name] = value or 0
    if not settings.fast_nodes:
        c["fast_nodes"] = max(1, settings.nodes // 6)
    if settings.resign_below is None:
        c["resign_below"] = -2.0
    c["fold"] = spec.rules.repetition.fold
    return choice
