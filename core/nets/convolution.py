"""A convolution that trains faster on processors with AMX.

The gradient of a convolution's weights multiplies matrices whose inner dimension is a row of the
board. AMX processes 32 bf16 numbers of it at a time, so rows of 8 or 9 squares use a quarter of it,
and that gradient takes a third of a training step. Here boards are placed side by side, with a column
of zeros between them: rows are long, no sum changes, and the gradient takes about half the time. The
forward pass and the gradient of the input, whose inner dimension is channels, are unchanged.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

ABREAST = 16
"""Number of boards side by side: more is no faster, fewer is slower."""


class BoardConv(nn.Conv2d):
    """`nn.Conv2d` with the same parameters and results.

    When it is trained in bf16 (under autocast) on a processor with AMX, the gradient of its weights
    is computed on boards side by side.
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
