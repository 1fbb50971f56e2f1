"""The files of `experiments/` as somebody meets them who has the repository and no games."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from variant_ai.cli.main import cli

FOLDER = Path(__file__).resolve().parents[2] / "experiments"
TRAININGS = sorted(
    path for path in FOLDER.glob("*.yaml") if "\nexperiment: 1" in f"\n{path.read_text('utf-8')}"
)
OTHER_GAMES = {"data-sets", "fine-tuning", "xiangqi-nets"}
"""Experiments whose arms differ in their games."""


def call(*words: object) -> Result:
    return CliRunner().invoke(cli, ["experiment", "run", *map(str, words)])


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """The files without the stores that somebody may have made beside them."""
    ignore = shutil.ignore_patterns("stores", "*.png", "*.md")
    return shutil.copytree(FOLDER, tmp_path / "experiments", ignore=ignore)


@pytest.mark.parametrize("name", [path.stem for path in TRAININGS])
def test_without_games_a_file_says_where_they_come_from(fresh: Path, name: str) -> None:
    file = fresh / f"{name}.yaml"
    for scale in ("small", "full"):
        if name == "inference-times":
            assert call(file, "--scale", scale, "--dry-run").exit_code == 0
            continue
        result = call(file, "--scale", scale, "-o", fresh / "out")
        assert result.exit_code == 1
        assert len(result.stderr.strip().splitlines()) == 1
        assert "variant-ai " in result.stderr
        fetched = (" fetch lichess ", " generate ", "(from ")
        assert any(words in result.stderr for words in fetched), result.stderr
        assert ("--sample" in result.stderr) == (name not in OTHER_GAMES)
    assert not (fresh / "out").exists()


@pytest.mark.parametrize("name", [path.stem for path in TRAININGS])
def test_the_sample_stands_in_for_other_games(fresh: Path, name: str) -> None:
    result = call(fresh / f"{name}.yaml", "--sample", "--dry-run")
    if name in OTHER_GAMES:
        assert result.exit_code == 1
        assert "the arms differ in their games" in result.stderr
        return
    if name == "inference-times":
        assert "without games" in result.stderr
        return
    assert result.exit_code == 0, result.stderr
    commands = [line for line in result.stdout.splitlines() if " train " in line]
    assert all("sample.store --split group:0.05" in line for line in commands)
    assert not any("--validation" in line or "stores/" in line for line in commands)


@pytest.mark.parametrize("name", [path.stem for path in TRAININGS])
def test_the_thesis_at_full_scale_pools_as_it_does(name: str) -> None:
    """Table 4.11: squeeze and excitation averages windows of 8 x 8."""
    result = call(FOLDER / f"{name}.yaml", "--scale", "full", "--dry-run")
    assert result.exit_code == 0
    for line in result.stdout.splitlines():
        if "-V xiangqi" in line and "--net rise" in line:
            assert "--size pool=window" in line
