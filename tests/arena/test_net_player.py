"""A net as a player: what it gives its search."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from variant_ai.core.arena.players.net_player import NetPlayer
from variant_ai.core.arena.players.player import Allowance, Fault, PlayerClock, Turn
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.search.move.clock import Clock, TimeManager
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.report import Line, Report
from variant_ai.core.search.settings import SearchParams


class ToySearch:
    """Plays the first legal move, and keeps what it was allowed."""

    params = SearchParams()

    def __init__(self) -> None:
        self.limits: list[Limits] = []
        self.is_warm = False

    def set_game(self, game: Game) -> None:
        self.game = game

    def run(self, limits: Limits, **how: Any) -> Report:
        self.limits.append(limits)
        return Report(best=int(self.game.legal_moves()[0]))

    def report(self, multipv: int = 1, *, pv: bool = True) -> Report:
        return Report(best=None)

    def clear(self, seed: int | None = None) -> None: ...

    def warm_up(self) -> None:
        self.is_warm = True

    def root_visits(self) -> list[tuple[int, int]]:
        return []

    def stop(self) -> None: ...

    def close(self) -> None: ...


def test_a_net_is_warm_before_its_first_game() -> None:
    """The first batches of a net take many times as long, and the first compiled code too."""
    made: list[ToySearch] = []

    def make() -> ToySearch:
        made.append(ToySearch())
        return made[-1]

    player = NetPlayer(make, "net")
    player.start()
    player.start()
    assert [search.is_warm for search in made] == [True]


@pytest.mark.parametrize("behind", ["moves", "a position"])
def test_moves_of_the_opening_count_for_the_clock(one_rules: Rules, behind: str) -> None:
    """As in an engine: of a game that has gone on for long, less is to come."""
    game = Game(one_rules)
    for _ in range(30):
        game.push(next(m for m in game.legal_moves().tolist() if goes_on(game, m)))
    if behind == "a position":
        game = Game(one_rules, game.fen())
    search = ToySearch()
    player = NetPlayer(lambda: search, "net")
    clocks = (PlayerClock(Allowance(base=60_000)), PlayerClock(Allowance(base=60_000)))
    player.new_game(game)
    player.play(game, Turn(clocks, game.side, wait=60, grace=1))
    assert search.limits[0].movetime == TimeManager().budget(Clock(60.0), 15).maximum
    assert search.limits[0].movetime != TimeManager().budget(Clock(60.0), 0).maximum


def test_a_net_that_is_short_of_time_is_asked_once(one_rules: Rules) -> None:
    """Without an evaluation it would play the first legal move."""
    search = ToySearch()
    player = NetPlayer(lambda: search, "net")
    clocks = (PlayerClock(Allowance(base=20)), PlayerClock(Allowance(base=20)))
    game = Game(one_rules)
    player.new_game(game)
    player.play(game, Turn(clocks, game.side, wait=60, grace=1))
    assert search.limits == [Limits(movetime=0.0), Limits(evaluations=1)]


class PatientSearch(ToySearch):
    """Searches until it is stopped or its time is over, and knows two moves."""

    def __init__(self, q: float = 0.0, prior: float = 0.5, visits: tuple[int, int] = (60, 50)):
        super().__init__()
        self.q, self.prior, self.visits = q, prior, visits
        self.stopped = threading.Event()

    def run(self, limits: Limits, **how: Any) -> Report:
        super().run(limits)
        self.stopped.clear()
        if on_report := how.get("on_report"):
            on_report(self.report())
        self.stopped.wait(limits.movetime)
        return self.report()

    def report(self, multipv: int = 1, *, pv: bool = True) -> Report:
        first, second = (int(move) for move in self.game.legal_moves()[:2])
        lines = (
            Line(first, (first,), self.visits[0], self.prior, self.q),
            Line(second, (second,), self.visits[1], 1 - self.prior, self.q - 0.1),
        )
        return Report(best=first, lines=lines, visits=sum(self.visits), seconds=0.001)

    def stop(self) -> None:
        self.stopped.set()


def time_of_move(search: PatientSearch, player: NetPlayer, rules: Rules) -> float:
    game = Game(rules)
    clocks = (PlayerClock(Allowance(base=10_000)), PlayerClock(Allowance(base=10_000)))
    reply = player.play(game, Turn(clocks, game.side, wait=60, grace=1))
    assert reply.seconds is not None
    return reply.seconds


def test_a_clock_is_used_as_an_engine_uses_it(one_rules: Rules) -> None:
    """Usual, easy and critical positions (000 section 9.2.4)."""
    search = PatientSearch()
    player = NetPlayer(lambda: search, "net")
    player.new_game(Game(one_rules))
    budget = TimeManager().budget(Clock(10.0), 0)
    usual = time_of_move(search, player, one_rules)
    assert 0.9 * budget.target <= usual < 0.95 * budget.maximum
    search.prior = 0.95
    assert time_of_move(search, player, one_rules) < 0.9 * budget.target
    search.prior, search.q = 0.5, -0.5  # much worse than the move before
    assert time_of_move(search, player, one_rules) >= 0.98 * budget.maximum


def test_a_search_on_a_clock_ends_by_other_limits_too(one_rules: Rules) -> None:
    search = PatientSearch()
    player = NetPlayer(lambda: search, "net")
    player.new_game(Game(one_rules))
    allowance = Allowance(base=10_000, movetime=20)
    clocks = (PlayerClock(allowance), PlayerClock(allowance))
    player.play(Game(one_rules), Turn(clocks, 0, wait=60, grace=1))
    assert search.limits[0].movetime == 0.02


def goes_on(game: Game, move: int) -> bool:
    game.push(move)
    over = game.outcome() is not None
    game.pop()
    return not over


def test_a_net_may_have_a_number_of_evaluations(one_rules: Rules) -> None:
    search = ToySearch()
    player = NetPlayer(lambda: search, "net", evaluations=20)
    clocks = (PlayerClock(Allowance(nodes=100)), PlayerClock(Allowance(nodes=100)))
    player.new_game(Game(one_rules))
    player.play(Game(one_rules), Turn(clocks, 0, wait=60, grace=1))
    assert search.limits == [Limits(simulations=100, evaluations=20)]


class SlowToBegin(PatientSearch):
    """Ignores stops before it has begun, as a search does."""

    def run(self, limits: Limits, **how: Any) -> Report:
        time.sleep(0.1)
        return super().run(limits)


def test_a_net_that_is_hurried_before_it_begins(one_rules: Rules) -> None:
    player = NetPlayer(PatientSearch, "net")
    game = Game(one_rules)
    player.new_game(game)
    clock = PlayerClock(Allowance(movetime=30_000))
    turn = Turn((clock, clock), game.side, wait=60, grace=1)
    turn.hurried.set()
    began = time.monotonic()
    player.play(game, turn)
    assert time.monotonic() - began < 10


def test_a_stop_before_the_search_is_not_lost(one_rules: Rules) -> None:
    player = NetPlayer(SlowToBegin, "net")
    game = Game(one_rules)
    player.new_game(game)
    clock = PlayerClock(Allowance(movetime=30_000))
    began = time.monotonic()
    timer = threading.Timer(0.03, player.kill)
    timer.start()
    player.play(game, Turn((clock, clock), game.side, wait=60, grace=1))
    assert time.monotonic() - began < 10
    with pytest.raises(Fault):
        player.play(game, Turn((clock, clock), game.side, wait=60, grace=1))
    player.new_game(game)  # as a program, it plays the next game
    soon = PlayerClock(Allowance(movetime=10))
    player.play(game, Turn((soon, soon), game.side, wait=60, grace=1))
