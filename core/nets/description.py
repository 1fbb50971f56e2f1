"""The parts of a network: parameters, floating point operations, a table of layers, activations."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from variant_ai.core.errors import VariantAIError
from variant_ai.core.nets.interface import NetShape
from variant_ai.core.nets.network import outputs_of


@dataclass(frozen=True)
class Layer:
    """One row of the table, in order of execution."""

    name: str
    """Path of the module: `tower.0.branch.1`."""
    kind: str
    """The notation of the papers: `conv 3 x 3, 256`, `dconv 3 x 3, 512`, `fc, 256`, `batchnorm`."""
    output: tuple[int, ...]
    """Shape of the output for one position."""
    parameters: int
    flops: int
    """Operations for one position; a multiplication with an addition counts two."""


@dataclass(frozen=True)
class NetReport:
    parameters: int
    """Number of trainable numbers (without the running statistics of batch norms)."""
    flops: int
    """Operations of one evaluation of one position."""
    layers: tuple[Layer, ...] = field(repr=False)


def parameters(net: nn.Module) -> int:
    return sum(weight.numel() for weight in net.parameters())


def describe(net: nn.Module, shape: NetShape) -> NetReport:
    """Run one position through the net and describe each layer.

    The net is unchanged. Norms and activations count two operations and one per number, although
    fused inference does them for nothing; torch's FlopCounterMode would leave them out.
    """
    names = {
        module: name
        for name, module in net.named_modules()
        if next(module.children(), None) is None
    }
    rows: list[Layer] = []

    def record(module: nn.Module, _: Any, output: Tensor) -> None:
        count = sum(weight.numel() for weight in module.parameters(recurse=False))
        size = tuple(output.shape[1:])
        rows.append(Layer(names[module], _kind(module), size, count, _flops(module, output)))

    device = next(net.parameters()).device
    planes = torch.zeros(1, shape.planes, shape.height, shape.width, device=device)
    run_watched(net, lambda: net(planes), names, after=record)
    return NetReport(parameters(net), sum(row.flops for row in rows), tuple(rows))


@contextlib.contextmanager
def evaluating(net: nn.Module) -> Iterator[None]:
    """Put the net into evaluation mode, and each of its modules back into its own mode at the end:
    some may be frozen."""
    modes = {module: module.training for module in net.modules()}
    net.eval()
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training


def run_watched(
    net: nn.Module,
    run: Callable[[], object],
    modules: Iterable[nn.Module],
    *,
    before: Callable[[nn.Module, tuple[Tensor, ...]], None] | None = None,
    after: Callable[[nn.Module, tuple[Tensor, ...], Any], None] | None = None,
) -> None:
    """Call `run` with the net in evaluation mode and without gradients; for each of the modules that
    runs, call `before(module, inputs)` and `after(module, inputs, output)`."""
    watched = list(modules)
    hooks = [module.register_forward_pre_hook(before) for module in watched if before]
    hooks += [module.register_forward_hook(after) for module in watched if after]
    try:
        with evaluating(net), torch.no_grad():
            run()
    finally:
        for hook in hooks:
            hook.remove()


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


# --- activations ---------------------------------------------------------------------------------

Maps = NDArray[np.float32]
PARTS = ("stem", "tower", "value.stem", "policy.stem")


@dataclass(frozen=True)
class Activations:
    """Activation maps of a net for one position, in the mover's view."""

    stem: Maps
    """[K, H, W] after the first convolution."""
    tower: Maps
    """[K, H, W] after the last block."""
    value_map: Maps
    """[k, H, W] last spatial maps of the value head."""
    policy_map: Maps
    """[k, H, W] last spatial maps of the policy head before its output layer."""
    value: float


def activations(net: nn.Module, planes: NDArray[np.float32]) -> Activations:
    """Run the net on planes [1, C, H, W] and return the outputs of its parts ([CrazyAra-preprint]
    figure 4).

    Raises VariantAIError unless the net consists of a stem, a tower and two heads whose stems keep
    the board.
    """
    names: dict[nn.Module, str] = {}
    for name in PARTS:
        try:
            names[net.get_submodule(name)] = name
        except AttributeError:
            raise VariantAIError(
                f"this net ({type(net).__name__}) has no part {name!r}; activations can be shown for "
                "nets of a stem, a tower and two heads"
            ) from None
    kept: dict[str, Maps] = {}
    values: list[float] = []

    def keep(module: nn.Module, _: Any, output: Tensor) -> None:
        # A following ReLU may overwrite the output in place.
        kept[names[module]] = output.detach().float().cpu().numpy().copy()

    def run() -> None:
        values.append(float(outputs_of(net, torch.from_numpy(planes)).value[0]))

    run_watched(net, run, names, after=keep)
    for name, maps in kept.items():
        if maps.ndim != 4:
            raise VariantAIError(f"part {name!r} of this net gives {maps.shape} instead of maps")
    stem, tower, value_map, policy_map = (kept[name][0] for name in PARTS)
    return Activations(stem, tower, value_map, policy_map, values[0])
