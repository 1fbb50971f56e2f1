"""Fallbacks of the engine builder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from variant_ai.core.engine.engine_builder import EngineBuilder
from variant_ai.core.errors import DataError
from variant_ai.core.spec.catalogue import builtin_specs, home_path
from variant_ai.plugins import registry


class Source:
    """Nets in fp32 alone."""

    def __init__(self, net: Path) -> None:
        self.asked: list[tuple[Path | None, Any]] = []
        self.net_paths = lambda name: [net]
        self.variant = registry().variant
        self.rules = registry().rules

    def evaluator(self, spec: Any, model: Path | None, **how: Any) -> Any:
        self.asked.append((model, how["precision"]))
        if how["device"] != "cpu":
            raise RuntimeError("CUDA error: invalid device ordinal")
        if how["precision"] is not None or not (model and model.exists()):
            raise DataError(f"{model}: not available in {how['precision']}")
        return model


SETTINGS = {
    "model": "",
    "evaluator": "auto",
    "batch": 8,
    "threads": None,
    "device": "cpu",
    "precision": None,
}


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "crazyhouse.onnx"
    path.write_bytes(b"")
    return path


def evaluator(net: Path, **settings: Any) -> tuple[Any, list[str], Source]:
    source, said = Source(net), list[str]()
    builder = EngineBuilder(builtin_specs(), "crazyhouse", lambda: source)
    spec = registry().variant("crazyhouse")
    return builder.evaluator(spec, {**SETTINGS, **settings}, said.append), said, source


def test_an_unavailable_precision_does_not_cost_the_net(net: Path) -> None:
    made, said, source = evaluator(net, precision="float16")
    assert made == net
    assert source.asked == [(net, "float16"), (net, None)]
    assert any("not available in float16" in text for text in said)


def test_a_driver_that_fails_does_not_cost_the_net(net: Path) -> None:
    made, said, _ = evaluator(net, device="cuda:3")
    assert made == net
    assert "error: CUDA error: invalid device ordinal" in said


def test_a_run_directory_is_not_its_exported_net(net: Path, tmp_path: Path) -> None:
    """Its checkpoints may be newer."""
    run, folder = tmp_path / "run", tmp_path / "nets"
    (run / "checkpoints").mkdir(parents=True)
    folder.mkdir()
    for place in (run, folder):
        (place / "model.onnx").write_bytes(b"")
    assert evaluator(net, model=str(run))[0] == run
    assert evaluator(net, model=str(folder))[0] == folder / "model.onnx"


@pytest.mark.parametrize("model", ["~nobody-of-that-name/x.onnx", "x" * 5000, "/root/\0/x"])
def test_a_model_path_that_is_not_valid(net: Path, model: str) -> None:
    made, said, _ = evaluator(net, model=model)
    assert made == net
    assert f"playing with {net} instead" in said


def test_a_missing_home_folder_is_not_expanded() -> None:
    assert home_path("~nobody-of-that-name/x") == Path("~nobody-of-that-name/x")
    assert home_path("~/x") == Path.home() / "x"


def test_the_sibling_with_shuffled_starts_is_found_by_its_name() -> None:
    builder = EngineBuilder(builtin_specs(), "crazyhouse", Source)
    names = ("chess", "crazyhouse", "xiangqi", "chess960")
    assert [builder.shuffled(name) for name in names] == [
        "chess960",
        "crazyhouse960",
        "xiangqi",
        "chess960",
    ]
