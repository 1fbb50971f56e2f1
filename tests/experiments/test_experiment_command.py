"""`variant-ai experiment run` as a person uses it: to the end, again, and after a kill."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from variant_ai.cli.common.ending import CommandError
from variant_ai.cli.main import cli
from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.store.game_store import StoreWriter
from variant_ai.core.inference import OnnxEvaluator
from variant_ai.core.rules import make_rules
from variant_ai.core.spec import builtin_specs, load_spec
from variant_ai_experiments.comparison import MATE_IN_ONE

TEXT = """\
experiment: 1
title: Value weights
source: nowhere
question: Which weight?
expected: nothing
variant: xiangqi
stores: {games: "variant-ai import games.pgn -o {store}"}
options:
  data: [games]
  split: game:0.25
  blocks: 1
  channels: 8
  size: [value_hidden=8]
  batch: 8
  device: cpu
  precision: fp32
  threads: 1
scales:
  small: {about: seconds, options: {steps: 3}, arms: {heavy: {steps: 60}}}
arms:
  light: {value-weight: 0.01}
  heavy: {value-weight: 1, lr: 0.01}
metrics: [policy_loss, value_loss, steps]
measure: {all games: games}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment and its store."""
    folder = tmp_path_factory.mktemp("experiments")
    (folder / "stores").mkdir()
    spec = load_spec(builtin_specs()["xiangqi"])
    rules, rng = make_rules(spec), np.random.default_rng(0)
    with StoreWriter(folder / "stores" / "games.store", spec) as writer:
        for game in range(12):
            position, moves = rules.position(), []
            for _ in range(10):
                legal = rules.legal_moves(position)
                moves.append(int(legal[rng.integers(len(legal))]))
                position = rules.play(position, moves[-1])
            result = ("1-0", "0-1", "1/2-1/2")[game % 3]
            writer.add(GameRecord(variant=spec.variant, moves=moves, result=result))
    (folder / "weights.yaml").write_text(TEXT)
    return folder


def call(*words: object) -> Result:
    return CliRunner().invoke(cli, ["experiment", "run", *map(str, words)])


Child = Callable[[Sequence[str], str, Any], tuple[int, str]]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Arms that finish at once; what was run. An arm with `lr` fails until the list is cleared."""
    asked: list[list[str]] = []
    failing = [True]

    def child(words: Sequence[str], prefix: str, lock: Any) -> tuple[int, str]:
        asked.append(list(words))
        if "--lr" in words and failing:
            failing.clear()
            return 1, "the loss is not a number at step 3"
        folder = Path(words[words.index("--run") + 1])
        folder.mkdir(exist_ok=True)
        results = {"steps": 3, "validation": {"policy_loss": 2.0, "value_loss": 1.0}}
        (folder / "results.json").write_text(json.dumps(results))
        (folder / "config.json").write_text(json.dumps({"steps": 3}))
        return 0, ""

    monkeypatch.setattr("variant_ai_experiments.arm_runs.run_child", child)
    nothing = {"policy_accuracy": 0.5, "value_accuracy_sign": None}

    def measured(words: Sequence[str], lock: Any) -> dict[str, Any]:
        command, *rest = words
        cli.get_command(None, command).make_context(command, list(rest))  # type: ignore
        return {"nets": dict.fromkeys(words, nothing)}

    monkeypatch.setattr("variant_ai_experiments.arm_runs.child_json", measured)
    return asked


