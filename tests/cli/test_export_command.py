"""`export --precision` and `nets --time` as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from variant_ai.cli.main import cli
from variant_ai.cli.train.nets import write_net
from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.store.game_store import StoreWriter
from variant_ai.core.inference.model_file import read_model_file
from variant_ai.core.nets import core_networks
from variant_ai.core.rules import make_rules
from variant_ai.core.spec import builtin_specs, load_spec

SPEC = load_spec(builtin_specs()["minixiangqi"])
SIZE = {"blocks": 1, "channels": 8, "pool": "global"}


def call(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`net.onnx` with random weights, and `games.store` of random games."""
    folder = tmp_path_factory.mktemp("export")
    write_net(core_networks()["risev2-mobile-small"], SPEC, "map", SIZE, folder / "run")
    (folder / "run" / "model.onnx").rename(folder / "net.onnx")
    rules = make_rules(SPEC)
    rng = np.random.default_rng(4)
    with StoreWriter(folder / "games.store", SPEC, sources=["random"]) as writer:
        for _ in range(8):
            position, moves = rules.position(), list[int]()
            while len(moves) < 30 and len(legal := rules.legal_moves(position)):
                moves.append(int(rng.choice(legal)))
                position = rules.play(position, moves[-1])
            writer.add(GameRecord(variant=SPEC.variant, moves=moves, result="1-0", source="random"))
    return folder


@pytest.mark.parametrize("precision", ["int8", "fp16"])
def test_precisions_and_what_they_lose(folder: Path, precision: str) -> None:
    target = folder / f"net-{precision}.onnx"
    result = call(
        "export", folder / "net.onnx", "--precision", precision, "--store", folder / "games.store",
        "--positions", 64, *(["--calibrate", 64] if precision == "int8" else []), "-o", target, "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert said["precision"] == precision
    assert said["bytes"] == target.stat().st_size
    assert said["agreement"]["positions"] == 64
    assert 0 < said["agreement"]["value_mean"] < 0.1
    assert read_model_file(target).info.precision == precision
    assert read_model_file(target).info.variant == SPEC.variant


def test_what_is_lost_is_printed(folder: Path) -> None:
    result = call(
        "export", folder / "net.onnx", "--precision", "int8", "--store", folder / "games.store",
        "--positions", 64, "--calibrate", 64, "--spare", 1, "-o", folder / "spared.onnx",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    for text in ("policy accuracy", "same first move where decided", "value difference"):
        assert text in result.stdout
    assert "in fp32: the last layer of the policy" in result.stderr
    assert "There are only" not in result.stderr


def test_repeated_positions_and_an_existing_file_are_reported(folder: Path) -> None:
    words = ("--precision", "fp16", "--store", folder / "games.store", "-o", folder / "many.onnx")
    result = call("export", folder / "net.onnx", *words, "--positions", 4000)
    assert result.exit_code == 0, result.output
    assert "some are used more than once" in result.stderr
    again = call("export", folder / "net.onnx", *words)
    assert again.exit_code == 1 and "many.onnx already exists; use --replace" in again.stderr


@pytest.mark.parametrize("replace", [(), ("--replace",)])
@pytest.mark.parametrize("name", ["net.onnx", "games.store"])
def test_an_export_does_not_replace_what_it_reads(
    folder: Path, name: str, replace: tuple[str, ...]
) -> None:
    before = (folder / name).read_bytes()
    words = ("--precision", "fp16", "--store", folder / "games.store", *replace)
    result = call("export", folder / "net.onnx", *words, "-o", folder / name)
    assert result.exit_code == 1 and f"{name} is also an input" in result.stderr
    assert (folder / name).read_bytes() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--precision", "int8"], "int8 needs positions for calibration; name a game store"),
        ([], "is already an ONNX file"),
        (["--precision", "fp16", "-V", "crazyhouse"], "a net for minixiangqi, not for crazyhouse"),
        (["--precision", "int8", "--store", "no.store"], "there is no game store no.store"),
    ],
)
def test_mistakes(folder: Path, options: list[str], message: str) -> None:
    result = call("export", folder / "net.onnx", "-o", folder / "x.onnx", *options)
    assert result.exit_code == 1
    assert message in result.stderr
    assert not (folder / "x.onnx").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--store", "x"], "--store has no effect with --precision fp32"),
        (["--precision", "fp16", "--spare", "1"], "--spare has no effect with --precision fp16"),
    ],
)
def test_options_of_another_precision(folder: Path, options: list[str], message: str) -> None:
    result = call("export", folder, "-o", folder / "x.onnx", *options)
    assert result.exit_code == 2 and message in result.stderr


def test_options_of_the_measurement_are_for_it_alone() -> None:
    result = call("nets", "--batch", 4)
    assert (result.exit_code, "--batch has an effect only with --time" in result.stderr) == (
        2,
        True,
    )


def test_nets_are_timed_side_by_side() -> None:
    options = ["--time", "--blocks", 1, "--channels", 8, "--size", "pool=global", "--batch", 2]
    count = ["--warm-up", 1, "--measurements", 3, "--threads", 1]
    result = call(
        "nets", "risev2-mobile-small", "-V", "minixiangqi", *options, *count,
        *("--evaluator", "onnx", "--evaluator", "torch", "--evaluator", "uniform", "--json"),
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)
    assert [row["evaluator"] for row in rows] == [
        "onnx fp32, 1 thread",
        "torch fp32, 1 thread",
        "uniform fp32",
    ]
    assert all(row["milliseconds"] > 0 and row["batch"] == 2 for row in rows)


def test_timing_on_a_device_that_is_not_here() -> None:
    result = call(
        "nets", "risev2-mobile-small", "-V", "minixiangqi", "--time", "--blocks", 1,
        "--channels", 8, "--size", "pool=global", "--device", "tensorrt:3",
    )  # fmt: skip
    assert result.exit_code == 1 and "device 'tensorrt:3'" in result.stderr
    assert "onnxruntime-gpu" in result.stderr


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((), 2, "--time needs a variant"),
        (("-V", "xiangqi", "--size", "chanels=32"), 1, "option of a net 'chanels'"),
        (("alphazero-4v8p", "-V", "xiangqi", "--head", "map"), 1, "head 'map'"),
    ],
)
def test_timing_of_nothing(words: tuple[str, ...], code: int, message: str) -> None:
    result = call("nets", *words, "--time")
    assert result.exit_code == code
    assert message in result.stderr


def test_int8_is_calibrated_on_the_sample_where_no_games_are_named(tmp_path: Path) -> None:
    target = tmp_path / "small.onnx"
    words = ["-V", "xiangqi", "--precision", "int8", "--calibrate", "64", "--positions", "64"]
    done = call("export", "packaged", *words, "-o", target)
    assert done.exit_code == 0, done.output
    assert "the sample games of xiangqi" in done.output
    assert target.stat().st_size < 1_500_000


def test_the_packaged_net_needs_its_variants_name(tmp_path: Path) -> None:
    output = tmp_path / "net.onnx"
    asked = ["export", "packaged", "--precision", "int8", "-o", str(output)]
    done = CliRunner().invoke(cli, asked)
    assert done.exit_code == 2
    assert "packaged: name the variant with -V" in done.output
    without = tmp_path / "new.yaml"
    without.write_text("extends: makruk\nvariant: without-a-net\n", encoding="utf-8")
    done = CliRunner().invoke(cli, [*asked, "-V", str(without)])
    assert done.exit_code == 1
    assert "without-a-net" in done.output
    assert not output.exists()
