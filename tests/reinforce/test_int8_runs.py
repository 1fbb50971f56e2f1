"""Self-play in int8: every trained net is written a second time, and that file plays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_runs import check_run, small_run, small_settings

from variant_ai.core.errors import SettingError
from variant_ai.core.inference import make_evaluator
from variant_ai.core.inference.model_file import beside_name
from variant_ai.core.reinforce.games.game_supply import LocalGames, open_net
from variant_ai.plugins import registry


def test_trained_nets_play_in_int8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played = []
    use_net = LocalGames.use_net

    def noted(self: LocalGames, path: Path, generation: int) -> None:
        use_net(self, path, generation)
        assert self._net is not None
        played.append((generation, self._net.precision))

    monkeypatch.setattr(LocalGames, "use_net", noted)
    settings = small_settings(precision="int8")
    run = small_run(tmp_path, settings)
    assert run.run()
    check_run(tmp_path, settings.generations or 0, in_hand=settings.games_at_once)
    assert played == [(0, "fp32"), (1, "int8"), (2, "int8")]

    beside = beside_name(run.folder.newest_net, "int8")
    assert beside.read_bytes() == run.folder.int8_net(settings.generations or 0).read_bytes()

    newest, spec = run.folder.net(2), registry().variant(settings.variant)
    planes = np.random.default_rng(0).random((4, *run.training.encoder.shape), np.float32)
    answers = []
    for path in (newest, run.folder.int8_net(2)):
        with make_evaluator(spec, path, evaluator="onnx", batch=4, threads=1) as evaluator:
            answers.append(evaluator.evaluate(planes).value)
    np.testing.assert_allclose(*answers, atol=0.05)


def test_a_killed_run_writes_its_int8_net_when_it_goes_on(tmp_path: Path) -> None:
    settings = small_settings(precision="int8", generations=1)
    run = small_run(tmp_path, settings)
    assert run.run()
    (tmp_path / "state.json").unlink()  # a kill after the net was written
    run.folder.int8_net(1).unlink()
    assert small_run(tmp_path, settings).run()
    assert run.folder.int8_net(1).is_file()


def test_a_run_that_goes_on_in_fp32_has_no_int8_file_of_an_older_net(tmp_path: Path) -> None:
    run = small_run(tmp_path, small_settings(precision="int8", generations=1))
    assert run.run()
    beside = beside_name(run.folder.newest_net, "int8")
    assert beside.is_file()
    assert small_run(tmp_path, small_settings(precision="fp32", generations=2)).run()
    assert not beside.exists()


def test_int8_in_torch_is_an_error_before_there_is_a_run(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with pytest.raises(SettingError, match="int8 runs with openvino or onnx on the device cpu"):
        small_run(folder, small_settings(precision="int8", evaluator="torch")).run()
    assert not folder.exists()


def test_int8_on_a_gpu_is_an_error(tmp_path: Path) -> None:
    settings = small_settings(precision="int8", device="cuda")
    with pytest.raises(SettingError, match="not with onnx on cuda"):
        open_net(registry().variant(settings.variant), tmp_path / "any.onnx", settings)
