"""Run folders as the page sees them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from variant_ai.cli.play.web_worker import answer
from variant_ai.core.inference.model_file import read_model_file
from variant_ai.core.reinforce.reinforce_folder import ReinforceFolder, RunState
from variant_ai.core.reinforce.reinforce_settings import ReinforceSettings
from variant_ai.core.spec import load_spec
from variant_ai.core.web.board_service import require_no_files
from variant_ai.core.web.run_service import MOST_POINTS, RunService, training_curves

NETS = Path(__file__).resolve().parents[2] / "variants" / "nets"


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


def test_runs_of_one_name_in_two_folders(runs: RunService, tmp_path: Path) -> None:
    ReinforceFolder(tmp_path / "more" / "little").write(ReinforceSettings(variant="minishogi"))
    both = RunService([*runs._roots, tmp_path / "more", tmp_path / "more" / "little"])
    found = {run["name"]: run.get("variant") for run in ask(both, "runs")["runs"]}
    assert found == {"little": "dobutsu", "more/little": "minishogi", "damaged": None}
    assert ask(both, "run", run="more/little")["variant"] == "minishogi"


def test_the_net_of_a_spec_file_comes_with_its_spec(runs: RunService, tmp_path: Path) -> None:
    net = NETS / "dobutsu.onnx"
    if not net.is_file():
        pytest.skip("needs the nets of the sources")
    folder = ReinforceFolder(tmp_path / "runs" / "filed")
    folder.write(ReinforceSettings(variant="gone.yaml"))
    assert ask(runs, "run", run="filed")["spec"] is None
    folder.newest_net.write_bytes(net.read_bytes())
    shown = ask(runs, "run", run="filed")
    assert shown["variant"] == "gone"
    path = tmp_path / "again.yaml"
    path.write_text(shown["spec"], encoding="utf-8")
    require_no_files(path)
    spec = load_spec(path)
    assert spec.variant == "dobutsu"
    read_model_file(net).info.require(spec)
    assert ask(runs, "run", run="little")["spec"] is None


@pytest.mark.parametrize("name", ["../secret", "secret", "/etc", "", "other", ".."])
def test_other_folders_are_not_read(runs: RunService, name: str) -> None:
    assert "unknown run" in ask(runs, "run", run=name)["error"]
    assert "unknown run" in ask(runs, "games", run=name)["error"]


def test_missing_games_are_reported(runs: RunService) -> None:
    assert "are not there" in ask(runs, "games", run="little", generation=1)["error"]


def test_steps_that_were_undone_are_left_out() -> None:
    losses = [(1, 3.0), (2, 2.0), (3, 9.0)]
    events: list[dict[str, Any]] = [
        {"kind": "train", "step": step, "policy_loss": loss} for step, loss in losses
    ]
    events.append({"kind": "recovery", "step": 2})
    events.append({"kind": "train", "step": 3, "policy_loss": 1.5})
    (curve,) = training_curves(events)
    assert curve["series"][0]["points"] == [(1.0, 3.0), (2.0, 2.0), (3.0, 1.5)]


def test_long_curves_are_thinned() -> None:
    events = [
        {"kind": "train", "step": step, "policy_loss": float("nan") if step % 2 else 1.0}
        for step in range(5000)
    ]
    (curve,) = training_curves(events)
    points = curve["series"][0]["points"]
    assert len(points) == MOST_POINTS
    assert points[-1] == (4998.0, 1.0)
