"""Run folders as the page sees them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from variant_ai.cli.play.web_worker import answer
from variant_ai.core.reinforce.reinforce_folder import ReinforceFolder, RunState
from variant_ai.core.reinforce.reinforce_settings import ReinforceSettings
from variant_ai.core.web.run_service import MOST_POINTS, RunService, training_curves


def ask(service: RunService, action: str, **fields: Any) -> dict[str, Any]:
    return answer({"id": 1, "action": action, **fields}, service.actions)


@pytest.fixture
def runs(tmp_path: Path) -> RunService:
    folder = ReinforceFolder(tmp_path / "runs" / "little")
    folder.write(ReinforceSettings(variant="dobutsu"))
    for generation in (1, 2):
        row = {
            "generation": generation,
            "plies": 10.5,
            "draws": 0.25,
            "train": {"policy_loss": 2.0},
        }
        folder.add_row(row)
    folder.write_state(RunState(generation=2, games=30))
    (tmp_path / "runs" / "other").mkdir()
    (tmp_path / "runs" / "damaged").mkdir()
    (tmp_path / "runs" / "damaged" / "config.json").write_text("{")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "settings.yaml").write_text("variant: dobutsu\n")
    return RunService([tmp_path / "runs"])


def test_runs_are_listed_and_shown(runs: RunService) -> None:
    found = {run["name"]: run for run in ask(runs, "runs")["runs"]}
    assert set(found) == {"little", "damaged"}
    assert found["little"]["kind"] == "reinforce"
    assert found["little"]["variant"] == "dobutsu"
    assert not found["little"]["net"]
    assert "error" in found["damaged"]
    shown = ask(runs, "run", run="little")
    titles = {curve["title"]: curve["series"] for curve in shown["curves"]}
    assert titles["Results, per cent"] == [{"name": "draws", "points": [(1.0, 25.0), (2.0, 25.0)]}]
    assert titles["Policy loss"][0]["points"] == [(1.0, 2.0), (2.0, 2.0)]
    assert shown["generations"] == [1, 2]
    json.dumps(shown, allow_nan=False)


@pytest.mark.parametrize("name", ["../secret", "secret", "/etc", "", "other", ".."])
def test_other_folders_are_not_read(runs: RunService, name: str) -> None:
    assert "unknown run" in ask(runs, "run", run=name)["error"]
    assert "unknown run" in ask(runs, "games", run=name)["error"]


def test_missing_games_are_reported(runs: RunService) -> None:
    assert "are not there" in ask(runs, "games", run="little", generation=1)["error"]


def test_long_curves_are_thinned() -> None:
    events = [
        {"kind": "train", "step": step, "policy_loss": float("nan") if step % 2 else 1.0}
        for step in range(5000)
    ]
    (curve,) = training_curves(events)
    points = curve["series"][0]["points"]
    assert len(points) == MOST_POINTS
    assert points[-1] == (4998.0, 1.0)
