"""Nets and batches on a device, in the layout they are computed in."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from variant_ai.core.train.loop.position_source import Samples
from variant_ai.core.train.measure.metrics import Soft


class PlacedBatch(NamedTuple):
    """`Samples` as tensors."""

    planes: Tensor
    """[B, C, H, W], channels last."""
    action: Tensor
    outcome: Tensor
    plies_left: Tensor
    soft: Soft | None
    """The visits of a search, None where the batch has none to learn."""


def place_net(net: nn.Module, device: torch.device) -> None:
    """Moves a net to the device, in the channels-last layout that `place_batch` gives."""
    untyped: Any = net.to(device)  # torch's stubs do not know the keyword
    untyped.to(memory_format=torch.channels_last)


def place_batch(samples: Samples, device: torch.device) -> PlacedBatch:
    """A batch on the device. On a GPU its arrays may be reused at once; on the CPU they are shared."""
    return PlacedBatch(
        _moved(samples.planes, device).contiguous(memory_format=torch.channels_last),
        _moved(samples.action, device),
        _moved(samples.value, device),
        _moved(samples.plies_left, device),
        soft_of(samples, device),
    )


def soft_of(samples: Samples, device: torch.device) -> Soft | None:
    """The visits of a batch, None where it has none to learn."""
    if samples.choices.shape[1] == 0:
        return None
    return Soft(_moved(samples.choices, device), _moved(samples.shares, device))


def _moved(array: NDArray[Any], device: torch.device) -> Tensor:
    """On a GPU a copy that does not hold up the steps before it: out of pinned memory, which torch
    keeps until the copy is done."""
    tensor = torch.from_numpy(array)
    if device.type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor
