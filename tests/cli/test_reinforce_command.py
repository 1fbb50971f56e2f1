"""`variant-ai reinforce` from outside: wrong inputs, and a run whose files other commands read."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result

from variant_ai.cli.main import cli
from variant_ai.core.reinforce.reinforce_folder import ReinforceFolder
from variant_ai.core.reinforce.reinforcement import Reinforcement

ROOT = Path(__file__).resolve().parents[2]
SMALL = [
    *"--positions 30 --games 4 --nodes 2 --threads 1 --evaluator onnx".split(),
    *"--set ladder.games=2 --set ladder.nodes=0 --set ladder.cpu_share=1".split(),
    *"--set learning.batch=16 --set variety.max_plies=20".split(),
    *"--set learning.size.blocks=1 --set learning.size.channels=8".split(),
]
"""Options of a run that takes a second or two a generation."""


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(cli, list(map(str, words)))


def reinforce(*words: str | Path) -> Result:
    return run("reinforce", *words)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two generations."""
    folder = tmp_path_factory.mktemp("runs") / "a"
    result = reinforce("-V", "dobutsu", *SMALL, "--generations", "2", "--run", folder)
    assert result.exit_code == 0, result.output
    assert "generation 2: " in result.stderr + result.stdout
    return folder


def test_a_log_shows_that_the_run_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first generation is complete, which may take long."""
    monkeypatch.setattr("variant_ai.cli.train.reinforce.SILENCE", 0.0)
    result = reinforce("-V", "dobutsu", *SMALL, "--generations", "1", "--run", tmp_path / "a")
    assert f"{tmp_path / 'a'}: dobutsu, 30 positions a generation" in result.stderr
    assert re.search(r"generation 1: \d+ of 30 positions", result.stderr)
    reinforce("--run", tmp_path / "a", "--generations", "2")
    status = run("reinforce", "--status", tmp_path / "a")
    assert re.search(r"Elo over the start +[+-]\d+ ± \d+ \(generation [12]\)", status.output)


WITHOUT_NET = ROOT / "benchmarks" / "gardner.yaml"
WRONG = [
    ("-V dobutsuu", "unknown variant 'dobutsuu'; did you mean 'dobutsu'"),
    ("-V nothing.yaml", r"nothing\.yaml: there is no such file"),
    ("", "name a variant with -V"),
    ("-V dobutsu --settings nothing.yaml", r"nothing\.yaml"),
    ("-V dobutsu --set search.knots=3", "search.knots = 3: there is no such word"),
    ("-V dobutsu --set search.node=3", "did you mean 'search.nodes'?"),
    ("-V dobutsu --set serch.nodes=3", "did you mean 'search'?"),
    ("-V dobutsu --set learning.xyz=3", "learning.xyz = 3: there is no such word$"),
    ("-V dobutsu --set search.nodes", "expected WORD=VALUE"),
    ("-V dobutsu --set variety.openings=nothing.epd", r"nothing\.epd"),
    ("-V dobutsu --set search.nodes=many", "search.nodes = 'many': a whole number is expected$"),
    (
        "-V dobutsu --set learning.size.blocks=x",
        "learning.size.blocks = 'x': a whole number, or true or false is expected$",
    ),
    ("-V dobutsu --set learning.size.block=3", "learning.size: .*did you mean 'blocks'"),
    ("-V dobutsu --set learning.size.blocks=0", "learning.size: .*at least 1 is expected"),
    ("-V dobutsu --nodes 0", "0 is not in the range"),
    ("-V dobutsu --minutes 0", "--minutes"),
    ("-V dobutsu --minutes=-1", "'--minutes': -1.0 is not in the range"),
    ("-V dobutsu --minutes -1", "'--minutes': -1.0 is not in the range"),
    ("-V dobutsu --set learning.optimiser=sgdd", "unknown optimiser 'sgdd'; accepted: adam"),
    ("-V dobutsu --net nothing", "unknown net 'nothing'; accepted: "),
    ("-V dobutsu --set learning.size.foo=3", "unknown option .* 'foo'; accepted: blocks"),
    ("-V dobutsu --evaluator nothing", "unknown evaluator 'nothing'; accepted: "),
    ("-V dobutsu --precision nothing", "unknown precision 'nothing'; accepted: "),
    ("-V dobutsu --device gpu", "unknown device 'gpu'"),
    ("-V dobutsu --from nothing.onnx", r"nothing\.onnx does not exist; .*`packaged`, `random`"),
    ("-V dobutsu --set variety.random_plies=4", r"= 4: a list is expected, as in \[0, 4\]"),
    ("-V dobutsu --set variety.random_plies=[4]", r"= \[4\]: more values are .* \[0, 4\]"),
    ("-V dobutsu --set variety.random_plies=[1,2,3]", r"a list is expected, as in \[0, 4\]"),
    ("-V dobutsu --set ladder.engines=random", r"ladder.engines = 'random': a list is expected$"),
    (
        "-V dobutsu --set 'ladder.engines=[nonsense;nodes=10]'",
        r"ladder.engines: 'nonsense;nodes=10': .*leave it out",
    ),
    (f"-V {WITHOUT_NET} --from packaged", "no net comes with gardner"),
    ("-V dobutsu --set 'mixture=[{store: no.store, weight: 0.5}]'", r"no game store .*no\.store"),
    (
        "-V dobutsu --set 'mixture=[{store: no.store, weight: 1}]'",
        "mixture.0.weight = 1: .*less than 1",
    ),
    (
        "-V xiangqi --set 'mixture=[{store: cz.store, weight: 0.5}]'",
        "games of crazyhouse, not of xiangqi",
    ),
    (
        "-V crazyhouse --set 'mixture=[{store: cz.store, weight: 0.001}]'",
        "a batch of 256 has no sample .*larger weight or batch",
    ),
    ("-V dobutsu --set ladder.engines=[foo]", "'foo' has no limit; add one"),
    ("-V dobutsu --set ladder.gate=true --set ladder.games=0", "a gate needs games"),
    ("--status nothing", "there is no folder nothing"),
    ("-V dobutsu --players 4", "--players needs --ray"),
]


@pytest.mark.parametrize(("words", "message"), WRONG)
def test_wrong_inputs_are_named_and_leave_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "variants" / "crazyhouse" / "sample.store", "cz.store")
    result = reinforce(*shlex.split(words))
    assert result.exit_code in (1, 2) and re.search(message, result.stderr), result.output
    assert "Traceback" not in result.output
    assert not list(tmp_path.glob("runs/*"))


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_device_that_is_not_there_is_named(tmp_path: Path) -> None:
    result = reinforce("-V", "dobutsu", "--device", "cuda", "--run", tmp_path / "a")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: device 'cuda' is not available here")


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    for words in (["-V", "dobutsu", "--run"], ["--status"]):
        result = reinforce(*words, tmp_path)
        assert result.exit_code == 1 and "holds no run of self-play" in result.stderr
    assert len(list(tmp_path.iterdir())) == 1


def test_a_run_keeps_its_settings(done: Path) -> None:
    other = reinforce("--run", done, "--nodes", "3")
    assert other.exit_code == 1
    assert "was begun with search.nodes = 2, not 3" in other.stderr
    variant = reinforce("-V", "xiangqi", "--run", done)
    assert variant.exit_code == 1
    assert f"{done} is a run of dobutsu; name another folder with --run" in variant.stderr
    again = reinforce("--run", done, "-V", "dobutsu", *SMALL)
    assert again.exit_code == 0, again.output


def test_a_budget_that_is_used_up_is_named(done: Path) -> None:
    """Which one may be hidden in the settings of the run."""
    result = reinforce("--run", done, "--minutes", "50")
    assert result.exit_code == 0, result.output
    said = "Nothing to do: the budget is used up (2 of 2 generations); give more with --generations"
    assert said in result.stderr
    assert "running" not in result.stderr


def test_json_is_a_line_for_each_generation(tmp_path: Path) -> None:
    words = ["--generations", "2", "--run", tmp_path, "--json"]
    result = reinforce("-V", "dobutsu", *SMALL, *words)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert rows == ReinforceFolder(tmp_path).rows() and len(rows) == 2


def test_a_generation_without_a_policy_to_learn_is_shown(tmp_path: Path) -> None:
    """All moves are fast ones, whose searches teach no policy: there is no mean of its loss."""
    words = ["--generations", "1", "--set", "search.full_share=1e-9", "--run", tmp_path]
    result = reinforce("-V", "dobutsu", *SMALL, *words)
    assert result.exit_code == 0, result.output
    assert "; loss policy - value " in result.output
    status = run("reinforce", "--status", tmp_path)
    assert status.exit_code == 0 and re.search(r"\n1 .* - ", status.output), status.output


def test_a_run_from_a_net_goes_on_after_damage_to_its_newest_checkpoint(
    done: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "b"
    begun = reinforce(
        "-V", "dobutsu", *SMALL, "--from", done, "--generations", "1", "--run", folder
    )
    assert begun.exit_code == 0, begun.output
    newest = max((folder / "checkpoints").iterdir())
    (newest / "config.json").write_bytes(b"")
    result = reinforce("--run", folder, "--generations", "2")
    assert result.exit_code == 0, result.output
    assert "generation 2: " in result.output
    assert newest.with_name(f"{newest.name}.damaged").is_dir()


def test_evaluate_knows_the_games_that_a_run_learnt_from(done: Path, tmp_path: Path) -> None:
    """Its own games, and those of its mixture."""
    own, mixed = done / "games" / "000001.store", done / "games" / "000002.store"
    for net in (done, done / "model.onnx", done / "nets" / "000001" / "model.onnx"):
        said = run("evaluate", net, own).stderr
        assert re.search(rf"{net} was trained on (\d+) of these \1 games", said), said
    assert "was trained" not in run("evaluate", done / "nets/000000/model.onnx", own).stderr
    mixture = f"mixture=[{{store: {mixed}, weight: 0.2}}]"
    words = ["--generations", "1", "--set", mixture, "--run", tmp_path / "b"]
    assert reinforce("-V", "dobutsu", *SMALL, *words).exit_code == 0
    said = run("evaluate", tmp_path / "b", mixed).stderr
    assert re.search(r"b was trained on (\d+) of these \1 games", said), said


def test_train_does_not_resume_a_run_of_self_play(done: Path) -> None:
    """It would learn other values, and overwrite the net and the report."""
    before = {path: path.read_bytes() for path in done.iterdir() if path.is_file()}
    result = run("train", "--resume", done)
    assert result.exit_code == 1
    assert f"{done} is a run of self-play; go on with " in result.stderr
    assert f"reinforce --run {done}" in result.stderr
    assert {path: path.read_bytes() for path in done.iterdir() if path.is_file()} == before


def test_a_net_of_another_variant_is_no_start(done: Path, tmp_path: Path) -> None:
    for start in (done, done / "model.onnx"):
        result = reinforce("-V", "xiangqi", "--from", start, "--run", tmp_path / "b")
        assert result.exit_code == 1
        assert f"{start} is a net for dobutsu, not for xiangqi" in result.stderr
    assert not (tmp_path / "b").exists()


def test_how_a_run_stands(done: Path) -> None:
    shown = reinforce("--status", done)
    assert shown.exit_code == 0 and "generations" in shown.stdout
    said = json.loads(reinforce("--status", done, "--json").stdout)
    assert said["state"]["generation"] == 2 and len(said["rows"]) == 2
    assert said["settings"]["search"]["nodes"] == 2
    assert (said["running"], said["games_in_hand"]) == (None, 0)
    assert re.search(r"generations +2 of 2\n", shown.stdout)
    assert "now" in shown.stdout and "used up" in shown.stdout


def test_the_status_tells_whether_a_run_goes_on(done: Path, tmp_path: Path) -> None:
    """By its lock: after a kill the file still names the process."""
    shutil.copytree(done, tmp_path / "a")
    folder = ReinforceFolder(tmp_path / "a")
    folder.journal(3).write_text('{"number": 1}\n{"number": 2}\n')
    with folder.locked():
        said = json.loads(reinforce("--status", folder.path, "--json").stdout)
        assert said["running"].startswith("process ") and said["games_in_hand"] == 2
        shown = reinforce("--status", folder.path).stdout
        assert "run by process " in shown and ", and 2 in hand" in shown
    (folder.path / "lock").write_text("process 1, since then")
    assert json.loads(reinforce("--status", folder.path, "--json").stdout)["running"] is None


@pytest.mark.slow
def test_a_run_goes_on_from_another_run_and_from_another_folder(
    done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run that it began from may be gone by then."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(done, "other")
    words = ["--run", tmp_path / "b", *SMALL[:10], *"--set variety.max_plies=20".split()]
    begun = reinforce("-V", "dobutsu", "--from", "other", *words, "--generations", "1")
    assert begun.exit_code == 0, begun.output
    assert (tmp_path / "b" / "nets/000000/model.onnx").is_file()
    shutil.rmtree("other")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    more = reinforce("--run", tmp_path / "b", "--generations", "2")
    assert more.exit_code == 0, more.output
    assert ReinforceFolder(tmp_path / "b").state().generation == 2


@pytest.mark.slow
def test_games_begin_with_openings_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is named as from the folder of the command, and read again when the run goes on."""
    (tmp_path / "lines.txt").write_text("c1c2 a4a3\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    words = ["--set", "variety.openings=lines.txt", "--set", "variety.random_plies=[0, 0]"]
    words += ["--generations", "1", "--run", str(tmp_path / "a")]
    result = reinforce("-V", "dobutsu", *SMALL, *words)
    assert result.exit_code == 0, result.output
    monkeypatch.chdir("/")
    result = reinforce("--run", tmp_path / "a", "--generations", "2")
    assert result.exit_code == 0, result.output
    for generation in (1, 2):
        store = ReinforceFolder(tmp_path / "a").store(generation)
        shown = run("store", "export", store, "--format", "moves", "-o", tmp_path / "games.txt")
        assert shown.exit_code == 0, shown.output
        games = (tmp_path / "games.txt").read_text(encoding="utf-8").splitlines()
        (tmp_path / "games.txt").unlink()
        assert games and all(game.startswith("startpos moves c1c2 a4a3 ") for game in games)


@pytest.mark.slow
def test_other_commands_read_the_files_of_a_run(done: Path, tmp_path: Path) -> None:
    store = done / "games" / "000002.store"
    shown = run("store", "show", store)
    assert shown.exit_code == 0 and "root values" in shown.stdout
    assert run("stats", store).exit_code == 0
    words = ["--labels", "visits", "--value-labels", "mixed:0.5", "--steps", "2", "--batch", "8"]
    trained = run("train", "-V", "dobutsu", "--data", store, *words, "--run", tmp_path / "t")
    assert trained.exit_code == 0, trained.output
    thought = run("analyse", "startpos", "-V", "dobutsu", "--model", done, "--nodes", "8")
    assert thought.exit_code == 0, thought.output


PACKAGED = [
    *"--positions 10 --games 2 --nodes 2 --threads 1 --evaluator onnx --generations 1".split(),
    *"--set ladder.games=0 --set learning.batch=8 --set variety.max_plies=12".split(),
]


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["crazyhouse", "xiangqi"])
def test_a_run_starts_from_the_net_that_comes_with_a_variant(variant: str, tmp_path: Path) -> None:
    words = ["-V", variant, "--from", "packaged", "--run", tmp_path / "a"]
    if variant == "crazyhouse":  # games of people beside its own
        store = ROOT / "variants" / variant / "sample.store"
        words += ["--set", f"mixture=[{{store: {store}, weight: 0.5}}]"]
    result = reinforce(*words, *PACKAGED)
    assert result.exit_code == 0, result.output
    assert ReinforceFolder(tmp_path / "a").state().generation == 1


