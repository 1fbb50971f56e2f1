"""A whole run on a few games: the files of its directory, and resuming it."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from random_games import random_store
from synthetic import assert_same_bits

from variant_ai.core.data.store.game_store import Store, StoreWriter
from variant_ai.core.errors import DataError
from variant_ai.core.inference.backends.onnx_backend import OnnxEvaluator
from variant_ai.core.rules import make_rules
from variant_ai.core.spec import VariantSpec, builtin_specs, encoding_hash, load_spec
from variant_ai.core.train.loop.devices import choose_device
from variant_ai.core.train.measure.prediction import open_model
from variant_ai.core.train.run import run_folder
from variant_ai.core.train.run.plan import prepare
from variant_ai.core.train.run.run_folder import locked
from variant_ai.core.train.run.training_run import open_run, run_training
from variant_ai.core.train.run.training_settings import TrainRequest

TINY = {"blocks": 1, "channels": 8, "value_hidden": 8}


def run(spec: VariantSpec, store: Path, folder: Path, **options: object):
    request = TrainRequest(
        spec=spec,
        stores=(store,),
        size=TINY,
        device="cpu",
        **{"split": "game:0.25", "steps": 12, "batch": 16, "threads": 1, **options},
    )
    return run_training(prepare(request), folder, make_rules(spec))


@pytest.fixture(scope="module")
def finished(store: Path, xiangqi: VariantSpec, tmp_path_factory: pytest.TempPathFactory):
    return run(xiangqi, store, tmp_path_factory.mktemp("runs") / "run")


def test_run_directory(finished) -> None:
    names = {path.name for path in finished.folder.iterdir()}
    assert names == {
        "config.json", "environment.json", "metrics.jsonl", "results.json", "baseline.npy",
        "checkpoints", "tensorboard", "curves.png", "model.onnx", "README.md",
        "lock",
    }  # fmt: skip
    assert all(f"| {name}" in str(run_folder.__doc__) for name in names)
    assert (finished.folder / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert any((finished.folder / "tensorboard").iterdir())


def test_results(finished) -> None:
    results = json.loads((finished.folder / "results.json").read_text())
    assert results == finished.results
    assert results["steps"] == 12
    assert 0 < results["baseline_accuracy"] < 1
    assert results["onnx_difference"] <= 1e-4
    assert results["validation"]["positions"] == results["baseline_positions"]
    assert (
        sum(p["positions"] for p in results["validation"]["by_ply"].values())
        == (results["validation"]["positions"])
    )


def test_metadata_of_the_net(finished, xiangqi: VariantSpec) -> None:
    evaluator = OnnxEvaluator(finished.folder / "model.onnx", xiangqi)
    metadata = evaluator.metadata
    assert metadata["variant"] == "xiangqi"
    assert metadata["encoding_hash"] == encoding_hash(xiangqi)
    assert metadata["net"] == "risev2-mobile-small 1x8 map"
    assert metadata["head"] == "map"
    assert len(json.loads(metadata["data_hashes"])) == 1
    said = json.loads(metadata["metrics"])["validation"]["policy_accuracy"]
    assert said == finished.results["validation"]["policy_accuracy"]


def test_card(finished) -> None:
    card = (finished.folder / "README.md").read_text()
    assert card.startswith("# xiangqi: risev2-mobile-small 1x8 map")
    assert "| policy accuracy |" in card
    assert "most frequent legal move" in card


def test_onnx_and_checkpoint_agree(finished, xiangqi: VariantSpec) -> None:
    device = choose_device("cpu")
    planes = np.random.default_rng(0).random((4, 28, 10, 9)).astype(np.float32)
    models = [
        open_model(path, xiangqi, device, precision="fp32")
        for path in (finished.folder / "model.onnx", finished.folder)
    ]
    assert [model.run for model in models] == [finished.folder] * 2
    (value, logits), (value2, logits2) = (model.predictor(planes)[:2] for model in models)
    np.testing.assert_allclose(value, value2, atol=1e-4)
    np.testing.assert_allclose(logits, logits2, atol=1e-4)


def test_the_same_configuration_gives_the_same_net(
    finished, store: Path, xiangqi: VariantSpec, tmp_path: Path
) -> None:
    again = run(xiangqi, store, tmp_path / "again")
    name = "checkpoints/step-00000012"
    assert_same_bits(finished.folder / name, again.folder / name)


def test_a_run_is_opened_as_it_was(finished, xiangqi: VariantSpec) -> None:
    prepared = open_run(finished.folder, xiangqi)
    config = json.loads((finished.folder / "config.json").read_text())
    assert prepared.config.model_dump(mode="json") == config


def test_another_variant_is_refused(finished) -> None:
    crazyhouse = load_spec(builtin_specs()["crazyhouse"])
    with pytest.raises(DataError, match="is a net for xiangqi, not for crazyhouse"):
        open_run(finished.folder, crazyhouse)
    with pytest.raises(DataError, match="is a net for xiangqi, not for crazyhouse"):
        open_model(finished.folder, crazyhouse, choose_device("cpu"))


def test_other_rules_are_refused_and_other_planes_are_kept(finished, xiangqi: VariantSpec) -> None:
    rules = xiangqi.rules.model_copy(update={"stalemate": "draw"})
    changed = xiangqi.model_copy(update={"rules": rules})
    with pytest.raises(DataError, match="another version of the xiangqi spec"):
        open_model(finished.folder, changed, choose_device("cpu"))
    with pytest.raises(DataError, match="another version of the xiangqi spec"):
        open_run(finished.folder, xiangqi.model_copy(update={"input": xiangqi.input[:-1]}))
    for path in (finished.folder, finished.folder / "model.onnx"):
        planes = xiangqi.model_copy(update={"input": xiangqi.input[:-1]})
        model = open_model(path, planes, choose_device("cpu"))
        assert model.spec.input == xiangqi.input


def test_a_changed_store_is_refused(xiangqi: VariantSpec, tmp_path: Path) -> None:
    store = random_store(tmp_path / "games.store", xiangqi, 8, 10, 4)
    run(xiangqi, store, tmp_path / "run", steps=2)
    store.unlink()
    random_store(store, xiangqi, 8, 10, 5)
    with pytest.raises(DataError, match="no longer the store"):
        open_run(tmp_path / "run")


def test_games_that_changed_sides_are_refused(xiangqi: VariantSpec, tmp_path: Path) -> None:
    """The same moves and results, but of other years: the store's hash does not tell."""
    path = random_store(tmp_path / "games.store", xiangqi, 8, 10, 4)
    run(xiangqi, path, tmp_path / "run", steps=2, split="year:2001")
    open_run(tmp_path / "run")
    games = [Store(path, xiangqi).game(i) for i in range(8)]
    path.unlink()
    with StoreWriter(path, xiangqi, sources=["random"]) as writer:
        for record in games:
            writer.add(dataclasses.replace(record, date=str(2005 - int(record.date[:4]) + 2000)))
    with pytest.raises(DataError, match="on other sides of the split year:2001"):
        open_run(tmp_path / "run")


