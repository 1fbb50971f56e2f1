"""benchmarks/cluster.py: the tables that it writes, and where."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from variant_ai.core.errors import DataError

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    if not BENCHMARKS.is_dir():
        pytest.skip("needs the folder benchmarks/ of the sources")
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("cluster")


def rows(tables: str, begin: str) -> list[list[str]]:
    """Cells of the rows whose first cell is this."""
    found = [line.strip("| ").split(" | ") for line in tables.splitlines()]
    return [cells for cells in found if cells[0] == begin]


def test_measured_tables_are_written_into_a_page(
    cluster: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = tmp_path / "page.md"
    text = (BENCHMARKS.parent / "docs" / "cluster.md").read_text(encoding="utf-8")
    page.write_text(text, encoding="utf-8")
    words = "--variants dobutsu --net 1x8 --nodes 4 2 --seconds 0.2 --learner 5000 --players 1 1000"
    monkeypatch.setattr(sys, "argv", ["cluster.py", *words.split(), "--into", str(page)])
    cluster.main()
    tables = capsys.readouterr().out
    written = page.read_text(encoding="utf-8")
    assert f"<!-- written by benchmarks/cluster.py -->\n\n{tables}\n<!-- end of" in written
    assert f"`python benchmarks/cluster.py {words}`" in tables
    sizes, slow, quick, one, many = rows(tables, "dobutsu")
    assert len(sizes) == 8
    assert [slow[1], quick[1]] == ["4", "2"]
    assert [one[1], many[1]] == ["1", "1,000"]
    assert many[2] == f"{quick[4]} (limit)"


def test_growth_ends_at_the_time_of_the_learner(cluster: ModuleType) -> None:
    sizes = cluster.Sizes("x", 10**6, 100.0, 2000.0, {16: 50.0}, 0.0002, 8_000.0)
    assert sizes.most(5_000.0) == pytest.approx(1000.0)  # 200 µs to take in, 4 samples of 200 µs
    (line,) = rows(cluster.limit_table([sizes], 5_000.0), "x")
    assert line == ["x", "16", "1,430", "29", "1,000", "20"]
    below, above = rows(cluster.need_table([sizes], 5_000.0, [10, 100], 16, 1000), "x")
    # 10 players: 500 positions a second, a net of 1 MB every two seconds to one machine
    assert below[1:] == ["10", "500", "2,000", "0.05", "0.50", "2.0"]
    assert above[1:] == ["100", "1,000 (limit)", "4,000", "0.10", "7.00", "1.0"]


def test_a_page_without_a_place_for_the_tables(
    cluster: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    page.write_text("no marks")
    monkeypatch.setattr(sys, "argv", ["cluster.py", "--into", str(page)])
    with pytest.raises(DataError, match=r"written by benchmarks/cluster\.py"):
        cluster.main()
