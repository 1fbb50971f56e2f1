"""Games of cluster players, with a stand-in for Ray: replaced players, numbers, errors, pauses."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from variant_ai.core.data.game_record import TRAINS_POLICY, GameRecord
from variant_ai.core.errors import DataError, EngineError
from variant_ai.core.reinforce.games import cluster_games
from variant_ai.core.reinforce.games.cluster_games import (
    MOST_FAILURES,
    RANGE,
    ClusterGames,
    ClusterPlayer,
    GameBlock,
    NetFile,
    PlayerSetup,
)
from variant_ai.core.reinforce.games.game_journal import game_line, read_line
from variant_ai.core.reinforce.reinforce_settings import ReinforceSettings
from variant_ai.plugins import registry

POSITIONS = 3
"""Recorded positions of a game of a stand-in."""


class RayError(Exception):
    """Base of Ray's errors."""


class RayTaskError(RayError):
    """Error of the code of a task."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(f"task failed: {cause}")
        self.cause = cause


class Actor:
    """Handle of a player of the stand-in. `answer` decides what its calls return or raise."""

    def __init__(self, ray: FakeRay, first: int, index: int) -> None:
        self.ray, self.index = ray, index
        self.numbers = itertools.count(first)
        self.calls = 0
        self.nets: list[int] = []
        self.play = SimpleNamespace(remote=self._call)

    def _call(self, net: Any, seconds: float) -> object:
        self.calls += 1
        self.nets.append(net.generation)
        reference = object()
        self.ray.results[reference] = self
        return reference


class FakeRay:
    """Answers every call when it is waited for."""

    def __init__(self, answer: Callable[[Actor], GameBlock]) -> None:
        self.answer = answer
        self.exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)
        self.results: dict[object, Actor] = {}
        self.actors: list[Actor] = []
        self.killed: list[Actor] = []
        self.processors = 3.0

    def put(self, value: Any) -> Any:
        return value

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": self.processors}

    def available_resources(self) -> dict[str, float]:
        return {"CPU": 0.5}

    def remote(self, kind: type) -> Any:
        assert kind is ClusterPlayer

        def make(setup: PlayerSetup, first: int) -> Actor:
            self.actors.append(Actor(self, first, len(self.actors)))
            return self.actors[-1]

        return SimpleNamespace(options=lambda **words: SimpleNamespace(remote=make))

    def wait(self, references: list[object], timeout: float) -> tuple[list[object], list[object]]:
        time.sleep(0.001)
        return references[:1], references[1:]

    def get(self, reference: object) -> GameBlock:
        return self.answer(self.results.pop(reference))

    def kill(self, actor: Actor) -> None:
        self.killed.append(actor)


def block(actor: Actor, games: int = 2) -> GameBlock:
    numbers = itertools.islice(actor.numbers, games)
    lines = tuple(game_line(game(number)) for number in numbers)
    return GameBlock(lines, 10, 0.5, Counter(played_out=2, would_resign=1, wrong=1))


def game(number: int) -> GameRecord:
    return GameRecord(
        "dobutsu",
        moves=[1] * POSITIONS,
        termination="max plies",
        number=number,
        visits=[()] * POSITIONS,
        root_values=[0.0] * POSITIONS,
        trains=[TRAINS_POLICY] * POSITIONS,
        generation=1,
    )


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.onnx"
    path.write_bytes(b"net")
    return path


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_games, "_PAUSE", 0.01)


@pytest.fixture
def opened() -> Iterator[list[ClusterGames]]:
    """Supplies that are closed after the test."""
    supplies: list[ClusterGames] = []
    yield supplies
    for supply in supplies:
        supply.close()


def supply_of(
    ray: FakeRay,
    opened: list[ClusterGames],
    done: set[int] | None = None,
    positions: int = 1000,
    players: int | None = None,
) -> ClusterGames:
    settings = ReinforceSettings(
        variant="dobutsu", positions=positions, cluster={"players": players}
    )
    supply = ClusterGames(ray, PlayerSetup("{}", settings), done or set(), "dobutsu")
    opened.append(supply)
    return supply


def take(supply: ClusterGames, games: int) -> list[int]:
    records = [supply.next_game(lambda: False) for _ in range(games)]
    return [record.number for record in records if record is not None]


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_no_number_is_used_twice(net: Path, opened: list[ClusterGames]) -> None:
    """Not by other players, by players that replace others, or by a run that goes on."""

    def answer(actor: Actor) -> GameBlock:
        if actor.index % 2 and actor.calls == 2:
            raise RayError("its machine left")
        return block(actor)

    ray = FakeRay(answer)
    first = supply_of(ray, opened)
    first.use_net(net, 0)
    numbers = take(first, 100)
    first.close()
    assert first.replaced > 0
    assert min(numbers) >= RANGE
    second = supply_of(ray, opened, done={7, *numbers})
    second.use_net(net, 0)
    numbers += take(second, 100)
    assert len(set(numbers)) == len(numbers)


def test_counts_of_dead_players_are_kept(net: Path, opened: list[ClusterGames]) -> None:
    def answer(actor: Actor) -> GameBlock:
        if actor.calls == 2:
            raise RayError("its machine left")
        return block(actor, games=1)

    supply = supply_of(FakeRay(answer), opened, players=1)
    supply.use_net(net, 0)
    take(supply, 4)
    supply.close()
    blocks = supply.evaluations // 10
    assert blocks >= 4
    assert supply.cpu_seconds == blocks * 0.5
    assert supply.resignations == Counter(played_out=2 * blocks, would_resign=blocks, wrong=blocks)


def test_a_machine_may_take_many_players_along(net: Path, opened: list[ClusterGames]) -> None:
    """Players that have played do not count as failures, however many die at once."""
    dying = 4 * MOST_FAILURES

    def answer(actor: Actor) -> GameBlock:
        if actor.index < dying and actor.calls == 2:
            raise RayError("its machine left")
        return block(actor, games=1)

    supply = supply_of(FakeRay(answer), opened, players=dying)
    supply.use_net(net, 0)
    take(supply, 3 * dying)
    assert supply.replaced == dying


def test_players_that_never_play_end_the_run(net: Path, opened: list[ClusterGames]) -> None:
    def answer(actor: Actor) -> GameBlock:
        raise RayError("no module named variant_ai\nand more lines")

    supply = supply_of(FakeRay(answer), opened)
    supply.use_net(net, 0)
    for _ in range(2):  # the error stays
        with pytest.raises(EngineError, match=r"5 players .* no module named variant_ai"):
            take(supply, 1)
    supply.use_net(net, 1)
    with pytest.raises(EngineError, match="5 players"):
        take(supply, 1)


def test_an_error_of_a_player_reaches_the_run(net: Path, opened: list[ClusterGames]) -> None:
    """After the games that arrived before it, and as it was raised on the other machine."""

    def answer(actor: Actor) -> GameBlock:
        if actor.calls == 2:
            raise RayTaskError(DataError("the net is of another variant"))
        return block(actor, games=1)

    supply = supply_of(FakeRay(answer), opened, players=1)
    supply.use_net(net, 0)
    assert take(supply, 1) == [RANGE]
    with pytest.raises(DataError, match="the net is of another variant"):
        take(supply, 1)


def test_a_fault_in_a_player_is_not_hidden(net: Path, opened: list[ClusterGames]) -> None:
    def answer(actor: Actor) -> GameBlock:
        raise RayTaskError(ZeroDivisionError("division by zero"))

    supply = supply_of(FakeRay(answer), opened)
    supply.use_net(net, 0)
    with pytest.raises(RayTaskError, match="division by zero"):
        take(supply, 1)


def test_players_pause_when_games_wait(net: Path, opened: list[ClusterGames]) -> None:
    """At most about a generation waits; players go on when games are taken."""
    ray = FakeRay(block)
    supply = supply_of(ray, opened, positions=30, players=2)
    supply.use_net(net, 0)
    until(lambda: supply.evaluations >= 50)
    time.sleep(0.2)
    waiting = supply.evaluations // 10 * 2  # games
    assert 10 <= waiting <= 10 + 2 * 2  # a block of each player may be under way
    take(supply, waiting)
    until(lambda: supply.evaluations > 10 * waiting // 2)


def test_machines_that_join_get_players(net: Path, opened: list[ClusterGames]) -> None:
    ray = FakeRay(lambda actor: block(actor, games=1))
    supply = supply_of(ray, opened)  # one processor of three is the learner's
    supply.use_net(net, 0)
    take(supply, 10)
    assert len(ray.actors) == 2
    ray.processors = 7
    until(lambda: bool(take(supply, 1)) and len(ray.actors) == 6)


def test_a_new_net_reaches_all_players(net: Path, opened: list[ClusterGames]) -> None:
    ray = FakeRay(lambda actor: block(actor, games=1))
    supply = supply_of(ray, opened, players=3)
    supply.use_net(net, 0)
    take(supply, 10)
    supply.use_net(net, 1)
    until(lambda: bool(take(supply, 1)) and all(actor.nets[-1] == 1 for actor in ray.actors))
    assert all(actor.nets == sorted(actor.nets) for actor in ray.actors)


def test_closing_ends_all_players(net: Path, opened: list[ClusterGames]) -> None:
    ray = FakeRay(block)
    supply = supply_of(ray, opened, players=3)
    supply.close()  # before the first net
    supply = supply_of(ray, opened, players=3)
    supply.use_net(net, 0)
    take(supply, 1)
    supply.close()
    assert sorted(ray.killed, key=id) == sorted(ray.actors, key=id)
    assert "cluster games" not in [thread.name for thread in threading.enumerate()]


def test_closing_without_a_cluster(
    net: Path, opened: list[ClusterGames], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster that is gone neither keeps the run from ending nor hides its error."""

    def kill(actor: Actor) -> None:
        raise RayError("no connection")

    ray = FakeRay(block)
    supply = supply_of(ray, opened)
    supply.use_net(net, 0)
    take(supply, 1)
    monkeypatch.setattr(ray, "kill", kill)
    supply.close()


