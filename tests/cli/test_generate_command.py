"""`variant-ai generate` from outside: what it writes, and what it says when it cannot."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from variant_ai.cli.main import cli
from variant_ai.core.arena.games.generated_games import Dropped, Ended, GeneratedGames
from variant_ai.core.arena.games.generation import GameGenerator
from variant_ai.core.data.store.game_store import Store

FAKE = Path(__file__).parent.parent / "arena" / "fake_engine.py"
VARIANT = "xiangqi"
QUICK = ["-V", VARIANT, "--nodes", "1", "--max-plies", "12"]


def engine(mode: str = "good", *words: str) -> str:
    return shlex.join([sys.executable, str(FAKE), mode, *words])


def generate(store: Path, *args: str, command: str = "") -> Result:
    words = ["generate", "--engine", command or engine(), *QUICK, "-o", str(store), *args]
    return CliRunner().invoke(cli, words)


def told(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.stderr
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def test_games_are_in_the_store(tmp_path: Path) -> None:
    store = tmp_path / "games.store"
    report = told(generate(store, "--games", "3", "--json"))
    opened = Store(store)
    assert len(opened) == report["games"] == 3
    assert opened.plies == report["plies"]
    game = opened.game(0)
    assert game.variant == VARIANT
    assert game.white == "Fake Engine 1.0"
    assert game.scores is not None and len(game.scores) == game.plies


def test_a_program_is_named_as_in_matches(tmp_path: Path) -> None:
    file = tmp_path / "fake.yaml"
    file.write_text(json.dumps({"command": engine(), "options": {"Hash": 8}, "name": "Named"}))
    for name, command in (("one", f"uci:{engine()};option.Hash=8"), ("two", str(file))):
        told(generate(tmp_path / name, "--games", "2", "--json", command=command))
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    assert one.game(1).moves == two.game(1).moves
    assert (one.game(0).white, two.game(0).white) == ("Fake Engine 1.0", "Named")


def test_the_same_command_writes_the_same_games(tmp_path: Path) -> None:
    for name in ("one", "two"):
        told(generate(tmp_path / name, "--games", "3", "--seed", "5", "--json"))
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    assert [one.game(i) for i in range(3)] == [two.game(i) for i in range(3)]


def test_an_existing_store_is_kept_appended_to_or_replaced(tmp_path: Path) -> None:
    store = tmp_path / "games.store"
    told(generate(store, "--games", "1", "--json"))
    again = generate(store, "--games", "1")
    assert again.exit_code == 1 and "already exists" in again.stderr
    told(generate(store, "--games", "2", "--append", "--seed", "1", "--json"))
    assert len(Store(store)) == 3
    told(generate(store, "--games", "1", "--replace", "--json"))
    assert len(Store(store)) == 1
    both = generate(store, "--append", "--replace")
    assert both.exit_code == 2 and "exclude each other" in both.stderr


def test_games_of_the_same_seed_are_not_appended_without_a_word(tmp_path: Path) -> None:
    """All of them would be dropped as duplicates, after they were played."""
    store = tmp_path / "games.store"
    said = generate(store, "--games", "2", "--append", "--seed", "3")
    assert said.exit_code == 0 and "already holds" not in said.stderr
    again = generate(store, "--games", "2", "--append", "--seed", "3")
    assert "already holds games of the same player and seed" in again.stderr
    assert "all repeat earlier ones; give another --seed" in again.stderr
    other = generate(store, "--games", "2", "--append", "--seed", "4")
    assert other.exit_code == 0 and "already holds" not in other.stderr
    assert len(Store(store)) == 4


def test_dropped_games_are_counted_by_reason(tmp_path: Path) -> None:
    counter = str(tmp_path / "counter")
    store = tmp_path / "games.store"
    result = generate(store, "--games", "2", command=engine("illegal", "2", counter))
    assert result.exit_code == 0
    assert "dropped 1: " in result.stderr and "a1a1" in result.stderr
    assert result.stderr.count("Fake Engine 1.0 broke the rules of") == 1
    assert f"it was asked to play {VARIANT!r}" in result.stderr
    assert len(Store(store)) == 2


def test_a_crash_is_no_sign_of_other_rules(tmp_path: Path) -> None:
    command = engine("dies", "2", str(tmp_path / "counter"))
    result = generate(tmp_path / "games.store", "--games", "2", command=command)
    assert result.exit_code == 0 and "dropped 1: " in result.stderr
    assert "broke the rules" not in result.stderr


def test_an_engine_given_up_leaves_the_finished_games(tmp_path: Path) -> None:
    store = tmp_path / "games.store"
    command = engine("dies-from", "3", str(tmp_path / "counter"))
    result = generate(store, "--games", "50", command=command)
    assert result.exit_code == 1
    assert "games in a row" in result.stderr.splitlines()[-1]
    assert len(Store(store)) == 2


def test_a_repaired_engine_goes_on(tmp_path: Path) -> None:
    """With the games that it failed in."""
    store, counter = tmp_path / "games.store", tmp_path / "counter"
    words = ("--games", "4", "--json")
    command = engine("dies-from", "3", str(counter))
    assert generate(store, *words, command=command).exit_code == 1
    again = generate(store, *words, command=command)  # which dies still
    assert again.exit_code == 1 and "continuing after 2 games" in again.stderr
    counter.write_text("-1000")
    repaired = told(generate(store, *words, command=command))
    assert (repaired["games"], repaired["dropped"]) == (4, {})
    other = tmp_path / "other.store"
    told(generate(other, *words))
    one, two = Store(store), Store(other)
    assert [one.game(i).moves for i in range(4)] == [two.game(i).moves for i in range(4)]
    assert not (tmp_path / "games.store.journal").exists()


def test_a_game_played_after_all_is_not_one_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The killed run had played another one in its place."""
    whole, broken, counter = tmp_path / "whole", tmp_path / "broken", tmp_path / "counter"
    words, command = ("--games", "3", "--json"), engine("dies", "2", str(counter))
    with monkeypatch.context() as patch:
        patch.setattr(
            "variant_ai.core.arena.games.generated_games.GeneratedGames.remove",
            lambda self: None,
        )
        assert len(told(generate(broken, *words, command=command))["dropped"]) == 1
    broken.unlink()
    counter.write_text("1000")
    assert told(generate(broken, *words, command=command))["games"] == 3
    told(generate(whole, *words))
    one, two = Store(whole), Store(broken)
    assert [one.game(i).moves for i in range(3)] == [two.game(i).moves for i in range(len(two))]


