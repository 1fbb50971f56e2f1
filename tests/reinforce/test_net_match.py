"""Matches of two nets: who plays what, results and their point of view."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from variant_ai.core.encoding import Encoder
from variant_ai.core.inference import Evaluation, RandomEvaluator, UniformEvaluator
from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.reinforce.ladder.net_match import (
    BatchPlayer,
    MatchScore,
    make_batch_player,
    play_match,
)
from variant_ai.core.reinforce.reinforce_settings import SearchChoice
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.fairy.fairy_rules import FairyRules
from variant_ai.core.rules.game import Game
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.plugins import registry

VARIANT = "minixiangqi"


def spec_of(variant: str = VARIANT) -> VariantSpec:
    return registry().variant(variant)


def net(spec: VariantSpec, seed: int = 0) -> RandomEvaluator:
    encoder = Encoder(spec)
    return RandomEvaluator(encoder.shape, encoder.actions, seed)


class Counting(UniformEvaluator):
    """Prefers the first action, and keeps the number of positions of each batch."""

    is_uniform = False

    def __init__(self, planes_shape: tuple[int, int, int], actions: int) -> None:
        super().__init__(planes_shape, actions)
        self.batches: list[int] = []

    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        self.batches.append(len(planes))
        answer = super().evaluate(planes)
        answer.policy[:] = -np.arange(self.actions, dtype=np.float32)
        return answer


def match(first: Evaluator, second: Evaluator, **changes: Any) -> MatchScore:
    words: dict[str, Any] = {
        "games": 8,
        "nodes": 8,
        "opening_plies": 4,
        "max_plies": 60,
        "seed": 1,
        "search": SearchChoice(considered=4),
    }
    return play_match(spec_of(), first, second, **(words | changes))


@pytest.mark.parametrize("nodes", [0, 8])
def test_a_match_turned_round_has_the_opposite_result(nodes: int) -> None:
    one, other = net(spec_of(), 1), net(spec_of(), 2)
    score = match(one, other, games=20, nodes=nodes)
    turned = match(other, one, games=20, nodes=nodes)
    assert score.wins + score.draws + score.losses == 20
    assert (score.wins, score.draws, score.losses) == (turned.losses, turned.draws, turned.wins)
    assert score.evaluations == turned.evaluations > 0
    assert score.wins != score.losses  # else the equation says nothing
    assert match(one, other, games=20, nodes=nodes) == score
    assert match(one, other, games=20, nodes=nodes, seed=2) != score


@pytest.mark.parametrize("nodes", [0, 8])
def test_a_net_against_itself_scores_half(nodes: int) -> None:
    """Each opening is played twice with exchanged colours: what one wins the other loses."""
    same = net(spec_of(), 3)
    score = match(same, same, games=12, nodes=nodes, max_plies=200)
    assert score.wins == score.losses > 0
    assert score.distinct == 12


def test_without_openings_games_repeat() -> None:
    score = match(net(spec_of(), 1), net(spec_of(), 2), games=10, opening_plies=0)
    assert score.distinct == 2


def test_games_of_the_greatest_length_are_draws() -> None:
    score = match(net(spec_of(), 1), net(spec_of(), 2), opening_plies=1, max_plies=3)
    assert (score.draws, score.capped) == (8, 8)


def test_raw_policy_is_one_evaluation_a_move_in_large_batches() -> None:
    spec = spec_of()
    encoder = Encoder(spec)
    one, other = (Counting(encoder.shape, encoder.actions) for _ in range(2))
    score = match(one, other, games=16, nodes=0, max_plies=10)
    assert score.evaluations == sum(one.batches) + sum(other.batches) == 16 * 6
    assert one.batches[0] == 8  # half the games are this net's to move


@pytest.mark.parametrize("nodes", [0, 4])
def test_moves_are_legal_and_raw_policy_is_the_greatest_logit(nodes: int) -> None:
    spec = spec_of()
    rules = make_rules(spec)
    encoder = Encoder(spec)
    evaluator = net(spec)
    player = make_batch_player(
        spec, evaluator, rules, nodes=nodes, search=SearchChoice(), max_plies=80, games=2
    )
    game = Game(rules)
    while game.outcome() is None and game.ply < 40:
        player.ask(5, game)
        chosen = answer(player)
        assert [number for number, _ in chosen] == [5]
        move = chosen[0][1]
        legal = game.legal_moves().tolist()
        assert move in legal
        if nodes == 0:
            logits = evaluator.evaluate(encoder.planes(game.position)).policy[0]
            best = max(legal, key=lambda m: logits[encoder.action(game.position, m)])
            assert move == best
        game.push(move)


def answer(player: BatchPlayer) -> list[tuple[int, int]]:
    while not (chosen := player.step()):
        pass
    return chosen


def test_a_search_beats_random_moves() -> None:
    spec = spec_of("dobutsu")
    score = play_match(
        spec,
        net(spec),
        None,
        games=12,
        nodes=32,
        opening_plies=2,
        max_plies=100,
        seed=0,
        search=SearchChoice(kind="puct"),
    )
    assert score.wins >= 10


@pytest.mark.parametrize("kind", ["gumbel", "puct"])
def test_matches_with_fewer_visits_than_the_fast_moves_of_the_run(kind: str) -> None:
    """The first match of such a run ended it with a ValueError of numpy."""
    search = SearchChoice(kind=kind, nodes=40, full_share=0.5, fast_nodes=20)
    spec = spec_of("dobutsu")
    player = make_batch_player(
        spec, net(spec), make_rules(spec), nodes=8, search=search, max_plies=20, games=2
    )
    player.ask(0, Game(make_rules(spec)))
    while not (chosen := player.step()):
        pass
    assert chosen[0][0] == 0 and player.evaluations <= 9


def test_rules_that_are_not_compiled() -> None:
    spec = spec_of()
    rules = FairyRules(spec)
    score = play_match(
        spec,
        net(spec, 1),
        net(spec, 2),
        games=2,
        nodes=4,
        opening_plies=2,
        max_plies=12,
        seed=0,
        search=SearchChoice(),
        rules=rules,
    )
    assert score.wins + score.draws + score.losses == 2
    assert score.evaluations > 20
