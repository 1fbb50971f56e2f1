"""Labels of a stronger player: every position gets them, and a player that fails spoils nothing."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from arena_players import ToyPlayer

from variant_ai.core.arena.games.generated_games import Dropped
from variant_ai.core.arena.games.labelling import (
    MAX_FAILURES,
    Labelled,
    Labelling,
    LabelReport,
    LabelSettings,
    policy_of,
)
from variant_ai.core.arena.players.player import Allowance, Fault, Player, Reply, Turn
from variant_ai.core.data.game_record import FULL_WEIGHT, MATE, TRAINS_POLICY, GameRecord
from variant_ai.core.errors import EngineError
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules


class Teacher(ToyPlayer):
    """Compares the least and the greatest move; its score is the ply."""

    def play(self, game: Game, turn: Turn) -> Reply:
        played = super().play(game, turn)
        other = int(game.legal_moves().max())
        score = 10 * game.ply
        return Reply(played.move, score, candidates=((played.move, score), (other, score - 50)))


def records(rules: Rules, count: int = 3, plies: int = 7) -> list[GameRecord]:
    found = []
    for number in range(count):
        chance, game = random.Random(number), Game(rules)
        for _ in range(plies):
            game.push(int(chance.choice(game.legal_moves().tolist())))
        found.append(
            GameRecord(
                rules.spec.variant,
                list(game.moves),
                result="1-0",
                root_values=[0.125] * plies,
                trains=[0] * plies,
                number=number + 1,
            )
        )
    return found


def labelled(
    rules: Rules, games: list[GameRecord], workers: int = 1, **player: Any
) -> list[Labelled | Dropped]:
    labelling = Labelling(LabelSettings(), rules, lambda: Teacher("teacher", **player), workers)
    return list(labelling.games(range(len(games)), games.__getitem__))


def test_every_position_has_the_answer_of_the_player(one_rules: Rules) -> None:
    games = records(one_rules)
    for game, before in zip(labelled(one_rules, games), games, strict=True):
        assert isinstance(game, Labelled)
        record = game.record
        assert (record.moves, record.result, game.positions) == (before.moves, "1-0", 7)
        assert record.scores == [10 * ply for ply in range(7)]
        assert record.trains == [TRAINS_POLICY] * 7  # not the result, which was not to be learnt
        assert (
            record.root_values is None
        )  # a program reports none, and the old ones are not its own
        played = Game(one_rules)
        assert record.visits is not None
        for move, visits in zip(record.moves, record.visits, strict=True):
            legal = played.legal_moves()
            assert [kept for kept, _ in visits] == [int(legal.min()), int(legal.max())]
            assert sum(weight for _, weight in visits) == FULL_WEIGHT
            assert visits[1][1] / visits[0][1] == pytest.approx(math.exp(-1), rel=1e-3)
            played.push(move)


def test_the_number_of_workers_does_not_matter(one_rules: Rules) -> None:
    games = records(one_rules, count=20)
    assert labelled(one_rules, games, workers=3) == labelled(one_rules, games)


def test_a_position_without_an_answer_keeps_its_labels(one_rules: Rules) -> None:
    games = records(one_rules, count=1)
    (game,) = labelled(one_rules, games, fault=Fault("no move", "none"), at=4)
    assert isinstance(game, Labelled) and game.positions == 4
    record = game.record
    assert record.trains == [TRAINS_POLICY] * 4 + [0] * 3
    assert record.root_values is not None and record.root_values[4:] == [0.125] * 3
    assert record.visits is not None and record.visits[4:] == [()] * 3


def test_a_game_in_which_the_player_dies_is_left_out(one_rules: Rules) -> None:
    games = records(one_rules, count=3)
    made: list[Player] = []

    def make() -> Player:
        made.append(Dying("teacher"))
        return made[0]

    labelling = Labelling(LabelSettings(), one_rules, make)
    found, report = list(labelling.games(range(3), games.__getitem__)), LabelReport()
    for game in found:
        report.count(game)
    assert [type(game) for game in found] == [Labelled, Dropped, Labelled]
    assert report.failed == {"crash: it died": 1}
    assert (report.games, report.positions) == (2, 14)


class Dying(Teacher):
    """Dies in its second game; started again, it goes on."""

    def play(self, game: Game, turn: Turn) -> Reply:
        if self.games == 2:
            raise Fault("crash", "it died")
        return super().play(game, turn)


def test_a_player_that_always_dies_ends_it(one_rules: Rules) -> None:
    games = records(one_rules, count=9)
    labelling = Labelling(
        LabelSettings(), one_rules, lambda: Teacher("teacher", fault=Fault("crash", "it died"))
    )
    found = []
    with pytest.raises(EngineError, match="in 5 games in a row; the last time: crash: it died"):
        for game in labelling.games(range(9), games.__getitem__):
            found.append(game)
    assert len(found) == MAX_FAILURES


def test_a_player_that_answers_nothing_labels_no_game(one_rules: Rules) -> None:
    (game,) = labelled(one_rules, records(one_rules, count=1), fault=Fault("no move", "none"))
    assert game == Dropped(0, "none")


def test_a_player_that_cannot_count_nodes_is_rejected(one_rules: Rules) -> None:
    class Timed(Teacher):
        def rejection(self, allowance: Allowance) -> str:
            return "no node limit" if allowance.nodes else ""

    with pytest.raises(EngineError, match="cannot label: no node limit"):
        Labelling(LabelSettings(), one_rules, lambda: Timed("timed")).check_player()


def test_policies() -> None:
    assert policy_of(Reply(5, 10), 50.0) == ((5, FULL_WEIGHT),)
    assert policy_of(Reply(5, visits=((5, 30), (6, 10))), 50.0) == ((5, 30), (6, 10))
    # a mate is above every other score, and a weight that rounds to nothing is left out
    assert policy_of(Reply(5, candidates=((5, MATE - 3), (6, 900))), 50.0) == ((5, FULL_WEIGHT),)