def test_without_a_finished_game_nothing_is_written(tmp_path: Path) -> None:
    result = generate(tmp_path / "games.store", command=engine("dies"))
    assert result.exit_code == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("args", "status", "reason"),
    [
        (["--random-plies", "5", "2"], 2, "minimum is greater"),
        (["--option", "Hash"], 2, "not NAME=VALUE"),
        (["--opening-plies", "4"], 2, "--opening-plies needs --openings"),
        (["--games", "0"], 2, "--games"),
        (["--option", "Hush=1"], 1, "did you mean 'Hash'"),
        (["-V", VARIANT[:-1]], 1, f"did you mean '{VARIANT}'"),
        (["--engine", "no-such-engine-at-all"], 1, "is not a program"),
        (["--engine", engine("dead")], 1, "died"),
        (["--engine", "net:no-such-file"], 2, "there is no net no-such-file"),
        (["--engine", f"uci:{engine()};option.Hush=1"], 1, "did you mean 'Hash'"),
        (["--engine", f"xboard:{engine()}"], 1, "XBoard's protocol has no node limit"),
        (["--engine", "random"], 2, "a program or a net is expected"),
        (["--engine", "net:-;nodes=8"], 2, "give the nodes of a player with --nodes"),
        (["--engine", "net:-;evaluator=uniform;settings=papr"], 1, "settings of xiangqi"),
        (["--openings", "no-such-file"], 2, "does not exist"),
        (["--openings", str(FAKE)], 1, "fake_engine.py: there is no opening in it"),
    ],
)
def test_wrong_input_is_one_sentence(
    args: list[str], status: int, reason: str, tmp_path: Path
) -> None:
    result = generate(tmp_path / "games.store", *args)
    assert result.exit_code == status
    assert reason in result.stderr
    assert "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_keeps_the_finished_games(tmp_path: Path) -> None:
    store = tmp_path / "games.store"
    counter = tmp_path / "counter"
    # the third game hangs for as long as it is let
    command = engine("hangs", "3", str(counter))
    code = (
        "import sys; from variant_ai.cli.main import main\n"
        f"sys.argv[1:] = {['generate', '--engine', command, *QUICK, '-o', str(store)]!r}\n"
        "main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    for _ in range(600):
        if counter.exists() and counter.read_text() == "3":
            break
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
        break
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert "games" in stdout
    assert len(Store(store)) == 2


def test_the_same_command_goes_on_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    told(generate(whole, "--games", "4", "--json"))
    with monkeypatch.context() as patch:
        # as if the run had been killed before it could put its games into the store
        patch.setattr(
            "variant_ai.core.arena.games.generated_games.GeneratedGames.remove",
            lambda self: None,
        )
        told(generate(broken, "--games", "2", "--json"))
    broken.unlink()
    other = generate(broken, "--games", "4", "--seed", "9")
    assert other.exit_code == 1 and "another command" in other.stderr
    assert told(generate(broken, "--games", "4", "--json"))["games"] == 4
    one, two = Store(whole), Store(broken)
    assert [one.game(i) for i in range(4)] == [two.game(i) for i in range(4)]
    assert not (tmp_path / "broken.journal").exists()


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_kill_loses_the_games_in_progress_alone(tmp_path: Path) -> None:
    """SIGKILL while the first game hangs and those behind it have ended."""
    store, counter = tmp_path / "games.store", tmp_path / "counter"
    journal = tmp_path / "games.store.journal"
    words = ["generate", "--engine", engine("hangs", "1", str(counter)), *QUICK, "--workers", "2"]
    words += ["--games", "4", "-o", str(store)]
    code = f"import sys; from variant_ai.cli.main import main\nsys.argv[1:] = {words!r}\nmain()\n"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    for _ in range(600):
        if journal.exists() and journal.read_bytes().count(b"\n") >= 3:
            break
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.1)
            break
    process.kill()
    process.communicate()
    lines = [json.loads(line) for line in journal.read_bytes().splitlines()]
    ended = {line["number"] for line in lines[1:]}
    assert len(ended) >= 2 and not store.exists()
    again = CliRunner().invoke(cli, [*words, "--json"])
    assert f"continuing after {len(ended)} games" in again.stderr
    assert told(again)["games"] == len(Store(store)) == 4
    assert not journal.exists()


