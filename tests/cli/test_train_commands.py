"""The commands train, evaluate, export and nets."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result

from variant_ai.cli.main import cli
from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.store.game_store import Store, StoreWriter
from variant_ai.core.errors import DataError
from variant_ai.core.nets.onnx_files import serialised
from variant_ai.core.rules import make_rules
from variant_ai.core.spec import builtin_specs, load_spec
from variant_ai.core.train.loop.optimisers import OPTIMISERS
from variant_ai.core.train.run import training_run

TINY = (
    "--blocks", "1", "--channels", "8", "--size", "value_hidden=8", "--batch", "16",
    "--device", "cpu", "--threads", "1", "--no-report",
)  # fmt: skip
SPLIT = "game:0.25"


def call(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def succeed(*arguments: object) -> Result:
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    return result


def complaint(*arguments: object) -> str:
    """Message of a wrong call: one line that begins with `Error:`."""
    result = call(*arguments)
    assert result.exit_code in (1, 2), result.output
    lines = [line for line in result.stderr.splitlines() if line.startswith("Error:")]
    assert len(lines) == 1, result.output
    return lines[0]


def made_store(path: Path, variant: str, games: int = 12) -> Path:
    spec = load_spec(builtin_specs()[variant])
    rules, rng = make_rules(spec), np.random.default_rng(0)
    with StoreWriter(path, spec, sources=["random"]) as writer:
        for game in range(games):
            position, moves = rules.position(), []
            for _ in range(10):
                legal = rules.legal_moves(position)
                moves.append(int(legal[rng.integers(len(legal))]))
                position = rules.play(position, moves[-1])
            result = ("1-0", "0-1", "1/2-1/2")[game % 3]
            writer.add(GameRecord(variant=variant, moves=moves, result=result, source="random"))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("train-commands")


@pytest.fixture(scope="module")
def store(folder: Path) -> Path:
    return made_store(folder / "games.store", "xiangqi")


@pytest.fixture(scope="module")
def run(folder: Path, store: Path) -> Path:
    target = folder / "run"
    result = succeed(
        "train", "-V", "xiangqi", "--data", store, *TINY, "--split", SPLIT, "--steps", 6,
        "--run", target,
    )  # fmt: skip
    assert f"Run directory: {target}" in result.stderr
    assert "policy accuracy" in result.stdout
    for title in ("policy loss", "policy accuracy", "value accuracy sign"):
        assert title in result.stderr and title in result.stdout
    assert str(target / "model.onnx") in result.stdout
    said = " ".join(result.stdout.partition("Next:")[2].split())
    assert f"variant-ai play -V xiangqi -m {target}" in said
    assert f"variant-ai analyse startpos -V xiangqi -m {target}" in said
    assert said.endswith("play the net that comes with xiangqi variant-ai play -V xiangqi")
    return target


def test_train_with_json(folder: Path, store: Path) -> None:
    result = succeed(
        "train", "-V", "xiangqi", "--data", store, *TINY, "--split", "none", "--steps", 2,
        "--run", folder / "json", "--json",
    )  # fmt: skip
    said = json.loads(result.stdout)
    assert said["steps"] == 2
    assert said["validation"] is None


def lengthened(run: Path, steps: int) -> None:
    """Give a finished run more steps to do."""
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps(config | {"steps": steps}))


def test_resuming_a_finished_run(run: Path) -> None:
    """It prints the results, and measures and writes nothing."""
    files = [path for path in run.rglob("*") if path.is_file()]
    before = {path: path.stat().st_mtime_ns for path in files}
    result = succeed("train", "--resume", run, "--json")
    assert json.loads(result.stdout)["steps"] == 6
    assert f"{run} is finished" in result.stderr and "measuring" not in result.stderr
    said = succeed("train", "--resume", run, "-V", "xiangqi")
    assert "policy accuracy" in said.stdout and "report" in said.stderr
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.is_file()} == before
    assert "crazyhouse" in complaint("train", "--resume", run, "-V", "crazyhouse")


def test_an_interrupt_after_the_last_step_tells_what_is_saved(
    store: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    target, words = folder / "late", ("train", "-V", "xiangqi", "--data", store, *TINY)
    with monkeypatch.context() as patch:
        patch.setattr(training_run, "_measure", interrupted)
        result = call(*words, "--split", SPLIT, "--steps", 2, "--run", target)
    assert result.exit_code == 130
    assert f"All 2 steps are saved; variant-ai train --resume {target} writes" in result.stderr
    done = succeed("train", "--resume", target)
    assert "measuring" in done.stderr and (target / "model.onnx").is_file()


def test_a_reader_of_the_progress_that_is_gone_ends_no_training(
    store: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    echo = click.echo

    def broken(*arguments: Any, err: bool = False, **named: Any) -> None:
        if err:
            raise BrokenPipeError(32, "Broken pipe")
        echo(*arguments, **named)

    monkeypatch.setattr(click, "echo", broken)
    target = folder / "unread"
    succeed(
        "train", "-V", "xiangqi", "--data", store, *TINY, "--split", SPLIT, "--steps", 2,
        "--run", target,
    )  # fmt: skip
    assert (target / "model.onnx").is_file()


def test_a_run_is_announced_when_its_folder_is_there(
    store: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = folder / "unbuilt"

    def unbuilt(name: str) -> None:
        assert not target.exists()
        raise DataError("no such trainer")

    monkeypatch.setattr(training_run.TRAINERS, "load", unbuilt)
    words = ("train", "-V", "xiangqi", "--data", store, *TINY, "--split", SPLIT, "--steps", 2)
    result = call(*words, "--run", target)
    assert result.exit_code == 1 and "Run directory" not in result.stderr


def test_resume_takes_no_other_options(run: Path) -> None:
    assert "--batch cannot be used with --resume" in complaint(
        "train", "--resume", run, "--batch", 32
    )


def test_a_training_goes_on_elsewhere(run: Path, folder: Path) -> None:
    """Begun on a GPU, where there is none any more."""
    moved = folder / "elsewhere"
    shutil.copytree(run, moved)
    lengthened(moved, 8)
    config = json.loads((moved / "config.json").read_text())
    (moved / "config.json").write_text(json.dumps(config | {"device": "cuda:1"}))
    assert "'cuda:1'" in complaint("train", "--resume", moved)
    how = ("--device", "cpu", "--threads", 1)
    assert json.loads(succeed("train", "--resume", moved, *how, "--json").stdout)["steps"] == 8
    config = json.loads((moved / "config.json").read_text())
    assert (config["device"], config["threads"]) == ("cpu", 1)


def test_evaluate_a_run_on_its_own_positions(run: Path) -> None:
    said = json.loads(succeed("evaluate", run, "--json").stdout)
    results = json.loads((run / "results.json").read_text())
    assert said["positions"] == results["validation"]["positions"]
    assert said["baseline_accuracy"] == results["baseline_accuracy"]
    net = said["nets"][str(run)]
    assert net["policy_accuracy"] == results["validation"]["policy_accuracy"]
    assert net["by_ply"] == results["validation"]["by_ply"]


def test_a_sample_of_positions_has_unseen_moves_too(run: Path) -> None:
    whole = json.loads(succeed("evaluate", run, "--json").stdout)
    assert whole["unseen_share"] > 0
    for limit in (whole["positions"], whole["positions"] - 1):
        said = succeed("evaluate", run, "--limit", limit)
        assert "policy accuracy, unseen moves" in said.stdout


def test_a_net_of_a_spec_of_ones_own_is_evaluated_by_its_run(folder: Path, store: Path) -> None:
    spec = folder / "mine.yaml"
    text = builtin_specs()["minixiangqi"].read_text()
    spec.write_text(text.replace("variant: minixiangqi", "variant: mine"))
    loaded = load_spec(spec)
    games, run = folder / "mine.store", folder / "mine"
    rules = make_rules(loaded)
    with StoreWriter(games, loaded, sources=["random"]) as writer:
        for first in rules.legal_moves(rules.position()).tolist():
            writer.add(GameRecord(variant="mine", moves=[first], result="1-0", source="random"))
    succeed(
        "train", "-V", spec, "--data", games, *TINY, "--split", "none", "--steps", 1, "--run", run
    )
    assert json.loads(succeed("evaluate", run, games, "--json").stdout)["positions"]
    assert json.loads(succeed("evaluate", run / "model.onnx", games, "--json").stdout)["positions"]
    succeed("show", "policy", run, "-o", folder / "policy.png")
    alone = folder / "alone.onnx"
    alone.write_bytes((run / "model.onnx").read_bytes())
    assert json.loads(succeed("evaluate", alone, games, "--json").stdout)["positions"]
    model = onnx.load(alone)
    kept = [prop for prop in model.metadata_props if prop.key != "variant_ai.spec"]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
    alone.write_bytes(serialised(model))
    assert "name its spec with -V FILE.yaml" in complaint("evaluate", alone, games)


def test_a_net_with_planes_of_its_own_goes_on_with_them(folder: Path, store: Path) -> None:
    spec = folder / "seeing.yaml"
    words = builtin_specs()["xiangqi"].read_text()
    spec.write_text(words.replace("  - colour\n", "  - last_moves: 1\n  - colour\n"))
    first, plain = folder / "seeing", ("-V", "xiangqi", "--data", store, "--split", "none")
    succeed("train", "-V", spec, *plain[2:], *TINY, "--steps", 1, "--run", first)
    (first / "config.json").rename(first / "config")  # nothing but the file tells
    for number, start in enumerate((first / "model.onnx", first / "checkpoints" / "step-00000001")):
        run = folder / f"seeing-{number}"
        done = succeed("train", *plain, "--from", start, "--batch", 32, "--steps", 1, "--run", run)
        assert "its own planes or policy" in done.stderr
        assert json.loads((run / "config.json").read_text())["net"]["planes"] == 30
        assert json.loads(succeed("evaluate", run / "model.onnx", store, "--json").stdout)[
            "positions"
        ]
    other = folder / "unseeing"
    succeed("train", *plain, *TINY, "--steps", 1, "--run", other)
    alone = json.loads(succeed("evaluate", first / "model.onnx", store, "--json").stdout)["nets"]
    for pair in ((first, other), (other, first)):
        paths = [path / "model.onnx" for path in pair]
        done = succeed("evaluate", paths[0], store, "--model", paths[1], "--json")
        nets = json.loads(done.stdout)["nets"]
        assert list(nets) == [str(path) for path in paths]
        own = str(first / "model.onnx")
        assert nets[own]["policy_loss"] == pytest.approx(alone[own]["policy_loss"], abs=1e-6)
    spec = folder / "turned.yaml"
    spec.write_text(
        words.replace("slides: {N: 9, E: 8, S: 9, W: 8}", "slides: {E: 8, N: 9, S: 9, W: 8}")
    )
    turned = folder / "turned"
    succeed("train", "-V", spec, *plain[2:], *TINY, "--steps", 1, "--run", turned)
    said = complaint("evaluate", other, store, "--model", turned, "-V", "xiangqi")
    assert "has another policy than the other nets" in said
    succeed("show", "policy", first / "model.onnx", "-V", "xiangqi", "-o", folder / "seen.png")
    lines = succeed("analyse", "startpos", "-V", "xiangqi", "--model", first / "model.onnx",
                    "--simulations", 20, "--json").stdout  # fmt: skip
    assert json.loads(lines)["simulations"] >= 20


def test_evaluate_two_nets(run: Path, store: Path) -> None:
    onnx = run / "model.onnx"
    result = succeed("evaluate", run, store, "--model", onnx, "--split", "game:0.25")
    assert "policy accuracy" in result.stdout
    assert "baseline: most frequent legal move" in result.stdout
    said = json.loads(succeed("evaluate", onnx, store, "--model", run, "--json").stdout)
    assert list(said["nets"]) == [str(onnx), str(run)]
    first, second = said["nets"].values()
    assert first["policy_loss"] == pytest.approx(second["policy_loss"], abs=0.01)


def test_games_that_a_net_was_trained_on_are_told(run: Path, store: Path) -> None:
    trained = "was trained on"
    whole = succeed("evaluate", run, store)
    games = json.loads((run / "config.json").read_text())["data"]["train_games"]
    assert f"{run} {trained} {games:,} of these {len(Store(store)):,} games" in whole.stderr
    assert trained not in succeed("evaluate", run).stderr
    side = succeed("evaluate", run, store, "--split", SPLIT, "--side", "train").stderr
    assert f"{games:,} of these {games:,} games" in side
    assert trained not in succeed("evaluate", run, store, "--split", SPLIT).stderr
    other = made_store(run.parent / "elsewhere.store", "xiangqi", games=8)
    moved = run.parent / "of-another-store"
    shutil.copytree(run, moved)
    config = moved / "config.json"
    config.write_text(config.read_text().replace("games.store", "config.json"))  # no store any more
    for games in (store, other):  # known by their contents, whatever lies at the old place
        told = succeed("evaluate", moved, games).stderr
        assert (trained in told) is (games == store)


def test_a_file_tells_what_its_net_was_trained_on(run: Path, store: Path, folder: Path) -> None:
    """Without its run directory."""
    file = folder / "copied" / "net.onnx"
    file.parent.mkdir()
    shutil.copy(run / "model.onnx", file)
    games = json.loads((run / "config.json").read_text())["data"]["train_games"]
    assert (
        f"{file} was trained on {games:,} of these {len(Store(store)):,} games"
        in succeed("evaluate", file, store).stderr
    )
    assert "was trained on" not in succeed("evaluate", file, store, "--split", SPLIT).stderr


def test_games_in_a_merged_store_are_told(run: Path, store: Path, folder: Path) -> None:
    games = json.loads((run / "config.json").read_text())["data"]["train_games"]
    merged, part = folder / "merged.store", folder / "part.store"
    succeed("store", "merge", store, store, "-o", merged)
    succeed("store", "filter", store, "--result", "1-0", "-o", part)
    told = succeed("evaluate", run, merged).stderr
    assert f"was trained on {2 * games:,} of these {2 * len(Store(store)):,} games" in told
    assert "was trained on" in succeed("evaluate", run, part).stderr


def test_the_seed_does_not_change_the_split(folder: Path, store: Path) -> None:
    sides = {}
    for seed, split_seed in ((0, 0), (1, 0), (0, 1)):
        run = folder / f"split-{seed}-{split_seed}"
        succeed(
            "train", "-V", "xiangqi", "--data", store, *TINY, "--split", "game:0.3", "--steps", 1,
            "--seed", seed, "--split-seed", split_seed, "--run", run,
        )  # fmt: skip
        sides[seed, split_seed] = json.loads((run / "config.json").read_text())["data"]["sides"]
    assert sides[0, 0] == sides[1, 0] != sides[0, 1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--net", "risev2-mobile", "--size", "kernel=4"), "must be odd"),
        (("--lr-min", 5), "the least learning rate, 5, is above the greatest"),
    ],
)
def test_what_cannot_be_trained_is_one_sentence(
    folder: Path, store: Path, words: tuple[object, ...], said: str
) -> None:
    run = folder / "refused"
    assert said in complaint(
        "train", "-V", "xiangqi", "--data", store, *TINY, "--steps", 1, *words, "--run", run
    )
    assert not run.exists()


def test_the_help_lists_every_optimiser() -> None:
    text = succeed("train", "--help").stdout
    assert all(f"{name}:" in text for name in OPTIMISERS)
    said = complaint("train", "-V", "xiangqi", "--data", "a.store", "--optimiser", "sgd")
    assert "unknown optimiser 'sgd'" in said


def test_plain_gradient_descent(folder: Path, store: Path) -> None:
    for optimiser in ("nesterov", "muon"):
        succeed(
            "train", "-V", "xiangqi", "--data", store, *TINY, "--steps", 1, "--momentum", 0, 0,
            "--optimiser", optimiser, "--run", folder / f"plain-{optimiser}",
        )  # fmt: skip


def test_reduced_nets_without_the_games_of_the_training(run: Path, folder: Path) -> None:
    gone = folder / "gone"
    shutil.copytree(run, gone)
    for path in gone.rglob("config.json"):
        path.write_text(path.read_text().replace(".store", ".moved"))
    for path in gone.rglob("checksums.json"):
        path.unlink()  # of what was changed on purpose
    for precision in ("fp16", "int8"):
        calibrate = ("--calibrate", 66) if precision == "int8" else ()
        words = ("--precision", precision, *calibrate, "--positions", 70, "--json")
        result = succeed("export", gone, *words, "-o", folder / f"gone-{precision}.onnx")
        assert json.loads(result.stdout)["agreement"]["positions"] == 70  # no multiple of a batch
        assert "the sample games of xiangqi" in result.stderr


def test_baseline_of_a_store(run: Path, store: Path, folder: Path) -> None:
    alone = folder / "alone.onnx"
    alone.write_bytes((run / "model.onnx").read_bytes())
    without = json.loads(succeed("evaluate", alone, store, "--json").stdout)
    assert without["baseline_accuracy"] is None
    given = json.loads(succeed("evaluate", alone, store, "--trained-on", store, "--json").stdout)
    assert given["baseline_accuracy"] > 0


def test_export(run: Path, folder: Path) -> None:
    target = folder / "exported.onnx"
    said = json.loads(succeed("export", run, "-o", target, "--json").stdout)
    assert said["difference"] <= 1e-4
    assert said["step"] == 6
    assert target.is_file()


def test_lr_find(folder: Path, store: Path) -> None:
    picture = folder / "rates.png"
    tiny = [option for option in TINY if option != "--no-report"]
    said = json.loads(
        succeed(
            "lr-find", "-V", "xiangqi", "--data", store, *tiny, "--split", "none", "--steps", 40,
            "-o", picture, "--json",
        ).stdout
    )  # fmt: skip
    assert 1e-4 < said["suggested"] < said["least"] <= 10
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_nets() -> None:
    rows = json.loads(succeed("nets", "--json", "-V", "xiangqi", "--head", "map").stdout)
    counts = {row["net"]: row["variants"]["xiangqi"]["parameters"] for row in rows}
    assert counts["risev2-mobile"] == 4_788_113
    sized = ("--head", "map", "--blocks", "1", "--channels", "8")
    assert "crazyhouse: parameters" in succeed("nets", "-V", "crazyhouse", *sized).stdout
    assert "pyramid of 13 blocks" in succeed("nets").stdout


def test_an_option_that_no_net_has() -> None:
    assert "unknown option of a net 'chanels'" in complaint("nets", "--size", "chanels=8")


def test_a_run_whose_stores_were_moved(folder: Path, store: Path) -> None:
    here, there, run = folder / "here.store", folder / "there.store", folder / "moved"
    shutil.copy(store, here)
    succeed(
        "train", "-V", "xiangqi", "--data", here, *TINY, "--split", SPLIT, "--steps", 2,
        "--run", run,
    )  # fmt: skip
    lengthened(run, 3)
    here.rename(there)
    assert "here.store" in complaint("train", "--resume", run)
    assert "trained with 1 store (" in complaint(
        "train", "--resume", run, "--data", there, "--data", store
    )
    other = made_store(folder / "other.store", "xiangqi", games=9)
    assert "no longer the store" in complaint("train", "--resume", run, "--data", other)
    assert "keeps the weights" in complaint("train", "--resume", run, "--data", f"{there}:0.7")
    succeed("train", "--resume", run, "--data", there)
    lengthened(run, 4)
    succeed("train", "--resume", run)  # it is known now


def test_one_net() -> None:
    result = succeed("nets", "risev2-mobile-small", "-V", "xiangqi", "--size", "pool=window")
    assert "3,452,817" in result.stdout
    assert "dconv 3 x 3, 512" in result.stdout


def test_a_variant_of_slow_rules_is_resumed(folder: Path) -> None:
    """Its sampler needs the rules, which the run's own spec names."""
    games = made_store(folder / "atomic.store", "atomic")
    run, spec = folder / "atomic", folder / "slow.yaml"
    spec.write_text("extends: atomic\nvariant: atomic\nrules: {engine: fairy}\n", encoding="utf-8")
    succeed(
        "train", "-V", spec, "--data", games, "--net", "alphazero-8v-map", *TINY, "--steps", 2,
        "--split", "none", "--run", run,
    )  # fmt: skip
    lengthened(run, 3)
    again = succeed("train", "--resume", run)
    assert "Traceback" not in again.output


