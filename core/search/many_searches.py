"""Many trees at once: positions that are searched side by side share the evaluator's batches.

One tree can fill a batch of hundreds only with collisions; sixty-four trees fill it with a few
leaves each.
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
from variant_ai.core.search.instant_answer import check_answer
from variant_ai.core.search.interface import check_shape
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.move.variations import make_report
from variant_ai.core.search.pipeline import Job, Pipeline
from variant_ai.core.search.report import Report
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.search.tree.descent import ASK, FULL, STUCK
from variant_ai.core.search.tree.game_tree import Tree
from variant_ai.core.search.tree.leaf_batch import Batch, new_batch
from variant_ai.core.search.tree_factory import new_tree, remembered, sight_of
from variant_ai.core.spec.schema import VariantSpec


@dataclass
class _Plant:
    """One of the trees."""

    tree: Tree
    ended: str = ""
    """Why its search is over; empty while it goes on."""
    prepared: bool = False
    allowed: Sequence[int] | None = None
    """Moves of the root that are searched, None for all."""
    flying: int = 0
    """Its leaves at the evaluator."""
    seconds: float = 0.0


@dataclass
class _SharedFlight:
    """A batch at the evaluator, and whose rows are in it: (tree, first row, row behind the last)."""

    batch: Batch
    rows: int
    parts: list[tuple[_Plant, int, int]]
    job: Job


class Grove:
    """Trees of one variant with one evaluator."""

    def __init__(
        self,
        spec: VariantSpec,
        evaluator: Evaluator,
        games: Sequence[Game],
        params: SearchParams | None = None,
        *,
        rules: Rules | None = None,
    ) -> None:
        """The memory of `params` is shared out among the games, at least a MB each.

        Raises DataError where the evaluator is of another shape than the spec's planes.
        """
        params = params or SearchParams.of(spec)
        self.encoder, rules = sight_of(evaluator, spec, rules)
        check_shape(self.encoder, evaluator)
        share = max(1, params.memory_mb // max(1, len(games)))
        self.params = params.replace(memory_mb=share)
        self._uniform = evaluator.is_uniform
        self._plants = [_Plant(new_tree(self.encoder, rules, self.params)) for _ in games]
        for plant, game in zip(self._plants, games, strict=True):
            plant.tree.set_game(remembered(game, rules))
            plant.allowed = plant.tree.worth_searching()
        self._free = deque(self._new_batch() for _ in range(3))
        self._flights: deque[_SharedFlight] = deque()
        self._pipeline = Pipeline([evaluator])
        self._rng = np.random.default_rng(params.seed)
        self._knows_draws = False
        self._turn = 0

    def _new_batch(self) -> Batch:
        compiled = self.encoder.compiled and not self._uniform
        planes = int(np.prod(self.encoder.shape)) if compiled else 0
        return new_batch(self.params.batch_size, planes, self.params.max_depth)

    def __enter__(self) -> Grove:
        return self

    def __exit__(self, *exception: object) -> None:
        self._pipeline.settle()  # whoever asks the evaluator next is alone with it
        self._pipeline.close()
        for plant in self._plants:
            plant.tree.close()

    def stop(self) -> None:
        """End the present `run`. From any thread."""
        self._pipeline.stop()

    def run(self, limits: Limits) -> list[Report]:
        """Search every tree until its limit; a report for each game, in their order."""
        begun = time.perf_counter()
        self._pipeline.start()
        deadline = None if limits.movetime is None else begun + limits.movetime
        for plant in self._plants:
            plant.tree.begin()
            game = plant.tree.game
            plant.ended = "game over" if game is None or game.outcome() is not None else ""
            plant.prepared = False
        while any(not plant.ended for plant in self._plants):
            if self._pipeline.stopped or (deadline and time.perf_counter() >= deadline):
                for plant in self._plants:
                    plant.ended = plant.ended or ("stop" if self._pipeline.stopped else "movetime")
                break
            if len(self._flights) < self._pipeline.depth and self._send(limits, begun):
                continue
            if self._flights and self._pipeline.wait(self._flights[0].job, deadline):
                self._take(self._flights.popleft())
        while self._flights:
            flight = self._flights.pop()
            flight.job.given_up = True
            self._free.append(self._new_batch())  # the planes of that one may still be read
            for plant, first, end in flight.parts:
                plant.tree.abandon(flight.batch, first, end)
                plant.flying = 0
        return [self._report(plant, begun) for plant in self._plants]

    def _left(self, plant: _Plant, limits: Limits) -> int:
        made = plant.tree.counter("visits"), plant.tree.counter("evaluations")
        return min(limits.left(*made)) - plant.flying

    def _send(self, limits: Limits, begun: float) -> bool:
        """Gather a batch from the trees in turn, and give it away; False if there was nothing."""
        batch = self._free[0]
        size = self.params.batch_size
        active = [plant for plant in self._plants if not plant.ended]
        share = max(1, -(-size // max(1, len(active))))
        rows, worked = 0, False
        parts: list[tuple[_Plant, int, int]] = []
        for k in range(len(active)):
            plant = active[(self._turn + k) % len(active)]
            self._end(plant, limits, begun)
            most = self._left(plant, limits)
            if plant.ended or most <= 0 or (not plant.prepared and plant.flying):
                continue
            if plant.tree.root_is_open and not plant.prepared:
                plant.tree.prepare_root(plant.allowed, self._rng)
                plant.prepared = True
            if self._uniform:
                enough = 256 if plant.prepared else 1
                _, outcome = plant.tree.fill(batch, 0, size, most if plant.prepared else 1, enough)
                worked = True
                self._note(plant, outcome)
                plant.tree.reclaim()
                continue
            own = min(share, self.params.leaves_at(plant.tree.visits_at_root()))
            end = min(size, rows + (own if plant.prepared else 1))
            before = plant.tree.counter("visits")
            row, outcome = plant.tree.fill(batch, rows, end, most)
            worked = worked or plant.tree.counter("visits") > before or outcome == ASK
            if not (row > rows or plant.flying):
                self._note(plant, outcome)
            if row > rows:
                parts.append((plant, rows, row))
                plant.flying += row - rows
                rows = row
            plant.tree.reclaim()
            if rows == size:
                self._turn += k + 1
                break
        if rows:
            if self.encoder.compiled:
                planes = batch.planes[:rows].reshape(rows, *self.encoder.shape)
            else:
                planes = self.encoder.planes(batch.positions[:rows])
            job = self._pipeline.submit(planes)
            self._flights.append(_SharedFlight(self._free.popleft(), rows, parts, job))
        return bool(rows) or worked

    def _note(self, plant: _Plant, outcome: int) -> None:
        """A tree without more leaves."""
        if outcome == STUCK:
            plant.ended = "solved"
        elif outcome == FULL:
            if plant.tree.reclaim():
                plant.tree.finish_reclaim()
            else:
                plant.ended = "memory"

    def _end(self, plant: _Plant, limits: Limits, begun: float) -> None:
        """See whether a tree has met its limit."""
        if plant.tree.solved:
            plant.ended = "solved"
        elif plant.tree.counts_are_full:
            plant.ended = "counts"
        elif plant.flying == 0 and self._left(plant, limits) <= 0:
            by_visits = limits.visits is not None and plant.tree.counter("visits") >= limits.visits
            plant.ended = "simulations" if by_visits else "evaluations"
        if plant.ended:
            plant.seconds = time.perf_counter() - begun

    def _take(self, flight: _SharedFlight) -> None:
        """Back up an answer, tree by tree."""
        self._free.append(flight.batch)
        for plant, first, end in flight.parts:
            plant.flying -= end - first
        answer = flight.job.answer
        try:
            if flight.job.error is not None:
                raise flight.job.error
            assert answer is not None
            check_answer(answer, flight.rows, self.encoder.actions)
        except BaseException:
            for plant, first, end in flight.parts:
                plant.tree.abandon(flight.batch, first, end)
            raise
        draws = None if answer.wdl is None else answer.wdl[:, 1]
        self._knows_draws = draws is not None
        for plant, first, end in flight.parts:
            plant.tree.complete(flight.batch, first, end, answer.value, answer.policy, draws)

    def _report(self, plant: _Plant, begun: float) -> Report:
        seconds = plant.seconds or time.perf_counter() - begun
        if plant.ended == "game over":
            return Report(best=None, seconds=seconds, stopped_by=plant.ended)
        return make_report(
            plant.tree,
            self.params,
            multipv=1,
            allowed=plant.allowed,
            knows_draws=self._knows_draws,
            seconds=seconds,
            stopped_by=plant.ended,
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
    """Search the last positions of many games at once, with batches that they share.

    limits: for each of the games, the time for all together. The memory of `params` is shared out.
    """
    with Grove(spec, evaluator, games, params, rules=rules) as grove:
        return grove.run(limits)
