"""A run on a Ray cluster of several nodes on this machine, whose players and nodes come and go."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from processes import children

from variant_ai.cli.common.options import registered_rules
from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.store.game_store import Store
from variant_ai.core.reinforce.games.cluster_games import ClusterGames, PlayerSetup
from variant_ai.core.reinforce.reinforce_settings import ReinforceSettings
from variant_ai.core.reinforce.reinforcement import Reinforcement, Watcher
from variant_ai.core.system.interrupts import handlers_kept
from variant_ai.core.train.run.checkpoint import list_checkpoints
from variant_ai.core.train.run.run_folder import CHECKPOINTS
from variant_ai.plugins import registry

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.filterwarnings("default"),  # Ray's own
]
ray = pytest.importorskip("ray")
PATIENCE = 600.0
GENERATIONS = 10
"""More than faults, because the loss of a node takes a while to be noticed."""
PLAYER = b"ray::ClusterPlayer"
"""Beginning of the command line of a player's process."""


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Cluster of two nodes, to which this process is connected."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_worker_niceness", "0")  # players would wait for all other tests
    with handlers_kept():
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
        cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address, log_to_driver=False)
        yield cluster
        ray.shutdown()
        cluster.shutdown()


def players() -> list[int]:
    """Process ids of the players on this machine."""
    found = []
    for number in children(os.getpid()):
        try:
            line = Path(f"/proc/{number}/cmdline").read_bytes()
        except OSError:
            continue
        if line.startswith(PLAYER):
            found.append(number)
    return found


def wait_for_players(count: int) -> None:
    """Wait until at least `count` players run, so that a fault meets one."""
    end = time.monotonic() + 60
    while len(players()) < count and time.monotonic() < end:
        time.sleep(0.1)
    assert len(players()) >= count


class Watched(ClusterGames):
    """Supply that keeps the numbers of the games that it has reported."""

    reported: list[int]
    deadline: float
    """Time at which the run stops, so that the test fails instead of waiting for ever."""

    def next_game(self, stop: Callable[[], bool]) -> GameRecord | None:
        record = super().next_game(lambda: stop() or time.monotonic() > self.deadline)
        if record is not None:
            self.reported.append(record.number)
        return record


def test_players_and_nodes_come_and_go(cluster: Any, tmp_path: Path) -> None:
    """Every game that was reported is in the stores once, and no step of the learner is missing."""
    spec = registry().variant("dobutsu")
    settings = ReinforceSettings(
        variant="dobutsu",
        generations=GENERATIONS,
        positions=300,
        threads=1,
        games_at_once=16,
        search={"nodes": 4},
        learning={"size": {"blocks": 1, "channels": 8}, "batch": 64, "checkpoint_every": 20},
        variety={"max_plies": 60},
        ladder={"games": 0},
        cluster={"seconds": 0.3, "learner_cpus": 0},  # a player on each processor
    )
    setup = PlayerSetup(
        spec.model_dump_json(by_alias=True, exclude_defaults=True),
        settings,
        make_rules=registered_rules,
    )
    supplies: list[Watched] = []
    rows: list[dict[str, Any]] = []
    node = cluster.add_node(num_cpus=1)
    faults: list[Callable[[], object]] = [
        lambda: os.kill(players()[0], signal.SIGKILL),
        lambda: cluster.remove_node(node),
        lambda: cluster.add_node(num_cpus=1),
    ]
    done: list[int] = []

    def make_supply(numbers: set[int]) -> Watched:
        supply = Watched(ray, setup, numbers, spec.variant)
        supply.reported, supply.deadline = [], time.monotonic() + PATIENCE
        supplies.append(supply)
        return supply

    def playing(generation: int, positions: int, wanted: int) -> None:
        """Cause a fault early in each generation."""
        if generation not in done and len(done) < len(faults) and positions < wanted:
            wait_for_players(4 if len(done) < 2 else 3)
            if len(done) == 2 and supplies[0].replaced < 2:
                return  # the loss of a node is noticed later, by a call of its player
            faults[len(done)]()
            done.append(generation)

    watcher = Watcher(generation=rows.append, playing=playing)
    run = Reinforcement(settings, spec, tmp_path, watcher=watcher, supply=make_supply)
    assert run.run()
    (supply,) = supplies
    assert len(done) == 3
    assert supply.replaced >= 2  # the player that was killed, and that of the node

    stores = [Store(run.folder.store(generation), spec) for generation in range(1, GENERATIONS + 1)]
    stored = [record.number for store in stores for record in store.facts()]
    assert sorted(stored) == sorted(supply.reported)
    assert max(Counter(stored).values()) == 1
    assert run.state.games == len(stored)

    steps = [row["steps"] for row in rows]
    assert [row["generation"] for row in rows] == list(range(1, GENERATIONS + 1))
    assert steps == sorted(set(steps)) and run.state.steps == steps[-1]
    checkpoint = list_checkpoints(tmp_path / CHECKPOINTS)[-1]
    assert checkpoint.state().step == steps[-1]
    assert checkpoint.state().recoveries == 0
    time.sleep(1)
    assert players() == []
