"""Optimisers and schedules, and nets on raw counts ([CrazyAra-preprint] figure 2)."""

from __future__ import annotations

import contextlib
import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from synthetic import SyntheticSource, assert_same_bits, tiny_config, tiny_net
from torch import nn

from variant_ai.core.encoding import Encoder
from variant_ai.core.nets.onnx_export import export_onnx
from variant_ai.core.spec import builtin_specs, load_spec
from variant_ai.core.train.loop.muon import Muon, orthogonal
from variant_ai.core.train.loop.optimisers import OPTIMISERS, OneCycle, Optimiser
from variant_ai.core.train.loop.trainer import Trainer
from variant_ai.core.train.run.checkpoint import find_checkpoint
from variant_ai.core.train.run.plan import prepare
from variant_ai.core.train.run.run_folder import read_metrics
from variant_ai.core.train.run.training_settings import TrainConfig, TrainRequest


def trainer(folder: Path, optimiser: str, **changes: object) -> Trainer:
    config = tiny_config(**{"optimiser": optimiser, "lr_max": 1e-2, **changes})
    return Trainer(config, SyntheticSource(), SyntheticSource(seed=9), folder, tensorboard=False)


def test_adam_learns_at_a_constant_rate(tmp_path: Path) -> None:
    result = trainer(tmp_path, "adam", steps=150, validate_every=1000).run()
    assert result.validation is not None
    assert result.validation.policy_accuracy > 0.5  # chance is 1 / 24
    rates = {line["lr"] for line in read_metrics(tmp_path) if line["kind"] == "train"}
    assert rates == {1e-2}


def test_muon_learns_on_one_cycle(tmp_path: Path) -> None:
    made = trainer(tmp_path, "muon", lr_max=0.05, steps=150, validate_every=1000)
    result = made.run()
    assert result.validation is not None
    assert result.validation.policy_accuracy > 0.5
    rates = [line["lr"] for line in read_metrics(tmp_path) if line["kind"] == "train"]
    assert rates[-1] < 0.01 < max(rates) <= 0.05


