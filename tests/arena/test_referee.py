"""The referee: ends by the rules, faults with their reasons, clocks, adjudication."""

from __future__ import annotations

import pytest
from arena_players import ToyPlayer

from variant_ai.core.arena.match.referee import (
    DRAW_RULE,
    RESIGN_RULE,
    Conduct,
    DrawRule,
    PlayedGame,
    Referee,
    ResignRule,
)
from variant_ai.core.arena.players.player import Allowance, Fault, Reply, Turn
from variant_ai.core.data.game_record import MATE, MOVE_LIMIT
from variant_ai.core.errors import EngineError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.plugins import registry

NODES = Allowance(nodes=1)
SHORT = Conduct(max_plies=12)


@pytest.fixture(scope="module")
def rules() -> Rules:
    return make_rules(registry().variant("crazyhouse"))


def play(
    rules: Rules,
    first: ToyPlayer,
    second: ToyPlayer,
    conduct: Conduct = SHORT,
    allowance: Allowance = NODES,
    fen: str | None = None,
) -> PlayedGame:
    return Referee(conduct).play(Game(rules, fen), (first, second), (allowance, allowance))


def test_the_rules_end_a_game(rules: Rules) -> None:
    a, b = ToyPlayer("a", line=MATE_LINE), ToyPlayer("b", line=MATE_LINE)
    played = play(rules, a, b)
    assert (played.result, played.reason) == ("0-1", "checkmate")
    assert a.ended == b.ended == [("0-1", "checkmate")]
    assert [reply.nodes for reply in played.replies] == [10] * 4 and len(played.scores) == 4


def test_a_repetition_ends_a_game(rules: Rules) -> None:
    dance = ("g1f3", "g8f6", "f3g1", "f6g8") * 3
    played = play(rules, ToyPlayer("a", line=dance), ToyPlayer("b", line=dance))
    assert (played.result, played.reason) == ("1/2-1/2", "repetition")
    assert played.game.ply == 8


def test_a_long_game_is_a_draw(rules: Rules) -> None:
    played = play(rules, ToyPlayer("a"), ToyPlayer("b", greatest=True), Conduct(max_plies=5))
    assert (played.result, played.reason, played.game.ply) == ("1/2-1/2", MOVE_LIMIT, 5)


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("at", [0, 2])
def test_who_errs_loses(rules: Rules, side: int, at: int) -> None:
    players = [ToyPlayer("a"), ToyPlayer("b")]
    players[side].fault, players[side].at = Fault("illegal move", "b plays a1a1"), at
    played = play(rules, players[0], players[1])
    assert played.result == ("0-1", "1-0")[side]
    assert (played.reason, played.detail) == ("illegal move", "b plays a1a1")
    assert played.game.ply == 2 * at + side


def test_who_cannot_begin_loses(rules: Rules) -> None:
    class Broken(ToyPlayer):
        def new_game(self, game: Game, number: int = 0) -> None:
            raise Fault("crash", "no engine")

    assert play(rules, ToyPlayer("a"), Broken("b")).result == "1-0"
    assert play(rules, Broken("a"), ToyPlayer("b")).result == "0-1"


MATE_LINE = ("f2f3", "e7e5", "g2g4", "d8h4")


@pytest.mark.parametrize("side", [0, 1])
def test_who_announces_a_mate_that_is_none_loses(rules: Rules, side: int) -> None:
    players = [ToyPlayer("a"), ToyPlayer("b")]
    players[side].score = MATE - 1
    played = play(rules, players[0], players[1])
    assert (played.result, played.reason) == (("0-1", "1-0")[side], "false claim")
    assert "announced a mate in one, but" in played.detail
    assert played.game.ply == side + 1 == len(played.scores)
    # longer mates are not judged, and nothing is where it is believed
    players[side].score = MATE - 2
    assert play(rules, players[0], players[1]).reason == MOVE_LIMIT
    players[side].score = MATE - 1
    believed = Conduct(max_plies=12, check_mates=False)
    assert play(rules, players[0], players[1], believed).reason == MOVE_LIMIT


def test_a_mate_that_is_one_is_believed(rules: Rules) -> None:
    class Mating(ToyPlayer):
        def play(self, game: Game, turn: Turn) -> Reply:
            self.score = MATE - 1 if game.ply == 3 else None
            return super().play(game, turn)

    played = play(rules, ToyPlayer("a", line=MATE_LINE), Mating("b", line=MATE_LINE))
    assert (played.result, played.reason) == ("0-1", "checkmate")
    assert played.scores[3] == MATE - 1