def test_a_stop_ends_the_wait(net: Path, opened: list[ClusterGames]) -> None:
    ray = FakeRay(lambda actor: block(actor, games=0))
    supply = supply_of(ray, opened)
    supply.use_net(net, 0)
    calls = itertools.count()
    assert supply.next_game(lambda: next(calls) == 3) is None


# --- a player -------------------------------------------------------------------------------------


def player_setup(**words: Any) -> PlayerSetup:
    spec = registry().variant("dobutsu")
    settings = ReinforceSettings(
        variant="dobutsu",
        games_at_once=4,
        evaluator="random",
        search={"nodes": 4},
        variety={"max_plies": 30, "resign_below": -0.01, "played_out": 1.0},
        **words,
    )
    return PlayerSetup(spec.model_dump_json(by_alias=True, exclude_defaults=True), settings)


def test_a_player_returns_what_ended_since_the_last_call() -> None:
    player = ClusterPlayer(player_setup(), 5 * RANGE)
    blocks = [player.play(NetFile(generation, b""), 0.0) for generation in (0, 0, 1)]
    games = [read_line(line, "dobutsu") for one in blocks for line in one.lines]
    numbers = [game.number for game in games]
    assert len(games) >= 3 and len(set(numbers)) == len(numbers)
    assert all(5 * RANGE <= number < 5 * RANGE + 100 for number in numbers)
    assert all(one.evaluations > 0 and one.lines for one in blocks)
    played_out = sum(game.termination != "max plies" for game in games)
    assert sum(one.resignations["played_out"] for one in blocks) == played_out


def test_a_player_of_another_net_says_what_is_wrong() -> None:
    setup = player_setup()
    settings = setup.settings.model_copy(update={"evaluator": "onnx"})
    player = ClusterPlayer(PlayerSetup(setup.spec, settings), RANGE)
    with pytest.raises(DataError):
        player.play(NetFile(0, b"no net"), 0.0)


def test_players_without_room_are_explained(
    net: Path, opened: list[ClusterGames], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_games, "PATIENCE", 0.05)
    ray = FakeRay(block)
    monkeypatch.setattr(ray, "wait", lambda references, timeout: ([], references))
    messages: list[str] = []
    settings = ReinforceSettings(variant="dobutsu", cluster={"player_gpus": 0.5})
    supply = ClusterGames(ray, PlayerSetup("{}", settings), set(), "dobutsu", messages.append)
    opened.append(supply)
    supply.use_net(net, 0)
    until(lambda: bool(messages))
    assert "each asks for 1 CPUs and 0.5 GPUs" in messages[0]
    assert "the cluster has 3 CPUs (0.5 free) and 0 GPUs (0 free)" in messages[0]
    time.sleep(0.1)
    assert len(messages) == 1
