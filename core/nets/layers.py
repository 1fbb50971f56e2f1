"""Building blocks of the papers' tables.

A convolution followed by a batch norm has no bias: the norm's own shift makes it redundant, which the
parameter counts in [Xiangqi-thesis] table 4.13 confirm. All maps have the size of the board.
"""

from __future__ import annotations

import functools
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from variant_ai.core.errors import VariantAIError

Pool = Literal["global", "window"]
POOL_WINDOW = 8
"""Side of the pooling window ([Xiangqi-thesis] table 4.11), the size of a chess board."""


def conv(
    inputs: int, outputs: int, kernel: int, *, groups: int = 1, bias: bool = False
) -> nn.Conv2d:
    """A convolution that keeps height and width."""
    return BoardConv(inputs, outputs, kernel, padding=kernel // 2, groups=groups, bias=bias)


def conv_norm(
    inputs: int, outputs: int, kernel: int, *, groups: int = 1, relu: bool = True
) -> list[nn.Module]:
    """conv, batch norm and, if `relu`, ReLU."""
    layers: list[nn.Module] = [
        conv(inputs, outputs, kernel, groups=groups),
        nn.BatchNorm2d(outputs),
    ]
    return [*layers, nn.ReLU(inplace=True)] if relu else layers


class SqueezeExcite(nn.Module):
    """Scale channels by weights computed from the whole board ([SE]; [Xiangqi-thesis] table
    4.11).

    x [B, C, H, W] -> pool -> fc C/r, ReLU -> fc C, gate -> x scaled channel by channel.

    `pool="global"` averages each channel. `pool="window"` is the thesis's: 8 x 8 windows at
    stride 1, flattened. On an 8 x 8 board it is the same; on 10 x 9 it gives 3 x 2 means per channel.
    """

    def __init__(
        self, channels: int, ratio: int, gate: nn.Module, pool: Pool, board: tuple[int, int]
    ) -> None:
        super().__init__()
        windows = 1
        if pool == "window":
            height, width = board
            if min(board) < POOL_WINDOW:
                raise VariantAIError(
                    f"pool = 'window' averages {POOL_WINDOW} x {POOL_WINDOW} squares, but the board has "
                    f"{height} x {width}; use pool = 'global'"
                )
            windows = (height - POOL_WINDOW + 1) * (width - POOL_WINDOW + 1)
        self.pool = pool
        self.reduce = nn.Linear(channels * windows, max(1, channels // ratio))
        self.relu = nn.ReLU(inplace=True)
        self.expand = nn.Linear(max(1, channels // ratio), channels)
        self.gate = gate

    def forward(self, x: Tensor) -> Tensor:
        if self.pool == "global":
            squeezed = x.mean((2, 3))
        else:
            squeezed = functional.avg_pool2d(x, POOL_WINDOW, stride=1).flatten(1)
        scale: Tensor = self.gate(self.expand(self.relu(self.reduce(squeezed))))
        return x * scale[:, :, None, None]


class SpatialAttention(nn.Module):
    """Scale squares by weights computed from all channels ([CBAM]; [Xiangqi-thesis] table
    4.12).

    x [B, C, H, W] -> mean over C -> conv 7 x 7 with bias, gate -> x scaled square by square.
    """

    def __init__(self, gate: nn.Module) -> None:
        super().__init__()
        self.conv = conv(1, 1, 7, bias=True)
        self.gate = gate

    def forward(self, x: Tensor) -> Tensor:
        scale: Tensor = self.gate(self.conv(x.mean(1, keepdim=True)))
        return x * scale


class Residual(nn.Module):
    """x + branch(x), with a ReLU after the sum if `relu`."""

    def __init__(self, branch: list[nn.Module], *, relu: bool = False) -> None:
        super().__init__()
        self.branch = nn.Sequential(*branch)
        self.relu = nn.ReLU(inplace=True) if relu else None

    def forward(self, x: Tensor) -> Tensor:
        total: Tensor = x + self.branch(x)
        return total if self.relu is None else self.relu(total)


def residual_block(channels: int) -> Residual:
    """AlphaZero's block ([CrazyAra-preprint] table 3): two 3 x 3 convolutions, ReLU after the shortcut."""
    return Residual(
        [*conv_norm(channels, channels, 3), *conv_norm(channels, channels, 3, relu=False)],
        relu=True,
    )


def preactivation_block(channels: int) -> Residual:
    """Pre-activation block with one more norm and one less ReLU ([CrazyAra-preprint] table 4; [PyramidNet]):
    norm, conv, norm, ReLU, conv, norm; nothing after the shortcut."""
    return Residual(
        [
            nn.BatchNorm2d(channels),
            *conv_norm(channels, channels, 3),
            *conv_norm(channels, channels, 3, relu=False),
        ]
    )


def risev2_block(channels: int, width: int, kernel: int, attention: list[nn.Module]) -> Residual:
    """Operating bottleneck ([CrazyAra-preprint] table 5, [Xiangqi-thesis] tables 4.4, 4.5).

    (SE, r) -> conv 1 x 1, width -> dconv k x k, width -> conv 1 x 1, channels; each convolution
    with a norm, ReLU after the first two, none after the shortcut. SE comes first and acts only
    on the branch. attention: SE, or empty.
    """
    return Residual(
        [
            *attention,
            *conv_norm(channels, width, 1),
            *conv_norm(width, width, kernel, groups=width),
            *conv_norm(width, channels, 1, relu=False),
        ]
    )


def risev3_block(channels: int, width: int, kernel: int, attention: nn.Module) -> Residual:
    """RISEv3's bottleneck ([Xiangqi-thesis] tables 4.6, 4.7), with the last norm moved to the front
    and attention just before the shortcut: norm -> conv 1 x 1 -> dconv k x k -> conv 1 x 1 -> SE or SA."""
    return Residual(
        [
            nn.BatchNorm2d(channels),
            *conv_norm(channels, width, 1),
            *conv_norm(width, width, kernel, groups=width),
            conv(width, channels, 1),
            attention,
        ]
    )


# --- a convolution that trains faster on processors with AMX --------------------------------------

ABREAST = 16
"""Number of boards side by side: more is no faster, fewer is slower."""


class BoardConv(nn.Conv2d):
    """`nn.Conv2d` with the same parameters and results.

    When it is trained in bf16 (under autocast) on a processor with AMX, the gradient of its weights
    is computed on boards side by side. That gradient multiplies matrices whose inner dimension is a row
    of the board. AMX processes 32 bf16 numbers of it at a time, so rows of 8 or 9 squares use a quarter
    of it, and the gradient takes a third of a training step. With boards side by side, and a column of
    zeros between them, rows are long, no sum changes, and the gradient takes about half the time. The
    forward pass and the gradient of the input, whose inner dimension is channels, are unchanged.
    """

    def forward(self, x: Tensor) -> Tensor:
        if self._is_faster_abreast(x):
            apply: Any = _Abreast.apply  # torch gives it no types
            result: Tensor = apply(x, self.weight)
            return result
        return super().forward(x)

    def _is_faster_abreast(self, x: Tensor) -> bool:
        return (
            x.device.type == "cpu"
            and torch.is_grad_enabled()
            and self.weight.requires_grad
            and self.groups == 1
            and self.kernel_size == (3, 3)
            and self.padding == (1, 1)
            and self.stride == self.dilation == (1, 1)
            and self.bias is None
            and torch.is_autocast_enabled("cpu")
            and torch.get_autocast_dtype("cpu") == torch.bfloat16
            and len(x) % ABREAST == 0
            and has_amx()
        )


@functools.cache
def has_amx() -> bool:
    """Return True if the processor multiplies bf16 matrices in tiles."""
    return bool(torch.cpu.get_capabilities().get("amx_bf16"))


class _Abreast(torch.autograd.Function):
    """A 3 x 3 convolution in bf16 without bias that keeps height and width."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        reduced, kernel = x.to(torch.bfloat16), weight.to(torch.bfloat16)
        ctx.save_for_backward(reduced, kernel)
        ctx.types = x.dtype, weight.dtype
        return functional.conv2d(reduced, kernel, padding=1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor]:
        x, weight = ctx.saved_tensors
        (gradient,) = gradients
        of_input = None
        if ctx.needs_input_grad[0]:
            of_input = _gradient(gradient, x, weight, 0).to(ctx.types[0])
        return of_input, gradient_of_weights(gradient, x, weight).to(ctx.types[1])


def gradient_of_weights(gradient: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    """Gradient of the weights of a 3 x 3 convolution of B boards, B a multiple of `ABREAST`.

    gradient [B, O, H, W] is the gradient of the output, x [B, C, H, W] the input, weight [O, C, 3, 3].
    """
    return _gradient(_abreast(gradient), _abreast(x), weight, 1)


def _gradient(gradient: Tensor, x: Tensor, weight: Tensor, which: int) -> Tensor:
    """Gradient of the input (0) or of the weights (1)."""
    mask = [number == which for number in range(3)]
    found: Tensor = torch.ops.aten.convolution_backward(
        gradient, x, weight, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, mask
    )[which]
    return found


def _abreast(x: Tensor) -> Tensor:
    """[B, C, H, W] -> [B / n, C, H, n (W + 1)], n = `ABREAST`, with zeros in the column after each
    board, in channels-last layout."""
    boards, channels, height, width = x.shape
    rows = boards // ABREAST
    wide = x.new_empty(rows, height, ABREAST, width + 1, channels)
    wide[:, :, :, width] = 0
    wide[:, :, :, :width] = x.view(rows, ABREAST, channels, height, width).permute(0, 3, 1, 4, 2)
    return wide.view(rows, height, ABREAST * (width + 1), channels).permute(0, 3, 1, 2)
