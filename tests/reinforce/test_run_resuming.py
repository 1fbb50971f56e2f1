"""A run that is killed at any step goes on as if nothing had happened."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_runs import check_run, small_run, small_settings, stored_games

import variant_ai.core.train.loop.trainer as trainer
from variant_ai.core.data.store.game_store import Store
from variant_ai.core.data.store.store_writer import StoreWriter
from variant_ai.core.errors import DataError
from variant_ai.core.jit import parallel_compilation
from variant_ai.core.reinforce.budget import cpu_seconds, used_share, used_up
from variant_ai.core.reinforce.games.game_journal import GameJournal
from variant_ai.core.reinforce.ladder.run_ladder import RunLadder
from variant_ai.core.reinforce.reinforce_folder import ReinforceFolder
from variant_ai.core.reinforce.reinforcement import Reinforcement, Watcher
from variant_ai.core.reinforce.window_training import WindowTraining
from variant_ai.core.train.run.checkpoint import save_checkpoint
from variant_ai.plugins import registry


class Killed(BaseException):
    """The process is gone: nothing is written any more."""


BEFORE, AFTER = True, False
STEPS: list[tuple[str, Any, str, bool, int]] = [
    # what was going on, object, function, before or after it, call
    ("the first net was written, the settings not yet", ReinforceFolder, "write", BEFORE, 1),
    ("the run began", ReinforceFolder, "write", AFTER, 1),
    ("a game was written to the journal", GameJournal, "add", AFTER, 1),
    ("some games were written to the journal", GameJournal, "add", AFTER, 3),
    ("the journal was complete", StoreWriter, "__init__", BEFORE, 1),
    ("a store was half written", StoreWriter, "add", AFTER, 2),
    ("a store was published, its journal not deleted", StoreWriter, "__exit__", AFTER, 1),
    ("training was to begin", WindowTraining, "train", BEFORE, 1),
    ("the first checkpoint was written", trainer, "save_checkpoint", AFTER, 1),
    ("the second checkpoint was written", trainer, "save_checkpoint", AFTER, 2),
    ("training was done, the net not written", WindowTraining, "export", BEFORE, 1),
    ("the net was written, the newest one not replaced", WindowTraining, "export", AFTER, 1),
    ("matches were to begin", RunLadder, "measure", BEFORE, 1),
    ("matches were played", RunLadder, "measure", AFTER, 1),
    ("the row was to be written", ReinforceFolder, "add_row", BEFORE, 1),
    ("the row was written, the state not yet", ReinforceFolder, "add_row", AFTER, 1),
]
GAMES_AT_ONCE = 6


def kill_at(
    patch: pytest.MonkeyPatch, owner: Any, name: str, before: bool, call: int
) -> Callable[[], bool]:
    """Let the process die at a call of a function. Returns whether it is still alive."""
    calls = 0
    original, saved = getattr(owner, name), Reinforcement._save_clock

    def replaced(*arguments: Any, **words: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call and before:
            raise Killed
        result = original(*arguments, **words)
        if calls == call:
            raise Killed
        return result

    def save_clock(run: Reinforcement) -> None:
        if calls < call:
            saved(run)

    patch.setattr(owner, name, replaced)
    patch.setattr(Reinforcement, "_save_clock", save_clock)
    return lambda: calls < call


@pytest.mark.slow
def test_a_run_that_is_killed_at_every_step_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One run, killed once at each of the steps."""
    generations = len(STEPS) + 1
    settings = small_settings(generations=generations)
    for what, owner, name, before, call in STEPS:
        with monkeypatch.context() as patch:
            alive = kill_at(patch, owner, name, before, call)
            with pytest.raises(Killed):
                small_run(tmp_path, settings).run()
            assert not alive(), what
    assert small_run(tmp_path, settings).run()
    check_run(tmp_path, generations, in_hand=GAMES_AT_ONCE)


