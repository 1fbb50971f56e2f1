"""What a trainer is put together from: frozen layers, processes, optimiser, schedule."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from variant_ai.core.errors import VariantAIError
from variant_ai.core.train.loop.distributed import Workers
from variant_ai.core.train.loop.learner import Learner
from variant_ai.core.train.loop.muon import Muon
from variant_ai.core.train.loop.schedule import Constant, OneCycle
from variant_ai.core.train.run.training_settings import TrainConfig

ADAM_BETA = 0.9
"""β₁, which the record shows as Adam's momentum."""


def frozen_layers(net: nn.Module, count: int) -> Sequence[nn.Module]:
    """The first `count` layers of a net: its stem, then block after block.

    Raises VariantAIError where it has fewer, or does not say what its layers are.
    """
    if count == 0:
        return ()
    layers = getattr(net, "layers", None)
    if layers is None:
        raise VariantAIError("this net does not name its layers, so none of them can be frozen")
    if count > len(layers):
        raise VariantAIError(
            f"{count} layers cannot be frozen: the net has {len(layers)}, its stem and "
            f"{len(layers) - 1} more, before the heads"
        )
    first: Sequence[nn.Module] = layers[:count]
    return first


def wrap_learner(
    learner: Learner, config: TrainConfig, workers: Workers, device: torch.device
) -> Any:
    """The learner compiled, and tied to those of other processes, where that is asked for."""
    made: Any = torch.compile(learner) if config.compile else learner
    if workers.world > 1:
        parallel: Any = nn.parallel.DistributedDataParallel
        # NormStatistics sees to the buffers; torch 2.13 gave the option another name.
        names = inspect.signature(parallel).parameters
        own = "forward_sync_buffers" if "forward_sync_buffers" in names else "broadcast_buffers"
        made = parallel(
            made, device_ids=[device] if device.type == "cuda" else None, **{own: False}
        )
    return made


def make_optimiser(net: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """SGD with Nesterov momentum or Muon, rate and momentum set before each step; or Adam, with
    β₁ = 0.9, β₂ = 0.999 and ε = 1e-8 (paper 000, section 4.1)."""
    if config.optimiser == "muon":
        return Muon(
            net,
            lr=config.lr_max,
            momentum=config.momentum[1],
            weight_decay=config.weight_decay,
            dtype=torch.bfloat16 if config.precision == "bf16" else torch.float32,
        )
    weights = [weight for weight in net.parameters() if weight.requires_grad]
    if config.optimiser == "adam":
        return torch.optim.Adam(weights, lr=config.lr_max, weight_decay=config.weight_decay)
    return torch.optim.SGD(
        weights,
        lr=config.lr_max,
        momentum=config.momentum[1],
        nesterov=config.momentum[1] > 0,  # torch refuses what makes no difference
        weight_decay=config.weight_decay,
    )


def make_schedule(config: TrainConfig) -> OneCycle | Constant:
    if config.optimiser == "adam":
        return Constant(config.lr_max, ADAM_BETA)
    return OneCycle(config.steps, config.lr_max, config.lr_min, config.momentum, config.warmup)
