"""Means over parts and over steps: of norms' running statistics, and of the weights themselves."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn


class NormStatistics:
    """Running statistics of batch norms over a step computed in several parts.

    Every part starts from the step's first statistics, and the mean of what they came to is what
    stays: the order of the parts, and which process had which, make no difference.
    """

    def __init__(self, net: nn.Module) -> None:
        """`net` is in training mode; norms that are frozen (in evaluation mode) are left alone."""
        norms = [
            module
            for module in net.modules()
            if isinstance(module, nn.BatchNorm2d) and module.training
        ]
        self.buffers = [
            buffer
            for norm in norms
            for buffer in (norm.running_mean, norm.running_var)
            if buffer is not None
        ]
        self._counts = [
            norm.num_batches_tracked for norm in norms if norm.num_batches_tracked is not None
        ]
        self._before = [torch.empty_like(buffer) for buffer in self.buffers]
        self._sums = [torch.zeros_like(buffer) for buffer in self.buffers]
        self._counted = [count.clone() for count in self._counts]

    def begin(self) -> None:
        for counted, count in zip(self._counted, self._counts, strict=True):
            counted.copy_(count)
        for before, total, buffer in zip(self._before, self._sums, self.buffers, strict=True):
            before.copy_(buffer)
            total.zero_()

    def end_part(self) -> None:
        for before, total, buffer in zip(self._before, self._sums, self.buffers, strict=True):
            total.add_(buffer)
            buffer.copy_(before)

    @property
    def sums(self) -> list[Tensor]:
        """What the parts so far came to, together."""
        return self._sums

    def end(self, parts: int) -> None:
        """`parts` are those of all processes."""
        for total, buffer in zip(self._sums, self.buffers, strict=True):
            buffer.copy_(total / parts)
        for counted, count in zip(self._counted, self._counts, strict=True):
            count.copy_(counted + 1)


class Average:
    """The running mean of a net's weights and buffers (exponential moving average)."""

    def __init__(self, net: nn.Module, decay: float) -> None:
        self.decay = decay
        self.net = copy.deepcopy(net).eval().requires_grad_(False)
        mine, theirs = self.net.state_dict(), net.state_dict()
        self._pairs = [
            (mine[name], theirs[name]) for name in mine if mine[name].is_floating_point()
        ]
        self._counts = [
            (mine[name], theirs[name]) for name in mine if not mine[name].is_floating_point()
        ]

    def update(self, step: int) -> None:
        """After step number `step`, from 1: the first steps count for more, so that the mean does
        not remember random weights."""
        decay = min(self.decay, step / (step + 9))
        own = [pair[0] for pair in self._pairs]
        torch._foreach_lerp_(own, [pair[1] for pair in self._pairs], 1 - decay)
        for mine, theirs in self._counts:
            mine.copy_(theirs)