@pytest.fixture
def rmsprop(monkeypatch: pytest.MonkeyPatch) -> None:
    """An optimiser that is added by one record."""

    def make(net: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
        return torch.optim.RMSprop(net.parameters(), lr=config.lr_max)

    record = Optimiser(
        "rmsprop",
        "RMSprop",
        "steps divided by the root of the mean square of gradients",
        make,
        lambda training, batch, factor: 1e-3,
        {"square_avg": ""},
        constant_momentum=0.0,
        counts_steps=True,
    )
    monkeypatch.setitem(OPTIMISERS, record.name, record)


@pytest.mark.usefixtures("rmsprop")
@pytest.mark.parametrize("optimiser", ["adam", "muon", "rmsprop"])
def test_it_resumes_to_the_same_bits(tmp_path: Path, optimiser: str) -> None:
    whole = trainer(tmp_path / "whole", optimiser).run()

    stopping = trainer(tmp_path / "parts", optimiser)
    taken = stopping.step_at

    def interrupted(*arguments: object) -> torch.Tensor:
        if stopping.state.step == 27:
            raise KeyboardInterrupt
        return taken(*arguments)  # type: ignore[arg-type]

    stopping.step_at = interrupted  # type: ignore[method-assign]
    with contextlib.suppress(KeyboardInterrupt):
        stopping.run()
    assert find_checkpoint(tmp_path / "parts").state().step == 20
    resumed = trainer(tmp_path / "parts", optimiser).run(resume=True)
    assert_same_bits(whole.checkpoint.path, resumed.checkpoint.path)
    kept = load_file(whole.checkpoint.path / "optimiser.safetensors")
    seconds = {name.startswith("exp_avg_sq/") for name in kept}
    assert seconds == ({True, False} if optimiser == "adam" else {False})


@pytest.mark.parametrize("shape", [(3, 16, 144), (2, 40, 9), (1, 7, 7)])
def test_orthogonal_matrices_keep_their_singular_vectors(shape: tuple[int, int, int]) -> None:
    torch.manual_seed(4)
    given = torch.randn(shape, dtype=torch.float64)
    made = orthogonal(given)
    values = torch.linalg.svdvals(made)
    assert values.min() > 0.3 and values.max() < 1.25
    # U S Vt and U S' Vt: their product is symmetric and positive
    product = made @ given.mT
    torch.testing.assert_close(product, product.mT)
    assert torch.linalg.eigvalsh(product).min() > -1e-6
    assert not orthogonal(torch.zeros(shape)).any()


def test_muon_orthogonalises_the_kernels_that_mix_channels_and_no_others() -> None:
    torch.manual_seed(5)
    first, fixed = nn.Conv2d(4, 8, 3), nn.Conv2d(8, 4, 1)
    fixed.weight.requires_grad_(False)
    net = nn.Sequential(
        first,
        nn.Conv2d(8, 8, 3, groups=8),
        nn.BatchNorm2d(8),
        fixed,
        nn.Flatten(),
        nn.Linear(4, 3),
    )
    twin = copy.deepcopy(net)
    common: dict[str, float] = {"lr": 0.1, "momentum": 0.9, "weight_decay": 1e-4}
    muon = Muon(net, dtype=torch.float32, **common)  # type: ignore[arg-type]
    sgd = torch.optim.SGD(twin.parameters(), nesterov=True, **common)
    before = first.weight.detach().clone()
    planes = torch.randn(6, 4, 5, 5)
    for layers, optimiser in ((net, muon), (twin, sgd)):
        layers(planes).square().sum().backward()
        optimiser.step()
    moved = (first.weight - before).flatten(1)
    lengths = torch.linalg.svdvals(moved) / 0.1
    assert 0.7 < lengths.max() < 1.25
    for (name, mine), theirs in zip(net.named_parameters(), twin.parameters(), strict=True):
        assert torch.equal(mine, theirs) == (name != "0.weight"), name


def test_muon_leaves_kernels_alone_that_learn_nothing() -> None:
    """Decay alone, orthogonalised, would be a step of full length."""
    torch.manual_seed(6)
    net = nn.Sequential(nn.Conv2d(4, 8, 3), nn.Conv2d(8, 8, 3))
    net[1].weight.register_hook(torch.zeros_like)
    muon = Muon(net, lr=0.1, momentum=0.9, weight_decay=1e-2, dtype=torch.float32)
    before = [layer.weight.detach().clone() for layer in (net[0], net[1])]
    net(torch.ones(2, 4, 5, 5)).square().sum().backward()
    muon.step()
    assert not torch.equal(net[0].weight, before[0])
    assert torch.equal(net[1].weight, before[1])


def test_a_scaled_input_is_part_of_the_net(tmp_path: Path) -> None:
    """The same weights on scaled planes say what the net says on its own."""
    scale = (500.0, 1.0, 40.0, 2.0)
    plain, scaled = tiny_net(), tiny_net().model_copy(update={"input_scale": scale})
    torch.manual_seed(3)
    bare = plain.build().eval()
    torch.manual_seed(3)
    net = scaled.build().eval()
    planes = torch.rand(5, 4, 4, 3)
    factors = torch.tensor(scale)[:, None, None]
    with torch.inference_mode():
        for mine, theirs in zip(net(planes), bare(planes * factors), strict=True):
            torch.testing.assert_close(mine, theirs)
    assert type(scaled).model_validate_json(scaled.model_dump_json()) == scaled
    assert export_onnx(net, tmp_path / "scaled.onnx", {}, shape=scaled.shape) <= 1e-4


def test_without_normalising_the_net_sees_what_the_encoder_calls_raw(
    tmp_path: Path, crazyhouse_store: Path
) -> None:
    spec = load_spec(builtin_specs()["crazyhouse"])
    request = TrainRequest(
        spec=spec,
        stores=(crazyhouse_store,),
        net="alphazero-4v8p",
        size={"blocks": 1, "channels": 8},
        steps=1,
        batch=4,
        normalise=False,
        optimiser="adam",
        precision="fp32",
        threads=1,
    )
    config = prepare(request).config
    assert (config.optimiser, config.lr_max) == ("adam", 1e-3)
    encoder = Encoder(spec)
    from variant_ai.core.data.store.game_store import Store

    store = Store(crazyhouse_store)
    rules = store.codec.rules  # type: ignore[attr-defined]
    position = rules.position()
    for move in store.game(0).moves:
        position = rules.play(position, move)
    normal, raw = encoder.planes(position), encoder.planes(position, raw=True)
    assert np.abs(raw - normal).max() > 1
    net = config.net.build()
    seen = net.stem[0](torch.from_numpy(normal))  # type: ignore[index, operator]
    np.testing.assert_allclose(seen.numpy(), raw, rtol=1e-6)
    assert prepare(request.model_copy(update={"normalise": True})).config.net.input_scale == ()


# --- one cycle -----------------------------------------------------------------------------------


def cycle(steps: int = 100, warmup: float = 0.25) -> OneCycle:
    return OneCycle(steps, 0.35, 1e-5, (0.85, 0.95), warmup)


def test_one_cycle_has_its_corners() -> None:
    schedule = cycle()
    assert schedule.lr_at(0) == pytest.approx(1e-5)
    assert schedule.lr_at(25) == pytest.approx(0.35)
    assert schedule.lr_at(100) == pytest.approx(1e-5)
    assert schedule.momentum_at(0) == pytest.approx(0.95)
    assert schedule.momentum_at(25) == pytest.approx(0.85)


def test_one_cycle_is_linear_both_ways() -> None:
    schedule = cycle()
    up = [schedule.lr_at(s + 1) - schedule.lr_at(s) for s in range(25)]
    down = [schedule.lr_at(s + 1) - schedule.lr_at(s) for s in range(25, 99)]
    assert up == pytest.approx([up[0]] * len(up))
    assert down == pytest.approx([down[0]] * len(down))


@given(st.integers(1, 2000), st.floats(0.01, 0.99), st.data())
def test_momentum_mirrors_the_rate(steps: int, warmup: float, data: st.DataObject) -> None:
    schedule = cycle(steps, warmup)
    step = data.draw(st.integers(0, steps - 1))
    share = (schedule.lr_at(step) - 1e-5) / (0.35 - 1e-5)
    assert -1e-12 <= share <= 1 + 1e-12
    assert schedule.momentum_at(step) == pytest.approx(0.95 - 0.1 * share)
