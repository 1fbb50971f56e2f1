"""Games as a net sees them: the encoder and rules that it needs, positions with all that it encodes, and its
answers without a search, a value and a policy over the legal moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.encoding.encoder import Encoder
from variant_ai.core.inference.interface import Evaluator, softmax
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.spec.plane_layout import last_moves_shown
from variant_ai.core.spec.schema import VariantSpec

if TYPE_CHECKING:
    from variant_ai.core.search.interface import BaseSearch


def encoder_and_rules(
    evaluator: Evaluator, spec: VariantSpec, rules: Rules | None = None
) -> tuple[Encoder, Rules]:
    """Return the encoder for a net, and rules whose positions contain everything that it encodes: a
    net may have other planes than the spec (`ModelInfo.own_spec`). rules: used if they are such."""
    own = evaluator.info.own_spec(spec)
    encoder = Encoder(own, evaluator.info.head)
    fits = rules is not None and (own is spec or rules.spec == own)
    return encoder, rules if rules is not None and fits else make_rules(own)


def with_last_moves(game: Game, rules: Rules) -> Game:
    """Return the game, or if needed a copy whose positions contain as many of the last moves as the
    planes of the rules' spec."""
    if last_moves_shown(game.rules.spec) >= last_moves_shown(rules.spec):
        return game
    return game.copy(rules)


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
    of the net (`encoder_and_rules`)."""
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