def test_evaluate_draws_its_sample_by_the_seed(folder: Path) -> None:
    games = made_store(folder / "seeds.store", "xiangqi")
    run = folder / "seeds"
    succeed("train", "-V", "xiangqi", "--data", games, "--net", "alphazero-8v-map", *TINY,
            "--steps", 2, "--split", "game:0.3", "--run", run)  # fmt: skip
    losses = [
        json.loads(succeed("evaluate", run, "--limit", 5, "--seed", seed, "--json").stdout)["nets"][
            str(run)
        ]["policy_loss"]
        for seed in (1, 1, 2, 3)
    ]
    assert losses[0] == losses[1]
    assert len(set(losses)) > 1


def test_so_many_epochs_as_were_asked_for(folder: Path) -> None:
    """Also of the sample, which is otherwise trained on for a few minutes."""
    run = folder / "epochs"
    words = ("train", "-V", "xiangqi", "--net", "alphazero-8v-map", *TINY, "--run", run)
    result = succeed(*words, "--epochs", 0.01)
    assert "Measuring this machine" not in result.output
    assert json.loads((run / "config.json").read_text())["minutes"] is None


class TestWrongInput:
    def test_no_variant(self) -> None:
        assert "name the variant" in complaint("train")

    def test_unknown_variant(self) -> None:
        assert "did you mean 'xiangqi'" in complaint("train", "-V", "xianqi")

    def test_unknown_net(self, store: Path) -> None:
        said = complaint("train", "-V", "xiangqi", "--data", store, "--net", "risev2-mobil")
        assert "did you mean 'risev2-mobile'" in said

    def test_unknown_net_listed(self) -> None:
        assert "unknown net 'resnet'" in complaint("nets", "resnet")

    def test_unknown_device(self, store: Path) -> None:
        said = complaint("train", "-V", "xiangqi", "--data", store, "--device", "gpu")
        assert "unknown device 'gpu'" in said

    def test_mistakes_are_told_before_anything_is_begun(self, folder: Path) -> None:
        for words in (
            ("train", "-V", "xiangqi", "--device", "tpu"),
            ("train", "-V", "xiangqi", "--from", folder / "nowhere"),
            ("lr-find", "-V", "xiangqi", "--net", "resnet"),
        ):
            assert call(*words).stderr.startswith("Error:"), words

    def test_no_net_to_start_from(self, store: Path, folder: Path) -> None:
        words = ("train", "-V", "xiangqi", "--data", store, "--from")
        accepted = "give a run directory with a checkpoint in it, or a checkpoint"
        assert f"{store}: is not a usable ONNX model" in complaint(*words, store)
        said = complaint(*words, folder / "nowhere")
        assert f"{folder / 'nowhere'} does not exist: {accepted}" in said
        assert f"{folder} has no checkpoint: {accepted}" in complaint(*words, folder)
        assert f"there is no file {folder / 'no.onnx'}" in complaint(*words, folder / "no.onnx")
        said = complaint("evaluate", store, store)
        assert f"{store} is neither an ONNX file (.onnx) nor a checkpoint: {accepted}" in said

    def test_no_net_that_comes_with_the_variant(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(
            "variant_ai.core.inference.packaged_nets.packaged_net_paths",
            lambda *_: [folder / "none.onnx"],
        )
        said = complaint("train", "-V", "xiangqi", "--from", "packaged")
        assert f"no net comes with xiangqi: there is none at {folder / 'none.onnx'}" in said

    def test_the_side_of_no_split(self, store: Path) -> None:
        said = complaint("evaluate", "net.onnx", store, "--side", "train")
        assert "--side needs --split" in said

    def test_some_weights(self, store: Path) -> None:
        said = complaint("train", "-V", "xiangqi", "--data", f"{store}:2", "--data", store)
        assert "give every store a weight, or none" in said

    def test_range_upside_down(self, store: Path) -> None:
        said = complaint(
            "lr-find", "-V", "xiangqi", "--data", store, "--lr-from", 1, "--lr-to", 0.1
        )
        assert "--lr-from 1 is not below --lr-to 0.1" in said

    def test_missing_store(self, folder: Path) -> None:
        nowhere = folder / "nowhere.store"
        assert str(nowhere) in complaint("train", "-V", "xiangqi", "--data", nowhere)

    def test_store_of_another_variant(self, store: Path) -> None:
        said = complaint("train", "-V", "crazyhouse", "--data", store)
        assert "holds games of xiangqi, not of crazyhouse" in said

    def test_size_without_value(self, store: Path) -> None:
        said = complaint("train", "-V", "xiangqi", "--data", store, "--size", "pool")
        assert "not NAME=VALUE" in said

    def test_existing_run(self, run: Path, store: Path) -> None:
        said = complaint(
            "train", "-V", "xiangqi", "--data", store, *TINY, "--steps", 1, "--run", run
        )
        assert "is not empty" in said

    def test_resuming_nothing(self, folder: Path) -> None:
        assert "is not there" in complaint("train", "--resume", folder / "no-run")

    def test_checkpoint_of_another_variant(self, run: Path, folder: Path) -> None:
        said = complaint("evaluate", run, "-V", "crazyhouse")
        assert "is a net for xiangqi, not for crazyhouse" in said
        said = complaint("export", run, "-o", folder / "x.onnx", "-V", "crazyhouse")
        assert "is a net for xiangqi, not for crazyhouse" in said

    def test_onnx_of_another_variant(self, run: Path) -> None:
        said = complaint("evaluate", run / "model.onnx", "-V", "crazyhouse")
        assert "is a net for xiangqi, not for crazyhouse" in said

    def test_no_model(self, folder: Path) -> None:
        (folder / "text.onnx").write_text("not a net")
        assert "is not a usable ONNX model" in complaint("evaluate", folder / "text.onnx")
        assert "does not exist" in complaint("evaluate", folder / "no-run")
