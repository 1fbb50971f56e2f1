"""The loop of self-play: games, training, matches, and again, by turns in one process.

Generation g has three steps, each with a file that is written whole when it is done:

1. `play`: games of the newest net (with a gate, of the newest that passed it), until enough positions
   are recorded: games/g.store;
2. `learn`: training on the replay window, from the last checkpoint: nets/g/model.onnx;
3. `ladder`: matches of net g against earlier ones: ladder.json;

then state.json is written. A run that was killed goes on at the first step whose file is missing:
the games in hand and the learner's steps since its last checkpoint are lost, nothing else. Games are
numbered in the order in which they begin; numbers whose games were lost are played again.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from variant_ai.core.arena.games.openings import Opening
from variant_ai.core.data.store.game_store import Store
from variant_ai.core.data.store.store_writer import StoreWriter
from variant_ai.core.data.store.stored_moves import RulesCodec
from variant_ai.core.errors import DataError
from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.reinforce.budget import (
    CpuClock,
    compile_uncounted,
    cpu_seconds,
    memory_mb,
    used_share,
    used_up,
)
from variant_ai.core.reinforce.games.game_journal import GameJournal
from variant_ai.core.reinforce.games.game_supply import GameSupply, LocalGames, open_net
from variant_ai.core.reinforce.games.self_play import RESIGNATIONS, recorded_positions
from variant_ai.core.reinforce.ladder.run_ladder import RunLadder, require_outside_players
from variant_ai.core.reinforce.reinforce_folder import ReinforceFolder, RunState
from variant_ai.core.reinforce.reinforce_settings import INT8, START_RANDOM, ReinforceSettings
from variant_ai.core.reinforce.report.generation_statistics import advice_on, summarise_games
from variant_ai.core.reinforce.report.reinforce_report import RunningReport
from variant_ai.core.reinforce.window_training import (
    Course,
    WindowTraining,
    configure_start,
    learning_rate,
    newest_games,
    root_value_share,
    window_size,
)
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.interface import Rules
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.system.files import write_whole
from variant_ai.core.system.interrupts import stop_on_signal
from variant_ai.core.train.run.initial_weights import Start
from variant_ai.core.train.run.run_folder import ENVIRONMENT
from variant_ai.core.train.run.training_run import describe_environment

SAVE_SECONDS = 30.0
"""Time between two records of the CPU time during the games of a generation."""

HEARTBEAT = 10.0
"""Seconds between two calls of `Watcher.waiting`."""

Row = dict[str, Any]
"""Numbers of a generation, as they are in generations.jsonl."""


@dataclass
class Watcher:
    """Functions that are called as a run goes on."""

    generation: Callable[[Row], None] = lambda row: None
    """Called when a generation is complete."""
    playing: Callable[[int, int, int], None] = lambda generation, positions, wanted: None
    """Called when a game has ended: positions recorded of those wanted in this generation."""
    waiting: Callable[[int, int], None] = lambda generation, evaluations: None
    """Called every `HEARTBEAT` seconds while games are played: positions evaluated by their players."""
    step: Callable[[str], None] = lambda text: None
    """Called when another step begins."""
    warn: Callable[[str], None] = lambda text: None
    """Called with a sentence that the user should see: advice, or an error that does not end the
    run."""


class Reinforcement:
    """A run in its folder."""

    def __init__(
        self,
        settings: ReinforceSettings,
        spec: VariantSpec,
        folder: Path,
        *,
        start: Start | None = None,
        rules: Rules | None = None,
        watcher: Watcher | None = None,
        supply: Callable[[set[int]], GameSupply] | None = None,
        openings: Sequence[Opening] = (),
    ) -> None:
        """settings: those of the run, resolved. start: the net to start from; None: random weights.
        supply: makes the players, without those games whose numbers it gets; None: this process
        plays, from `openings` (see `BaseSelfPlay`).

        Raises DataError if the start is of another variant or encoding, SettingError for a ladder that
        cannot be played, UnknownNameError, VariantAIError."""
        self.settings = settings
        self.spec = spec
        self.folder = ReinforceFolder(folder)
        self.rules = rules or make_rules(spec)
        require_outside_players(settings.ladder, self.rules)
        self.watcher = watcher or Watcher()
        net = configure_start(settings, spec, start)
        self.training = WindowTraining(settings, spec, net, folder, start=start, rules=self.rules)
        self._codec = RulesCodec(spec, self.rules)
        self.state = RunState()
        self._clock = CpuClock(0.0, 0.0)
        self._scheduled_rate: float | None = None
        """Learning rate of this generation by the schedule, without the cut of a recovery."""
        self._make_supply = supply or self._local_games
        self._openings = openings
        self._players: GameSupply | None = None
        self._resignations: Counter[str] = Counter()
        """Those of the players until the last generation."""
        self._playing_net: int | None = None
        """Generation of the net that the players have."""
        self._counted = 0
        """Evaluations of the players that the state has. Players of a cluster go on while the learner
        trains."""

    # --- the whole run -------------------------------------------------------------------------

    def run(self) -> bool:
        """Go on until the budget is used up, or Ctrl-C (False).

        Raises DataError (another process runs it, a damaged file, a net of another variant),
        OSError (a full disk; what is written stays readable).
        """
        folder = self.folder
        with folder.locked():
            self.state = folder.state()
            self.ladder = RunLadder(
                folder.path,
                self.spec,
                self.settings,
                rules=self.rules,
                warn=self.watcher.warn,
            )
            self._require_files()
            if self.state.begun or not self.used_up:
                compile_uncounted(self.rules)
            if not folder.exists():
                self.training.export_start(folder.net(0))
                self._open_net(0).close()  # raises before there is a run
            folder.write(self.settings)
            self._clock = CpuClock(self.state.cpu_seconds, self.state.seconds)
            environment = json.dumps(describe_environment(), indent=2)
            write_whole(folder.path / ENVIRONMENT, environment)
            report = RunningReport(folder.path, self.rules, self.watcher.warn)
            if not folder.net(0).is_file():
                if self.state.generation and self.settings.start != START_RANDOM:
                    self._existing(folder.net(0))  # its start may have been trained since
                self.training.export_start(folder.net(0))
            if not folder.newest_net.is_file():
                self._keep_newest(folder.net(0), folder.int8_net(0))
            try:
                with stop_on_signal() as stop:
                    stop.stops.append(self.ladder.stop)
                    while not self.finished:
                        if stop() or not self._generation(stop):
                            break
                        report.after_generation()
            except BaseException:
                with suppress(OSError):  # on a full disk the first error is the one to report
                    self._save_clock()
                raise
            finally:
                if self._players is not None:
                    self._players.close()
            self._save_clock()
            if self.finished:
                report.write()
        return self.finished

    def _require_files(self) -> None:
        """Raise DataError if a store of a complete generation or the net that plays is missing, or if
        a net in the folder is of another variant or encoding."""
        from variant_ai.core.inference.model_file import read_model_file

        for generation in range(1, self.state.generation + 1):
            self._existing(self.folder.store(generation))
        if self.state.generation:
            self._existing(self.folder.net(self.state.player))
        for path in sorted((self.folder.path / "nets").glob("*/*.onnx")):
            read_model_file(path).info.require(self.spec)

    def _existing(self, path: Path) -> Path:
        if not path.is_file():
            raise DataError(
                f"{path} is missing, and the run cannot go on without it; put it back, or begin another "
                f"run with --from {self.folder.path}"
            )
        return path

    @property
    def progress(self) -> float:
        """Share of the budget that is used up, in [0, 1]; 0 without a budget."""
        return used_share(self.settings, self.state.generation, self._clock.cpu)

    @property
    def used_up(self) -> str:
        """Which budgets are used up, and how to give more; empty if none is."""
        return used_up(self.settings, self.state.generation, self.state.cpu_seconds)

    @property
    def finished(self) -> bool:
        """The budget is used up, and no generation is half done."""
        return self.progress >= 1.0 and not self.state.begun

    @property
    def _out_of_time(self) -> bool:
        minutes = self.settings.minutes
        return minutes is not None and self._clock.cpu >= 60 * minutes

    def _generation(self, stop: Callable[[], bool]) -> bool:
        """Go on with the next generation to its end; False if it was stopped."""
        generation = self.state.generation + 1
        row: Row = {"generation": generation, "net": self.state.player}
        for name, step in (
            ("play", self._play_step),
            ("learn", self._learn_step),
            ("ladder", self._ladder_step),
        ):
            if stop() or not self._timed(name, step, generation, row, stop):
                return False
        self._complete(generation, row)
        return True

    def _timed(
        self,
        name: str,
        step: Callable[[int, Row, Callable[[], bool]], bool],
        generation: int,
        row: Row,
        stop: Callable[[], bool],
    ) -> bool:
        """Take a step and note its time, with that of earlier processes; False if it was stopped."""
        clock, state = self._clock, self.state
        elapsed, cpu = state.begun.setdefault(name, (clock.elapsed, clock.cpu))
        if not step(generation, row, stop):
            return False
        if name not in state.took:
            state.took[name] = clock.elapsed - elapsed, clock.cpu - cpu
            self._save_clock()
        row[f"{name}_seconds"], row[f"{name}_cpu"] = state.took[name]
        return True

    def _play_step(self, generation: int, row: Row, stop: Callable[[], bool]) -> bool:
        """Step 1: the store of a generation, and what its games were like."""
        if not self.folder.store(generation).is_file():
            self.watcher.step(f"generation {generation}: games")
            if not self._play(generation, stop):
                return False
        self.folder.journal(generation).unlink(missing_ok=True)
        games = list(self._store(generation).games())
        share = root_value_share(self.settings.learning, self.progress)
        draw_value = -self.settings.variety.draw_penalty
        row |= summarise_games(games, self.rules, share, draw_value)
        row["evaluations"] = self.state.evaluations
        row["total_games"] = self.state.games + row["games"]
        row["total_positions"] = self.state.positions + row["positions"]
        return True

    def _learn_step(self, generation: int, row: Row, stop: Callable[[], bool]) -> bool:
        """Step 2: the net of a generation."""
        learning = self.settings.learning
        steps = max(1, round(row["positions"] * learning.samples_per_position / learning.batch))
        rate = self._scheduled_rate = learning_rate(learning, self.progress, self.state.lr)
        course = Course(generation, self.state.steps + steps, self.progress, rate)
        row["steps"], row["lr"] = course.steps, rate
        row["window"] = window_size(row["total_positions"], self.settings.window)
        net = self.folder.net(generation)
        if not net.is_file():
            self.watcher.step(f"generation {generation}: training")
            window = newest_games(range(1, generation + 1), self._store, row["window"])
            trained = self.training.train(window, course, self.state.steps, self.watcher.step)
            if trained.stopped:
                return False
            row["lr"] = rate * trained.state.lr_scale
            self.training.export(trained, course, net)
        reduced = self.folder.int8_net(generation)
        if self.settings.precision == INT8 and not reduced.is_file():
            self.training.export_int8(net, self._store(generation), reduced)
        if measured := self.training.measured(course.steps):
            row["train"] = measured
        self._keep_newest(net, reduced)
        return True

    def _keep_newest(self, net: Path, reduced: Path) -> None:
        """Copy a net and its int8 file, if it has one, to where a player of the run looks for them."""
        newest = self.folder.newest_net
        beside = self.folder.newest_int8_net
        beside.unlink(missing_ok=True)  # never that of another net
        write_whole(newest, net.read_bytes())
        if reduced.is_file():
            write_whole(beside, reduced.read_bytes())

    def _complete(self, generation: int, row: Row) -> None:
        """Write the numbers of a generation and, last of all, the state."""
        row |= {
            "cpu_minutes": self._clock.cpu / 60,
            "minutes": self._clock.elapsed / 60,
            "memory_mb": memory_mb(),
        }
        row["playing_seconds"] = row["play_seconds"]
        if self._players is not None:
            counts = self._players.resignations - self._resignations
            self._resignations = self._players.resignations.copy()
            row["checked_resignations"] = {name: counts[name] for name in RESIGNATIONS}
            if self._players.plays_on:
                row["playing_seconds"] += row["learn_seconds"] + row["ladder_seconds"]
        self.folder.add_row(row)
        self.state = self.state.model_copy(
            update={
                "generation": generation,
                "games": row["total_games"],
                "positions": row["total_positions"],
                "steps": row["steps"],
                "player": row["player"],
                "lr": self._scheduled_rate,
                "begun": {},
                "took": {},
            }
        )
        self._save_clock()
        self.watcher.generation(row)
        if advice := advice_on(row, self.settings.variety.scattered_share):
            self.watcher.warn(advice)

    # --- games ---------------------------------------------------------------------------------

    def _play(self, generation: int, stop: Callable[[], bool]) -> bool:
        """Play until a generation has its positions and publish its store; False if stopped.

        When the run's time is used up, one batch of the learner is enough: the last generation is
        smaller, and the run ends when it should."""
        path = self.folder.journal(generation)
        wanted = self.settings.positions
        least = min(wanted, self.settings.learning.batch)
        with GameJournal(path, self.spec.variant) as journal:
            positions = sum(map(recorded_positions, journal.games))

            def enough() -> bool:
                return positions >= (least if self._out_of_time else wanted)

            heard = time.monotonic()

            def stop_or_report() -> bool:
                nonlocal heard
                if time.monotonic() - heard > HEARTBEAT:
                    heard = time.monotonic()
                    self.watcher.waiting(generation, supply.evaluations)
                return stop()

            if not enough():
                supply = self._supply(generation, journal)
                saved = time.monotonic()
            while not enough():
                record = supply.next_game(stop_or_report)
                if record is not None:
                    journal.add(record)
                    positions += recorded_positions(record)
                    self.watcher.playing(generation, positions, wanted)
                if record is None or enough() or time.monotonic() - saved > SAVE_SECONDS:
                    evaluations = supply.evaluations
                    self.state.evaluations += evaluations - self._counted
                    saved, self._counted = time.monotonic(), evaluations
                    self._save_clock()
                if record is None:
                    return False
            games = sorted(journal.games, key=lambda record: record.number)
        target = self.folder.store(generation)
        with StoreWriter(
            target, self.spec, mode="replace", sources=["self-play"], codec=self._codec
        ) as writer:
            for record in games:
                writer.add(record)
        return True

    def _supply(self, generation: int, journal: GameJournal) -> GameSupply:
        """Return the players, with the net of this generation."""
        if self._players is None:
            done = self._numbers(generation) | {record.number for record in journal.games}
            self._players = self._make_supply(done)
            self._resignations = Counter()
        if self._playing_net != self.state.player:
            self._players.use_net(self._playing_file(self.state.player), self.state.player)
            self._playing_net = self.state.player
        return self._players

    def _local_games(self, done: set[int]) -> GameSupply:
        return LocalGames(
            self.spec,
            self.settings,
            done,
            rules=self.rules,
            openings=self._openings,
        )

    def _numbers(self, generation: int) -> set[int]:
        """Numbers of the games in the stores of earlier generations."""
        return {
            record.number
            for earlier in range(1, generation)
            for record in self._store(earlier).facts()
        }

    # --- training and matches --------------------------------------------------------------------

    def _ladder_step(self, generation: int, row: Row, stop: Callable[[], bool]) -> bool:
        """Step 3: the matches of a generation, and the net that plays next."""
        state, ladder = self.state, self.ladder
        wanted = self.settings.ladder
        pairings = ladder.pairings(generation, state.player)
        if pairings or (wanted.engines and generation % wanted.every == 0):
            self.watcher.step(f"generation {generation}: matches")
            began = cpu_seconds()
            with ExitStack() as opened:
                ladder.measure(
                    generation,
                    opened.enter_context(closing(self._open_net(generation))),
                    lambda earlier: opened.enter_context(closing(self._open_net(earlier))),
                    generating=state.player,
                    cpu_seconds=self._clock.cpu,
                    games=row["total_games"],
                )
            state.ladder_cpu_seconds += cpu_seconds() - began
            if stop():
                return False
        ratings = ladder.record.elo()
        if generation in ratings:
            row["elo"], row["elo_error"] = ratings[generation]
        row["player"] = generation if ladder.accepts(generation, state.player) else state.player
        return True

    # --- files -----------------------------------------------------------------------------------

    def _open_net(self, generation: int) -> Evaluator:
        return open_net(
            self.spec,
            self._playing_file(generation),
            self.settings,
        )

    def _playing_file(self, generation: int) -> Path:
        """Return the file of a net that plays."""
        reduced = self.folder.int8_net(generation)
        if self.settings.precision == INT8 and reduced.is_file():
            return reduced
        return self._existing(self.folder.net(generation))

    def _store(self, generation: int) -> Store:
        path = self._existing(self.folder.store(generation))
        return Store(path, self.spec, codec=self._codec)

    def _save_clock(self) -> None:
        if self._players is not None:
            self._clock.elsewhere = self._players.cpu_seconds
        self.state.cpu_seconds, self.state.seconds = self._clock.cpu, self._clock.elapsed
        self.folder.write_state(self.state)
