"""`Search`: searches a position with its history and reports the best moves.

Engines, analysis and matches use this class. `run` blocks; meanwhile `stop` and `report` may be called
from other threads.

The search is a Monte-Carlo graph search: descents from the root select edges by PUCT
(`tree/selection.py`), batches of leaves are evaluated by the net (`tree/leaf_batch.py`, `pipeline.py`)
and backed up (`tree/backup.py`). docs/search.md derives it step by step.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from variant_ai.core.errors import DataError, MoveError, SettingError, VariantAIError
from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.kernel.kernel_rules import is_compiled
from variant_ai.core.search.interface import BaseSearch, check_shape
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.move.variations import line_limit, make_report, visited_moves
from variant_ai.core.search.pipeline import Job, Pipeline, check_evaluation, streams
from variant_ai.core.search.report import Phases, Report
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.search.tree.descent import FULL, STUCK
from variant_ai.core.search.tree.edges import moves_to_search
from variant_ai.core.search.tree.leaf_batch import ENOUGH, LeafBatch
from variant_ai.core.search.tree.look_ahead.shortest_mate import PATIENT, POSITIONS
from variant_ai.core.search.tree.nodes import MOST_PENDING
from variant_ai.core.search.tree_factory import (
    RestrictedRoots,
    batch_for,
    encoder_and_rules,
    leaf_planes,
    new_tree,
    with_last_moves,
)
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.system.text_tables import counted

VISITS_PER_EVALUATION = 1000
"""A search limited by evaluations also ends after this number of visits for each of them."""
SLICE_SECONDS = 0.004
"""Longest time that the tree thread works without checking for `stop` and the deadline."""


@dataclass
class PendingBatch:
    """Batch that is being evaluated."""

    batch: LeafBatch
    rows: int
    job: Job


class Search(BaseSearch):
    """Searches the positions of games, one after the other, with one or several evaluators.

    All methods except `stop`, `report` and `root_visits` must be called from one thread.
    """

    def __init__(
        self,
        spec: VariantSpec,
        evaluator: Evaluator | Sequence[Evaluator],
        params: SearchParams | None = None,
        *,
        rules: Rules | None = None,
    ) -> None:
        """Several evaluators of the same net work in parallel on batches of one tree, each on whole
        batches. The parts of a `ParallelEvaluator` get smaller batches.

        Raises DataError if the shapes of the evaluator and the spec's planes differ, SettingError if
        more visits could be pending than a node can count.
        """
        super().__init__(spec, params)
        evaluators, parts = streams(evaluator, whole=self.params.deterministic)
        if not evaluators:
            raise VariantAIError("a search needs at least one evaluator")
        first = evaluators[0]
        self.params = self.params.fitted_to(first, spec)
        self.batch_rows = -(-self.params.batch_size // parts)
        """Number of leaves in a batch."""
        self.encoder, self.rules = encoder_and_rules(first, spec, rules)
        for each in evaluators:
            check_shape(self.encoder, each)
        self.evaluators = evaluators
        self.uniform = bool(first.is_uniform)
        if self.batch_rows * (len(evaluators) + 1) > MOST_PENDING:
            raise SettingError(
                f"batch_size {self.params.batch_size} with {counted(len(evaluators), 'evaluator')} exceeds "
                f"the {MOST_PENDING:,} visits that may be pending; lower batch_size"
            )
        # before the threads, which would not be ended if there is no memory for the tree
        self.tree = new_tree(self.encoder, self.rules, self.params)
        self._pipeline = Pipeline(evaluators)
        self.max_pending = self._pipeline.depth
        """Maximum number of pending batches. With 1, nothing is selected while the net is working."""
        self._rng = np.random.default_rng(self.params.seed)
        self._lock = threading.RLock()
        self._batches = [self._new_batch() for _ in range(self._pipeline.depth + 1)]
        self._knows_draws = False
        self._pending: deque[PendingBatch] = deque()
        self._free = deque(self._batches)
        """Batches that are not pending."""
        self._rows = 0
        """Leaves in the first of them, which is not full yet."""
        self._allowed: Sequence[int] | None = None
        self._restricted = RestrictedRoots()
        self._begun, self._depth = 0.0, 0
        self._took: float | None = 0.0
        """Seconds of the last run; None during a run."""
        self._ended = ""
        """Reason why an infinite search has finished, while it waits for `stop`."""
        self.set_game(Game(self.rules))

    def _new_batch(self) -> LeafBatch:
        depth = self.params.max_depth
        return batch_for(self.encoder, self.evaluators[0], self.batch_rows, depth)

    # --- the position ----------------------------------------------------------------------------

    def set_game(self, game: Game) -> None:
        """Set the game to search from its last position. Earlier results for it are kept. The game is
        copied: moves that are played in it later do not change the search."""
        with self._lock:
            self._allowed = None
            self.tree.set_game(with_last_moves(game.copy(), self.rules))

    @property
    def game(self) -> Game:
        """The game being searched."""
        assert self.tree.game is not None
        return self.tree.game

    def clear(self, seed: int | None = None) -> None:
        """Remove all results and restart the random numbers with `seed` (None: that of the
        settings)."""
        with self._lock:
            self.tree.forget()
            self._rng = np.random.default_rng(self.params.seed if seed is None else seed)

    def warm_up(self) -> None:
        """Load compiled code and prepare every evaluator for the smallest and the largest batch, so
        that no clock runs meanwhile. Afterwards the search is like a new one."""
        if not self.uniform:
            planes = np.zeros((self.batch_rows, *self.encoder.shape), np.float32)
            for evaluator in self.evaluators:
                evaluator.evaluate(planes)
        self.run(Limits(nodes=self.params.batch_size))
        self.clear()

    def judge_chases(self, on: bool) -> None:
        """Switch the judging of perpetual chases on or off, for rules that have them; if off, they
        count as ordinary repetitions."""
        with self._lock:
            self.tree.judge_chases(on)

    def close(self) -> None:
        """End the evaluator threads. The evaluators themselves stay open."""
        self._pipeline.close()
        self.tree.close()

    # --- the search ------------------------------------------------------------------------------

    def stop(self) -> None:
        """End the present `run`, without waiting for it. From any thread."""
        self._pipeline.stop()

    def settle(self) -> None:
        """Wait until the evaluators have finished the batches that a stopped `run` left behind. Call
        this before using one of the evaluators directly."""
        self._pipeline.settle()

    def report(self, multipv: int = 1, *, pv: bool = True) -> Report:
        """Report the present state of the search; from any thread.

        Without `pv` each line has only its first move, and `seldepth` has no meaning. `stopped_by` is
        set if an infinite search has finished and waits for `stop`.
        """
        with self._lock:
            return self._report(multipv, self._ended, pv=pv)

    def root_visits(self) -> list[tuple[int, int]]:
        """Return (move, visits) as a target for the policy, see `variations.visited_moves`; from any
        thread."""
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
        """Search until a limit is reached, `stop` is called, or the root is proven.

        moves: moves of the root to consider; None: all except those that lose at once by repetition.
        Illegal moves are ignored. multipv: number of lines in reports. on_report: called in this
        thread every `interval` seconds. Raises MoveError if none of `moves` is legal, DataError if the
        evaluator's output is not a number.
        """
        self._begun, self._took = time.perf_counter(), None
        self._depth = 0
        self._ended = ""
        self.phases = Phases()
        self._pipeline.start()
        tree, game = self.tree, self.game
        with self._lock:
            tree.begin()
        outcome = game.outcome()
        if outcome is not None:
            self._took = self._seconds()
            return Report(best=None, seconds=self._took, stopped_by="game over")
        self._allowed = self._allowed_moves(moves)
        if self._restricted.must_forget(tree, None if moves is None else self._allowed):
            with self._lock:
                tree.forget()
        deadline = None
        if limits.movetime is not None and not limits.infinite:
            deadline = self._begun + limits.movetime
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
            if on_report is not None:  # the last report, since nothing changes any more
                on_report(self.report(multipv))
            while not self._pipeline.stopped:
                self._pipeline.pause(None)
            self._ended, reason = "", "stop"
        with self._lock:
            self._took = self._seconds()
            return self._report(multipv, reason, self._rng)

    def _allowed_moves(self, moves: Sequence[int] | None) -> list[int] | None:
        if moves is None:
            return moves_to_search(self.game)
        legal = self.game.legal_moves()
        allowed = [int(move) for move in legal if move in set(moves)]
        if not allowed:
            raise MoveError(f"none of the moves to search is legal (FEN {self.game.fen()})")
        return allowed if len(allowed) < len(legal) else None

    def _open_root(self, deadline: float | None) -> str:
        """Evaluate the root. Returns the reason if the search ends here, otherwise an empty string."""
        if self.tree.root_is_open:
            return ""
        if deadline is not None and time.perf_counter() >= deadline:
            return "movetime"  # the evaluation would come too late
        batch = self._batches[0]
        with self._lock:
            rows, _ = self.tree.fill(batch, 0, 1, 1, 1 if self.uniform else None)
        if not rows:
            return ""
        pending = self._submit(batch, rows)
        try:
            arrived = self._pipeline.wait(pending.job, deadline)
        except BaseException:  # such as Ctrl-C; the root must not stay pending
            self._abandon(pending)
            raise
        if not arrived:
            self._abandon(pending)
            return "stop" if self._pipeline.stopped else "movetime"
        self._back_up(pending)
        return ""

    def _search(
        self,
        limits: Limits,
        deadline: float | None,
        multipv: int,
        on_report: Callable[[Report], None] | None,
        interval: float,
    ) -> str:
        """Run the loop of the tree thread; returns the reason why it ended."""
        step = self._uniform_step() if self.uniform else self._step()
        next_report = self._begun + interval
        tree = self.tree
        finished = ""
        try:
            while not (reason := self._limit(limits, deadline) or finished):
                made = tree.counter("visits"), tree.counter("evaluations")
                finished = step(*limits.left(*made), deadline)
                with self._lock:
                    tree.reclaim()
                if on_report is not None and time.perf_counter() >= next_report:
                    on_report(self.report(multipv))
                    next_report = time.perf_counter() + interval
        finally:
            # at a proof or a limit some leaves may still wait in a batch that is not full
            if self._rows:
                with self._lock:
                    self.tree.abandon(self._free[0], 0, self._rows)
                self._rows = 0
            while self._pending:
                self._abandon(self._pending.pop())
        return reason

    def _shorten(self, limits: Limits, deadline: float | None) -> None:
        """Search for a shorter win than the one proven, which need not be the shortest."""
        counted = limits.visits is not None or limits.evaluations is not None
        patient = limits.infinite or (limits.mate is not None and not counted)
        positions = POSITIONS * (PATIENT if patient else 1)
        found = self.tree.shorten(
            positions, self._allowed, partial(self._pipeline.goes_on, deadline)
        )
        if found:
            with self._lock:
                found.write()

    def _limit(self, limits: Limits, deadline: float | None) -> str:
        """Return the limit that has been reached, or an empty string."""
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
        if limits.evaluations is not None:
            # where all that is left are ends of games and repetitions, nothing more is evaluated
            visits = tree.counter("visits") // VISITS_PER_EVALUATION
            if max(tree.counter("evaluations"), visits) >= limits.evaluations:
                return "evaluations"
        if deadline is not None and time.perf_counter() >= deadline:
            return "movetime"
        if limits.depth is not None or limits.mate is not None:
            return line_limit(self.game, self.report(), limits.depth, limits.mate)
        return ""

    def _uniform_step(self) -> Callable[[int, int, float | None], str]:
        """Return a function that runs a slice of search with the uniform evaluator, all compiled."""
        # without compiled rules a position may take ten milliseconds
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
        """Return a function that fills and submits a batch, or waits for the oldest one and backs it
        up.

        A batch that cannot be filled is kept while another one is pending, because that one will give
        new leaves.
        """
        free = self._free = deque(self._batches)
        ended = ""

        def step(visits: int, evaluations: int, deadline: float | None) -> str:
            nonlocal ended
            batch = free[0]
            pending_rows = sum(pending.rows for pending in self._pending)
            # ends of games are visits without evaluations, and do not fill the batch
            enough = self.params.leaves_at(self.tree.visits_at_root())
            size = min(self.batch_rows, enough, evaluations - pending_rows)
            most = visits - self._rows - pending_rows
            has_room = len(self._pending) < self.max_pending and self._rows < size
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
            full = 0 < self._rows >= size and len(self._pending) < self.max_pending
            if full or (self._rows and not self._pending):
                rows, self._rows = self._rows, 0
                self._pending.append(self._submit(free.popleft(), rows))
                if len(self._pending) < self.max_pending and most > size and not ended:
                    return ""
            if not self._pending:
                return ended
            begun = time.perf_counter()
            arrived = self._pipeline.wait(self._pending[0].job, deadline)
            self.phases.wait += time.perf_counter() - begun
            if not arrived:
                return ""
            pending = self._pending.popleft()
            free.append(pending.batch)
            self._back_up(pending)
            return ended if not self._pending and not self._rows else ""

        return step

    def _ending(self, outcome: int) -> str:
        """Return the reason if no more leaves are possible: `memory`, `solved`, or an empty string."""
        if outcome == STUCK:
            return "solved"
        if outcome == FULL:
            return "" if self.tree.make_room() else "memory"
        return ""

    def _submit(self, batch: LeafBatch, rows: int) -> PendingBatch:
        planes = leaf_planes(self.encoder, batch, rows)
        return PendingBatch(batch, rows, self._pipeline.submit(planes))

    def _back_up(self, pending: PendingBatch) -> None:
        """Back up an evaluated batch."""
        job, rows = pending.job, pending.rows
        if job.error is not None:
            self._abandon(pending)
            raise job.error
        assert job.answer is not None
        answer = job.answer
        begun = time.perf_counter()
        with self._lock:
            try:
                check_evaluation(answer, rows, self.encoder.actions)
            except DataError:
                self._abandon(pending)
                raise
            draws = None if answer.wdl is None else answer.wdl[:, 1]
            self._knows_draws = draws is not None
            self.tree.complete(pending.batch, rows, answer.value, answer.policy, draws)
        self.phases.complete += time.perf_counter() - begun
        self.phases.batches += 1
        self.phases.rows += rows

    def _abandon(self, pending: PendingBatch) -> None:
        """Abandon a pending batch. Its planes may still be read, so it is replaced by a new one."""
        pending.job.abandoned = True
        with self._lock:
            self.tree.abandon(pending.batch, 0, pending.rows)
        self._batches = [
            self._new_batch() if batch is pending.batch else batch for batch in self._batches
        ]

    # --- reports ---------------------------------------------------------------------------------

    def _seconds(self) -> float:
        took = self._took
        return time.perf_counter() - self._begun if took is None else took

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
