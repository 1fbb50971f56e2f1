"""Players of matches on the page: their limits, and moves that have to come early."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from variant_ai.core.arena.players.player import Allowance, Player, RandomPlayer, Reply, Turn
from variant_ai.core.arena.players.player_spec import parse_player
from variant_ai.core.arena.programs.program_player import program_player
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.web.player_engine import PlayerEngine
from variant_ai.plugins import registry

FAKE = Path(__file__).parents[1] / "arena" / "fake_engine.py"
PAGE = Limits(nodes=800, movetime=600.0)
"""What a strength in nodes asks for."""


@pytest.fixture(scope="module")
def rules() -> Rules:
    return make_rules(registry().variant("chess"))


class Noting(RandomPlayer):
    """Plays at random, and notes its limits and its new games."""

    def __init__(self, other: Player | None = None) -> None:
        super().__init__()
        self.other = other or self
        self.given: list[Allowance] = []
        self.games = 0

    def new_game(self, game: Game, number: int = 0) -> None:
        super().new_game(game, number)
        self.games += 1

    def rejection(self, allowance: Allowance) -> str:
        return "" if self.other is self else self.other.rejection(allowance)

    def play(self, game: Game, turn: Turn) -> Reply:
        self.given.append(turn.allowance)
        return super().play(game, turn)


@pytest.mark.parametrize(
    ("text", "own", "expected"),
    [
        ("uci:{}", Allowance(), Allowance(movetime=600_000, nodes=800)),
        ("uci:{}", Allowance(depth=4), Allowance(movetime=600_000, depth=4)),
        ("uci:{}", Allowance(base=60_000), Allowance(movetime=600_000, nodes=800)),
        # one limit a move; no limit of nodes
        ("ucci:{}", Allowance(), Allowance(nodes=800)),
        ("xboard:{}", Allowance(), Allowance(movetime=5_000)),
        ("xboard:{}", Allowance(depth=4), Allowance(movetime=600_000, depth=4)),
    ],
)
def test_limits_that_a_program_can_be_given(
    rules: Rules, text: str, own: Allowance, expected: Allowance
) -> None:
    program = program_player(parse_player(text.format(f"{sys.executable} {FAKE}")), rules)
    player = Noting(program)
    engine = PlayerEngine(rules, player, own)
    engine.set_game(Game(rules))
    engine.run(PAGE)
    assert player.given == [expected]


def test_a_search_that_was_stopped_before_its_turn_has_a_move(rules: Rules) -> None:
    engine = PlayerEngine(rules, Noting())
    engine.set_game(Game(rules))
    assert engine.run(Limits(movetime=0.0)).best is not None


@pytest.mark.parametrize(
    ("score", "value", "cp", "mate"),
    [(0, 0.0, 0, None), (380, 0.5, 380, None), (31998, 1.0, 5051, 2), (-31999, -1.0, -5051, -1)],
)
def test_the_score_of_a_program(
    rules: Rules, score: int, value: float, cp: int, mate: int | None
) -> None:
    class Scoring(RandomPlayer):
        def play(self, game: Game, turn: Turn) -> Reply:
            return replace(super().play(game, turn), score=score, value=None)

    engine = PlayerEngine(rules, Scoring())
    engine.set_game(Game(rules))
    (line,) = engine.run(PAGE).lines
    assert line.q == pytest.approx(value, abs=0.001)
    assert (line.cp, line.mate_in) == (cp, mate)


def test_games_that_begin_elsewhere_are_other_games(rules: Rules) -> None:
    player = Noting()
    engine = PlayerEngine(rules, player)
    fen = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBN1 w Qkq - 0 1"
    for game in (Game(rules), Game(rules, fen)):
        engine.set_game(game)
        best = engine.run(PAGE).best
        assert best is not None
    assert player.games == 2
    game.push(best)
    game.push(int(game.legal_moves()[0]))
    engine.set_game(game)
    engine.run(PAGE)
    assert player.games == 2


def test_a_program_moves_when_it_has_to_give_way(
    rules: Rules, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_LINE", "e2e4")
    program = program_player(parse_player(f"{sys.executable} {FAKE} late"), rules)
    engine = PlayerEngine(rules, program)
    engine.set_game(Game(rules))
    timer = threading.Timer(2.0, engine.stop)
    timer.start()
    try:
        report = engine.run(PAGE)
        assert report.best is not None
        assert rules.uci(report.best) == "e2e4"
    finally:
        timer.cancel()
        engine.close()


def test_a_stop_while_the_program_starts(rules: Rules, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_LINE", "e2e4")
    program = program_player(parse_player(f"{sys.executable} {FAKE} late"), rules)
    engine = PlayerEngine(rules, program)
    game = Game(rules)
    engine.set_game(game)
    engine.stop()
    limits = Limits(nodes=800, movetime=60.0)
    started = time.monotonic()
    try:
        assert engine.run(limits).best is not None
        assert time.monotonic() - started < 40
    finally:
        engine.close()


def test_a_late_stop_does_not_end_the_next_move(rules: Rules) -> None:
    class Waiting(RandomPlayer):
        def play(self, game: Game, turn: Turn) -> Reply:
            seen.append(turn.hurried.is_set())
            return super().play(game, turn)

    seen: list[bool] = []
    engine = PlayerEngine(rules, Waiting())
    for _ in range(2):
        engine.set_game(Game(rules))
        engine.run(PAGE)
        engine.stop()
    assert seen == [False, False]
