"""A net restored from its file has the same outputs and can be trained further."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper
from synthetic import net_config
from torch import nn

from variant_ai.core.errors import DataError
from variant_ai.core.nets import NetConfig, core_networks
from variant_ai.core.nets.onnx_export import difference_from, export_onnx, sample_planes
from variant_ai.core.nets.onnx_files import serialised
from variant_ai.core.nets.restore import restore, settle_norms

BOARD, PLANES, POLICY = (10, 9), 5, 3


def configure(name: str, **options: object) -> NetConfig:
    size = {"blocks": 3, "channels": 16}
    known = core_networks()[name].size_type.model_fields
    size = {key: value for key, value in size.items() if key in known}
    return net_config(
        name,
        planes=PLANES,
        board=BOARD,
        policy_planes=POLICY,
        **{"actions": 40 if options.get("head") == "flat" else None, **size, **options},
    )


def used(config: NetConfig) -> nn.Module:
    """A net whose norms have seen something, and whose weights are not as they were drawn."""
    torch.manual_seed(3)
    net = config.build().train()
    with torch.no_grad():
        for weight in net.parameters():
            weight.mul_(1.3).add_(0.02 * torch.randn_like(weight))
        for _ in range(3):
            net(3 * torch.rand(8, PLANES, *BOARD))
    return net.eval()


def write(net: nn.Module, config: NetConfig, path: Path, **metadata: str) -> Path:
    said = {"net_config": config.model_dump_json(), **metadata}
    export_onnx(net, path, said, shape=config.shape)
    return path


@pytest.mark.parametrize("name", sorted(core_networks()))
def test_every_net_says_what_its_file_says(name: str, tmp_path: Path) -> None:
    for head in core_networks()[name].heads:
        config = configure(name, head=head)
        net = used(config)
        path = write(net, config, tmp_path / f"{head}.onnx")
        mine = restore(path)
        planes = sample_planes(config.shape)
        with torch.no_grad():
            for one, other in zip(mine(planes), net(planes), strict=True):
                torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    "size", [{"wdl": True}, {"plies_left": True, "wdl": True}, {"pool": "window"}]
)
def test_nets_with_options(size: dict[str, object], tmp_path: Path) -> None:
    config = configure("risev2-mobile", **size).model_copy(
        update={"input_scale": (1.0, 2.0, 1.0, 40.0, 1.0)}
    )
    path = write(used(config), config, tmp_path / "net.onnx")
    restore(path)  # compares every output


def test_a_net_whose_layers_are_equal_still(tmp_path: Path) -> None:
    """A net before its first step: weights shared by several layers are stored once."""
    config = configure("alphazero-8v-map")
    torch.manual_seed(1)
    net = config.build()
    restore(write(net, config, tmp_path / "net.onnx"))


def test_settled_norms_change_nothing_and_know_their_input(tmp_path: Path) -> None:
    config = configure("risev3-mobile-small")
    path = write(used(config), config, tmp_path / "net.onnx")
    net = restore(path)
    content = path.read_bytes()
    planes = [3 * torch.rand(32, PLANES, *BOARD) for _ in range(4)]
    settle_norms(net, iter(planes))
    assert difference_from(net, content, sample_planes(config.shape)) < 1e-4
    # In training a norm uses the batch's own statistics: with the same planes the net is the same.
    every = torch.cat(planes)
    with torch.no_grad():
        evaluated = net(every)[1]
        trained = net.train()(every)[1]
    torch.testing.assert_close(trained, evaluated, atol=2e-2, rtol=2e-2)


def test_unsettled_norms_would_train_another_net(tmp_path: Path) -> None:
    """The purpose of `settle_norms`."""
    config = configure("risev3-mobile-small")
    net = restore(write(used(config), config, tmp_path / "net.onnx"))
    planes = 3 * torch.rand(128, PLANES, *BOARD)
    with torch.no_grad():
        evaluated = net(planes)[1]
        trained = net.train()(planes)[1]
    assert (trained - evaluated).abs().max() > 0.1


def test_weights_are_as_great_as_a_training_begins_with(tmp_path: Path) -> None:
    config = configure("alphazero-8v-map")
    net = used(config)
    with torch.no_grad():
        net.stem[0].weight.mul_(50)
        net.stem[1].running_var.mul_(2500)
    mine = restore(write(net, config, tmp_path / "net.onnx"))
    torch.manual_seed(0)
    drawn = config.build().stem[0].weight.std().item()
    assert mine.stem[0].weight.std().item() == pytest.approx(drawn, rel=0.1)


class TestRefused:
    @pytest.fixture
    def config(self) -> NetConfig:
        return configure("alphazero-8v-map")

    @pytest.fixture
    def path(self, config: NetConfig, tmp_path: Path) -> Path:
        return write(used(config), config, tmp_path / "net.onnx")

    def test_a_file_that_does_not_say_its_net(self, config: NetConfig, tmp_path: Path) -> None:
        export_onnx(used(config), tmp_path / "bare.onnx", {}, shape=config.shape)
        with pytest.raises(DataError, match="does not describe the net"):
            restore(tmp_path / "bare.onnx")

    def test_reduced_precision(self, config: NetConfig, tmp_path: Path) -> None:
        path = write(used(config), config, tmp_path / "net.onnx", precision="int8")
        with pytest.raises(DataError, match="an int8 file; use the fp32 file"):
            restore(path)

    def test_a_damaged_file(self, path: Path) -> None:
        path.write_bytes(path.read_bytes()[:-500])
        with pytest.raises(DataError, match="is not a usable ONNX model"):
            restore(path)

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"blocks": 2}, "layers with weights, but the net it names has"),
            ({"channels": 8}, r"weights of shape \(16, .*\) for a layer of shape \(8"),
        ],
    )
    def test_another_net_than_it_names(
        self, changes: dict[str, int], said: str, config: NetConfig, tmp_path: Path
    ) -> None:
        other = configure("alphazero-8v-map", **changes)
        path = tmp_path / "net.onnx"
        export_onnx(used(config), path, {"net_config": other.model_dump_json()}, shape=config.shape)
        with pytest.raises(DataError, match=said):
            restore(path)

    def test_a_file_that_computes_something_else(self, path: Path) -> None:
        model = onnx.load(path)
        relus = [node for node in model.graph.node if node.op_type == "Relu"]
        relus[0].op_type = "Sigmoid"
        path.write_bytes(serialised(model))
        with pytest.raises(DataError, match="differs from the file by"):
            restore(path)

    def test_weights_that_are_no_numbers(self, path: Path) -> None:
        model = onnx.load(path)
        first = model.graph.initializer[0]
        broken = np.full_like(numpy_helper.to_array(first), np.nan)
        first.CopyFrom(numpy_helper.from_array(broken, first.name))
        path.write_bytes(serialised(model))
        with pytest.raises(DataError, match="differs from the file by nan"):
            restore(path)
