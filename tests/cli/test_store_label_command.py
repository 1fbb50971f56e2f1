"""`variant-ai store label`: labels by a net and by a program, interrupted and resumed."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from variant_ai.cli.main import cli
from variant_ai.core.arena.games.generated_games import Dropped
from variant_ai.core.arena.games.labelling import Labelling
from variant_ai.core.data.game_record import FULL_WEIGHT
from variant_ai.core.data.store.game_store import Store

FAKE = Path(__file__).parents[1] / "arena/fake_engine.py"
SEARCH = "net:-;evaluator=random;search.memory_mb=32"


def call(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def label(*arguments: object) -> Result:
    return call("store", "label", *arguments)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("label") / "own.store"
    result = call(
        "generate", "-V", "crazyhouse", "--nodes", "4", "--max-plies", "12", "--random-plies", "2", "3",
        "--engine", SEARCH, "--games", "4", "--visits", "0", "-o", path,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    return path


def test_a_net_labels_with_its_visits(store: Path, tmp_path: Path) -> None:
    made = tmp_path / "made.store"
    result = label(store, "-o", made, "--engine", SEARCH, "--nodes", "20", "--json")
    assert result.exit_code == 0, result.output
    plies = Store(store).info.plies
    assert json.loads(result.stdout)["positions"] == plies
    found = Store(made)
    assert found.info.plies_with_visits == plies
    for before, after in zip(Store(store).games(), found.games(), strict=True):
        assert (after.moves, after.result) == (before.moves, before.result)
        assert after.visits is not None and all(sum(n for _, n in v) > 10 for v in after.visits)
        assert after.root_values is not None and None not in after.root_values


def test_a_program_labels_with_its_scores(store: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyffish")
    made = tmp_path / "made.store"
    result = label(store, "-o", made, "--engine", f"{sys.executable} {FAKE} good")
    assert result.exit_code == 0, result.output
    assert "labelled by Fake Engine 1.0" in result.stdout
    for record in Store(made).games():
        assert record.scores == list(range(record.plies))  # its score is the ply
        assert record.visits is not None
        assert all([n for _, n in visits] == [FULL_WEIGHT] for visits in record.visits)


def test_an_interrupted_one_goes_on(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, made = tmp_path / "whole.store", tmp_path / "made.store"
    arguments = ("--engine", SEARCH, "--nodes", "5")
    assert label(store, "-o", whole, *arguments).exit_code == 0
    games = Labelling.games

    def interrupted(self: Labelling, numbers: Any, read: Any) -> Any:
        for game in games(self, numbers, read):
            if game.number == 2:
                raise KeyboardInterrupt
            yield game

    with monkeypatch.context() as patch:
        patch.setattr(Labelling, "games", interrupted)
        result = label(store, "-o", made, *arguments)
    assert result.exit_code != 0
    assert "2 of 4 games are labelled; the same command continues" in result.stderr
    result = label(store, "-o", made, *arguments)
    assert result.exit_code == 0, result.output
    assert "resuming after 2 games" in result.stderr
    assert list(Store(made).games()) == list(Store(whole).games())


def test_ctrl_c_before_the_first_game(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: Labelling, numbers: Any, read: Any) -> Any:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(Labelling, "games", interrupted)
    result = label(store, "-o", tmp_path / "made.store", "--engine", SEARCH, "--nodes", "5")
    assert result.exit_code == 130 and "nothing was written" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_games_left_out_after_the_last_kept_one_are_counted_once(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run reads them again, and may label them."""
    made = tmp_path / "made.store"
    arguments = ("--engine", SEARCH, "--nodes", "5", "--json")
    games = Labelling.games

    def failing(self: Labelling, numbers: Any, read: Any) -> Any:
        for game in games(self, numbers, read):
            if game.number == 3:
                raise KeyboardInterrupt
            yield Dropped(game.number, "crash") if game.number in (0, 2) else game

    with monkeypatch.context() as patch:
        patch.setattr(Labelling, "games", failing)
        assert label(store, "-o", made, *arguments).exit_code != 0
    result = label(store, "-o", made, *arguments)
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert (report["games"], report["left_out"]) == (3, {"crash": 1})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a child that shares this process's patches")
def test_a_kill_at_the_end_of_a_shard_adds_no_game_twice(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, made = tmp_path / "whole.store", tmp_path / "made.store"
    arguments = ("--engine", SEARCH, "--nodes", "5")
    assert label(store, "-o", whole, *arguments).exit_code == 0
    monkeypatch.setattr("variant_ai.cli.games.store_label.SHARD_GAMES", 2)
    games = Labelling.games

    def killed(self: Labelling, numbers: Any, read: Any) -> Any:
        for game in games(self, numbers, read):
            if game.number == 3:
                os._exit(9)
            yield game

    with monkeypatch.context() as patch:
        patch.setattr(Labelling, "games", killed)
        child = os.fork()
        if child == 0:
            label(store, "-o", made, *arguments)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    result = label(store, "-o", made, *arguments, "--json")
    assert result.exit_code == 0, result.output
    assert "resuming after 2 games" in result.stderr
    assert json.loads(result.stdout)["games"] == 4
    assert list(Store(made).games()) == list(Store(whole).games())


def test_a_finished_store_is_not_overwritten(store: Path, tmp_path: Path) -> None:
    made = tmp_path / "made.store"
    arguments = ("--engine", SEARCH, "--nodes", "5")
    assert label(store, "-o", made, *arguments).exit_code == 0
    result = label(store, "-o", made, *arguments)
    assert result.exit_code == 1
    assert result.stderr.strip() == f"Error: {made} already exists; use --replace to overwrite it"
    assert label(store, "-o", made, *arguments, "--replace").exit_code == 0


def test_wrong_players(store: Path, tmp_path: Path) -> None:
    result = label(store, "-o", tmp_path / "made.store", "--engine", "no-such-program")
    assert result.exit_code == 1 and "no-such-program" in result.stderr
    dead = f"{sys.executable} {FAKE} dies"
    result = label(store, "-o", tmp_path / "made.store", "--engine", dead)
    assert result.exit_code == 1 and "no game was labelled: crash: engine Fake" in result.stderr
    assert not (tmp_path / "made.store").exists()