def test_games_appended_before_a_kill_are_not_appended_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "games.store"
    told(generate(store, "--games", "1", "--json"))
    words = ("--games", "3", "--append", "--seed", "1", "--json")
    with monkeypatch.context() as patch:
        patch.setattr(
            "variant_ai.core.arena.games.generated_games.GeneratedGames.remove",
            lambda self: None,
        )
        told(generate(store, *words))
    again = told(generate(store, *words))
    assert (again["games"], again["dropped"]) == (0, {"duplicate": 3})
    assert len(Store(store)) == 4
    assert not (tmp_path / "games.store.journal").exists()


def test_a_store_of_other_games_is_not_replaced_by_going_on(tmp_path: Path) -> None:
    """The journal of a killed run does not make the store's games its own."""
    store, other = tmp_path / "games.store", tmp_path / "other.store"
    told(generate(other, "--games", "1", "--seed", "9", "--json"))
    with GeneratedGames(store, VARIANT, {}) as journal:
        begun = journal.path
    begun.write_text("")  # killed before its first line
    store.write_bytes(other.read_bytes())
    refused = generate(store, "--games", "2")
    assert refused.exit_code == 1 and "holds games of another command" in refused.stderr
    assert store.read_bytes() == other.read_bytes()
    store.unlink()
    assert told(generate(store, "--games", "2", "--json"))["games"] == 2


def test_filters_are_counted(tmp_path: Path) -> None:
    store = tmp_path / "games.store"
    # the engine's score is the ply, so that a move and its answer make 21 and less
    report = told(generate(store, "--games", "2", "--cut-blunders", "22", "--json"))
    assert report["games"] == 2 and report["cut"] == 0
    lost = told(
        generate(store, "--games", "2", "--resign", "2:800", "--replace", "--json",
                 command=engine("loses"))
    )  # fmt: skip
    assert lost["endings"] == {"adjudicated: resign rule": 2}
    both = generate(store, "--drop-blunders", "10", "--cut-blunders", "10")
    assert both.exit_code == 2 and "exclude each other" in both.stderr
    wrong = generate(store, "--resign", "x", "--replace")
    assert wrong.exit_code == 1 and "MOVES:CENTIPAWNS" in wrong.stderr


