"""Layers of a net from its file: the same numbers as torch computes, and nets of any origin."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper
from synthetic import net_config

from variant_ai.core.errors import DataError
from variant_ai.core.inference.layer_outputs import LayerOutputs
from variant_ai.core.nets.onnx_export import export_onnx


def write(path: Path, nodes: list[onnx.NodeProto], batch: int | str) -> None:
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("planes", TensorProto.FLOAT, [batch, 2, 4, 3])],
        [helper.make_tensor_value_info("policy", TensorProto.FLOAT, [batch, 2, 4, 3])],
    )
    onnx.save(
        helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)]), path
    )


def test_layers_are_those_of_torch(tmp_path: Path) -> None:
    torch.manual_seed(3)
    config = net_config(
        "alphazero-8v-map", planes=5, board=(4, 3), policy_planes=4, blocks=2, channels=6
    )
    net = config.build().eval()
    path = tmp_path / "net.onnx"
    export_onnx(net, path, {"variant": "x"}, shape=config.shape)
    layers = LayerOutputs(path, 4, 3)
    found: dict[str, torch.Tensor] = {}
    for name, module in net.named_modules():
        if isinstance(module, torch.nn.ReLU):
            module.register_forward_hook(
                lambda _, __, output, name=name: found.setdefault(name, output.clone())
            )
    planes = np.random.default_rng(0).random((1, 5, 4, 3), dtype=np.float32)
    with torch.inference_mode():
        net(torch.from_numpy(planes))
    compared = 0
    for index, layer in enumerate(layers.layers):
        ours = layers.evaluate(planes, index)
        assert ours.shape == (layer.channels, 4, 3)
        same = [t for t in found.values() if t.shape[1:] == ours.shape]
        assert any(np.allclose(t[0].numpy(), ours, atol=1e-5) for t in same), layer.name
        compared += 1
    assert compared >= 5


def test_a_net_of_another_project(tmp_path: Path) -> None:
    """A fixed batch, and no activation: every tensor of the board's size is a layer."""
    path = tmp_path / "net.onnx"
    nodes = [
        helper.make_node("Add", ["planes", "planes"], ["twice"]),
        helper.make_node("Neg", ["twice"], ["policy"]),
    ]
    write(path, nodes, 4)
    layers = LayerOutputs(path, 4, 3)
    assert [(one.name, one.channels) for one in layers.layers] == [("twice", 2)]
    planes = np.arange(24, dtype=np.float32).reshape(1, 2, 4, 3)
    np.testing.assert_array_equal(layers.evaluate(planes, 0), 2 * planes[0])


def test_what_cannot_be_shown(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    write(path, [helper.make_node("Neg", ["planes"], ["policy"])], "batch")
    with pytest.raises(DataError, match="has no layer with a value for each of 3 x 4 squares"):
        LayerOutputs(path, 4, 3)
    with pytest.raises(DataError, match="no such model file"):
        LayerOutputs(tmp_path / "other.onnx", 4, 3)
    path.write_text("text")
    with pytest.raises(DataError, match="not a usable ONNX model"):
        LayerOutputs(path, 4, 3)