def test_commands_are_shown_before_they_are_run(home: Path, tmp_path: Path) -> None:
    result = call(home / "weights.yaml", "--dry-run", "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "# light"
    assert lines[1].startswith("variant-ai train -V xiangqi --data ")
    assert "--size value_hidden=8" in lines[1]
    assert "--value-weight 1 " in lines[3]
    assert "--steps 60 " in lines[3]
    assert not (tmp_path / "out").exists()
    one = call(home / "weights.yaml", "--dry-run", "--arm", "heavy", "-o", tmp_path / "out")
    assert one.stdout.splitlines() == ["# heavy", lines[3]]
    plain = home / "plain.yaml"
    plain.write_text(TEXT.replace("  threads: 1\n", "  threads: 1\n  report: false\n"))
    lines = call(plain, "--dry-run", "-o", tmp_path / "out").stdout.splitlines()
    assert " --no-report " in lines[1] and " --no-report " in lines[3]


def test_a_net_that_was_trained_again_is_measured_again(
    home: Path, tmp_path: Path, quick: list[list[str]]
) -> None:
    out = tmp_path / "out"
    call(home / "weights.yaml", "-o", out)  # an arm fails
    shutil.rmtree(out)
    first = call(home / "weights.yaml", "-o", out)
    assert "measuring 2 nets on all games" in first.stderr
    assert "measuring" not in call(home / "weights.yaml", "-o", out).stderr
    results = out / "light" / "results.json"
    results.write_text(results.read_text().replace("2.0", "1.5"))
    assert "measuring 1 net on all games" in call(home / "weights.yaml", "-o", out).stderr


def test_what_is_not_measured_any_more_is_not_shown(
    home: Path, tmp_path: Path, quick: list[list[str]]
) -> None:
    """The net may have been trained again since."""
    out = tmp_path / "out"
    call(home / "weights.yaml", "-o", out)  # an arm fails
    call(home / "weights.yaml", "-o", out)
    known = json.loads((out / "measured.json").read_text())
    mates = {"accuracy": 0.5, "positions": 3, "legal_moves": 9.0, "mating_moves": 1.0}
    known[MATE_IN_ONE] = {str(out / "light"): {"mates": mates, "of": ["another net", "games"]}}
    (out / "measured.json").write_text(json.dumps(known))
    result = call(home / "weights.yaml", "-o", out)
    assert result.exit_code == 0 and "mate" not in (out / "report.md").read_text()


def test_a_full_disk_takes_nothing_of_what_was_measured(
    home: Path, tmp_path: Path, quick: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    call(home / "weights.yaml", "-o", out)  # an arm fails
    call(home / "weights.yaml", "-o", out)
    kept = {name: (out / name).read_bytes() for name in ("measured.json", "experiment.json")}
    results = out / "light" / "results.json"
    results.write_text(results.read_text().replace("2.0", "1.5"))

    def full(path: Path, mode: str = "r", *rest: Any, **more: Any) -> Any:
        if "w" in mode and path.name.removesuffix(".part") in kept:
            path.touch()
            os.truncate(path, 0)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return plain(path, mode, *rest, **more)

    plain = Path.open
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", full)
        assert "No space left" in call(home / "weights.yaml", "-o", out).output
    assert {name: (out / name).read_bytes() for name in kept} == kept
    (out / "measured.json").write_bytes(b"")
    again = call(home / "weights.yaml", "-o", out)
    assert again.exit_code == 0 and "measuring 2 nets on all games" in again.stderr


def test_an_arm_with_a_spec_of_its_own(home: Path, tmp_path: Path) -> None:
    text = TEXT.replace("light: {value", "light: {variant: mine.yaml, value")
    text = text.replace("measure: {all games: games}\n", "")
    path = tmp_path / "planes.yaml"
    path.write_text(text)
    missing = call(path, "--dry-run")
    assert missing.exit_code == 1
    assert "mine.yaml: there is no such file" in missing.stderr
    spec = tmp_path / "mine.yaml"
    words = Path(builtin_specs()["xiangqi"]).read_text(encoding="utf-8")
    spec.write_text(words.replace("  - colour\n", "  - last_moves: 2\n  - colour\n"))
    stored = ["--store", f"games={home / 'stores' / 'games.store'}"]
    shown = call(path, "--dry-run", *stored).stdout.splitlines()
    assert shown[1].startswith(f"variant-ai train -V {spec} ")
    assert shown[3].startswith("variant-ai train -V xiangqi ")
    made = call(path, "--arm", "light", "-o", tmp_path / "out", *stored)
    assert made.exit_code == 0, made.output
    config = json.loads((tmp_path / "out" / "light" / "config.json").read_text())
    assert config["steps"] == 3
    with OnnxEvaluator(tmp_path / "out" / "light" / "model.onnx", load_spec(spec)) as net:
        assert net.planes_shape == (32, 10, 9)


@pytest.mark.nightly
def test_an_arm_goes_on_from_the_net_of_another(home: Path, tmp_path: Path) -> None:
    """The real commands: the second arm begins with the first one's net of the same seed."""
    own = "{blocks: 1, channels: 8, size: [value_hidden=8]}"
    text = TEXT.replace("  blocks: 1\n  channels: 8\n  size: [value_hidden=8]\n", "")
    text = text.replace(
        "options: {steps: 3}, arms: {heavy: {steps: 60}}", "options: {steps: 3}, seeds: 2"
    )
    text = text.replace("light: {value-weight: 0.01}", f"first: {own}")
    text = text.replace("heavy: {value-weight: 1, lr: 0.01}", "second: {from: first, steps: 2}")
    (home / "from.yaml").write_text(text)
    result = call(home / "from.yaml", "-o", tmp_path)
    assert result.exit_code == 0, result.output
    for seed in (0, 1):
        config = json.loads((tmp_path / f"second-seed{seed}" / "config.json").read_text())
        assert Path(config["start_from"]).parents[1] == tmp_path / f"first-seed{seed}"


def test_finished_arms_are_not_run_again_and_failed_ones_are(
    home: Path, tmp_path: Path, quick: list[list[str]]
) -> None:
    out = tmp_path / "out"
    result = call(home / "weights.yaml", "-o", out)
    assert result.exit_code == 1
    assert "1 of the runs failed (heavy: the loss is not a number at step 3)" in result.stderr
    assert "- (failed: the loss is not a number at step 3)" in (out / "report.md").read_text()
    again = call(home / "weights.yaml", "-o", out, "--json")
    assert again.exit_code == 0, again.output
    assert [words[words.index("--run") + 1] for words in quick] == [
        str(out / "light"),
        str(out / "heavy"),
        str(out / "heavy"),
    ]
    rows = json.loads(again.stdout)["rows"]
    assert [row["policy accuracy on all games"] for row in rows] == ["50.00 %", "50.00 %"]


def test_an_arm_waits_for_the_net_it_goes_on_from(
    home: Path, tmp_path: Path, quick: list[list[str]]
) -> None:
    text = TEXT.replace("heavy: {value-weight: 1, lr: 0.01}", "second: {from: light}")
    text = text.replace("light: {value-weight: 0.01}", "light: {lr: 0.01}")
    text = text.replace("arms: {heavy: {steps: 60}}", "arms: {}").replace("  blocks: 1\n", "")
    text = text.replace("  channels: 8\n", "").replace("  size: [value_hidden=8]\n", "")
    (home / "waits.yaml").write_text(text)
    out = tmp_path / "out"
    alone = call(home / "waits.yaml", "-o", out, "--arm", "second")
    assert alone.exit_code == 1 and quick == []
    assert "light, whose net it starts from, is not finished" in alone.stderr
    first = call(home / "waits.yaml", "-o", out)  # `light` fails at once
    assert first.exit_code == 1 and "2 of the runs failed" in first.stderr
    assert len(quick) == 1
    again = call(home / "waits.yaml", "-o", out)
    assert again.exit_code == 0, again.output
    assert [Path(words[words.index("--run") + 1]).name for words in quick] == [
        "light",
        "light",
        "second",
    ]


def test_a_folder_of_somebody_else_is_left_alone(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = tmp_path / "light" / "notes.txt"
    notes.parent.mkdir()
    notes.write_text("mine")
    result = call(home / "weights.yaml", "-o", tmp_path, "--arm", "light")
    assert result.exit_code == 1 and "is not empty" in result.stderr
    assert notes.read_text() == "mine"


def test_trainings_are_reported_if_measuring_fails(
    home: Path, tmp_path: Path, quick: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    quick_json = "variant_ai_experiments.arm_runs.child_json"

    def failing(words: Sequence[str], lock: Any) -> Any:
        raise CommandError("the store is damaged")

    monkeypatch.setattr(quick_json, failing)
    result = call(home / "weights.yaml", "-o", tmp_path, "--arm", "light")
    assert result.exit_code == 1
    assert "the nets were not measured: the store is damaged" in result.stderr
    assert "| light |" in (tmp_path / "report.md").read_text()


def test_one_arm_alone(home: Path, tmp_path: Path, quick: list[list[str]]) -> None:
    result = call(home / "weights.yaml", "-o", tmp_path / "out", "--arm", "light")
    assert result.exit_code == 0, result.output
    assert len(quick) == 1
    assert "did you mean 'light'" in call(home / "weights.yaml", "--arm", "lihgt").stderr


def test_arms_with_changed_options_are_rejected(
    home: Path, tmp_path: Path, quick: list[list[str]]
) -> None:
    path = tmp_path / "changing.yaml"
    path.write_text(TEXT)
    words = ("--store", f"games={home / 'stores/games.store'}", "-o", tmp_path / "out")
    call(path, *words)
    assert call(path, *words).exit_code == 0
    path.write_text(TEXT.replace("value-weight: 0.01", "value-weight: 0.5"))
    result = call(path, *words)
    assert result.exit_code == 1
    assert "was made with other options" in result.stderr
    assert "--value-weight 0.01" in result.stderr


def test_published_reports(home: Path, tmp_path: Path, quick: list[list[str]]) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(TEXT)
    store = f"games={home / 'stores/games.store'}"
    call(path, "-o", tmp_path / "out", "--store", store, "--publish")
    page = (tmp_path / "results" / "w.small.md").read_text()
    assert page.startswith("# Value weights: small scale\n\nWhich weight? (nowhere)\n")
    assert "| light | 2.0000 | 1.0000 | 3 |" in page
    assert "variant-ai train -V xiangqi --data games.store --split game:0.25" in page
    assert str(tmp_path) not in page


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("blocks: 1", "bloks: 1"), "options.bloks: unknown option of variant-ai train 'bloks'"),
        (("batch: 8", "batch: many"), "weights.yaml:14:3: options.batch: "),
        (("lr: 0.01}", "lr: -1}"), "weights.yaml:22:28: arms.heavy.lr: "),
        (("steps: 3}", "run: x}"), "unknown option of variant-ai train 'run'"),
        (("lr: 0.01}", "wdl: yes}"), "arms.heavy.wdl: given 'yes'; accepted: true, false"),
        (
            ("light: {", "light: {variant: other.yaml, "),
            "weights.yaml:21:11: arms.light.variant: nets of other specs cannot be measured together",
        ),
    ],
)
def test_options_are_checked_before_anything_is_run(
    home: Path, tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    path = tmp_path / "weights.yaml"
    assert change[0] in TEXT
    path.write_text(TEXT.replace(*change))
    result = call(path)
    assert result.exit_code == 1
    assert message in result.stderr


MATCH = """\
title: a match
variant: xiangqi
games: 4
max_plies: 20
needs: a program from far away
small: {games: 2}
players:
  - {random: true, name: one}
  - {random: true, name: two}
  - {command: no-such-program, name: three, optional: true, nodes: 1}
"""


def test_a_match_is_played_at_either_scale(tmp_path: Path) -> None:
    path = tmp_path / "table.yaml"
    path.write_text(MATCH)
    for scale, games in (("small", 2), ("full", 4)):
        result = call(path, "--scale", scale, "-o", tmp_path / scale, "--json")
        assert result.exit_code == 0, result.stderr
        assert json.loads(result.stdout)["wanted"] == games
        assert "left out: three (engine 'no-such-program' is not a program" in result.stderr
        assert len((tmp_path / scale / "games.jsonl").read_text().splitlines()) == games
    assert "variant-ai match --config" in call(path, "--dry-run").stdout
    assert "it takes --scale, --output, --dry-run and --json" in call(path, "--sample").stderr


def test_a_match_says_what_it_needs(tmp_path: Path) -> None:
    path = tmp_path / "table.yaml"
    path.write_text(MATCH.replace(", optional: true", ""))
    result = call(path, "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert result.stderr.strip().endswith("this match needs a program from far away")
    for source in ("file: nowhere.pgn", "file: nowhere.epd", "store: nowhere.store"):
        path.write_text(f"{MATCH}openings: {{{source}}}\n")
        result = call(path, "-o", tmp_path / "out")
        assert result.exit_code == 1
        assert result.stderr.strip().endswith("this match needs a program from far away")
    path.write_text(MATCH.replace("small: {games: 2}\n", ""))
    assert "no settings of a small run (`small`)" in call(path, "-o", tmp_path / "out").stderr


def test_missing_stores_say_how_they_are_made(tmp_path: Path) -> None:
    path = tmp_path / "weights.yaml"
    path.write_text(TEXT)
    result = call(path, "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert "the store 'games' is not at" in result.stderr
    assert "variant-ai import games.pgn -o " in result.stderr
    assert not (tmp_path / "out").exists()
    assert "accepted is NAME=STORE" in call(path, "--store", "games").stderr
    assert "accepted: games" in call(path, "--store", "x=y").stderr
    assert "scale" in call(path, "--scale", "full").stderr


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kill -9 is a POSIX matter")
def test_killed_experiment_goes_on(home: Path, tmp_path: Path) -> None:
    """Killed in its second arm, with the training under way: the first arm is not run again, the
    second goes on from its checkpoint."""
    out = tmp_path / "out"
    text = TEXT.replace("{steps: 60}", "{steps: 150}").replace("measure: {all games: games}\n", "")
    (out / "light").mkdir(parents=True)  # as if it was finished: no training is shorter
    for name in ("config.json", "results.json"):
        (out / "light" / name).write_text('{"steps": 3}')
    path = tmp_path / "weights.yaml"
    path.write_text(text)
    words = ["experiment", "run", str(path), "-o", str(out)]
    words += ["--store", f"games={home / 'stores/games.store'}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "variant_ai.cli.main", *words], stderr=subprocess.DEVNULL
    )
    checkpoints = out / "heavy" / "checkpoints"
    while process.poll() is None:
        if checkpoints.is_dir() and any(p.name >= "step-00000015" for p in checkpoints.iterdir()):
            break
        time.sleep(0.01)
    assert process.poll() is None, "it ended before it could be killed"
    training = int((out / ".lock").read_text())
    os.kill(training, signal.SIGSTOP)
    rejected = call(*words[2:])
    assert rejected.exit_code == 1
    assert "is being written by another process" in rejected.stderr
    process.kill()
    process.wait()
    assert "is being written by another process" in call(*words[2:]).stderr, "its arm still trains"
    os.kill(training, signal.SIGKILL)
    first = (out / "light" / "results.json").stat().st_mtime_ns
    while "being written" in (result := call(*words[2:], "--json")).stderr:
        time.sleep(0.05)  # until the system has ended it
    assert result.exit_code == 0, result.output
    assert (out / "light" / "results.json").stat().st_mtime_ns == first
    rows = json.loads(result.stdout)["rows"]
    assert [row["steps"] for row in rows] == ["3", "150"]
    page = (out / "report.md").read_text()
    assert "![Learning curves of the arms](curves.png)" in page
    assert "games.store (" in page
    assert (out / "curves.png").read_bytes().startswith(b"\x89PNG")
    events = (out / "heavy" / "metrics.jsonl").read_text().splitlines()
    steps = [json.loads(line)["step"] for line in events if '"kind": "train"' in line]
    assert steps == sorted(set(steps)), "one curve, without what was done twice"
