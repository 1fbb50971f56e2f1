"""Games of players on a Ray cluster.

A thread keeps every player busy and collects games, also while the learner trains. A player that dies
is replaced, and so are its games in progress; players are added when machines join. Each player
numbers its games in a range of its own, so that no number is used twice.

The thread alone knows the players. It shares with the thread of the run the queue of games, the net,
and totals that it replaces as a whole.

A player gets a net, plays for a while, and returns the games that ended; it keeps no state that
matters. Nothing here imports Ray, so that the player can be tested, and run, without it.
"""

from __future__ import annotations

import itertools
import queue
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

from variant_ai.core.arena.games.openings import Opening
from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.errors import EngineError
from variant_ai.core.reinforce.budget import cpu_seconds
from variant_ai.core.reinforce.games.game_journal import game_line, read_line
from variant_ai.core.reinforce.games.game_supply import GameSupply, LocalGames
from variant_ai.core.reinforce.games.self_play import recorded_positions
from variant_ai.core.reinforce.reinforce_settings import ReinforceSettings
from variant_ai.core.rules import make_rules as make_usual_rules
from variant_ai.core.rules.interface import Rules
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.system.ray_cluster import cause_of, processors_of

RANGE = 1_000_000_000
"""Game numbers of one player, more than it can play; those below are of runs without a cluster."""
MOST_FAILURES = 5
"""Players in a row that die before their first game ends, until the run ends."""
ENDING = 30.0
"""Seconds that the thread has to end; it waits for the cluster, which may be gone."""
PATIENCE = 60.0
"""Seconds without any answer of a player, after which a message names what players wait for."""
_PAUSE = 0.5


@dataclass(frozen=True)
class PlayerSetup:
    """Everything that a player needs besides nets. It is sent to other machines."""

    spec: str
    """The spec as JSON, so that the machine need not have its file."""
    settings: ReinforceSettings
    _: KW_ONLY
    openings: tuple[Opening, ...] = ()
    make_rules: Callable[[VariantSpec], Rules] = make_usual_rules
    """Makes the rules; also where nets and evaluators of plugins are made known on that machine."""


@dataclass(frozen=True)
class NetFile:
    """A net that travels to the players."""

    generation: int
    content: bytes
    """Of the ONNX file."""


@dataclass(frozen=True)
class GameBlock:
    """Games that ended during one call of a player."""

    lines: tuple[bytes, ...]
    """Lines of a journal."""
    evaluations: int
    """Positions evaluated during the call."""
    cpu_seconds: float
    """CPU time of the call, of all threads."""
    resignations: Counter[str]
    """Counted during the call."""


class ClusterPlayer:
    """Plays games of a run."""

    def __init__(self, setup: PlayerSetup, first_game: int) -> None:
        """first_game: its games are numbered from here."""
        self._setup, self._first_game = setup, first_game
        self._games: LocalGames | None = None
        self._generation: int | None = None
        self._evaluations = 0
        self._resignations: Counter[str] = Counter()

    def play(self, net: NetFile, seconds: float) -> GameBlock:
        """Play for about `seconds`, or until the end of a game if none has ended by then.

        Games in progress go on with the net given. Raises DataError if it does not fit,
        VariantAIError if this machine cannot play the variant.
        """
        began = cpu_seconds()
        if self._games is None:  # here, because errors of a constructor reach nobody as they are
            self._games = self._begin()
        games = self._games
        if net.generation != self._generation:
            with tempfile.TemporaryDirectory(prefix="variant-ai-player-") as folder:
                path = Path(folder) / f"{net.generation:06}.onnx"
                path.write_bytes(net.content)
                games.use_net(path, net.generation)
            self._generation = net.generation
        lines = tuple(game_line(record) for record in _played(games, time.monotonic() + seconds))
        evaluations, resignations = self._evaluations, self._resignations
        self._evaluations, self._resignations = games.evaluations, games.resignations.copy()
        return GameBlock(
            lines,
            self._evaluations - evaluations,
            cpu_seconds() - began,
            self._resignations - resignations,
        )

    def _begin(self) -> LocalGames:
        setup = self._setup
        spec = VariantSpec.model_validate_json(setup.spec)
        return LocalGames(
            spec,
            setup.settings,
            set(),
            rules=setup.make_rules(spec),
            first_game=self._first_game,
            openings=setup.openings,
        )


def _played(games: LocalGames, until: float) -> Iterator[GameRecord]:
    while True:
        record = games.next_game(lambda: False)
        if record is not None:
            yield record
        if time.monotonic() >= until:
            return


