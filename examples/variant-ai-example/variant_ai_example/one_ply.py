"""A search of one ply: every legal move is played once, and the net judges the position after it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import MoveError
from variant_ai.core.inference import Evaluator
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.search.interface import BaseSearch, check_shape
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.report import Line, Report, centipawns
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.spec.schema import VariantSpec

PRIOR_WEIGHT = 0.1
"""Weight of a move's prior, in [0, 1], beside its value, in [-1, 1]."""


class OnePlySearch(BaseSearch):
    """Plays the move with the greatest value + PRIOR_WEIGHT * prior. Every move has one visit."""

    def __init__(
        self,
        spec: VariantSpec,
        evaluator: Evaluator | Sequence[Evaluator],
        params: SearchParams | None = None,
        *,
        rules: Rules | None = None,
    ) -> None:
        super().__init__(spec, params)
        self.evaluators = [evaluator] if isinstance(evaluator, Evaluator) else list(evaluator)
        own = self.evaluators[0].info.own_spec(spec)
        self.encoder = Encoder(own, "flat" if self.evaluators[0].info.head == "flat" else "map")
        check_shape(self.encoder, self.evaluators[0])
        self.rules = rules or make_rules(spec)
        self._game = Game(self.rules)
        self._stopped = threading.Event()
        self._report = Report(best=None)

    @property
    def game(self) -> Game:
        return self._game

    def set_game(self, game: Game) -> None:
        self._game = game

    def clear(self, seed: int | None = None) -> None:
        self._report = Report(best=None)

    def run(
        self,
        limits: Limits,
        *,
        moves: Sequence[int] | None = None,
        multipv: int = 1,
        on_report: Callable[[Report], None] | None = None,
        interval: float = 1.0,
    ) -> Report:
        self._stopped.clear()
        begun = time.perf_counter()
        if self._game.outcome() is not None:
            return Report(best=None, stopped_by="game over")
        legal = [m for m in self._game.legal_moves() if moves is None or m in moves]
        if not legal:
            raise MoveError(f"none of the moves to search is legal (FEN {self._game.fen()})")
        lines = self._lines([int(move) for move in legal])
        self._report = Report(
            best=lines[0].move,
            lines=tuple(lines),
            visits=len(lines),
            evaluations=len(lines) + 1,
            depth=1,
            seldepth=1,
            seconds=time.perf_counter() - begun,
            stopped_by="depth",
        )
        if limits.infinite:
            self._stopped.wait()
        report = self.report(multipv)
        if on_report is not None:
            on_report(report)
        return report

    def _lines(self, moves: list[int]) -> list[Line]:
        """A line for each move, the best first."""
        position = self._game.position
        answer = self.evaluators[0].evaluate(self.encoder.planes(position))
        logits = answer.policy[0][self.encoder.action_indices(position, moves)]
        priors = np.exp(logits - logits.max())
        priors /= priors.sum()
        lines = []
        for move, prior in zip(moves, priors.tolist(), strict=True):
            value = self._value_of(move)
            lines.append(
                Line(move, (move,), 1, prior, value, cp=centipawns(value), mate=self._mate(move))
            )
        return sorted(lines, key=lambda line: -(line.q + PRIOR_WEIGHT * line.prior))

    def _value_of(self, move: int) -> float:
        """Value after the move, for the player who makes it."""
        after = self._game.copy()
        after.push(move)
        mover = int(self._game.position[0]["side"])
        outcome = after.outcome()
        if outcome is not None:
            return float(outcome.value(mover))
        return -float(self.evaluators[0].evaluate(self.encoder.planes(after.position)).value[0])

    def _mate(self, move: int) -> int | None:
        after = self._game.copy()
        after.push(move)
        outcome = after.outcome()
        won = outcome is not None and outcome.winner == int(self._game.position[0]["side"])
        return 1 if won else None

    def stop(self) -> None:
        self._stopped.set()

    def report(self, multipv: int = 1, *, pv: bool = True) -> Report:
        known = self._report
        return Report(**{**vars(known), "lines": known.lines[:multipv]})

    def root_visits(self) -> list[tuple[int, int]]:
        return [(line.move, line.visits) for line in self._report.lines]