@pytest.mark.slow
def test_time_that_is_used_up_ends_the_games_of_a_generation(tmp_path: Path) -> None:
    """The last generation is smaller, its net is trained all the same, and more time goes on."""
    settings = small_settings(generations=None, minutes=0.005, positions=100_000)
    assert small_run(tmp_path, settings).run()
    (row,) = ReinforceFolder(tmp_path).rows()
    assert settings.learning.batch <= row["positions"] < 50_000
    assert ReinforceFolder(tmp_path).net(1).is_file()
    assert small_run(tmp_path, settings).run()
    assert len(ReinforceFolder(tmp_path).rows()) == 1
    assert small_run(tmp_path, small_settings(generations=2)).run()
    assert len(ReinforceFolder(tmp_path).rows()) == 2


def test_advice_stays_on_the_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a warning: the text of a step is replaced by that of the next."""
    monkeypatch.setattr(
        "variant_ai.core.reinforce.reinforcement.advice_on",
        lambda row, share: "scatter them" if row["generation"] == 1 else "",
    )
    steps: list[str] = []
    warnings: list[str] = []
    watcher = Watcher(step=steps.append, warn=warnings.append)
    assert small_run(tmp_path, small_settings(generations=2), watcher).run()
    assert warnings == ["scatter them"] and "scatter them" not in steps


def test_missing_functions_are_compiled_before_the_clock_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the first run on a machine would spend its budget on that."""
    spent: list[float] = []

    def compile_all() -> None:
        begun = time.process_time()
        while time.process_time() < begun + 0.5:
            pass
        spent.append(0.5)

    monkeypatch.setattr(parallel_compilation, "progress", lambda: (1, 2))
    monkeypatch.setattr(parallel_compilation, "compile_all", compile_all)
    run = small_run(tmp_path, small_settings(generations=1))
    begun = cpu_seconds()
    assert run.run() and spent == [0.5]
    assert run.state.cpu_seconds <= cpu_seconds() - begun - 0.5
    assert small_run(tmp_path, small_settings(generations=1)).run()
    assert spent == [0.5]  # nothing to do


def test_a_budget_tells_what_is_used_up() -> None:
    settings = small_settings(generations=3, minutes=2.0)
    assert used_up(settings, 2, 60.0) == "" and used_share(settings, 2, 60.0) == 2 / 3
    assert "(3 of 3 generations); give more with --generations" in used_up(settings, 3, 60.0)
    assert "(2.5 of 2 minutes of CPU time); give more with --minutes" in used_up(settings, 2, 150)
    assert used_up(settings, 3, 150).endswith("give more with --generations and --minutes")
    assert used_up(small_settings(generations=None), 9, 1e9) == ""


@pytest.mark.slow
def test_a_generation_is_finished_although_its_time_ran_out_before_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = small_settings(generations=None, minutes=0.005, positions=100_000)
    with monkeypatch.context() as patch:
        kill_at(patch, WindowTraining, "train", BEFORE, 1)
        with pytest.raises(Killed):
            small_run(tmp_path, settings).run()
    assert ReinforceFolder(tmp_path).rows() == []
    assert small_run(tmp_path, settings).run()
    assert len(ReinforceFolder(tmp_path).rows()) == 1


@pytest.mark.slow
def test_times_of_a_generation_are_those_of_all_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = small_settings(generations=1)
    with monkeypatch.context() as patch:
        kill_at(patch, WindowTraining, "train", BEFORE, 1)
        with pytest.raises(Killed):
            small_run(tmp_path, settings).run()
    folder = ReinforceFolder(tmp_path)
    played = folder.state().took["play"]
    assert played[0] > 0 and played[1] > 0
    assert small_run(tmp_path, settings).run()
    (row,) = folder.rows()
    assert (row["play_seconds"], row["play_cpu"]) == played
    assert folder.state().took == {}


