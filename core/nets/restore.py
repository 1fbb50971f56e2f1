"""Restoring a net from its ONNX file, so that training can continue from it.

A file contains only what evaluation needs: each batch norm is folded into the convolution before it,
and the statistics of its input are lost. `restore` gives the norm the shift that was folded in, and
rescales the convolution's weights to the size of initial weights (the norm compensates the factor), so
that learning rates have their usual effect. `settle_norms` then measures the statistics again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import numpy_helper
from pydantic import ValidationError
from torch import Tensor, nn

from variant_ai.core.errors import DataError
from variant_ai.core.nets.description import run_watched
from variant_ai.core.nets.interface import NetConfig
from variant_ai.core.nets.onnx_export import difference_from, sample_planes
from variant_ai.core.nets.onnx_files import METADATA_PREFIX, read_onnx
from variant_ai.core.system.text_tables import counted

TOLERANCE = 1e-3
"""Largest allowed difference of any output between the file and the restored net."""
Weights = list[NDArray[np.float32]]


def net_config(metadata: Mapping[str, str], path: Path) -> NetConfig:
    """Read the configuration of the net from a file's metadata. Raises DataError if it is missing."""
    try:
        return NetConfig.model_validate(json.loads(metadata["net_config"]))
    except (KeyError, ValueError, ValidationError):
        raise DataError(
            f"{path}: its metadata does not describe the net, which torch needs to build it; use a file "
            "written by `variant-ai train` or `variant-ai export`"
        ) from None


def restore(path: Path) -> nn.Module:
    """Restore the net of an fp32 file written by `export_onnx`, on the CPU, in evaluation mode.

    Raises DataError if the file is damaged or of reduced precision, or if its layers are not those of
    the net it names (compared by number, shape and output).
    """
    model = read_onnx(path)
    metadata = {p.key.removeprefix(METADATA_PREFIX): p.value for p in model.metadata_props}
    precision = metadata.get("precision", "fp32")
    if precision != "fp32":
        raise DataError(f"{path}: is an {precision} file; use the fp32 file that it was made from")
    config = net_config(metadata, path)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = config.build().eval()
    layers, stored = _layers(net, config), _stored(model)
    if len(layers) != len(stored):
        raise DataError(
            f"{path}: has {counted(len(stored), 'layer')} with weights, but the net it names has {len(layers)}; "
            "start from its run directory instead"
        )
    with torch.no_grad():
        for (layer, norm), (kind, weights) in zip(layers, stored, strict=True):
            try:
                _set_weights(layer, norm, kind, weights)
            except ValueError as error:
                raise DataError(
                    f"{path}: {error}; its weights do not fit the net it names"
                ) from None
        planes = sample_planes(config.shape)
        difference = difference_from(net, model.SerializeToString(), planes)
    if not difference <= TOLERANCE:
        raise DataError(
            f"{path}: the restored net differs from the file by {difference:.2g} (at most "
            f"{TOLERANCE:g} is allowed); start from its run directory instead"
        )
    return net


def settle_norms(net: nn.Module, batches: Iterable[Tensor]) -> None:
    """Set the mean and variance of every batch norm to those of its input over these planes
    [B, C, H, W], and its scale and shift so that the outputs in evaluation mode are unchanged.

    A net made by `restore` needs this before it is trained: a norm in training mode divides by the
    variance of the batch, so scale and shift must fit it.
    """
    norms = [module for module in net.modules() if isinstance(module, nn.BatchNorm2d)]
    sums = {norm: torch.zeros(3, norm.num_features, dtype=torch.float64) for norm in norms}

    def watch(norm: nn.Module, given: tuple[Tensor, ...]) -> None:
        assert isinstance(norm, nn.BatchNorm2d)
        x = given[0].double()
        count = x.new_full((x.shape[1],), x.numel() / x.shape[1])
        sums[norm] += torch.stack([count, x.sum((0, 2, 3)), x.square().sum((0, 2, 3))])

    run_watched(net, lambda: [net(planes) for planes in batches], norms, before=watch)
    with torch.no_grad():
        for norm, (count, total, squares) in sums.items():
            assert norm.running_mean is not None and norm.running_var is not None
            if not count.any():
                continue
            mean = total / count
            variance = (squares / count - mean.square()).clamp(min=0)
            slope = norm.weight.double() / (norm.running_var.double() + norm.eps).sqrt()
            norm.bias.add_(slope * (mean - norm.running_mean))
            norm.weight.copy_(slope * (variance + norm.eps).sqrt())
            norm.running_mean.copy_(mean)
            norm.running_var.copy_(variance)


