"""Means of a net over time: of its norms' running statistics, and of its weights."""

from __future__ import annotations

import copy

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm


class NormStatistics:
    """Running statistics of batch norms over a step that is computed in several parts.

    Every part starts from the statistics before the step, and the mean of the results is kept: the
    order of the parts, and which process computed them, make no difference.
    """

    def __init__(self, net: nn.Module) -> None:
        """`net` is in training mode; frozen norms (in evaluation mode) are left alone."""
        norms = [
            module for module in net.modules() if isinstance(module, _BatchNorm) and module.training
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
        self._counted = [count.clone() for count in self._counts]
        self.sums = [torch.zeros_like(buffer) for buffer in self.buffers]
        """Sums of the statistics after each part so far."""

    def begin(self) -> None:
        """Start a step."""
        for counted, count in zip(self._counted, self._counts, strict=True):
            counted.copy_(count)
        for before, total, buffer in zip(self._before, self.sums, self.buffers, strict=True):
            before.copy_(buffer)
            total.zero_()

    def end_part(self) -> None:
        for before, total, buffer in zip(self._before, self.sums, self.buffers, strict=True):
            total.add_(buffer)
            buffer.copy_(before)

    def end(self, parts: int) -> None:
        """Finish a step; `parts` is the number of parts of all processes."""
        for total, buffer in zip(self.sums, self.buffers, strict=True):
            buffer.copy_(total / parts)
        for counted, count in zip(self._counted, self._counts, strict=True):
            count.copy_(counted + 1)


class WeightAverage:
    """Exponential moving average of a net's weights and buffers.

    `torch.optim.swa_utils.AveragedModel` would copy the first step's weights whole; here the first
    steps weigh more in a smooth way, and the checkpoint has the net's own names.
    """

    def __init__(self, net: nn.Module, decay: float) -> None:
        self.decay = decay
        self.net = copy.deepcopy(net).eval().requires_grad_(False)
        own, source = self.net.state_dict(), net.state_dict()
        floats = [name for name in own if own[name].is_floating_point()]
        self._own, self._source = [own[name] for name in floats], [source[name] for name in floats]
        self._counts = [(own[name], source[name]) for name in own if name not in floats]

    def update(self, step: int) -> None:
        """Update after step number `step`, from 1. The first steps weigh more, so that the average
        forgets the random weights."""
        decay = min(self.decay, step / (step + 9))
        torch._foreach_lerp_(self._own, self._source, 1 - decay)
        for own, source in self._counts:
            own.copy_(source)