@pytest.mark.slow
def test_files_of_a_run_that_are_gone(tmp_path: Path) -> None:
    """Without its state a run counts its files again; without a net or a store that it needs it says
    which one, and without older nets it goes on."""
    settings = small_settings(generations=2)
    assert small_run(tmp_path, settings).run()
    run = check_run(tmp_path, 2, in_hand=GAMES_AT_ONCE)
    games = [game.moves for game in stored_games(tmp_path, 2)]
    steps = run.state().steps

    (tmp_path / "state.json").unlink()
    assert small_run(tmp_path, settings).run()
    check_run(tmp_path, 2, in_hand=GAMES_AT_ONCE)
    assert [game.moves for game in stored_games(tmp_path, 2)] == games
    assert run.state().steps == steps

    more = small_settings(generations=3)
    for path in (run.store(1), run.net(2)):
        content = path.read_bytes()
        path.unlink()
        with pytest.raises(DataError) as error:
            small_run(tmp_path, more).run()
        assert f"{path} is missing" in str(error.value) and "--from" in str(error.value)
        path.write_bytes(content)

    (tmp_path / "state.json").write_text('{"generation": -1}')
    with pytest.raises(DataError, match=r"state.json is damaged \(generation: .* delete it"):
        small_run(tmp_path, more).run()


@pytest.mark.slow
def test_a_run_ends_within_a_step_of_a_stop(tmp_path: Path) -> None:
    """Games in hand are not played to their end."""
    settings = small_settings(generations=1, games_at_once=64, positions=4000)
    told: list[int] = []

    def playing(generation: int, positions: int, wanted: int) -> None:
        if not told:
            signal.raise_signal(signal.SIGINT)
        told.append(positions)

    assert not small_run(tmp_path, settings, Watcher(playing=playing)).run()
    assert len(told) <= 64
    state = ReinforceFolder(tmp_path).state()
    assert state.generation == 0 and state.evaluations > 0


def test_a_run_reports_before_its_first_game_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With rules that are not compiled, the first game takes minutes."""
    monkeypatch.setattr("variant_ai.core.reinforce.reinforcement.HEARTBEAT", 0.0)
    seen: list[str] = []
    watcher = Watcher(
        playing=lambda *_: seen.append("game"),
        waiting=lambda generation, evaluations: seen.append(f"{generation} {evaluations > 0}"),
    )
    small_run(tmp_path, small_settings(generations=1), watcher).run()
    assert "1 True" in seen[: seen.index("game")]


def test_a_stop_in_the_last_step_of_training_reaches_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def saving(*arguments: Any, **words: Any) -> Any:
        step = arguments[3].step
        seen.append(step)
        if step == 4:
            signal.raise_signal(signal.SIGINT)
        return save_checkpoint(*arguments, **words)

    monkeypatch.setattr(trainer, "save_checkpoint", saving)
    settings = small_settings(generations=2)
    assert not small_run(tmp_path, settings).run()
    run = ReinforceFolder(tmp_path)
    assert seen == [0, 2, 4]
    assert run.net(1).is_file() and run.state().generation == 0
    monkeypatch.undo()
    assert small_run(tmp_path, settings).run()
    check_run(tmp_path, 2, in_hand=GAMES_AT_ONCE)


def test_a_store_or_a_net_of_another_variant_is_refused(tmp_path: Path) -> None:
    settings = small_settings(generations=1, ladder={"games": 0})
    assert small_run(tmp_path, settings).run()
    run = ReinforceFolder(tmp_path)
    other = small_settings("minixiangqi", generations=1, ladder={"games": 0})
    with pytest.raises(DataError, match="is a net for dobutsu, not for minixiangqi"):
        small_run(tmp_path, other).run()
    assert run.settings().variant == "dobutsu"  # nothing was written
    with pytest.raises(DataError, match="dobutsu"):
        Store(run.store(1), registry().variant("minixiangqi"))


def test_the_ladder_is_told_the_games_that_its_time_was_spent_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no games it would hold the first match for free."""
    given: list[int] = []
    measure = RunLadder.measure

    def watched(self: RunLadder, *arguments: Any, **words: Any) -> None:
        given.append(words["games"])
        measure(self, *arguments, **words)

    monkeypatch.setattr(RunLadder, "measure", watched)
    small_run(tmp_path / "run", small_settings(generations=2)).run()
    rows = ReinforceFolder(tmp_path / "run").rows()
    assert given == [row["total_games"] for row in rows] and given[0] > 0