class ClusterGames(GameSupply):
    """Supply of games from a cluster."""

    plays_on = True
    evaluations = 0
    cpu_seconds = 0.0

    def __init__(
        self,
        ray: Any,
        setup: PlayerSetup,
        done: set[int],
        variant: str,
        report: Callable[[str], None] = lambda text: None,
    ) -> None:
        """ray: the module, connected to a cluster. done: numbers of games that have been played.
        report: called in another thread with sentences for the user."""
        self._ray = ray
        self._setup = setup
        self._variant = variant
        self._report = report
        self._cluster = setup.settings.cluster
        self._ranges = itertools.count(max(done, default=0) // RANGE + 1)
        self._queue: queue.Queue[GameRecord] = queue.Queue()
        self._received = self._taken = 0
        """Recorded positions: of all games so far, and of those that were taken from the queue. Each is
        written by one thread."""
        self._net: Any = None
        """Reference to the newest net. With the last reference to a net the cluster forgets it."""
        self._calls: dict[Any, Any] = {}
        """Actor by the reference to the result of its call in progress."""
        self._idle: list[Any] = []
        self._proven: set[Any] = set()
        """Actors that have returned games."""
        self._failures = 0
        self._resignations: Counter[str] = Counter()
        self.replaced = 0
        """Players that died so far."""
        self._error: Exception | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._collect, name="cluster games", daemon=True)

    @property
    def resignations(self) -> Counter[str]:
        return self._resignations

    # --- the supply ------------------------------------------------------------------------------

    def use_net(self, path: Path, generation: int) -> None:
        self._net = self._ray.put(NetFile(generation, path.read_bytes()))
        if self._thread.ident is None:
            self._thread.start()

    def next_game(self, stop: Callable[[], bool]) -> GameRecord | None:
        """Wait for the end of a game; None if `stop` returned True first.

        Raises EngineError if player after player dies, and the error of a player, e.g. DataError for
        a net that does not fit.
        """
        while not stop():
            try:
                record = self._queue.get(timeout=_PAUSE)
            except queue.Empty:
                if self._error is not None:
                    raise self._error from None
                continue
            self._taken += recorded_positions(record)
            return record
        return None

    def close(self) -> None:
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join(ENDING)
        for actor in [*self._calls.values(), *self._idle]:
            try:
                self._ray.kill(actor)
            except Exception:  # the cluster is gone, and its players with it
                break
        self._calls.clear()
        self._idle.clear()
        self._net = None

    # --- the thread ------------------------------------------------------------------------------

    def _collect(self) -> None:
        waits_since: float | None = time.monotonic()
        try:
            while not self._closed.is_set():
                self._recruit()
                # The games of one more generation may wait for the learner.
                if self._received - self._taken < self._setup.settings.positions:
                    while self._idle:
                        self._send(self._idle.pop())
                self._receive()
                if self._proven:
                    waits_since = None
                elif waits_since is not None and time.monotonic() - waits_since > PATIENCE:
                    waits_since = None
                    self._report(self._missing())
        except Exception as error:  # reaches the user by `next_game`
            self._error = error

    def _missing(self) -> str:
        """Return a sentence on what a player asks for and what the cluster has."""
        asked, has = self._cluster, self._ray.cluster_resources()
        free = self._ray.available_resources()

        def amount(name: str) -> str:
            return f"{has.get(name, 0):g} {name}s ({free.get(name, 0):g} free)"

        return (
            f"no player has answered for {PATIENCE:.0f} s; each asks for {asked.player_cpus:g} CPUs and "
            f"{asked.player_gpus:g} GPUs on one machine, and the cluster has {amount('CPU')} and "
            f"{amount('GPU')}. If that is too little, set cluster.player_cpus and cluster.player_gpus, or "
            "add machines; the run waits"
        )

    def _recruit(self) -> None:
        """Add players, as many as the cluster has room for."""
        wanted = self._cluster.players
        if wanted is None:
            room = processors_of(self._ray) - self._cluster.learner_cpus
            wanted = max(1, int(room / self._cluster.player_cpus))
        while len(self._calls) + len(self._idle) < wanted:
            actor = self._ray.remote(ClusterPlayer).options(
                num_cpus=self._cluster.player_cpus,
                num_gpus=self._cluster.player_gpus,
                scheduling_strategy="SPREAD",
            )
            self._idle.append(actor.remote(self._setup, next(self._ranges) * RANGE))

    def _send(self, actor: Any) -> None:
        self._calls[actor.play.remote(self._net, self._cluster.seconds)] = actor

    def _receive(self) -> None:
        """Wait for results, but not long."""
        if not self._calls:
            self._closed.wait(_PAUSE)
            return
        ready, _ = self._ray.wait(list(self._calls), timeout=_PAUSE)
        for reference in ready:
            actor = self._calls.pop(reference)
            try:
                block: GameBlock = self._ray.get(reference)
            except self._ray.exceptions.RayTaskError as error:
                raise cause_of(error) from None
            except self._ray.exceptions.RayError as error:
                self._replace(actor, error)
                continue
            self._failures = 0
            self._proven.add(actor)
            self.evaluations += block.evaluations
            self.cpu_seconds += block.cpu_seconds
            self._resignations = self._resignations + block.resignations
            for line in block.lines:
                record = read_line(line, self._variant)
                self._received += recorded_positions(record)
                self._queue.put(record)
            self._idle.append(actor)

    def _replace(self, actor: Any, error: Exception) -> None:
        """Count a player that died; `_recruit` makes another one.

        A machine that leaves takes all its players along, which says nothing about the next one. Only
        players that die before their first game count as failures. Raises EngineError after too many.
        """
        self.replaced += 1
        self._report(f"a player died, and another one takes over: {str(error).splitlines()[0]}")
        if actor in self._proven:
            self._proven.remove(actor)
            return
        self._failures += 1
        if self._failures >= MOST_FAILURES:
            raise EngineError(
                f"{self._failures} players of the cluster died one after the other before their first "
                f"game ended, the last one with: {error}"
            ) from None
