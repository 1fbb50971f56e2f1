"""What a network consists of: parameters, floating point operations, a table of its layers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from variant_ai.core.nets.interface import NetShape
from variant_ai.core.nets.layers import Gating


@dataclass(frozen=True)
class Layer:
    """One row of the table, in order of execution."""

    name: str
    """Path of the module: `tower.0.branch.1`."""
    kind: str
    """As the papers write it: `conv 3 x 3, 256`, `dconv 3 x 3, 512`, `fc, 256`, `batchnorm`."""
    output: tuple[int, ...]
    """Shape of the output for one position."""
    parameters: int
    flops: int
    """Operations for one position, a multiplication and an addition counting two."""


@dataclass(frozen=True)
class NetReport:
    parameters: int
    """Trainable numbers (the running statistics of batch norms are not among them)."""
    flops: int
    """Operations of one evaluation of one position."""
    layers: tuple[Layer, ...] = field(repr=False)


def parameters(net: nn.Module) -> int:
    return sum(weight.numel() for weight in net.parameters())


def describe(net: nn.Module, shape: NetShape | None = None) -> NetReport:
    """Runs one position through the net and reads what each layer did.

    `shape` may be left out for the project's own nets, which carry it. The net is left as it was.
    Operations of norms and activations are counted as two and one per number; fused inference
    does them for nothing.
    """
    if shape is None:
        carried = getattr(net, "shape", None)
        if not isinstance(carried, NetShape):
            raise TypeError("describe needs the shape of a net that does not carry it")
        shape = carried
    rows: list[Layer] = []
    with _hooks(net, rows), _evaluating(net), torch.no_grad():
        device = next(net.parameters()).device
        net(torch.zeros(1, shape.planes, shape.height, shape.width, device=device))
    return NetReport(parameters(net), sum(row.flops for row in rows), tuple(rows))


@contextmanager
def _evaluating(net: nn.Module) -> Iterator[None]:
    training = net.training
    net.eval()
    try:
        yield
    finally:
        net.train(training)


@contextmanager
def _hooks(net: nn.Module, rows: list[Layer]) -> Iterator[None]:
    handles = []
    for name, module in net.named_modules():
        if next(module.children(), None) is None:

            def record(module: nn.Module, _: Any, output: Tensor, name: str = name) -> None:
                count = sum(weight.numel() for weight in module.parameters(recurse=False))
                rows.append(
                    Layer(
                        name, _kind(module), tuple(output.shape[1:]), count, _flops(module, output)
                    )
                )

            handles.append(module.register_forward_hook(record))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _kind(module: nn.Module) -> str:
    match module:
        case nn.Conv2d():
            side = f"{module.kernel_size[0]} x {module.kernel_size[1]}"
            bias = "" if module.bias is None else ", bias"
            word = "dconv" if module.groups > 1 else "conv"
            return f"{word} {side}, {module.out_channels}{bias}"
        case nn.Linear():
            return f"fc, {module.out_features}"
        case nn.BatchNorm2d():
            return "batchnorm"
        case Gating():
            return module.kind
        case _:
            return type(module).__name__.lower()


def _flops(module: nn.Module, output: Tensor) -> int:
    numbers = output.numel()
    match module:
        case nn.Conv2d():
            per_number = module.in_channels // module.groups
            per_number *= module.kernel_size[0] * module.kernel_size[1]
            return numbers * (2 * per_number + (module.bias is not None))
        case nn.Linear():
            return numbers * (2 * module.in_features + (module.bias is not None))
        case nn.BatchNorm2d():
            return 2 * numbers
        case nn.Flatten():
            return 0
        case _:
            return numbers