def test_training_metrics_of_a_run_that_was_resumed_at_its_end(
    finished, xiangqi: VariantSpec, tmp_path: Path
) -> None:
    shutil.copytree(finished.folder, tmp_path / "run")
    before = json.loads((tmp_path / "run" / "results.json").read_text())["train"]
    prepared = open_run(tmp_path / "run", xiangqi)
    run_training(prepared, tmp_path / "run", make_rules(xiangqi), resume=True)
    assert json.loads((tmp_path / "run" / "results.json").read_text())["train"] == before


def test_a_folder_in_use_is_refused(store: Path, xiangqi: VariantSpec, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match="is not empty"):
        run(xiangqi, store, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]


def test_a_run_that_another_process_trains_is_refused(finished, xiangqi: VariantSpec) -> None:
    folder = finished.folder
    prepared = open_run(folder)
    with locked(folder), pytest.raises(DataError, match="is being run by process"):
        run_training(prepared, folder, make_rules(xiangqi), resume=True)


def test_flat_head(store: Path, xiangqi: VariantSpec, tmp_path: Path) -> None:
    report = run(xiangqi, store, tmp_path / "run", head="flat", steps=2, mirror=True)
    said: list[str] = []
    # torch may have a GPU that onnxruntime has not
    gpu = torch.device("cuda", 1)
    model = open_model(report.folder / "model.onnx", xiangqi, gpu, report=said.append)
    assert "runs on the CPU: the installed onnxruntime has no cuda" in said[0]
    assert model.head == "flat"
    assert np.load(report.folder / "baseline.npy").shape == (2086,)
