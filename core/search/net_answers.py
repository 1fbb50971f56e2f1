"""The net's answers about positions without a search: value, and policy over the legal moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.encoding.encoder import Encoder
from variant_ai.core.inference.interface import Evaluator, softmax
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.search.tree_factory import with_last_moves

if TYPE_CHECKING:
    from variant_ai.core.search.interface import BaseSearch


class NetAnswer(NamedTuple):
    """Answer of a net about one position."""

    value: float
    """In [-1, 1], from the view of the side to move."""
    moves: list[int]
    """The M legal moves."""
    logits: NDArray[np.float32]
    """[M] of these moves."""

    def shares(self) -> dict[int, float]:
        """Probabilities of the legal moves, the softmax over them alone."""
        if not self.moves:
            return {}
        return dict(zip(self.moves, softmax(self.logits).tolist(), strict=True))


def net_answers(
    evaluator: Evaluator, encoder: Encoder, rules: Rules, games: Sequence[Game]
) -> list[NetAnswer]:
    """Return a net's answers about the last position of each game, in one batch. encoder, rules: those
    of the net (`tree_factory.py:encoder_and_rules`)."""
    seen = [with_last_moves(game, rules).position for game in games]
    evaluation = evaluator.evaluate(encoder.planes(np.concatenate(seen)))
    answers = []
    for row, game in enumerate(games):
        moves: list[int] = game.legal_moves().tolist()
        logits = evaluation.policy[row, encoder.action_indices(game.position, moves)]
        answers.append(NetAnswer(float(evaluation.value[row]), moves, logits))
    return answers


def answer_of(search: BaseSearch, game: Game) -> NetAnswer:
    """Return the answer of a search's first evaluator about the last position of a game."""
    search.settle()
    return net_answers(search.evaluators[0], search.encoder, search.rules, [game])[0]
