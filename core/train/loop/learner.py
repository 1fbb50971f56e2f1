"""The loss of a batch: how it is computed, collected for the log, and checked; and means of a net over
time, of its norms' running statistics and of its weights.

B positions of a (micro) batch. The loss is the mean over positions of

    w · policy + α · u · value + γ · plies left

with the weights w and u of the position's policy and value, which are 1 unless it must not teach them,
where policy is -log p(move played), or -Σ π · log p for the visits of a search, and value is
(z - v)² for the label z and the value v of the net ([CrazyAra-preprint] eq. 1). A net that predicts
win, draw and loss learns them by cross entropy instead of the square, and its value follows from
them; a label z that is no result has the classes max(z, 0), 1 - |z| and max(-z, 0). Plies left are
learnt by Huber's loss in units of `PLIES_UNIT`, quadratic up to half a unit, so that games that
ended much earlier or later than predicted have no greater gradient than others; where they are not
known it is 0.
"""

from __future__ import annotations

import copy
import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm

from variant_ai.core.nets.heads import PLIES_UNIT
from variant_ai.core.nets.network import outputs_of
from variant_ai.core.train.loop.devices import Workers
from variant_ai.core.train.loop.loss import LossWeights, SoftLabels, losses
from variant_ai.core.train.measure.metrics import Scores, rank_of


class BatchResult(NamedTuple):
    """Loss and scores of a batch. Only `loss` has gradients."""

    loss: Tensor
    """Mean over the batch."""
    policy_loss: Tensor
    """[B]."""
    rank: Tensor
    """[B] int64, number of actions with a greater logit than the move played (or visited most)."""
    value: Tensor
    """[B] v."""
    wdl_loss: Tensor | None
    """[B] cross entropy of the value label, of a net that predicts win, draw and loss."""
    plies_error: Tensor | None
    """[B] |predicted plies left - plies left|, of a net that predicts them; NaN where these are not
    known."""


class Learner(nn.Module):
    """A net together with its loss, as one module."""

    def __init__(self, net: nn.Module, value_weight: float, plies_weight: float) -> None:
        super().__init__()
        self.net = net
        self.value_weight, self.plies_weight = value_weight, plies_weight

    def forward(
        self,
        planes: Tensor,
        action: Tensor,
        outcome: Tensor,
        plies_left: Tensor | None,
        soft: SoftLabels | None = None,
        weights: LossWeights | None = None,
    ) -> BatchResult:
        """planes [B, C, H, W], action int64 [B], value label z [B], plies_left [B] (NaN: not known)
        or None; the policy learns `soft` instead of `action` if it is given. Without `weights` every z
        is 1, 0 or -1."""
        outputs = outputs_of(self.net, planes)
        policy, value = losses(outputs.value, outputs.policy, action, outcome, soft)
        wdl = error = None
        if outputs.wdl is not None:
            if weights is None:
                # Outcomes 1, 0 and -1 are the classes 0 (win), 1 (draw) and 2 (loss).
                classes = (1 - outcome).long()
            else:
                classes = torch.stack([outcome.relu(), 1 - outcome.abs(), (-outcome).relu()], 1)
            wdl = functional.cross_entropy(outputs.wdl.float(), classes, reduction="none")
            value = wdl
        if weights is None:
            loss = (policy + self.value_weight * value).mean()
        else:
            loss = (weights.policy * policy + self.value_weight * weights.value * value).mean()
        if outputs.plies_left is not None and plies_left is not None:
            predicted = outputs.plies_left.float()
            known = torch.where(plies_left.isnan(), predicted.detach(), plies_left)
            huber = functional.huber_loss(predicted / PLIES_UNIT, known / PLIES_UNIT, delta=0.5)
            loss = loss + self.plies_weight * huber
            error = (predicted - plies_left).abs().detach()
        return BatchResult(
            loss,
            policy.detach(),
            rank_of(outputs.policy, action),
            outputs.value.detach(),
            None if wdl is None else wdl.detach(),
            error,
        )


