"""report, show, the pictures of stats and evaluate, and mate-in-one sets, as a user meets them."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from variant_ai.cli.main import cli
from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.store.game_store import StoreWriter
from variant_ai.core.rules import make_rules
from variant_ai.core.spec import builtin_specs, load_spec
from variant_ai.core.train.pictures import canvas

PNG = b"\x89PNG"
FETCHED = re.compile(r"""(?:src|href)\s*=\s*["'](?!data:|#)|url\(|@import|<script|<link""")
"""References to the network, which a page must not have."""


def call(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def succeed(*arguments: object) -> Result:
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    return result


def complaint(*arguments: object) -> str:
    result = call(*arguments)
    assert result.exit_code in (1, 2), result.output
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("Error:")]
    return line


@pytest.fixture(scope="module", autouse=True)
def small() -> None:
    """Small pictures: these tests are of the commands."""
    patch = pytest.MonkeyPatch()
    patch.setattr(canvas, "DPI", 30)
    yield
    patch.undo()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("picture-commands")


@pytest.fixture(scope="module")
def store(folder: Path) -> Path:
    """Random games of crazyhouse, long enough for mates, with players and ratings."""
    spec = load_spec(builtin_specs()["crazyhouse"])
    rules, rng, path = make_rules(spec), np.random.default_rng(7), folder / "games.store"
    with StoreWriter(path, spec, sources=["random"]) as writer:
        for game in range(24):
            position, moves = rules.position(), []
            while len(moves) < 120 and len(legal := rules.legal_moves(position)):
                moves.append(int(legal[rng.integers(len(legal))]))
                position = rules.play(position, moves[-1])
            record = GameRecord(
                "crazyhouse", moves, result=("1-0", "0-1", "1/2-1/2")[game % 3],
                white=f"player {game % 5}", black="許銀川", white_elo=1500 + 10 * game,
                black_elo=1700, time_control="60+0", date=str(2000 + game % 3), source="random",
            )  # fmt: skip
            writer.add(record)
    return path


@pytest.fixture(scope="module")
def run(folder: Path, store: Path) -> Path:
    target = folder / "run"
    result = succeed(
        "train", "-V", "crazyhouse", "--data", store, "--blocks", 1, "--channels", 8,
        "--size", "value_hidden=8", "--batch", 16, "--device", "cpu", "--threads", 1,
        "--split", "game:0.25", "--steps", 4, "--run", target,
    )  # fmt: skip
    assert str(target / "report.html") in result.stdout
    return target


def test_a_training_ends_with_a_report(run: Path) -> None:
    text = (run / "report.html").read_text()
    assert not FETCHED.search(text)
    pictures = {path.stem: path for path in (run / "pictures").iterdir()}
    assert set(pictures) >= {
        "curves", "calibration", "by-ply", "by-rating", "planes", "maps-first", "maps-last",
        "heads", "policy", "results", "players", "ratings", "time-controls", "first-moves",
    }  # fmt: skip
    assert all(path.read_bytes().startswith(PNG) for path in pictures.values())
    assert text.count("data:image/png;base64,") == len(pictures)
    assert "許銀川" in text  # a name that the pictures' font may lack
    results = json.loads((run / "results.json").read_text())
    validation = results["validation"]
    assert set(validation["by_rating"]) <= {f"{k}00-{k}99" for k in (15, 16, 17)}
    assert validation["intervals"]["policy_loss"]["low"] < validation["policy_loss"]


def test_runs_and_stores_of_one_name_are_all_in_the_report(
    run: Path, store: Path, tmp_path: Path
) -> None:
    from variant_ai.cli.train.report import _names
    from variant_ai.core.train.report.run_report import _data
    from variant_ai.core.train.run.training_run import open_run

    runs, stores = [], []
    for name in ("first", "second"):
        runs.append(tmp_path / name / "arm")
        runs[-1].mkdir(parents=True)
        shutil.copy(run / "config.json", runs[-1])
        stores.append(Path(shutil.copy(store, tmp_path / name)))
    beside = _names((*runs, runs[0]))
    assert [name.partition("(")[2] for name in beside] == ["first/arm)", "second/arm)"]
    assert list(beside.values()) == runs
    prepared = open_run(run)
    both = prepared.config.data.model_copy(update={"stores": tuple(map(str, stores))})
    config = prepared.config.model_copy(update={"data": both})
    rules = make_rules(prepared.encoder.spec)
    (table,) = _data(dataclasses.replace(prepared, config=config), rules).tables
    assert [row[0] for row in table.rows] == ["first/games", "second/games"]


def test_report_later_and_beside_another(run: Path, folder: Path, store: Path) -> None:
    moved = folder / "moved"
    shutil.copytree(run, moved)
    shutil.rmtree(moved / "pictures")
    page = folder / "page.html"
    said = json.loads(
        succeed(
            "report", moved, "--beside", run, "-o", page, "--mates", 3, "--limit", 40, "--json",
        ).stdout
    )  # fmt: skip
    assert said["report"] == str(page)
    assert str(moved / "pictures" / "compared-curves.png") in said["pictures"]
    text = page.read_text()
    assert "mate-in-one accuracy" in text and not FETCHED.search(text)
    assert "are of 40 positions" in text
    # pictures of an earlier report that are not in the next one are not listed
    compared = moved / "pictures" / "compared-curves.png"
    said = json.loads(succeed("report", moved, "-o", page, "--replace", "--json").stdout)
    assert compared.is_file() and str(compared) not in said["pictures"]
    assert all(Path(path).is_file() for path in said["pictures"]) and len(said["pictures"]) > 3
    # A run whose games are gone is still reported, and says so.
    config = json.loads((moved / "config.json").read_text())
    config["data"]["stores"] = [str(folder / "gone.store")]
    (moved / "config.json").write_text(json.dumps(config))
    result = succeed("report", moved, "-o", page, "--replace")
    assert "Without the games" in result.stderr
    assert "Learning curves" in page.read_text()
    assert "is no run directory" in complaint("report", folder)


