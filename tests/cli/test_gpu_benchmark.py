"""benchmarks/gpu.py on a processor: what it writes, and what it answers to mistakes."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from variant_ai.cli.common.ending import EXIT_INTERRUPTED
from variant_ai.core.errors import DataError, UnknownNameError, VariantAIError

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
PAGE = (
    "before\n<!-- written by benchmarks/gpu.py -->\nold\n<!-- end of benchmarks/gpu.py -->\nafter\n"
)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The program, in an empty folder."""
    if not BENCHMARKS.is_dir():
        pytest.skip("needs the folder benchmarks/ of the sources")
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.chdir(tmp_path)
    return importlib.import_module("gpu")


@pytest.fixture
def report_of(gpu: ModuleType, tmp_path: Path) -> Any:
    facts = {
        "command": "python benchmarks/gpu.py",
        "machine": {
            "cpu": {"cores": 16, "name": "a processor"},
            "packages": {"torch": "2.0"},
            "onnxruntime": "1.0",
            "device": "cuda",
            "gpus": ["a GPU"],
            "gpu_memory_mb": 81920,
            "cuda": "12.8",
            "cudnn": 91000,
            "date": "2026-01-01",
        },
    }
    return lambda minutes=9.0: gpu.Report(tmp_path / "gpu.json", minutes, facts)


def run(gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--device", "cpu", *words])
    status: int = gpu.main()
    return status


@pytest.mark.slow
def test_the_whole_course_on_a_processor(
    gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    threads = gpu.torch.get_num_threads()
    try:
        words = ("--precisions", "fp32", "--seconds", "0.05", "--into", "page.md")
        assert run(gpu, monkeypatch, "--quick", *words) == 0
    finally:
        gpu.torch.set_num_threads(threads)
    kept = json.loads((tmp_path / "gpu.json").read_text())
    assert kept["missing"] == []
    (trained,) = kept["training"]
    assert (trained["precision"], trained["batch"]) == ("fp32", 16)
    assert trained["samples_per_second"] > 0 < trained["net_alone"]
    (together,) = kept["processes"]
    assert (together["processes"], together["batch"]) == (2, 32)
    assert together["samples_per_second"] > 0
    rates = {(row["evaluator"], row["batch"]): row for row in kept["evaluators"]}
    assert set(rates) == {(name, batch) for name in gpu.EVALUATORS["cpu"] for batch in (1, 8)}
    (searched,) = kept["search"]
    best = max(gpu.EVALUATORS["cpu"], key=lambda name: rates[name, 8]["positions_per_second"])
    assert searched["evaluator"] == best
    assert searched["nodes_per_second"] > 0
    tables = (tmp_path / "gpu.md").read_text()
    before, _, rest = page.read_text().partition("<!-- written by benchmarks/gpu.py -->\n\n")
    assert (before, rest) == (
        "before\n",
        f"{tables}\n<!-- end of benchmarks/gpu.py -->\nafter\n",
    )
    assert "--into" not in tables


@pytest.mark.parametrize(
    ("words", "error", "said"),
    [
        (("--nets", "nosuch"), UnknownNameError, "nosuch"),
        (("--nets", "risev2-mobile:5"), DataError, "NAME:BLOCKSxCHANNELS"),
        (("--nets", "risev2-mobile:0x8"), VariantAIError, "blocks"),
        (("--variants", "nosuch"), UnknownNameError, "nosuch"),
        (("--evaluators", "nosuch@fp32"), UnknownNameError, "nosuch@fp32"),
        (("--device", "nosuch"), UnknownNameError, "nosuch"),
        (("--into", "page.md"), DataError, "written by benchmarks/gpu.py"),
        (("--output", "nosuch/gpu"), DataError, "nosuch"),
    ],
)
def test_mistakes_are_answered_before_anything_is_measured(
    gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: tuple[str, ...],
    error: type[Exception], said: str,
) -> None:  # fmt: skip
    (tmp_path / "page.md").write_text("a page without marks\n")
    with pytest.raises(error, match=said):
        run(gpu, monkeypatch, *words)
    assert [path.name for path in tmp_path.iterdir()] == ["page.md"]


@pytest.mark.parametrize("words", [("--batches", "24"), ("--batches", "x"), ("--seconds", "0")])
def test_numbers_that_are_none(
    gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    with pytest.raises(SystemExit) as end:
        run(gpu, monkeypatch, *words)
    assert end.value.code == 2


def test_a_run_stopped_by_hand_keeps_what_it_has(
    gpu: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def measure(report: Any, *_: object) -> None:
        report.measure("training", "a net", lambda: [{"variant": "v", "net": "a net", "batch": 7}])
        raise KeyboardInterrupt

    (tmp_path / "page.md").write_text(PAGE)
    monkeypatch.setattr(gpu, "measure_training", measure)
    assert run(gpu, monkeypatch, "--into", "page.md") == EXIT_INTERRUPTED
    kept = json.loads((tmp_path / "gpu.json").read_text())
    assert [row["batch"] for row in kept["training"]] == [7]
    assert "Ctrl-C" in kept["missing"][0]
    assert "| v | a net | 7 |" in (tmp_path / "gpu.md").read_text()
    assert (tmp_path / "page.md").read_text() == PAGE  # half a course replaces no whole one


def test_what_fails_leaves_a_reason_and_the_rest_goes_on(
    gpu: ModuleType, report_of: Any, tmp_path: Path
) -> None:
    def fail() -> list[dict[str, Any]]:
        raise RuntimeError("CUDA out of memory.\nmore words")

    report = report_of()
    report.measure("training", "a large net", fail)
    for name, batch, rate in (("a", 1, 10.0), ("b", 1, 20.0), ("a", 1024, 9876.5)):
        row = {"variant": "v", "net": "n", "evaluator": name, "batch": batch}
        row |= {"positions_per_second": rate, "milliseconds": 1.0}
        report.measure("evaluators", name, lambda row=row: [row])
    tables = gpu.markdown(report)
    assert "1 x a GPU with 80 GiB" in tables
    assert "| variant | net | evaluator | 1 | 1024 |" in tables
    assert "| v | n | a | 10 | 9,876 |" in tables
    assert "| v | n | b | 20 |  |" in tables
    assert "- training: a large net: CUDA out of memory.\n" in tables
    assert "Training" not in tables
    assert len(json.loads((tmp_path / "gpu.json").read_text())["evaluators"]) == 3


def test_nothing_begins_after_the_time(report_of: Any) -> None:
    report = report_of(minutes=0.0)
    report.measure("search", "a net", lambda: pytest.fail("it began"))
    assert report.missing == ["search: a net: no time left"]


def test_processes_that_fail_say_why(gpu: ModuleType) -> None:
    course = gpu.Course("xiangqi", "nosuch", "fp32", "cpu", 8, 0.1, 1)
    with pytest.raises(VariantAIError, match="nosuch"):
        gpu.together_rows(course, 1, 60.0)


def test_the_speed_page_has_a_place_for_the_tables(gpu: ModuleType) -> None:
    page = BENCHMARKS.parent / "docs" / "speed.md"
    assert "the tables" in gpu.replaced(
        page.read_text(encoding="utf-8"), "the tables", page, gpu.SCRIPT
    )
