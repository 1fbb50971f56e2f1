"""Dobutsu with a royal lion: other rules, and nets of dobutsu fit."""

from __future__ import annotations

import numpy as np

from variant_ai.core.encoding import Encoder
from variant_ai.core.inference import RandomEvaluator
from variant_ai.core.reinforce.ladder.net_match import play_match
from variant_ai.core.reinforce.reinforce_settings import SearchChoice
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.plugins import registry

PLAIN, ROYAL = registry().variant("dobutsu"), registry().variant("dobutsu-royal")
LIONS_APART = "1l1/3/1L1/3[-] w 0 1"
"""A step towards each other would put a lion beside the other."""


def test_a_royal_lion_does_not_move_into_check() -> None:
    plain, royal = Game(make_rules(PLAIN), LIONS_APART), Game(make_rules(ROYAL), LIONS_APART)
    towards = {"b2a3", "b2b3", "b2c3"}
    assert towards <= moves_of(plain)
    assert moves_of(plain) - moves_of(royal) == towards


def moves_of(game: Game) -> set[str]:
    found = set()
    for move in game.legal_moves().tolist():
        game.push(move)
        found.add(game.uci_moves()[-1])
        game.pop()
    return found


def test_a_lion_is_mated_and_never_taken() -> None:
    rules = make_rules(ROYAL)
    rng = np.random.default_rng(0)
    mates = 0
    for _ in range(20):
        game = Game(rules)
        while game.outcome() is None and game.ply < 100:
            game.push(int(rng.choice(game.legal_moves())))
            board = game.fen().split("[")[0]
            assert board.count("L") == board.count("l") == 1
        outcome = game.outcome()
        if outcome is not None and outcome.reason == "checkmate":
            mates += 1
            assert outcome.winner == 1 - game.side
    assert mates > 0


def test_planes_and_actions_are_those_of_dobutsu() -> None:
    plain, royal = make_rules(PLAIN), make_rules(ROYAL)
    one, other = Encoder(PLAIN), Encoder(ROYAL)
    assert one.plane_names == other.plane_names
    rng = np.random.default_rng(0)
    for _ in range(20):
        game = Game(royal)
        while game.outcome() is None and game.ply < 60:
            same = plain.position(game.fen())
            same["repetitions"] = game.position["repetitions"]  # a FEN does not have them
            assert np.array_equal(one.planes(same), other.planes(game.position))
            legal = game.legal_moves().tolist()
            assert set(legal) <= set(plain.legal_moves(same).tolist())
            for move in legal:
                assert one.action(same, move) == other.action(game.position, move)
            game.push(int(rng.choice(legal)))


def test_a_net_of_dobutsu_can_play_it() -> None:
    encoder = Encoder(PLAIN)
    net = RandomEvaluator(encoder.shape, encoder.actions)
    score = play_match(
        ROYAL,
        net,
        None,
        games=4,
        nodes=0,
        opening_plies=2,
        max_plies=20,
        seed=0,
        search=SearchChoice(),
    )
    assert score.wins + score.draws + score.losses == 4
