"""The network: stem, tower, two heads; and the weights it starts from."""

from __future__ import annotations

import math
from contextlib import nullcontext

import torch
from torch import Tensor, nn

from variant_ai.core.nets.heads import HeadModule
from variant_ai.core.nets.interface import NetShape

XAVIER_MAGNITUDE = 2.24
"""MXNet's Xavier draws from ±sqrt(magnitude / mean(fan in, fan out)), torch's xavier_uniform from
±gain·sqrt(3 / mean(fan in, fan out)): the thesis's magnitude is a gain of sqrt(2.24 / 3)."""


class Network(nn.Module):
    """planes [B, C, H, W] -> (value [B], policy logits [B, A]), both fp32.

    Under autocast the tower runs in the reduced type and the heads' output layers in fp32.
    """

    def __init__(
        self,
        shape: NetShape,
        stem: nn.Module,
        tower: nn.Module,
        value: HeadModule,
        policy: HeadModule,
    ) -> None:
        super().__init__()
        self.shape = shape
        self.stem = stem
        self.tower = tower
        self.value = value
        self.policy = policy
        self.apply(initialise)

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        features = self.tower(self.stem(planes))
        value, policy = self.value.stem(features), self.policy.stem(features)
        with _full_precision(planes.device.type):
            outcome: Tensor = self.value.output(value.float()).squeeze(1)
            logits: Tensor = self.policy.output(policy.float())
        return outcome, logits


def _full_precision(device: str) -> torch.autocast | nullcontext[None]:
    """No autocast inside; the meta device, on which nets are only counted, knows none at all."""
    if torch.amp.is_autocast_available(device):
        return torch.autocast(device, enabled=False)
    return nullcontext()


def initialise(module: nn.Module) -> None:
    """Xavier with the thesis's magnitude for weights, zero for biases, norms as torch has them."""
    if isinstance(module, nn.Conv2d | nn.Linear):
        nn.init.xavier_uniform_(module.weight, gain=math.sqrt(XAVIER_MAGNITUDE / 3))
        if module.bias is not None:
            nn.init.zeros_(module.bias)
