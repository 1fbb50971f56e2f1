"""Games in other processes: the same ones, in the same order, resumed and stopped like others."""

from __future__ import annotations

import functools
import sys
from concurrent.futures import BrokenExecutor, Executor, Future
from pathlib import Path
from typing import Any

import pytest

from variant_ai.core.arena.games.game_generators import PlayerGames, PooledGames
from variant_ai.core.arena.games.generated_games import Ended, game_number
from variant_ai.core.arena.games.generation import GenerationSettings
from variant_ai.core.arena.games.openings import Opening
from variant_ai.core.arena.players.player import Player
from variant_ai.core.arena.players.player_spec import PlayerSpec
from variant_ai.core.arena.programs.program_player import program_player
from variant_ai.core.errors import EngineError
from variant_ai.core.rules import make_rules
from variant_ai.core.system.child_processes import WorkerPool
from variant_ai.plugins import registry

FAKE = Path(__file__).parent / "fake_engine.py"
STARTS = (Opening(), Opening(None, ()))
SETTINGS = GenerationSettings(games=6, nodes=1, max_plies=8, random_plies=(1, 3), seed=3)


def generator(settings: GenerationSettings, mode: str = "good") -> PlayerGames:
    rules = make_rules(registry().variant("xiangqi"))
    spec = PlayerSpec(command=f"{sys.executable} {FAKE} {mode}")

    def make() -> Player:
        return program_player(spec, rules)

    return PlayerGames(settings, rules, make, STARTS)


def pooled(
    settings: GenerationSettings, make_pool: Any = WorkerPool, mode: str = "good"
) -> PooledGames:
    make = functools.partial(generator, settings, mode)
    return PooledGames(make(), make, make_pool, 2)


class AtOnce(Executor):
    """Pool that runs tasks in this process, and keeps what was asked of it."""

    def __init__(self, processes: int, initialiser: Any, arguments: Any) -> None:
        initialiser(*arguments)
        self.submitted: list[Any] = []
        self.is_shut = False

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        self.submitted.append(arguments)
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments, **named))
        except Exception as error:
            future.set_exception(error)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.is_shut = True


class Lost(AtOnce):
    """Pool whose processes die."""

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(BrokenExecutor("the machine left"))
        return future


@pytest.mark.slow
def test_games_of_other_processes_are_the_same() -> None:
    assert list(pooled(SETTINGS).games()) == list(generator(SETTINGS).games())


def test_games_that_are_done_are_not_played_again() -> None:
    alone = list(generator(SETTINGS).games())
    done: dict[int, Ended] = {game_number(alone[index]): alone[index] for index in (0, 3)}
    pools: list[AtOnce] = []

    def make_pool(*words: Any) -> AtOnce:
        pools.append(AtOnce(*words))
        return pools[0]

    new: list[Ended] = []
    assert list(pooled(SETTINGS, make_pool).games(done, new.append)) == alone
    assert sorted(map(game_number, new)) == [1, 2, 4, 5]
    played = [number for (group,) in pools[0].submitted for number, _ in group]
    assert sorted(played) == [1, 2, 4, 5]
    assert pools[0].is_shut


def test_failures_of_the_player_end_the_games() -> None:
    games = pooled(SETTINGS, AtOnce, mode="dies")
    with pytest.raises(EngineError, match="failed in 5 games in a row"):
        list(games.games())


def test_lost_processes_end_the_games() -> None:
    with pytest.raises(EngineError, match="was lost: the machine left"):
        list(pooled(SETTINGS, Lost).games())


def test_a_stop_ends_the_games() -> None:
    games = pooled(SETTINGS, AtOnce)
    found = games.games()
    next(found)
    games.stop()
    assert len(list(found)) < 5