def test_show(run: Path, folder: Path) -> None:
    planes = folder / "planes.png"
    succeed("show", "planes", "-V", "crazyhouse", "--moves", "e2e4 e7e5", "-o", planes)
    assert planes.read_bytes().startswith(PNG)
    args = ("-V", "crazyhouse", "-o", planes)
    assert "planes.png already exists; use --replace" in complaint("show", "planes", *args)
    maps = folder / "maps"
    said = json.loads(succeed("show", "activations", run, "-o", maps, "--json").stdout)
    assert [Path(p["path"]).name for p in said["pictures"]] == [
        "maps-first.png", "maps-last.png", "heads.png",
    ]  # fmt: skip
    assert "8 channels" in said["pictures"][0]["caption"]
    inside = succeed("show", "activations", run / "model.onnx", "-o", maps)
    assert "maps-last.png" in inside.stdout  # the file lies in its run
    policy = folder / "policy.png"
    for model in (run, run / "model.onnx"):
        policy.unlink(missing_ok=True)
        succeed("show", "policy", model, "--notation", "san", "--played", "e4", "-o", policy)
        assert "e5" in complaint(
            "show", "policy", model, "--notation", "san", "--played", "e5", "-o", folder / "no.png"
        )
        assert policy.read_bytes().startswith(PNG)
    succeed("show", "policy", "packaged", "-V", "crazyhouse", "-o", policy, "--replace")


def test_show_says_what_is_wrong(run: Path, folder: Path) -> None:
    alone = folder / "alone.onnx"
    shutil.copy(run / "model.onnx", alone)
    target = folder / "none"
    assert "cannot be drawn from an ONNX file" in complaint(
        "show", "activations", alone, "-o", target
    )
    png = folder / "none.png"
    assert "e2e5" in complaint("show", "planes", "-V", "crazyhouse", "--moves", "e2e5", "-o", png)
    assert "FEN" in complaint("show", "planes", "-V", "crazyhouse", "--fen", "no", "-o", png)
    assert not png.exists() and not target.exists()


def test_stats_with_pictures(store: Path, folder: Path) -> None:
    target = folder / "stats"
    result = succeed("stats", store, "--figures", target, "--beside", store)
    names = {path.stem for path in target.iterdir()}
    assert names >= {"results", "players", "activity", "ratings", "first-moves", "years"}
    assert f"{len(names)} pictures in {target}" in result.stdout
    said = json.loads(succeed("stats", store, "--figures", target, "--json").stdout)
    assert sorted(Path(path).stem for path in said["pictures"]) == sorted(names)
    assert said["first_moves"][0]["uci"]
    assert "--figures" in complaint("stats", store, "--beside", store)


def test_mates_and_evaluate(run: Path, store: Path, folder: Path) -> None:
    mates = folder / "mates.jsonl"
    said = json.loads(succeed("store", "mates", store, "-o", mates, "--json").stdout)
    assert 0 < said["positions"] < 1000 and said["scanned"] > said["positions"]
    assert said["mating_moves"] >= 1
    assert "already exists" in complaint("store", "mates", store, "-o", mates)
    assert "is also an input" in complaint("store", "mates", store, "-o", store, "--replace")
    pictures = folder / "evaluate"
    result = succeed(
        "evaluate", run, store, "--model", run / "model.onnx", "--mates", mates, "--figures",
        pictures,
    )  # fmt: skip
    assert "mate-in-one top-5 accuracy" in result.stdout
    assert "minus run" in result.stdout and "policy accuracy by rating" in result.stdout
    assert {p.stem for p in pictures.iterdir()} == {"calibration", "by-ply", "by-rating"}
    said = json.loads(
        succeed("evaluate", run / "model.onnx", store, "--mates", mates, "--json").stdout
    )
    (net,) = said["nets"].values()
    assert net["mates"]["positions"] == len(mates.read_text().splitlines()) - 1
    assert said["games"] == 24
    # With every move from first to last a top-k accuracy never falls.
    shares = list(net["top"].values())
    assert shares == sorted(shares) and net["top"]["5"] == net["top5_accuracy"]


def test_nets_of_different_heads_meet_on_the_same_positions(
    run: Path, store: Path, folder: Path
) -> None:
    flat = folder / "flat"
    succeed(
        "train", "-V", "crazyhouse", "--data", store, "--blocks", 1, "--channels", 8,
        "--size", "value_hidden=8", "--batch", 16, "--device", "cpu", "--threads", 1,
        "--head", "flat", "--split", "game:0.25", "--steps", 2, "--run", flat, "--no-report",
    )  # fmt: skip
    assert not (flat / "report.html").exists()
    alone = json.loads(succeed("evaluate", flat, "--json").stdout)["nets"][str(flat)]
    for first, second in ((run, flat), (flat, run)):
        said = json.loads(succeed("evaluate", first, "--model", second, "--json").stdout)
        assert list(said["nets"]) == [str(first), str(second)]
        found = said["nets"][str(flat)]
        assert found["policy_loss"] == pytest.approx(alone["policy_loss"])
        assert found["legal_accuracy"] == pytest.approx(alone["legal_accuracy"])
        apart = said["nets"][str(second)]["policy_loss"] - said["nets"][str(first)]["policy_loss"]
        difference = said["nets"][str(second)]["differences"]["policy_loss"]["mean"]
        assert difference == pytest.approx(apart)