ENDLESS = [sys.executable, "-m", "variant_ai.cli.main", "reinforce", "-V", "dobutsu", *SMALL]


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 300
    while not path.exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("begun", ["games/000001.journal", "nets/000001/model.onnx"])
def test_ctrl_c_says_how_to_go_on(tmp_path: Path, begun: str) -> None:
    """In the games and in a match that would take very long. A gate needs its match, whose cost would
    otherwise leave it out."""
    folder = tmp_path / "a run"
    ladder = "--set ladder.games=400 --set ladder.nodes=4096 --set ladder.gate=true"
    long = [*ladder.split(), "--run", str(folder)]
    with subprocess.Popen([*ENDLESS, *long], stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_for(folder / begun, process)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=300)
        finally:
            process.kill()
    assert process.returncode == 130, said
    assert f"Go on with: variant-ai reinforce --run '{folder}'" in said
    assert "Traceback" not in said
    assert ReinforceFolder(folder).state().generation == 0
    words = ["--generations", "1", "--set", "ladder.games=2", "--set", "ladder.nodes=0"]
    more = reinforce("--run", folder, *words)
    assert more.exit_code == 0, more.output
    assert ReinforceFolder(folder).state().generation == 1


def test_several_wrong_words_of_a_file_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("search:\n  nodes: 0\nseed: x\n", encoding="utf-8")
    result = reinforce("-V", "dobutsu", "--settings", path, "--run", tmp_path / "a")
    assert "s.yaml:3:1: seed = 'x': a whole number is expected; " in result.stderr
    assert "s.yaml:2:3: search.nodes = 0: at least 1 is expected" in result.stderr


def test_a_second_ctrl_c_says_how_to_go_on_too(done: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(run: Reinforcement) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(Reinforcement, "run", interrupted)
    result = reinforce("--run", done)
    assert result.exit_code == 130
    assert f"Go on with: variant-ai reinforce --run {done}" in result.stderr
