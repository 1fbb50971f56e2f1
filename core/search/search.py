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
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from variant_ai.core.encoding.encoder import Encoder
from variant_ai.core.errors import MoveError, SettingError, VariantAIError
from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.kernel.kernel_rules import is_compiled
from variant_ai.core.search.interface import BaseSearch, check_shape
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.move.variations import line_limit, make_report, visited_moves
from variant_ai.core.search.net_view import encoder_and_rules, with_last_moves
from variant_ai.core.search.pipeline import NetSteps, Pipeline, UniformSteps, streams
from variant_ai.core.search.report import Report
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.search.tree.edges import moves_to_search
from variant_ai.core.search.tree.game_tree import Tree
from variant_ai.core.search.tree.leaf_batch import batch_for
from variant_ai.core.search.tree.look_ahead.shortest_mate import PATIENT, POSITIONS
from variant_ai.core.search.tree.nodes import MOST_PENDING
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.system.text_tables import counted

VISITS_PER_EVALUATION = 1000
"""A search limited by evaluations also ends after this number of visits for each of them."""


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
        self._rng = np.random.default_rng(self.params.seed)
        self._lock = threading.RLock()
        self.steps = self._make_steps(first)
        self._allowed: Sequence[int] | None = None
        self._restricted = RestrictedRoots()
        self._begun, self._depth = 0.0, 0
        self._took: float | None = 0.0
        """Seconds of the last run; None during a run."""
        self._ended = ""
        """Reason why an infinite search has finished, while it waits for `stop`."""
        self.set_game(Game(self.rules))

    def _make_steps(self, evaluator: Evaluator) -> NetSteps | UniformSteps:
        tree, encoder, params, rows = self.tree, self.encoder, self.params, self.batch_rows
        if not evaluator.is_uniform:
            return NetSteps(tree, encoder, evaluator, params, rows, self._pipeline, self._lock)
        # without compiled rules a position may take ten milliseconds
        least = 64 if is_compiled(self.rules) else 1
        batch = batch_for(encoder, evaluator, rows, params.max_depth)
        return UniformSteps(tree, batch, least, self._pipeline, self._lock)

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
        self._pipeline.start()
        self.phases = self.steps.begin()
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
        return self.steps.open_root(deadline)

    def _search(
        self,
        limits: Limits,
        deadline: float | None,
        multipv: int,
        on_report: Callable[[Report], None] | None,
        interval: float,
    ) -> str:
        """Run the loop of the tree thread; returns the reason why it ended."""
        next_report = self._begun + interval
        tree = self.tree
        finished = ""
        try:
            while not (reason := self._limit(limits, deadline) or finished):
                made = tree.counter("visits"), tree.counter("evaluations")
                finished = self.steps.step(*limits.left(*made), deadline)
                with self._lock:
                    tree.reclaim()
                if on_report is not None and time.perf_counter() >= next_report:
                    on_report(self.report(multipv))
                    next_report = time.perf_counter() + interval
        finally:
            self.steps.end()
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
            knows_draws=self.steps.knows_draws,
            seconds=self._seconds(),
            least_depth=self._depth,
            stopped_by=stopped_by,
            rng=rng,
            pv=pv,
        )
        self._depth = report.depth
        return report


def new_tree(encoder: Encoder, rules: Rules, params: SearchParams) -> Tree:
    """Create a tree for a rules engine: `Tree` if it is compiled, otherwise `SlowTree`."""
    if is_compiled(rules):
        return Tree(encoder, rules, params)
    from variant_ai.core.search.tree.slow_tree import SlowTree

    return SlowTree(encoder, rules, params)


class RestrictedRoots:
    """Roots of one tree that were searched with some of their moves only.

    Such a root must not be searched further with other moves: moves that were excluded have no visits,
    and the others have too many, so the best of these would always be chosen.
    """

    def __init__(self) -> None:
        self._moves: dict[int, frozenset[int]] = {}
        """Moves with which a root was searched, by the root's key."""

    def must_forget(self, tree: Tree, moves: Sequence[int] | None) -> bool:
        """Return True if the tree must be cleared before its root is searched with these moves (None:
        all), and remember the moves."""
        key = int(tree.arrays.nodes[tree.root]["key"])
        before = self._moves.pop(key, None)
        now = None if moves is None else frozenset(moves)
        # a proof for all moves together is none for some of them
        differs = tree.solved if before is None and now is not None else before != now
        if differs:
            self._moves.clear()
        if now is not None:
            self._moves[key] = now
        return differs