class AuxiliaryMeans:
    """Running means of the losses of the auxiliary outputs; their sums are kept in checkpoints."""

    def __init__(self, sums: dict[str, float] | None = None) -> None:
        self.sums = dict(sums or {})

    def add(self, name: str, values: Any) -> None:
        """Add numbers of n positions, an array [n]; NaN is left out."""
        values = values[~np.isnan(values)]
        self.sums[name] = self.sums.get(name, 0.0) + float(values.sum(dtype="float64"))
        count = f"{name}:count"
        self.sums[count] = self.sums.get(count, 0.0) + len(values)

    def means(self) -> dict[str, float]:
        """Mean of each output by its name, NaN over no position."""
        counts = {name: self.sums[f"{name}:count"] for name in self.sums if ":" not in name}
        return {
            name: self.sums[name] / count if count else math.nan for name, count in counts.items()
        }


# --- scores since the last line of the log -------------------------------------------------------


_COLUMNS = {"wdl": "wdl_loss", "plies_left": "plies_error"}
"""Auxiliary output -> its column of `BatchResult`."""


class ScoreWindow:
    """Scores of a fixed number of positions, kept on the device.

    The memory is allocated once, for the reason given at `Scores.empty`, and so that training need
    not wait for a GPU at every step.
    """

    def __init__(self, positions: int, device: torch.device, auxiliary: tuple[str, ...]) -> None:
        """`auxiliary`: outputs of the net besides value and policy."""
        names = ["policy_loss", "value", "outcome", "policy_weight", "value_weight"]
        names += [_COLUMNS[name] for name in auxiliary]
        self._columns: dict[str, Tensor] = {
            name: torch.zeros(positions, device=device) for name in names
        }
        self._columns["rank"] = torch.zeros(positions, dtype=torch.int64, device=device)
        self._size = positions
        self.filled = 0

    def put(self, result: BatchResult, outcome: Tensor, weights: LossWeights | None = None) -> None:
        """Add a batch; outcome [B]."""
        end = self.filled + len(outcome)
        if end > self._size:
            self.filled, end = 0, len(outcome)  # steps that are only timed are never logged
        known: dict[str, Tensor | float] = {
            "outcome": outcome,
            "policy_weight": 1.0 if weights is None else weights.policy,
            "value_weight": 1.0 if weights is None else weights.value,
        }
        for name, column in self._columns.items():
            column[self.filled : end] = known[name] if name in known else getattr(result, name)
        self.filled = end

    def take(self, workers: Workers, part: int) -> tuple[Scores, dict[str, NDArray[Any]]]:
        """Scores of all processes, `part` positions of each in turn, and the columns [n] of the
        auxiliary outputs; the window is empty afterwards. The arrays are valid until the next
        `put`."""
        n, self.filled = self.filled, 0
        taken: dict[str, NDArray[Any]] = {
            name: workers.interleave(column[:n].cpu().numpy(), part)
            for name, column in self._columns.items()
        }
        auxiliary = {name: taken.pop(name) for name in _COLUMNS.values() if name in taken}
        return Scores(log_probability=-taken.pop("policy_loss"), **taken), auxiliary


# --- a loss that cannot be right -----------------------------------------------------------------


class LossGuard:
    """Rejects a loss that is not a number or far above the usual one.

    The usual loss is a running mean over about a hundred steps. The first twenty steps are not
    representative: there, only a large multiple is rejected, from which no training recovers.
    """

    SPAN, WARM, STEEP = 100, 20, 10.0

    def __init__(self, spike: float, usual: float = 0.0, steps: int = 0) -> None:
        self.spike, self.usual, self.steps = spike, usual, steps

    def rejects(self, loss: float) -> bool:
        """Return True if the loss cannot be right; otherwise add it to the running mean."""
        if not math.isfinite(loss):
            return True
        if self.spike and self.steps:
            warm = self.steps >= self.WARM
            factor = self.spike if warm else max(self.spike, self.STEEP)
            if loss > factor * self.usual + 1:
                return True
        self.steps += 1
        self.usual += (loss - self.usual) / min(self.steps, self.SPAN)
        return False


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
