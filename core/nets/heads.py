"""Value and policy heads ([CrazyAra-preprint] tables 6 to 8, [Xiangqi-thesis] tables 4.8 to 4.10).

Each head is a `stem`, whose convolutions may run in reduced precision, and an `output`, which the
network always runs in fp32: bf16 has eight significant bits, so tanh would be rounded to ±1 and
similar logits would become equal.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from variant_ai.core.nets.layers import conv, conv_norm

PLIES_UNIT = 20.0
"""Unit of the output layer of `plies left` in plies, so that its weights stay near one."""


class HeadModule(nn.Module):
    """A head in two parts: `stem`, x [B, C, H, W] -> features; `output`, features in fp32 -> result."""

    def __init__(self, stem: list[nn.Module], output: list[nn.Module]) -> None:
        super().__init__()
        self.stem = nn.Sequential(*stem)
        self.output = nn.Sequential(*output)


def value_head(channels: int, squares: int, n: int, hidden: int) -> HeadModule:
    """conv 1 x 1, n -> flatten -> fc hidden, ReLU -> fc 1, tanh; result [B, 1]."""
    return HeadModule(
        conv_norm(channels, n, 1),
        [
            nn.Flatten(),
            nn.Linear(n * squares, hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, 1),
            nn.Tanh(),
        ],
    )


class OutcomeHead(nn.Module):
    """A value head with auxiliary outputs: win, draw and loss, or the plies left, or both.

    The layers of the value head up to the hidden one, then an output layer for each output. With
    `wdl` the value is P(win) - P(loss), so that the two are consistent (as in the nets of lc0 and later
    ones of CrazyAra); without it, the value is the papers' tanh.
    """

    def __init__(
        self, channels: int, squares: int, n: int, hidden: int, *, wdl: bool, plies_left: bool
    ) -> None:
        super().__init__()
        self.stem = nn.Sequential(*conv_norm(channels, n, 1))
        self.hidden = nn.Sequential(
            nn.Flatten(), nn.Linear(n * squares, hidden), nn.ReLU(inplace=True)
        )
        self.value = None if wdl else nn.Sequential(nn.Linear(hidden, 1), nn.Tanh())
        self.wdl = nn.Linear(hidden, 3) if wdl else None
        self.plies_left = nn.Sequential(nn.Linear(hidden, 1), nn.Softplus()) if plies_left else None

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """fp32 features of the stem -> value [B], logits of win, draw, loss [B, 3], plies [B]."""
        x = self.hidden(features)
        wdl: Tensor | None = None
        plies: Tensor | None = None
        if self.wdl is not None:
            wdl = self.wdl(x)
            shares = torch.softmax(wdl, 1)
            value = shares[:, 0] - shares[:, 2]
        else:
            assert self.value is not None
            value = self.value(x).squeeze(1)
        if self.plies_left is not None:
            plies = PLIES_UNIT * self.plies_left(x).squeeze(1)
        return value, wdl, plies


def map_head(channels: int, hidden: int, planes: int, *, bias: bool) -> HeadModule:
    """Policy map: conv 3 x 3, channels -> conv 3 x 3, P -> flatten; logits [B, P·H·W]."""
    return HeadModule(
        conv_norm(channels, hidden, 3), [conv(hidden, planes, 3, bias=bias), nn.Flatten()]
    )


def flat_head(channels: int, squares: int, n: int, actions: int) -> HeadModule:
    """Flat labels of the AlphaZero nets: conv 1 x 1, n -> flatten -> fc A; logits [B, A]."""
    return HeadModule(conv_norm(channels, n, 1), [nn.Flatten(), nn.Linear(n * squares, actions)])


def one_hot_head(channels: int, hidden: int, squares: int, n: int, actions: int) -> HeadModule:
    """Flat labels of the RISE nets ([Xiangqi-thesis] table 4.10): the map head's convolutions, then a fully
    connected layer: conv 3 x 3, hidden -> conv 3 x 3, n -> flatten -> fc A; logits [B, A]."""
    return HeadModule(
        [*conv_norm(channels, hidden, 3), *conv_norm(hidden, n, 3)],
        [nn.Flatten(), nn.Linear(n * squares, actions)],
    )
