"""`variant-ai tune` from outside, on positions that are mate in one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from ruamel.yaml import YAML

from variant_ai.cli.main import cli
from variant_ai.core.arena.match.tournament import Tournament

MATES = "3k5/9/9/9/9/9/9/9/4R4/4K4 w - - 0 1\n5k3/9/9/9/9/9/9/9/4R4/4K4 w - - 0 1\n"
NUMBERS = "--trials 8 --games 2 --final-games 2 --sprt-games 2 --concurrency 1 --nodes 16".split()
NO_NET = ["--model", "-", "--evaluator", "uniform"]


@pytest.fixture
def base(tmp_path: Path) -> list[str]:
    """A tuning of a second or two; games end with the first move or soon after."""
    openings = tmp_path / "mates.epd"
    openings.write_text(MATES)
    return ["tune", "-V", "xiangqi", *NUMBERS, *NO_NET, "--openings", str(openings)]


def tune(words: list[str]) -> Result:
    return CliRunner().invoke(cli, words)


def test_a_tuning_and_the_same_again(tmp_path: Path, base: list[str]) -> None:
    folder = tmp_path / "t"
    words = [*base, "--range", "q_weight=0:1", "--range", "virtual_style=loss,visit"]
    words += ["-o", str(folder)]
    done = tune([*words, "--json"])
    assert done.exit_code == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["variant"] == "xiangqi" and len(said["trials"]) == 8
    assert set(said["present"]) == set(said["trials"][0]["settings"])
    # who moves first mates: every pair of games is even, so nothing beats the present settings
    assert {trial["tally"] for trial in said["trials"]} == {"1-1-0"}
    assert [final["tally"] for final in said["finals"]] == ["1-1-0"] * 3
    assert said["winner"] is None and said["test"] is None
    assert "trial 8/8" in done.stderr and "No finalist beat" in done.stderr
    assert "openings for matches" not in done.stderr
    assert (folder / "trials.png").read_bytes().startswith(b"\x89PNG")
    assert not (folder / "result.yaml").exists()
    again = tune([*words, "--json"])
    assert again.exit_code == 0 and json.loads(again.stdout) == said
    assert "trial" not in again.stderr
    table = tune(words)
    assert table.exit_code == 0 and "importance" in table.stdout and "trials.png" in table.stdout
    other = tune([*words, "--nodes", "17"])
    assert other.exit_code == 1 and "nodes: 16 there, 17 now" in other.stderr


def test_a_winner_is_tested_and_its_words_are_for_a_spec(
    tmp_path: Path, base: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from variant_ai.core.arena.tables.elo import Tally

    monkeypatch.setattr(
        "variant_ai.core.arena.match.match_record.tally_of", lambda entries, name: Tally(2, 0, 0)
    )
    words = [*base, "--range", "enhance_checks=false,true", "--range", "cpuct_init=1:4"]
    done = tune([*words, "-o", str(tmp_path / "t")])
    assert done.exit_code == 0, done.stderr
    assert "test " in done.stdout and "undecided" in done.stdout and "LLR" in done.stdout
    text = (tmp_path / "t" / "result.yaml").read_text()
    assert "# test against the present settings: 2-0-0" in text and "nodes per move" in text
    pasted = YAML(typ="safe", pure=True).load(text)
    assert set(pasted["search"]) == {"enhance_checks", "cpuct_init"}
    tested = json.loads(next((tmp_path / "t" / "sprt").glob("*/match.json")).read_text())
    candidate, present = tested["settings"]["players"]
    assert candidate["search"] == pasted["search"] and "search" not in present


@pytest.mark.nightly
def test_a_test_that_was_interrupted_has_no_verdict(
    tmp_path: Path, base: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from variant_ai.core.arena.tables.elo import Tally

    run = Tournament.run

    def interrupted_in_the_test(self: Tournament, *arguments: Any) -> Any:
        if self.settings.sprt is not None:
            os.kill(os.getpid(), signal.SIGINT)
        return run(self, *arguments)

    monkeypatch.setattr(Tournament, "run", interrupted_in_the_test)
    monkeypatch.setattr(
        "variant_ai.core.arena.match.match_record.tally_of",
        lambda entries, name: Tally(2 if entries else 0, 0, 0),
    )
    done = tune([*base, "--range", "cpuct_init=1:4", "-o", str(tmp_path / "t")])
    assert done.exit_code == 130, done.stderr
    assert "not finished" in done.stdout and "undecided" not in done.stdout


@pytest.mark.nightly
def test_words_that_are_no_better_are_not_to_be_pasted(
    tmp_path: Path, base: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from variant_ai.core.arena.tables.elo import Tally
    from variant_ai.core.arena.tables.sprt import Sprt, SprtStatus

    monkeypatch.setattr(
        "variant_ai.core.arena.match.match_record.tally_of", lambda entries, name: Tally(2, 0, 0)
    )
    monkeypatch.setattr(Sprt, "status", lambda *_: SprtStatus(-3.0, -2.9, 2.9, "H0"))
    done = tune([*base, "--range", "cpuct_init=1:4", "-o", str(tmp_path / "t")])
    assert done.exit_code == 0, done.stderr
    assert "is no better" in done.stdout
    text = (tmp_path / "t" / "result.yaml").read_text()
    assert YAML(typ="safe", pure=True).load(text) is None
    assert "# no better: search:" in text
    again = tune([*base, "--range", "cpuct_init=1:4", "-o", str(tmp_path / "t"), "--json"])
    assert json.loads(again.stdout)["result"] == "no better"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--range", "q_weigth=0:1"], "did you mean 'q_weight'"),
        (["--range", "q_weight=1:0"], "lower and a higher"),
        (["--range", "q_weight=0:1", "--range", "q_weight=0:0.5"], "given twice"),
        (["--set", "q_weight"], "not NAME=VALUE"),
        (["--set", "q_weight=9"], "from 0 to 1"),
        (["--settings", "none"], "accepted: default, paper"),
        (["--clock", "1+0"], "not both"),
        (["--model", "no-such.onnx", "--evaluator", "auto"], "no-such.onnx"),
        (["--evaluator", "unifrom"], "unknown evaluator"),
        (["--openings", "no-such.pgn"], "no-such.pgn"),
        (["--trials", "3"], "at least 8"),
        (["--games", "3"], "even number"),
        (["--minutes", "0"], "--minutes"),
        (["-V", "no-such"], "unknown variant"),
    ],
)
def test_wrong_input_leaves_no_folder(
    tmp_path: Path, base: list[str], words: list[str], reason: str
) -> None:
    done = tune([*base, *words, "-o", str(tmp_path / "t")])
    assert done.exit_code in (1, 2) and reason in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "t").exists()


def test_too_few_openings_are_reported(tmp_path: Path, base: list[str]) -> None:
    words = [*base, "--sprt-games", "6", "--minutes", "0.00001", "-o", str(tmp_path / "t")]
    assert "2 openings for matches of up to 6 games" in tune(words).stderr


def test_a_clock_that_cannot_be_read(tmp_path: Path, base: list[str]) -> None:
    without = [word for word in base if word not in ("--nodes", "16")]
    done = tune([*without, "--clock", "soon", "-o", str(tmp_path / "t")])
    assert done.exit_code == 1 and "clock 'soon'" in done.stderr
    assert not (tmp_path / "t").exists()


def test_a_folder_keeps_to_its_openings(tmp_path: Path, base: list[str]) -> None:
    words = [*base, "--range", "q_weight=0:1", "-o", str(tmp_path / "t"), "--minutes", "0.00001"]
    assert tune(words).exit_code == 0
    (tmp_path / "mates.epd").write_text(MATES.splitlines()[0] + "\n")
    done = tune(words)
    assert done.exit_code == 1 and "openings_digest" in done.stderr


def test_time_that_is_over_keeps_what_is_done(tmp_path: Path, base: list[str]) -> None:
    words = [*base, "--range", "q_weight=0:1", "-o", str(tmp_path / "t")]
    done = tune([*words, "--minutes", "0.00001", "--json"])
    assert done.exit_code == 0 and "the same command resumes" in done.stderr
    assert len(json.loads(done.stdout)["trials"]) < 8
    on = tune([*words, "--json"])
    assert on.exit_code == 0 and len(json.loads(on.stdout)["trials"]) == 8


def test_time_that_is_over_before_the_first_game_is_no_interrupt(
    tmp_path: Path, base: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Tournament.run

    def stopped(self: Tournament, *arguments: Any) -> Any:
        time.sleep(0.1)  # until the timer has called `stop`
        return run(self, *arguments)

    monkeypatch.setattr(Tournament, "run", stopped)
    words = [*base, "--range", "q_weight=0:1", "-o", str(tmp_path / "t"), "--minutes", "0.00001"]
    done = tune(words)
    assert done.exit_code == 0 and "0 of 8 trials; the same command resumes" in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is sent by signal")
def test_interrupted_trials_go_on(tmp_path: Path, base: list[str]) -> None:
    words = [*base, "--range", "q_weight=0:1", "-o", str(tmp_path / "t"), "--trials", "500"]
    command = [sys.executable, "-m", "variant_ai.cli.main", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 300
    while not list((tmp_path / "t" / "trials").glob("*/games.jsonl")):
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()[1]
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 130 and "the same command resumes" in errors
    assert "Traceback" not in errors and out.startswith("trials")
    on = tune([*base, "--range", "q_weight=0:1", "-o", str(tmp_path / "t"), "--json"])
    assert on.exit_code == 0 and len(json.loads(on.stdout)["trials"]) >= 8