def _layers(net: nn.Module, config: NetConfig) -> list[tuple[nn.Module, nn.BatchNorm2d | None]]:
    """Layers with weights in the order of execution, each with the norm that is folded into it; a norm
    that does not follow a convolution is a layer of its own."""
    order: list[tuple[nn.Module, nn.BatchNorm2d | None]] = []
    made: dict[int, tuple[int, Tensor]] = {}  # the tensor is kept so that its id is not reused

    def watch(module: nn.Module, given: tuple[Tensor, ...], output: Tensor) -> None:
        if isinstance(module, nn.BatchNorm2d) and id(given[0]) in made:
            index, _ = made[id(given[0])]
            order[index] = (order[index][0], module)
            return
        if isinstance(module, nn.Conv2d):
            made[id(output)] = (len(order), output)
        order.append((module, None))

    kinds = (nn.Conv2d, nn.Linear, nn.BatchNorm2d)
    watched = [module for module in net.modules() if isinstance(module, kinds)]
    run_watched(net, lambda: net(sample_planes(config.shape)), watched, after=watch)
    return order


def _stored(model: onnx.ModelProto) -> list[tuple[str, Weights]]:
    """Kind and weights of each node with weights, in the order of the file."""
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    found = []
    for node in model.graph.node:
        if node.op_type == "Identity" and node.input[0] in tensors:  # equal weights are stored once
            tensors[node.output[0]] = tensors[node.input[0]]
        if node.op_type in ("Conv", "Gemm", "BatchNormalization"):
            weights = [numpy_helper.to_array(tensors[n]) for n in node.input[1:] if n in tensors]
            found.append((node.op_type, weights))
    return found


def _set_weights(
    layer: nn.Module, norm: nn.BatchNorm2d | None, kind: str, weights: Weights
) -> None:
    """Set the weights of a layer and of the norm after it. Raises ValueError if they belong to
    another layer."""
    expected = {nn.Linear: "Gemm", nn.BatchNorm2d: "BatchNormalization"}
    if kind != next((w for t, w in expected.items() if isinstance(layer, t)), "Conv"):
        raise ValueError(f"the file has a {kind} in place of a {type(layer).__name__}")
    first, *rest = (torch.from_numpy(np.array(array, np.float32)) for array in weights)
    if isinstance(layer, nn.BatchNorm2d):
        names = ("weight", "bias", "running_mean", "running_var")
        for name, value in zip(names, (first, *rest), strict=True):
            _copy(getattr(layer, name), value)
        return
    assert isinstance(layer, nn.Conv2d | nn.Linear)
    if norm is None:
        _copy(layer.weight, first)
        if len(rest) != (layer.bias is not None):
            raise ValueError("a layer has a bias only in the file or only in the net")
        if layer.bias is not None:
            _copy(layer.bias, rest[0])
        return
    if len(rest) != 1:
        raise ValueError("a convolution has no bias from a folded batch norm")
    assert norm.running_mean is not None and norm.running_var is not None
    size = first.square().mean().sqrt()
    usual = layer.weight.square().mean().sqrt()  # of the initial weights
    factor = float(usual / size) if size > 0 else 1.0
    _copy(layer.weight, first * factor)
    _copy(norm.bias, rest[0])
    nn.init.ones_(norm.weight)
    nn.init.zeros_(norm.running_mean)
    norm.running_var.fill_(factor**2 - norm.eps)


def _copy(own: Tensor, given: Tensor) -> None:
    if own.shape != given.shape:
        raise ValueError(
            f"weights of shape {tuple(given.shape)} for a layer of shape {tuple(own.shape)}"
        )
    own.copy_(given)
