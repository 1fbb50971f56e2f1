"""Nets that see counts as they are: the normalised planes multiplied back at the entrance.

Every net is fed planes in [0, 1], whoever feeds it. One that is to learn from raw counts, to show
what normalisation is worth (paper 000, section 4.1), undoes it itself, so that training, export and
search need not know.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from variant_ai.core.nets.network import Network


class InputScale(nn.Module):
    """planes [B, C, H, W] -> the same, each plane times its own number."""

    scale: Tensor

    def __init__(self, scale: Sequence[float]) -> None:
        super().__init__()
        self.register_buffer("scale", torch.tensor(scale).reshape(1, -1, 1, 1))

    def forward(self, planes: Tensor) -> Tensor:
        return planes * self.scale


def scale_input(net: nn.Module, scale: Sequence[float]) -> nn.Module:
    """The net behind an `InputScale` of C numbers; a `Network` stays one."""
    if isinstance(net, Network):
        net.stem = nn.Sequential(InputScale(scale), net.stem)
        return net
    return nn.Sequential(InputScale(scale), net)
