"""Training from the weights of a net, frozen layers, and auxiliary outputs."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from synthetic import SyntheticBatch, SyntheticSource, net_config, tiny_config, tiny_net

from variant_ai.core.errors import DataError, VariantAIError
from variant_ai.core.nets.heads import PLIES_UNIT
from variant_ai.core.nets.network import outputs_of
from variant_ai.core.nets.onnx_export import export_onnx
from variant_ai.core.train.loop.learner import AuxiliaryMeans, Learner, LossGuard
from variant_ai.core.train.loop.trainer import DivergedError, Trainer
from variant_ai.core.train.run.checkpoint import find_checkpoint
from variant_ai.core.train.run.run_folder import read_metrics


def train(folder: Path, source: SyntheticSource | None = None, **changes: object):
    config = tiny_config(**changes)
    return Trainer(
        config, source or SyntheticSource(), SyntheticSource(seed=9), folder, tensorboard=False
    ).run()


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "first"
    train(folder, net=tiny_net(blocks=2), steps=60)
    return folder


def test_weights_are_taken_over(first: Path, tmp_path: Path) -> None:
    net = tiny_net(blocks=2)
    result = train(tmp_path, net=net, steps=1, lr_max=1e-6, lr_min=0.0, start_from=str(first))
    before = find_checkpoint(first).model()
    for name, value in result.net.state_dict().items():
        if value.is_floating_point() and "running" not in name:
            torch.testing.assert_close(value.contiguous(), before[name], atol=1e-5, rtol=0)
    assert result.validation is not None
    fresh = train(tmp_path / "fresh", net=net, steps=1, lr_max=1e-6, lr_min=0.0)
    assert fresh.validation is not None
    assert result.validation.policy_loss < fresh.validation.policy_loss - 0.3


@pytest.fixture(scope="module")
def file(first: Path) -> Path:
    """The net of `first` as others get it."""
    net, config = find_checkpoint(first).build(), tiny_net(blocks=2)
    path = first / "net.onnx"
    export_onnx(net, path, {"net_config": config.model_dump_json()}, shape=config.shape)
    return path


def test_a_file_is_gone_on_from_as_its_run_is(first: Path, file: Path, tmp_path: Path) -> None:
    """A step that changes next to nothing, then validation."""
    how = {"net": tiny_net(blocks=2), "steps": 1, "lr_max": 1e-6, "lr_min": 0.0}
    by_run = train(tmp_path / "run", start_from=str(first), **how).validation
    by_file = train(tmp_path / "file", start_from=str(file), **how).validation
    assert by_run is not None and by_file is not None
    assert by_file.policy_loss == pytest.approx(by_run.policy_loss, abs=0.02)
    assert by_file.value_loss == pytest.approx(by_run.value_loss, abs=0.02)


def test_a_net_from_a_file_trains_as_one_from_its_run(
    first: Path, file: Path, tmp_path: Path
) -> None:
    """The loss in training, where norms use the statistics of the batch, over the first steps."""
    how = {"net": tiny_net(blocks=2), "steps": 20, "lr_max": 0.02, "log_every": 5}
    starts = {"run": str(first), "file": str(file), "fresh": ""}
    losses = {}
    for name, start in starts.items():
        train(tmp_path / name, start_from=start, **how)
        losses[name] = [x["policy_loss"] for x in read_metrics(tmp_path / name) if "lr" in x]
    assert losses["file"][-1] == pytest.approx(losses["run"][-1], abs=0.05)
    # Running means of so short a run lag behind, so that the first losses are not quite the same.
    assert losses["file"][0] < losses["run"][0] + 0.2 < losses["fresh"][-1] - 0.1


def test_frozen_layers_stay(first: Path, tmp_path: Path) -> None:
    """Two of three layers: the stem and the first block."""
    result = train(
        tmp_path, net=tiny_net(blocks=2), steps=10, start_from=str(first), freeze=2, lr_max=0.05
    )
    before = find_checkpoint(first).model()
    changed = {
        name
        for name, value in result.net.state_dict().items()
        if not torch.equal(value.contiguous(), before[name])
    }
    assert changed
    assert not [name for name in changed if name.startswith(("stem.", "tower.0."))]
    assert any(name.startswith("tower.1.") for name in changed)
    assert any(name.startswith("policy.") for name in changed)


def test_more_layers_than_there_are(first: Path) -> None:
    config = tiny_config(net=tiny_net(blocks=2), freeze=4, start_from=str(first))
    with pytest.raises(VariantAIError, match="the net has 3, its stem and 2 more"):
        Trainer(config, SyntheticSource(), None, Path())


def test_another_net_is_refused(first: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="do not fit the net"):
        train(tmp_path, net=tiny_net(blocks=1), start_from=str(first))


def test_further_heads_learn(tmp_path: Path) -> None:
    """z and the plies left (20 + 10 z) are written in the planes."""
    net = tiny_net(wdl=True, plies_left=True)
    train(tmp_path, net=net, steps=200, value_weight=0.5, plies_weight=0.5, log_every=20)
    lines = [line for line in read_metrics(tmp_path) if line["kind"] == "train"]
    assert lines[-1]["wdl_loss"] < 0.6 < lines[0]["wdl_loss"]
    assert lines[-1]["plies_error"] < 4 < lines[0]["plies_error"]
    assert lines[-1]["value_accuracy_sign"] > 0.8


def test_value_follows_from_win_draw_and_loss() -> None:
    torch.manual_seed(0)
    net = net_config(
        "alphazero-8v-map", planes=3, board=(4, 5), policy_planes=2, blocks=1, channels=4,
        wdl=True, plies_left=True,
    ).build().eval()  # fmt: skip
    said = outputs_of(net, torch.rand(6, 3, 4, 5))
    assert said.wdl is not None and said.plies_left is not None
    shares = said.wdl.softmax(1)
    torch.testing.assert_close(said.value, shares[:, 0] - shares[:, 2])
    assert said.plies_left.shape == (6,)
    assert (said.plies_left > 0).all()


def test_loss_by_hand() -> None:
    net = net_config(
        "alphazero-8v-map", planes=3, board=(4, 5), policy_planes=2, blocks=1, channels=4,
        wdl=True, plies_left=True,
    ).build().eval()  # fmt: skip
    planes, action = torch.rand(3, 3, 4, 5), torch.tensor([0, 7, 39])
    outcome, plies = torch.tensor([1.0, 0.0, -1.0]), torch.tensor([5.0, 60.0, 21.0])
    learnt = Learner(net, 0.3, 0.7)(planes, action, outcome, plies)
    said = outputs_of(net, planes)
    assert said.wdl is not None and said.plies_left is not None
    policy = -said.policy.log_softmax(1)[range(3), action]
    wdl = -said.wdl.log_softmax(1)[range(3), [0, 1, 2]]
    off = (said.plies_left - plies).abs()
    units = off / PLIES_UNIT
    huber = torch.where(units < 0.5, units**2 / 2, 0.5 * (units - 0.25))
    torch.testing.assert_close(learnt.policy_loss, policy)
    torch.testing.assert_close(learnt.wdl_loss, wdl)
    torch.testing.assert_close(learnt.plies_error, off)
    torch.testing.assert_close(learnt.loss, (policy + 0.3 * wdl).mean() + 0.7 * huber.mean())


def test_plies_left_of_a_game_that_was_cut_off_are_not_learnt() -> None:
    net = net_config(
        "alphazero-8v-map", planes=3, board=(4, 5), policy_planes=2, blocks=1, channels=4,
        plies_left=True,
    ).build().eval()  # fmt: skip
    planes, action = torch.rand(2, 3, 4, 5), torch.tensor([0, 7])
    outcome, plies = torch.tensor([1.0, 0.0]), torch.tensor([50.0, math.nan])
    both = Learner(net, 0.3, 0.7)(planes, action, outcome, plies)
    without = Learner(net, 0.3, 0.0)(planes, action, outcome, plies)
    said = outputs_of(net, planes[:1])
    assert said.plies_left is not None and both.plies_error is not None
    off = (said.plies_left - 50).abs().item() / PLIES_UNIT
    assert (both.loss - without.loss).item() == pytest.approx(
        0.7 * 0.5 * (off - 0.25) / 2, rel=1e-4
    )
    assert both.plies_error.isnan().tolist() == [False, True]
    both.loss.backward()
    assert all(weight.grad is None or weight.grad.isfinite().all() for weight in net.parameters())


def test_a_log_line_without_a_known_value() -> None:
    means = AuxiliaryMeans()
    means.add("plies_error", np.array([3.0, math.nan, 5.0], np.float32))
    means.add("wdl_loss", np.zeros(0, np.float32))
    assert means.means() == {"plies_error": 4.0, "wdl_loss": pytest.approx(math.nan, nan_ok=True)}


class TestSpikes:
    def test_guard(self) -> None:
        guard = LossGuard(2.0)
        assert not any(guard.rejects(9.0 - 0.1 * k) for k in range(20))
        assert guard.rejects(40.0)
        assert not guard.rejects(8.0)
        assert guard.rejects(float("nan"))
        assert guard.rejects(float("inf"))
        assert guard.usual < 10  # what was refused is not remembered

    def test_early_losses_prove_nothing(self) -> None:
        guard = LossGuard(2.0)
        assert not guard.rejects(3.0)
        assert not guard.rejects(30.0)
        assert guard.rejects(1e4)  # no training starts like this

    def test_zero_lets_every_number_pass(self) -> None:
        guard = LossGuard(0.0, usual=1.0, steps=50)
        assert not guard.rejects(1e9)
        assert guard.rejects(float("nan"))

    def test_a_spike_is_stepped_past(self, tmp_path: Path) -> None:
        source = Mislabelled(34)
        result = train(tmp_path, source, spike=1.0)
        assert result.state.recoveries == 1
        assert result.state.lr_scale == 0.5
        assert source.served == [*range(35), *range(35, 45)]
        kept = find_checkpoint(tmp_path / "checkpoints/step-00000030")
        assert kept.state().recoveries == 1, "a kill now must not meet the batch again"
        assert kept.state().data_shift == 5

    def test_an_endless_spike_ends(self, tmp_path: Path) -> None:
        with pytest.raises(DivergedError, match="after 3 returns"):
            train(tmp_path, Mislabelled(*range(32, 99)), spike=1.0)


class Mislabelled(SyntheticSource):
    """Some batches tell other moves than all the others do."""

    def __init__(self, *wrong: int) -> None:
        super().__init__()
        self.wrong = wrong

    def batch(self, step: int) -> SyntheticBatch:
        batch = super().batch(step)
        if step in self.wrong:
            batch.action = (batch.action + 7) % 24
        return batch
