"""ONNX files: their metadata, and outputs equal to those of the net."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from synthetic import net_config

from variant_ai.core.errors import DataError
from variant_ai.core.inference.model_file import read_model_file
from variant_ai.core.nets import NetShape
from variant_ai.core.nets.description import describe
from variant_ai.core.nets.onnx_export import difference_from, export_onnx, sample_planes


def trained_looking(
    name: str, head: str, board: tuple[int, int]
) -> tuple[torch.nn.Module, NetShape]:
    """A net whose norms have statistics of their own, as after training."""
    torch.manual_seed(1)
    config = net_config(
        name, planes=7, board=board, policy_planes=5, head=head, blocks=2, channels=8,
        actions=None if head == "map" else 33,
    )  # fmt: skip
    net = config.build()
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.running_mean, -0.5, 0.5)
            torch.nn.init.uniform_(module.running_var, 0.5, 2.0)
            torch.nn.init.uniform_(module.bias, -0.5, 0.5)
    return net, config.shape


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("risev2-mobile", "map"),
        ("risev2-mobile", "flat"),
        ("risev3-mobile-small", "map"),
        ("alphazero-4v8p", "flat"),
        ("alphazero-preact-8v-map", "map"),
    ],
)
def test_onnxruntime_agrees_with_torch(name: str, head: str, tmp_path: Path) -> None:
    net, shape = trained_looking(name, head, (10, 9))
    path = tmp_path / "model.onnx"
    assert export_onnx(net, path, {}, shape=shape) <= 1e-4
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    net.eval()
    for batch in (1, 5):  # neither is the batch it was exported with
        planes = torch.rand(batch, 7, 10, 9)
        with torch.no_grad():
            value, logits = net(planes)
        actual = session.run(["value", "policy"], {"planes": planes.numpy()})
        assert actual[0].shape == (batch, 1)
        np.testing.assert_allclose(actual[0][:, 0], value.numpy(), atol=1e-4)
        np.testing.assert_allclose(actual[1], logits.numpy(), atol=1e-4)


def test_the_file_stands_alone(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    net, shape = trained_looking("risev2-mobile", "map", (8, 8))
    export_onnx(net, path, {}, shape=shape)
    assert [p.name for p in tmp_path.iterdir()] == ["model.onnx"]
    model = onnx.load(path, load_external_data=False)
    assert [o.version for o in model.opset_import] == [17]
    assert "BatchNormalization" not in {node.op_type for node in model.graph.node}


def test_metadata(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    net, shape = trained_looking("risev2-mobile", "map", (8, 8))
    export_onnx(
        net, path, {"variant": "somechess", "metrics": {"policy_accuracy": 0.5}}, shape=shape
    )
    metadata = read_model_file(path).metadata
    assert metadata["variant"] == "somechess"
    assert metadata["metrics"] == '{"policy_accuracy": 0.5}'
    assert metadata["format"] == "1"


def test_training_mode_survives(tmp_path: Path) -> None:
    net, shape = trained_looking("risev2-mobile", "map", (8, 8))
    net.train()
    before = {key: value.clone() for key, value in net.state_dict().items()}
    export_onnx(net, tmp_path / "model.onnx", {}, shape=shape)
    assert net.training
    assert all(torch.equal(before[key], value) for key, value in net.state_dict().items())


def test_large_outputs_may_differ_by_as_much_as_they_are_rounded(tmp_path: Path) -> None:
    """fp32 has seven digits: logits of hundreds differ by more than 1e-4 and are the same."""
    net, shape = trained_looking("risev2-mobile", "map", (8, 8))
    with torch.no_grad():
        net.policy.output[0].weight.mul_(20_000)
    assert export_onnx(net, tmp_path / "model.onnx", {}, shape=shape) <= 1e-4
    with torch.no_grad():
        assert net.eval()(torch.rand(3, 7, 8, 8))[1].abs().max() > 1000


def test_a_net_that_says_nan_is_not_written(tmp_path: Path) -> None:
    net, shape = trained_looking("risev2-mobile", "map", (8, 8))
    with torch.no_grad():
        net.policy.output[0].weight[0, 0, 0, 0] = torch.nan
    with pytest.raises(DataError, match="differs from the net by nan"):
        export_onnx(net, tmp_path / "model.onnx", {}, shape=shape)
    assert not list(tmp_path.iterdir())


def test_a_file_that_differs_is_not_written(tmp_path: Path) -> None:
    class Unfaithful(torch.nn.Module):
        """Traces to something else than it does."""

        def __init__(self, net: torch.nn.Module) -> None:
            super().__init__()
            self.net = net

        def forward(self, planes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            value, logits = self.net(planes)
            return value + (0.1 if torch.jit.is_tracing() else 0.0), logits

    net, shape = trained_looking("risev2-mobile", "map", (8, 8))
    with pytest.raises(DataError, match="differs from the net"):
        export_onnx(Unfaithful(net), tmp_path / "model.onnx", {}, shape=shape)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x08\x07\x12"])
def test_foreign_files(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    try:
        assert read_model_file(path).metadata == {}
    except DataError as error:
        assert str(path) in str(error)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere\.onnx"):
        read_model_file(tmp_path / "nowhere.onnx")


def test_no_flipped_bit_plays_silently(tmp_path: Path) -> None:
    """A file with one bit changed is refused, or says what it said before."""
    net, shape = trained_looking("risev2-mobile", "map", (8, 8))
    path = tmp_path / "model.onnx"
    export_onnx(net, path, {"variant": "somechess"}, shape=shape)
    whole = path.read_bytes()
    planes = sample_planes(shape)
    assert difference_from(net, whole, planes) < 1e-4
    rng = random.Random(2)
    ends = [*range(40), *range(len(whole) - 140, len(whole))]
    refused = 0
    for at in [*ends, *(rng.randrange(len(whole)) for _ in range(60))]:
        changed = bytearray(whole)
        changed[at] ^= 1 << rng.randrange(8)
        path.write_bytes(changed)
        try:
            metadata = read_model_file(path).metadata
        except DataError as error:
            assert str(path) in str(error)
            refused += 1
            continue
        assert metadata.get("variant") == "somechess"
        assert difference_from(net, bytes(changed), planes) < 1e-4
    assert refused > 200


def test_a_damaged_weight_is_named_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    net, shape = trained_looking("risev2-mobile", "map", (8, 8))
    export_onnx(net, path, {}, shape=shape)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"model\.onnx: is damaged: .* download it again"):
        read_model_file(path)
    model = onnx.load_from_string(bytes(content))  # as other tools save it, without our checksum
    kept = [p for p in model.metadata_props if p.key != "variant_ai.checksum"]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
    onnx.save(model, str(path))
    read_model_file(path)


def test_exporting_keeps_the_mode_of_every_module(tmp_path: Path) -> None:
    """A trainer may have frozen some norms, and goes on training."""
    net, shape = trained_looking("risev2-mobile", "map", (8, 8))
    net.train()
    frozen = next(module for module in net.modules() if isinstance(module, torch.nn.BatchNorm2d))
    frozen.eval()
    before = {name: module.training for name, module in net.named_modules()}
    export_onnx(net, tmp_path / "model.onnx", {}, shape=shape)
    describe(net, shape)
    assert {name: module.training for name, module in net.named_modules()} == before
