"""Adam beside Nesterov, and nets that see counts as they are (paper 000, figure 2)."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from synthetic import SyntheticSource, assert_same_bits, tiny_config, tiny_net

from variant_ai.core.encoding import Encoder
from variant_ai.core.nets.export import export_onnx
from variant_ai.core.train.checkpoint import find_checkpoint
from variant_ai.core.train.plan import TrainRequest, prepare
from variant_ai.core.train.record import read_metrics
from variant_ai.core.train.trainer import Trainer
from variant_ai.specs import builtin_specs, load_spec


def trainer(folder: Path, **changes: object) -> Trainer:
    config = tiny_config(optimiser="adam", lr_max=1e-2, **changes)
    return Trainer(config, SyntheticSource(), SyntheticSource(seed=9), folder, tensorboard=False)


def test_adam_learns_at_a_constant_rate(tmp_path: Path) -> None:
    result = trainer(tmp_path, steps=150, validate_every=1000).run()
    assert result.validation is not None
    assert result.validation.policy_accuracy > 0.5  # chance is 1 / 24
    rates = {line["lr"] for line in read_metrics(tmp_path) if line["kind"] == "train"}
    assert rates == {1e-2}


def test_adam_resumes_to_the_same_bits(tmp_path: Path) -> None:
    whole = trainer(tmp_path / "whole").run()

    stopping = trainer(tmp_path / "parts")
    taken = stopping.step_at

    def interrupted(*given: object) -> torch.Tensor:
        if stopping.state.step == 27:
            raise KeyboardInterrupt
        return taken(*given)  # type: ignore[arg-type]

    stopping.step_at = interrupted  # type: ignore[method-assign]
    with contextlib.suppress(KeyboardInterrupt):
        stopping.run()
    assert find_checkpoint(tmp_path / "parts").state().step == 20
    resumed = trainer(tmp_path / "parts").run(resume=True)
    assert_same_bits(whole.checkpoint.path, resumed.checkpoint.path)
    kept = load_file(whole.checkpoint.path / "optimiser.safetensors")
    assert {name.startswith("exp_avg_sq/") for name in kept} == {True, False}


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
    assert export_onnx(net, tmp_path / "scaled.onnx", {}) <= 1e-4


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
    from variant_ai.core.data.store import Store

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
    assert (
        prepare(TrainRequest(**{**vars(request), "normalise": True})).config.net.input_scale == ()
    )
