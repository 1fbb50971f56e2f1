"""`SharedBatches`: many trees that share one evaluator, the base of both kinds of forests."""

from __future__ import annotations

import numpy as np

from variant_ai.core.errors import DataError
from variant_ai.core.inference.interface import Evaluation, Evaluator
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.kernel.kernel_rules import is_compiled
from variant_ai.core.rules.position import POSITION
from variant_ai.core.search.compiled_settings import Settings
from variant_ai.core.search.forest.evaluation_cache import EvaluationCache, clear_cache, new_cache
from variant_ai.core.search.forest.forest_arrays import Choice, Forest
from variant_ai.core.search.forest.forest_kernels import answer, begin
from variant_ai.core.search.interface import check_shape
from variant_ai.core.search.net_view import encoder_and_rules
from variant_ai.core.search.tree.leaf_batch import LeafBatch, leaf_planes
from variant_ai.core.search.tree.working_memory import new_scratch
from variant_ai.core.spec.schema import VariantSpec

_NO_DRAWS = np.zeros(0, np.float32)


class SharedBatches:
    """Trees that share one evaluator. Not for several threads. A subclass makes the arrays."""

    forest: Forest
    _compiled: Settings
    _choice: Choice
    _batch: LeafBatch

    def __init__(
        self,
        spec: VariantSpec,
        evaluator: Evaluator,
        trees: int,
        rules: Rules | None,
        cache: EvaluationCache | None = None,
    ) -> None:
        """cache: for evaluations; None: of the usual size. Raises DataError if the shapes of the evaluator and the spec's planes differ, or if the rules
        are not compiled."""
        self.encoder, known = encoder_and_rules(evaluator, spec, rules)
        if not is_compiled(known):
            raise DataError(f"{spec.variant} has rules that are not compiled")
        self.rules = known
        self.cache = new_cache() if cache is None else cache
        """Evaluations of the present net."""
        self.set_evaluator(evaluator)
        self.trees = trees
        self.evaluations = 0
        """Positions evaluated so far."""
        self._scratch = new_scratch()
        self._owners = np.zeros(trees, np.int64)
        """Tree of each row of the batch."""

    def set_evaluator(self, evaluator: Evaluator) -> None:
        """Evaluate with another net of the same shape from now on; searches go on. Raises DataError."""
        check_shape(self.encoder, evaluator)
        clear_cache(self.cache)
        self.evaluator = evaluator

    def _begin(self, tree: int, game: Game) -> None:
        """Begin the search of the last position of a game, which has all moves that the net sees."""
        f = self.forest
        first, count = tree * int(f.sizes[2]), len(game.positions)
        # of joined bytes: NumPy concatenates records slowly
        joined = b"".join(position.tobytes() for position in game.positions)
        f.line[first : first + count] = np.frombuffer(joined, POSITION)
        index = np.int64(tree)
        begin(self.rules.tables, self._compiled, self._choice, f, index, np.int64(count))

    def _evaluated(self, rows: int) -> Evaluation:
        """Evaluate the leaves of the batch."""
        return self.evaluator.evaluate(leaf_planes(self.encoder, self._batch, rows))

    def _back_up(self, rows: int, out: Evaluation) -> None:
        """Expand the leaves of the batch and back them up. Raises DataError for an evaluation that is not
        a number."""
        done = int(
            answer(
                self.rules.tables,
                self.encoder.policy_record,
                self.encoder.action_table,
                self._compiled,
                self.forest,
                self._batch,
                self._scratch,
                self.cache,
                np.int64(rows),
                self._owners,
                np.ascontiguousarray(out.value),
                np.ascontiguousarray(out.policy),
                _NO_DRAWS if out.wdl is None else np.ascontiguousarray(out.wdl[:, 1]),
            )
        )
        if done != rows:
            fen = self.rules.fen(self._batch.positions[done : done + 1].copy())
            raise DataError(
                f"{self.evaluator.info.source}: the net's output is not a number for the position {fen}"
            )
        self.evaluations += rows
