"""A net as a player: what it gives its search."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from variant_ai.core.arena.net_player import NetPlayer
from variant_ai.core.arena.time_control import Allowance, PlayerClock, Turn
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.search.clock import Clock, TimeManager
from variant_ai.core.search.limits import Limits
from variant_ai.core.search.params import SearchParams
from variant_ai.core.search.report import Report


class ToySearch:
    """Plays the first legal move, and keeps what it was allowed."""

    params = SearchParams()

    def __init__(self) -> None:
        self.limits: list[Limits] = []
        self.is_warm = False

    def set_game(self, game: Game) -> None:
        self.game = game

    def run(self, limits: Limits, *, moves: Sequence[int] | None = None) -> Report:
        self.limits.append(limits)
        return Report(best=int(self.game.legal_moves()[0]))

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
    assert search.limits[0].movetime == TimeManager().budget(Clock(60.0), 15).target
    assert search.limits[0].movetime != TimeManager().budget(Clock(60.0), 0).target


def goes_on(game: Game, move: int) -> bool:
    game.push(move)
    over = game.outcome() is not None
    game.pop()
    return not over