def test_an_interrupted_run_that_appends_goes_on_and_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "games.store"
    told(generate(store, "--games", "1", "--json"))
    words = ("--append", "--seed", "1", "--workers", "1", "--json")
    with monkeypatch.context() as patch:
        patch.setattr("variant_ai.cli.games.generate._play", _interrupted_after_two)
        stopped = generate(store, "--games", "4", *words)
    assert stopped.exit_code == 130
    assert len(Store(store)) == 3
    with monkeypatch.context() as patch:  # again, before any game that is new
        patch.setattr("variant_ai.cli.games.generate._play", _interrupted_at_once)
        assert generate(store, "--games", "4", *words).exit_code == 130
    again = generate(store, "--games", "4", *words)
    assert "continuing after 2 games" in again.stderr
    assert told(again)["games"] == 2
    assert len(Store(store)) == 5
    assert not (tmp_path / "games.store.journal").exists()
    repeated = told(generate(store, "--games", "4", *words))
    assert (repeated["games"], repeated["dropped"]) == (0, {"duplicate": 4})
    assert len(Store(store)) == 5


def _interrupted_after_two(
    generator: GameGenerator, journal: GeneratedGames, wanted: int, report: Any
) -> None:
    """As the command's own loop when Ctrl-C comes."""

    def keep(game: Ended) -> None:
        if not isinstance(game, Dropped):
            journal.add(game)

    with contextlib.closing(generator.games({}, keep)) as games:
        next(games)
        next(games)
    report.interrupted = True


def _interrupted_at_once(
    generator: GameGenerator, journal: GeneratedGames, wanted: int, report: Any
) -> None:
    report.interrupted = True


def test_without_an_engine_the_packaged_net_plays(tmp_path: Path) -> None:
    store = tmp_path / "g.store"
    words = ["--nodes", "2", "--games", "1", "--max-plies", "12", "--json", "-o", str(store)]
    done = CliRunner().invoke(cli, ["generate", "-V", "xiangqi", *words])
    assert done.exit_code == 0, done.output
    record = Store(store).game(0)
    assert record.plies == 12 and record.white == "xiangqi"


def test_games_of_a_net_go_on_after_a_kill(tmp_path: Path) -> None:
    """SIGKILL while the last games are played."""
    store, whole = tmp_path / "games.store", tmp_path / "whole.store"
    journal = tmp_path / "games.store.journal"
    words = ["generate", "-V", "dobutsu", "--engine", "net:-;evaluator=uniform", "--nodes", "40"]
    words += ["--games", "12", "--workers", "4", "--max-plies", "60", "--json", "-o"]
    line = [*words, str(store)]
    code = f"import sys; from variant_ai.cli.main import main\nsys.argv[1:] = {line!r}\nmain()\n"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while process.poll() is None:
        if journal.exists() and journal.read_bytes().count(b"\n") >= 3:
            process.kill()
    assert process.returncode != 0, "it ended before the kill"
    again = CliRunner().invoke(cli, line)
    assert "continuing after" in again.stderr
    assert told(again)["games"] == 12 and not journal.exists()
    assert told(CliRunner().invoke(cli, [*words, str(whole)]))["games"] == 12
    one, two = Store(whole), Store(store)
    assert [one.game(i) for i in range(12)] == [two.game(i) for i in range(12)]


@pytest.mark.parametrize("setting", ["reuse_tree", "use_raw_network"])
def test_a_net_that_only_the_ordinary_search_can_play(setting: str, tmp_path: Path) -> None:
    player = f"net:-;evaluator=uniform;search.{setting}=true"
    words = ["-V", "dobutsu", "--nodes", "9", "--games", "2", "--max-plies", "20", "--json"]
    report = told(generate(tmp_path / "g.store", *words, command=player))
    assert report["games"] == 2


def test_a_share_above_one_is_out_of_range(tmp_path: Path) -> None:
    result = generate(tmp_path / "games.store", "--random-share", "2")
    assert result.exit_code == 2
    assert "'--random-share': 2.0 is not in the range 0<=x<=1" in result.stderr