def test_a_win_by_every_reply_is_a_mate_in_one() -> None:
    """Black's only move is a pass between facing kings, which ends the game by points."""

    class Winning(ToyPlayer):
        def play(self, game: Game, turn: Turn) -> Reply:
            self.score = MATE - 1
            return super().play(game, turn)

    fen = "7nR/5a1C1/3akc3/9/1p7/6P2/p6p1/4pK3/3A4N/5AB2 w - - 0 82"
    janggi = make_rules(registry().variant("janggi"))
    players = Winning("a", line=("f3e3",)), ToyPlayer("b")
    played = play(janggi, *players, fen=fen)
    assert (played.result, played.reason) == ("1-0", "variant win")


def test_a_fault_while_pondering_is_the_ponderers(rules: Rules) -> None:
    class Dying(ToyPlayer):
        pondered = 0

        def ponder(self, game: Game, turn: Turn) -> None:
            self.pondered += 1
            if self.pondered == 2:
                raise Fault("crash", "died in thought")

    for players, result in (
        ((Dying("a"), ToyPlayer("b")), "0-1"),
        ((ToyPlayer("a"), Dying("b")), "1-0"),
    ):
        played = play(rules, *players)
        assert (played.result, played.reason) == (result, "crash")


def test_what_is_no_fault_of_the_game_is_told(rules: Rules) -> None:
    with pytest.raises(EngineError, match="no such variant"):
        play(rules, ToyPlayer("a"), ToyPlayer("b", fault=EngineError("no such variant")))


def test_the_second_player_may_begin(rules: Rules) -> None:
    fen = "4k3/8/8/8/8/8/8/4K2R[] b - - 0 1"
    played = play(rules, ToyPlayer("a"), ToyPlayer("b", fault=Fault("crash", "x")), fen=fen)
    assert (played.result, played.game.ply) == ("1-0", 0)


def test_time_runs_out(rules: Rules) -> None:
    clock = Allowance.parse("0.1+0.05")
    slow = ToyPlayer("b", seconds=0.09)
    played = play(rules, ToyPlayer("a"), slow, Conduct(margin=0), clock)
    # 100 - 90 + 50 = 60 ms are left at the second move, which takes 90
    assert (played.result, played.reason) == ("1-0", "time forfeit")
    assert played.game.ply == 3
    assert "0.030 s more than it had" in played.detail
    assert slow.turns[1].clock is slow.turns[0].clock
    played = play(
        rules, ToyPlayer("a"), ToyPlayer("b", seconds=0.09), Conduct(4, max_plies=6), clock
    )
    assert played.reason == "time forfeit"
    enough = Conduct(margin=1000, max_plies=6)
    assert (
        play(rules, ToyPlayer("a"), ToyPlayer("b", seconds=0.09), enough, clock).reason
        == MOVE_LIMIT
    )


def test_what_players_are_told_to_wait_for(rules: Rules) -> None:
    a = ToyPlayer("a")
    play(
        rules, a, ToyPlayer("b"), Conduct(margin=50, max_plies=1, grace=2.0), Allowance.parse("3+1")
    )
    play(
        rules, a, ToyPlayer("b"), Conduct(margin=50, max_plies=1), Allowance(movetime=200, nodes=5)
    )
    play(rules, a, ToyPlayer("b"), Conduct(think=7, max_plies=1))
    assert [turn.wait for turn in a.turns] == [3.05, 0.25, 7]
    assert a.turns[0].grace == 2.0


def test_lost_games_are_given_up(rules: Rules) -> None:
    rule = Conduct(max_plies=12, resign=ResignRule(2, 500))
    a, b = ToyPlayer("a", score=-500), ToyPlayer("b", score=100)
    played = play(rules, a, b, rule)
    assert (played.result, played.reason, played.game.ply) == ("0-1", RESIGN_RULE, 3)
    both = Conduct(max_plies=12, resign=ResignRule(2, 500, both=True))
    assert play(rules, a, b, both).reason == MOVE_LIMIT
    sure = play(rules, a, ToyPlayer("b", score=700), both)
    assert (sure.reason, sure.game.ply) == (RESIGN_RULE, 5)
    assert play(rules, ToyPlayer("a", score=None), b, rule).reason == MOVE_LIMIT


def test_dead_games_are_drawn(rules: Rules) -> None:
    rule = Conduct(max_plies=12, draw=DrawRule(moves=2, score=10, first_move=4))
    played = play(rules, ToyPlayer("a", score=10), ToyPlayer("b", score=-10), rule)
    assert (played.result, played.reason, played.game.ply) == ("1/2-1/2", DRAW_RULE, 6)
    assert play(rules, ToyPlayer("a", score=11), ToyPlayer("b"), rule).reason == MOVE_LIMIT


def test_a_stopped_game_has_no_result(rules: Rules) -> None:
    asked = iter([False, False, True])
    referee = Referee(SHORT, lambda: next(asked, True))
    played = referee.play(Game(rules), (ToyPlayer("a"), ToyPlayer("b")), (NODES, NODES))
    assert (played.result, played.reason, played.game.ply) == ("*", "stopped", 2)
