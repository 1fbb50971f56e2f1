"""The search: a position with its history in, a move and what is known of it out.

`Search` is what engines, analysis and matches use. `run` blocks; `stop` and `report` may be called
from any other thread meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.errors import DataError, MoveError, VariantAIError
from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.kernel.kernel_rules import is_compiled
from variant_ai.core.search.instant_answer import check_answer
from variant_ai.core.search.interface import BaseSearch, check_shape
from variant_ai.core.search.mate.shortest_mate import PATIENT, POSITIONS
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.move.variations import is_deep, make_report, visited_moves
from variant_ai.core.search.pipeline import Job, Pipeline, streams
from variant_ai.core.search.report import Phases, Report
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.search.tree.descent import FULL, STUCK
from variant_ai.core.search.tree.leaf_batch import ENOUGH, Batch, new_batch
from variant_ai.core.search.tree_factory import Narrowed, new_tree, remembered, sight_of
from variant_ai.core.spec.schema import VariantSpec

SLICE_SECONDS = 0.004
"""How long the tree thread may hold the tree without looking up."""


@dataclass
class _Flight:
    """A batch at an evaluator."""

    batch: Batch
    rows: int
    job: Job


class Search(BaseSearch):
    """Searches one game after the other, with one evaluator or several.

    All methods but `stop` and `report` belong to one thread.
    """

    def __init__(
        self,
        spec: VariantSpec,
        evaluator: Evaluator | Sequence[Evaluator],
        params: SearchParams | None = None,
        *,
        rules: Rules | None = None,
    ) -> None:
        """Several evaluators (of the same net) work side by side on batches of one tree, each on
        whole ones; of one that is several in itself (`ParallelEvaluator`) each takes its part.

        Raises DataError where the evaluator is of another shape than the spec's planes.
        """
        super().__init__(spec, params)
        evaluators, parts = streams(evaluator, whole=self.params.deterministic)
        if not evaluators:
            raise VariantAIError("a search needs an evaluator")
        first = evaluators[0]
        self.batch_rows = -(-self.params.batch_size // parts)
        """Leaves of one batch."""
        self.encoder, self.rules = sight_of(first, spec, rules)
        for each in evaluators:
            check_shape(self.encoder, each)
        self.evaluators = evaluators
        self.uniform = bool(first.is_uniform)
        # Before the threads, which nobody would end where there is no memory for it.
        self.tree = new_tree(self.encoder, self.rules, self.params)
        self._pipeline = Pipeline(evaluators)
        self.max_flights = self._pipeline.depth
        """Batches under way at once. With one, nothing is selected while the net is at work."""
        self._rng = np.random.default_rng(self.params.seed)
        self._lock = threading.RLock()
        self._batches = [self._new_batch() for _ in range(self._pipeline.depth + 1)]
        self._knows_draws = False
        self._flights: deque[_Flight] = deque()
        self._free = deque(self._batches)
        """Batches not under way."""
        self._rows = 0
        """Leaves in the first of them, which is not full yet."""
        self._allowed: Sequence[int] | None = None
        self._narrowed = Narrowed()
        self._begun, self._depth, self._fresh = 0.0, 0, False
        self._ended = ""
        """Why the present search has nothing left to do, while it waits to be stopped."""
        self.set_game(Game(self.rules))

    def _new_batch(self) -> Batch:
        compiled = self.encoder.compiled and not self.uniform
        planes = int(np.prod(self.encoder.shape)) if compiled else 0
        return new_batch(self.batch_rows, planes, self.params.max_depth)

    # --- the position ----------------------------------------------------------------------------

    def set_game(self, game: Game) -> None:
        """Search from the game's last position. What is known of it from before is kept."""
        with self._lock:
            self.tree.set_game(remembered(game, self.rules))
            self._fresh = True

    @property
    def game(self) -> Game:
        assert self.tree.game is not None
        return self.tree.game

    def clear(self, seed: int | None = None) -> None:
        """Forget everything, the state of the random numbers included: they begin again with the
        seed, that of the settings by default."""
        with self._lock:
            game = self.game
            self.tree.forget()
            self._rng = np.random.default_rng(self.params.seed if seed is None else seed)
            self.tree.set_game(game)

    def warm_up(self) -> None:
        """Before a clock runs: load compiled code, and have every evaluator make itself ready for
        the least and the greatest batch. The search is as new afterwards."""
        if not self.uniform:
            planes = np.zeros((self.batch_rows, *self.encoder.shape), np.float32)
            for evaluator in self.evaluators:
                evaluator.evaluate(planes)
        self.run(Limits(nodes=self.params.batch_size))
        self.clear()

    def judge_chases(self, on: bool) -> None:
        """Whether chases are judged, where the rules know them; off, they are idle repetitions."""
        with self._lock:
            self.tree.judge_chases(on)

    def close(self) -> None:
        """Let the evaluators' threads go. They close their evaluators no more than they made them."""
        self._pipeline.close()
        self.tree.close()

    # --- the search ------------------------------------------------------------------------------

    def stop(self) -> None:
        """End the present `run`. From any thread; does not wait."""
        self._pipeline.stop()

    def settle(self) -> None:
        """After a `run` that was stopped: wait until the evaluators have finished the batches that it
        left behind. Whoever asks the same evaluator himself calls this first."""
        self._pipeline.settle()

    def report(self, multipv: int = 1, *, pv: bool = True) -> Report:
        """What the search knows by now; without `pv` each line ends with its first move, and `seldepth`
        says nothing. `stopped_by` says so where the search has ended and waits to be stopped. From
        any thread."""
        with self._lock:
            return self._report(multipv, self._ended, pv=pv)

    def root_visits(self) -> list[tuple[int, int]]:
        """What a policy may learn from the search: see `lines.visited_moves`. From any thread."""
        with self._lock:
            return visited_moves(self.tree.edges(self.tree.root), self._allowed)

    def run(
        self,
        limits: Limits,
        *,
        moves: Sequence[int] | None = None,
        multipv: int = 1,
        on_report: Callable[[Report], None] | None = None,
        interval: float = 1.0,
    ) -> Report:
        """Search until a limit is met, `stop` is called, or nothing is left to find out.

        moves: the root's moves to consider; those that are not legal are ignored, and raise
        MoveError where none is left. None: all but those that lose at once by repetition.
        on_report: called in this thread every `interval` seconds. Raises DataError where the
        evaluator's answer is not a number.
        """
        self._begun = time.perf_counter()
        self._depth = 0
        self._ended = ""
        self.phases = Phases()
        self._pipeline.start()
        tree, game = self.tree, self.game
        with self._lock:
            tree.begin()
        outcome = game.outcome()
        if outcome is not None:
            return Report(best=None, seconds=self._seconds(), stopped_by="game over")
        self._allowed = self._legal(moves)
        if self._narrowed.is_at_odds(tree, None if moves is None else self._allowed):
            with self._lock:
                tree.forget()
                tree.set_game(game)
        deadline = None if limits.movetime is None else self._begun + limits.movetime
        if limits.infinite:
            deadline = None
        reason = self._open_root(None if self.params.use_raw_network else deadline)
        if not reason and self.params.use_raw_network:
            reason = "raw network"
        if not reason:
            with self._lock:
                tree.prepare_root(self._allowed, self._rng)
            reason = self._search(limits, deadline, multipv, on_report, interval)
        if reason == "solved":
            self._shorten(limits, deadline)
        if limits.infinite and reason != "stop":
            self._ended = reason
            if on_report is not None:  # nothing that is said later would be any different
                on_report(self.report(multipv))
            while not self._pipeline.stopped:
                self._pipeline.pause(None)
            self._ended, reason = "", "stop"
        with self._lock:
            return self._report(multipv, reason, self._rng)

    def _legal(self, moves: Sequence[int] | None) -> list[int] | None:
        if moves is None:
            return self.tree.worth_searching()
        legal = self.game.legal_moves()
        allowed = [int(move) for move in legal if move in set(moves)]
        if not allowed:
            raise MoveError(f"none of the moves to search is legal (FEN {self.game.fen()})")
        return allowed if len(allowed) < len(legal) else None

    def _open_root(self, deadline: float | None) -> str:
        """Have the root evaluated; why the search ends here, or an empty string."""
        if self.tree.root_is_open:
            return ""
        if deadline is not None and time.perf_counter() >= deadline:
            return "movetime"  # nobody would wait for the answer
        batch = self._batches[0]
        with self._lock:
            rows, _ = self.tree.fill(batch, 0, 1, 1, 1 if self.uniform else None)
        if not rows:
            return ""
        flight = _Flight(batch, rows, self._pipeline.submit(self._planes(batch, rows)))
        try:
            arrived = self._pipeline.wait(flight.job, deadline)
        except BaseException:  # Ctrl-C; the root would be at the evaluator for ever
            self._give_up(flight)
            raise
        if not arrived:
            self._give_up(flight)
            return "stop" if self._pipeline.stopped else "movetime"
        self._take(flight)
        return ""

    def _search(
        self,
        limits: Limits,
        deadline: float | None,
        multipv: int,
        on_report: Callable[[Report], None] | None,
        interval: float,
    ) -> str:
        """The loop of the tree thread; returns why it ended."""
        if self.uniform:
            step = self._uniform_step()
        else:
            step = self._step()
        next_report = self._begun + interval
        tree = self.tree
        reason = ""
        finished = ""
        try:
            while not reason:
                reason = self._limit(limits, deadline) or finished
                if reason:
                    break
                made = tree.counter("visits"), tree.counter("evaluations")
                finished = step(*limits.left(*made), deadline)
                with self._lock:
                    tree.reclaim()
                if on_report is not None and time.perf_counter() >= next_report:
                    on_report(self.report(multipv))
                    next_report = time.perf_counter() + interval
        finally:
            # a proof or a limit may come while some leaves still wait for their batch to be full
            if self._rows:
                with self._lock:
                    self.tree.abandon(self._free[0], 0, self._rows)
                self._rows = 0
            while self._flights:
                self._give_up(self._flights.pop())
        return reason

    def _shorten(self, limits: Limits, deadline: float | None) -> None:
        """The proof that ended the search need not be of the shortest win: look for that one."""
        patient = limits.infinite or limits.mate is not None
        positions = POSITIONS * (PATIENT if patient else 1)
        found = self.tree.shorten(
            positions, self._allowed, partial(self._pipeline.goes_on, deadline)
        )
        if found:
            with self._lock:
                found.plant()

    def _limit(self, limits: Limits, deadline: float | None) -> str:
        """The limit that has been met, or an empty string."""
        tree = self.tree
        if self._pipeline.stopped:
            return "stop"
        if tree.solved:
            return "solved"
        if tree.counts_are_full:
            return "counts"
        if limits.infinite:
            return ""
        if limits.visits is not None and tree.counter("visits") >= limits.visits:
            return "simulations"
        if limits.evaluations is not None and tree.counter("evaluations") >= limits.evaluations:
            return "evaluations"
        if deadline is not None:
            if time.perf_counter() >= deadline:
                return "movetime"
            legal = self.game.legal_moves() if self._allowed is None else self._allowed
            if len(legal) == 1 and tree.counter("visits") > self.params.batch_size:
                return "one move"
        if limits.depth is not None or limits.mate is not None:
            report = self.report()
            if limits.depth is not None and is_deep(self.game, report, limits.depth):
                return "depth"
            mate = report.lines[0].mate_in
            if limits.mate is not None and mate is not None and 0 < mate <= limits.mate:
                return "mate"
        return ""

    def _uniform_step(self) -> Callable[[int, int, float | None], str]:
        """A slice of search without an evaluator, all compiled."""
        # A position may take ten milliseconds where the rules are not compiled.
        least = 64 if is_compiled(self.rules) else 1
        enough = 4 * least
        batch = self._batches[0]

        def step(visits: int, evaluations: int, deadline: float | None) -> str:
            nonlocal enough
            most, begun = min(visits, evaluations), time.perf_counter()
            goes_on = partial(self._pipeline.goes_on, deadline)
            with self._lock:
                _, outcome = self.tree.fill(batch, 0, self.batch_rows, most, enough, goes_on)
            took = time.perf_counter() - begun
            self.phases.fill += took
            if took < SLICE_SECONDS / 2 and enough < 1 << 16:
                enough *= 2
            elif took > SLICE_SECONDS and enough > least:
                enough //= 2
            return self._ending(outcome)

        return step

    def _step(self) -> Callable[[int, int, float | None], str]:
        """Fill a batch and give it away, or wait for the oldest one and take its answer.

        A batch that could not be filled is kept while the evaluator has another to work on: its
        answer will open new leaves.
        """
        free = self._free = deque(self._batches)
        ended = ""

        def step(visits: int, evaluations: int, deadline: float | None) -> str:
            nonlocal ended
            batch = free[0]
            under_way = sum(flight.rows for flight in self._flights)
            # Ends of games are visits and no evaluations: they leave the batch as it is.
            enough = self.params.leaves_at(self.tree.visits_at_root())
            size = min(self.batch_rows, enough, evaluations - under_way)
            most = visits - self._rows - under_way
            has_room = len(self._flights) < self.max_flights and self._rows < size
            if has_room and most > 0 and not ended:
                begun = time.perf_counter()
                goes_on = partial(self._pipeline.goes_on, deadline)
                with self._lock:
                    self._rows, outcome = self.tree.fill(
                        batch, self._rows, size, most, None, goes_on
                    )
                self.phases.fill += time.perf_counter() - begun
                if outcome != ENOUGH:
                    ended = self._ending(outcome)
                if not goes_on():
                    return ""
            full = 0 < self._rows >= size and len(self._flights) < self.max_flights
            if full or (self._rows and not self._flights):
                rows, self._rows = self._rows, 0
                job = self._pipeline.submit(self._planes(batch, rows))
                self._flights.append(_Flight(free.popleft(), rows, job))
                if len(self._flights) < self.max_flights and most > size and not ended:
                    return ""
            if not self._flights:
                return ended
            begun = time.perf_counter()
            arrived = self._pipeline.wait(self._flights[0].job, deadline)
            self.phases.wait += time.perf_counter() - begun
            if not arrived:
                return ""
            flight = self._flights.popleft()
            free.append(flight.batch)
            self._take(flight)
            return ended if not self._flights and not self._rows else ""

        return step

    def _ending(self, outcome: int) -> str:
        """Why no more leaves can be had: `memory`, `solved`, or nothing."""
        if outcome == STUCK:
            return "solved"
        if outcome == FULL:
            return "" if self.tree.make_room() else "memory"
        return ""

    def _planes(self, batch: Batch, rows: int) -> NDArray[np.float32]:
        if not self.encoder.compiled:
            return self.encoder.planes(batch.positions[:rows])
        planes: NDArray[np.float32] = batch.planes[:rows].reshape(rows, *self.encoder.shape)
        return planes

    def _take(self, flight: _Flight) -> None:
        """Back up what the evaluator said."""
        job, rows = flight.job, flight.rows
        if job.error is not None:
            self._give_up(flight)
            raise job.error
        assert job.answer is not None
        answer = job.answer
        begun = time.perf_counter()
        with self._lock:
            try:
                check_answer(answer, rows, self.encoder.actions)
            except DataError:
                self._give_up(flight)
                raise
            draws = None if answer.wdl is None else answer.wdl[:, 1]
            self._knows_draws = draws is not None
            self.tree.complete(flight.batch, 0, rows, answer.value, answer.policy, draws)
        self.phases.complete += time.perf_counter() - begun
        self.phases.network += job.seconds
        self.phases.batches += 1
        self.phases.rows += rows

    def _give_up(self, flight: _Flight) -> None:
        """Abandon a batch. Its planes may still be read, so a new one takes its place."""
        flight.job.given_up = True
        with self._lock:
            self.tree.abandon(flight.batch, 0, flight.rows)
        self._batches = [
            self._new_batch() if batch is flight.batch else batch for batch in self._batches
        ]

    # --- reports ---------------------------------------------------------------------------------

    def _seconds(self) -> float:
        return time.perf_counter() - self._begun

    def _report(
        self,
        multipv: int,
        stopped_by: str = "",
        rng: np.random.Generator | None = None,
        pv: bool = True,
    ) -> Report:
        report = make_report(
            self.tree,
            self.params,
            multipv=multipv,
            allowed=self._allowed,
            knows_draws=self._knows_draws,
            seconds=self._seconds(),
            least_depth=self._depth,
            stopped_by=stopped_by,
            rng=rng,
            pv=pv,
        )
        self._depth = report.depth
        return report
