"""Games of a cluster's players.

A thread keeps every player busy and collects games, also while the learner trains. A player that dies
is replaced, and so are its games in progress; players are added when machines join. Each player
numbers its games in a range of its own, so that no number is used twice.
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.errors import EngineError, VariantAIError
from variant_ai.core.reinforce.cluster.cluster_player import (
    ClusterPlayer,
    GameBlock,
    NetFile,
    PlayerSetup,
)
from variant_ai.core.reinforce.games.game_journal import read_line
from variant_ai.core.reinforce.games.game_supply import GameSupply
from variant_ai.core.reinforce.games.self_play import Resignations

RANGE = 1_000_000
"""Game numbers of one player; those below are of runs without a cluster."""
MOST_FAILURES = 5
"""Players that fail one after the other, without a game in between, until the run ends."""
_PAUSE = 0.5


@dataclass
class _Player:
    """A player, and what it is doing."""

    actor: Any
    resignations: Resignations


class ClusterGames(GameSupply):
    """Supply of games from a cluster."""

    def __init__(self, ray: Any, setup: PlayerSetup, done: set[int], variant: str) -> None:
        """ray: connected to a cluster. done: numbers of games that have been played."""
        self._ray = ray
        self._setup = setup
        self._variant = variant
        cluster = setup.settings.cluster
        self._cluster = cluster
        self._ranges = itertools.count(max(done, default=0) // RANGE + 1)
        self._queue: queue.Queue[GameRecord | Exception] = queue.Queue()
        self._most_waiting = 2 * setup.settings.games_at_once
        """Games that wait for the learner; with more the players pause."""
        self._net: Any = None
        self._evaluations = 0
        self._cpu_seconds = 0.0
        self._lost = Resignations()
        """Resignations counted by players that have died."""
        self._players: dict[Any, _Player] = {}
        """By the reference to the result of the call in progress."""
        self._idle: list[_Player] = []
        self._failures = 0
        self.replaced = 0
        """Players that died so far."""
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._collect, name="cluster games", daemon=True)

    # --- the supply ------------------------------------------------------------------------------

    @property
    def evaluations(self) -> int:
        return self._evaluations

    @property
    def cpu_seconds(self) -> float:
        return self._cpu_seconds

    @property
    def resignations(self) -> Resignations:
        counted = [self._lost]
        counted += [one.resignations for one in [*self._players.values(), *self._idle]]
        names = [field.name for field in fields(Resignations)]
        return Resignations(*(sum(getattr(one, name) for one in counted) for name in names))

    def use_net(self, path: Path, generation: int) -> None:
        self._net = self._ray.put(NetFile(generation, path.read_bytes()))
        if not self._thread.is_alive():
            self._thread.start()

    def next_game(self, stop: Callable[[], bool]) -> GameRecord | None:
        while not stop():
            try:
                found = self._queue.get(timeout=_PAUSE)
            except queue.Empty:
                continue
            if isinstance(found, Exception):
                raise found
            return found
        return None

    def close(self) -> None:
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join()
        for player in [*self._players.values(), *self._idle]:
            self._ray.kill(player.actor)
        self._players.clear()
        self._idle.clear()

    # --- the thread ------------------------------------------------------------------------------

    def _collect(self) -> None:
        while not self._closed.is_set():
            try:
                self._recruit()
                if self._queue.qsize() < self._most_waiting:
                    while self._idle:
                        self._send(self._idle.pop())
                self._receive()
            except Exception as error:  # reaches the user by `next_game`
                self._queue.put(error)
                return

    def _recruit(self) -> None:
        """Add players, as many as the cluster has room for."""
        wanted = self._cluster.players
        if wanted is None:
            processors = self._ray.cluster_resources().get("CPU", 0.0)
            room = (processors - self._cluster.learner_cpus) / self._cluster.player_cpus
            wanted = max(1, int(room))
        while len(self._players) + len(self._idle) < wanted:
            actor = self._ray.remote(ClusterPlayer).options(
                num_cpus=self._cluster.player_cpus,
                num_gpus=self._cluster.player_gpus,
                scheduling_strategy="SPREAD",
            )
            first = next(self._ranges) * RANGE
            made = actor.remote(self._setup, first)
            self._idle.append(_Player(made, Resignations()))

    def _send(self, player: _Player) -> None:
        self._players[player.actor.play.remote(self._net, self._cluster.seconds)] = player

    def _receive(self) -> None:
        """Wait for results, but not long."""
        ready, _ = self._ray.wait(list(self._players), timeout=_PAUSE)
        if not self._players:
            self._closed.wait(_PAUSE)
        errors = self._ray.exceptions
        for reference in ready:
            player = self._players.pop(reference)
            try:
                block: GameBlock = self._ray.get(reference)
            except errors.RayTaskError as error:
                cause = error.cause
                raise cause if isinstance(cause, VariantAIError) else error from None
            except errors.RayError as error:
                self._replace(player, error)
                continue
            self._failures = 0
            player.resignations = block.resignations
            self._evaluations += block.evaluations
            self._cpu_seconds += block.cpu_seconds
            for line in block.lines:
                self._queue.put(read_line(line, self._variant))
            self._idle.append(player)

    def _replace(self, player: _Player, error: Exception) -> None:
        """Count a player that died; `_recruit` makes another one. Raises EngineError if none lives."""
        self.replaced += 1
        self._failures += 1
        for field in fields(Resignations):
            before = getattr(self._lost, field.name)
            setattr(self._lost, field.name, before + getattr(player.resignations, field.name))
        if self._failures >= MOST_FAILURES:
            raise EngineError(
                f"{self._failures} players of the cluster failed one after the other, the last one "
                f"with: {error}"
            ) from None
