"""Batches of positions: what the trainer needs from its data, and batches as tensors on a device.

`core.data.sample.sampler.Sampler` is a source; tests use another one. B batch, C planes, H ranks,
W files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from variant_ai.core.data.sample.sampler import Batch
from variant_ai.core.train.loop.loss import LossWeights, SoftLabels

Samples = Batch
"""A batch of arrays, which the source may reuse when it makes the next batch."""


class Source(Protocol):
    """Batches that depend on the step alone, so that training resumes by naming the step."""

    @property
    def positions(self) -> int:
        """Number of positions that `sweep` goes through."""

    @property
    def steps_per_epoch(self) -> int: ...

    def batches(self, first: int = 0, last: int | None = None) -> Iterator[Samples]:
        """Batches of steps `first` to `last - 1`, endless without `last`."""

    def whole(self) -> Source:
        """The source that a single process would train on; this one if there is one process."""

    def sweep(self, *, limit: int | None = None) -> Iterator[Samples]:
        """Every position once, always in the same order; or a random sample of `limit` of them."""


class PlacedBatch(NamedTuple):
    """`Samples` as tensors on a device."""

    planes: Tensor
    """[B, C, H, W], channels last."""
    action: Tensor
    outcome: Tensor
    """Value labels, `Batch.value`."""
    plies_left: Tensor
    soft: SoftLabels | None
    """Visits of a search, None if the batch has none."""
    weights: LossWeights | None
    """None if all weights are 1 and all values are results."""


def place_batch(samples: Samples, device: torch.device) -> PlacedBatch:
    """Move a batch to the device. On a GPU its arrays may be reused at once; on the CPU they are
    shared."""
    return PlacedBatch(
        _move(samples.planes, device).contiguous(memory_format=torch.channels_last),
        _move(samples.action, device),
        _move(samples.value, device),
        _move(samples.plies_left, device),
        soft_labels(samples, device),
        loss_weights(samples, device),
    )


def soft_labels(samples: Samples, device: torch.device) -> SoftLabels | None:
    """Visits of a search in a batch, None if it has none."""
    if samples.choices.shape[1] == 0:
        return None
    return SoftLabels(_move(samples.choices, device), _move(samples.shares, device))


def loss_weights(samples: Samples, device: torch.device) -> LossWeights | None:
    """Weights of the losses of a batch, None if all are 1 and all values are results."""
    policy, value = samples.policy_weight, samples.value_weight
    if policy.all() and value.all() and np.isin(samples.value, (-1, 0, 1)).all():
        return None
    return LossWeights(_move(policy, device), _move(value, device))


def _move(array: NDArray[Any], device: torch.device) -> Tensor:
    """Copy to a GPU without waiting for earlier steps: from pinned memory, which torch keeps until
    the copy is done."""
    tensor = torch.from_numpy(array)
    if device.type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor
