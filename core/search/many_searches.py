"""Searching many positions at the same time with shared batches.

A single tree can only fill a batch of hundreds of leaves with many collisions; sixty-four trees fill it
with a few leaves each.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.search.interface import check_shape
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.move.variations import make_report
from variant_ai.core.search.pipeline import Job, Pipeline, check_evaluation
from variant_ai.core.search.report import Report
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.search.tree.descent import FULL, NEEDS_JUDGE, STUCK
from variant_ai.core.search.tree.game_tree import Tree
from variant_ai.core.search.tree.leaf_batch import Batch, new_batch
from variant_ai.core.search.tree_factory import encoder_and_rules, new_tree, with_last_moves
from variant_ai.core.spec.schema import VariantSpec


@dataclass
class _SearchedTree:
    """One of the trees and the state of its search."""

    tree: Tree
    ended: str = ""
    """Reason why its search is over; empty while it goes on."""
    prepared: bool = False
    """True once the root has been prepared for this search."""
    allowed: Sequence[int] | None = None
    """Moves of the root to search; None: all."""
    pending: int = 0
    """Number of its pending leaves."""
    seconds: float = 0.0
    """Time of its search; 0 while it goes on."""


@dataclass
class _PendingBatch:
    """Batch that is being evaluated, and its parts: (tree, first row, row after the last)."""

    batch: Batch
    rows: int
    parts: list[tuple[_SearchedTree, int, int]]
    job: Job


class TreeBatch:
    """Trees of one variant that share one evaluator."""

    def __init__(
        self,
        spec: VariantSpec,
        evaluator: Evaluator,
        games: Sequence[Game],
        params: SearchParams | None = None,
        *,
        rules: Rules | None = None,
    ) -> None:
        """Divide the memory of `params` among the games, at least 1 MB each.

        Raises DataError if the shapes of the evaluator and the spec's planes differ.
        """
        params = params or SearchParams.of(spec)
        self.encoder, rules = encoder_and_rules(evaluator, spec, rules)
        check_shape(self.encoder, evaluator)
        share = max(1, params.memory_mb // max(1, len(games)))
        self.params = params.replace(memory_mb=share)
        self._uniform = evaluator.is_uniform
        self._trees = [_SearchedTree(new_tree(self.encoder, rules, self.params)) for _ in games]
        for searched, game in zip(self._trees, games, strict=True):
            searched.tree.set_game(with_last_moves(game, rules))
            searched.allowed = searched.tree.moves_to_search()
        self._free = deque(self._new_batch() for _ in range(3))
        self._pending: deque[_PendingBatch] = deque()
        self._pipeline = Pipeline([evaluator])
        self._rng = np.random.default_rng(params.seed)
        self._knows_draws = False
        self._turn = 0

    def _new_batch(self) -> Batch:
        compiled = self.encoder.compiled and not self._uniform
        planes = int(np.prod(self.encoder.shape)) if compiled else 0
        return new_batch(self.params.batch_size, planes, self.params.max_depth)

    def __enter__(self) -> TreeBatch:
        return self

    def __exit__(self, *exception: object) -> None:
        self._pipeline.settle()  # the caller may use the evaluator directly
        self._pipeline.close()
        for searched in self._trees:
            searched.tree.close()

    def stop(self) -> None:
        """End the present `run`. From any thread."""
        self._pipeline.stop()

    def run(self, limits: Limits) -> list[Report]:
        """Search every tree up to its limit; returns a report for each game, in order."""
        begun = time.perf_counter()
        self._pipeline.start()
        deadline = None if limits.movetime is None else begun + limits.movetime
        for searched in self._trees:
            searched.tree.begin()
            game = searched.tree.game
            searched.ended = "game over" if game is None or game.outcome() is not None else ""
            searched.prepared = False
        while any(not searched.ended for searched in self._trees):
            if self._pipeline.stopped or (deadline and time.perf_counter() >= deadline):
                for searched in self._trees:
                    searched.ended = searched.ended or (
                        "stop" if self._pipeline.stopped else "movetime"
                    )
                break
            if len(self._pending) < self._pipeline.depth and self._send(limits, begun):
                continue
            if self._pending and self._pipeline.wait(self._pending[0].job, deadline):
                self._take(self._pending.popleft())
        while self._pending:
            pending = self._pending.pop()
            pending.job.abandoned = True
            self._free.append(self._new_batch())  # the planes of the old one may still be read
            for searched, first, end in pending.parts:
                searched.tree.abandon(pending.batch, first, end)
                searched.pending = 0
        return [self._report(searched, begun) for searched in self._trees]

    def _left(self, searched: _SearchedTree, limits: Limits) -> int:
        made = searched.tree.counter("visits"), searched.tree.counter("evaluations")
        return min(limits.left(*made)) - searched.pending

    def _send(self, limits: Limits, begun: float) -> bool:
        """Collect a batch from the trees in turn and submit it; returns False if there was nothing to
        do."""
        batch = self._free[0]
        size = self.params.batch_size
        active = [searched for searched in self._trees if not searched.ended]
        share = max(1, -(-size // max(1, len(active))))
        rows, worked = 0, False
        parts: list[tuple[_SearchedTree, int, int]] = []
        for k in range(len(active)):
            searched = active[(self._turn + k) % len(active)]
            self._end(searched, limits, begun)
            most = self._left(searched, limits)
            if searched.ended or most <= 0 or (not searched.prepared and searched.pending):
                continue
            if searched.tree.root_is_open and not searched.prepared:
                searched.tree.prepare_root(searched.allowed, self._rng)
                searched.prepared = True
            if self._uniform:
                enough = 256 if searched.prepared else 1
                _, outcome = searched.tree.fill(
                    batch, 0, size, most if searched.prepared else 1, enough
                )
                worked = True
                self._note(searched, outcome)
                searched.tree.reclaim()
                continue
            own = min(share, self.params.leaves_at(searched.tree.visits_at_root()))
            end = min(size, rows + (own if searched.prepared else 1))
            before = searched.tree.counter("visits")
            row, outcome = searched.tree.fill(batch, rows, end, most)
            worked = worked or searched.tree.counter("visits") > before or outcome == NEEDS_JUDGE
            if not (row > rows or searched.pending):
                self._note(searched, outcome)
            if row > rows:
                parts.append((searched, rows, row))
                searched.pending += row - rows
                rows = row
            searched.tree.reclaim()
            if rows == size:
                self._turn += k + 1
                break
        if rows:
            if self.encoder.compiled:
                planes = batch.planes[:rows].reshape(rows, *self.encoder.shape)
            else:
                planes = self.encoder.planes(batch.positions[:rows])
            job = self._pipeline.submit(planes)
            self._pending.append(_PendingBatch(self._free.popleft(), rows, parts, job))
        return bool(rows) or worked

    def _note(self, searched: _SearchedTree, outcome: int) -> None:
        """Handle a tree that has no more leaves."""
        if outcome == STUCK:
            searched.ended = "solved"
        elif outcome == FULL:
            if searched.tree.reclaim():
                searched.tree.finish_reclaim()
            else:
                searched.ended = "memory"

    def _end(self, searched: _SearchedTree, limits: Limits, begun: float) -> None:
        """End a tree's search if it has reached its limit."""
        if searched.tree.solved:
            searched.ended = "solved"
        elif searched.tree.counts_are_full:
            searched.ended = "counts"
        elif searched.pending == 0 and self._left(searched, limits) <= 0:
            by_visits = (
                limits.visits is not None and searched.tree.counter("visits") >= limits.visits
            )
            searched.ended = "simulations" if by_visits else "evaluations"
        if searched.ended:
            searched.seconds = time.perf_counter() - begun

    def _take(self, pending: _PendingBatch) -> None:
        """Back up an evaluated batch, tree by tree."""
        self._free.append(pending.batch)
        for searched, first, end in pending.parts:
            searched.pending -= end - first
        answer = pending.job.answer
        try:
            if pending.job.error is not None:
                raise pending.job.error
            assert answer is not None
            check_evaluation(answer, pending.rows, self.encoder.actions)
        except BaseException:
            for searched, first, end in pending.parts:
                searched.tree.abandon(pending.batch, first, end)
            raise
        draws = None if answer.wdl is None else answer.wdl[:, 1]
        self._knows_draws = draws is not None
        for searched, first, end in pending.parts:
            searched.tree.complete(pending.batch, first, end, answer.value, answer.policy, draws)

    def _report(self, searched: _SearchedTree, begun: float) -> Report:
        seconds = searched.seconds or time.perf_counter() - begun
        if searched.ended == "game over":
            return Report(best=None, seconds=seconds, stopped_by=searched.ended)
        return make_report(
            searched.tree,
            self.params,
            multipv=1,
            allowed=searched.allowed,
            knows_draws=self._knows_draws,
            seconds=seconds,
            stopped_by=searched.ended,
            rng=self._rng,
        )


def analyse_many(
    spec: VariantSpec,
    evaluator: Evaluator,
    games: Sequence[Game],
    limits: Limits,
    params: SearchParams | None = None,
    *,
    rules: Rules | None = None,
) -> list[Report]:
    """Search the last positions of many games at the same time, with shared batches.

    limits: for each game separately, except the time, which is for all together. The memory of `params`
    is divided among the games.
    """
    with TreeBatch(spec, evaluator, games, params, rules=rules) as batch:
        return batch.run(limits)
