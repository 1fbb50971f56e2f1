"""The network: stem, tower, two heads; and the weights it starts from."""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import NamedTuple

import torch
from torch import Tensor, nn

from variant_ai.core.nets.heads import HeadModule, OutcomeHead
from variant_ai.core.nets.interface import NetShape

XAVIER_MAGNITUDE = 2.24
"""MXNet's Xavier draws from ±sqrt(magnitude / mean(fan in, fan out)), torch's xavier_uniform from
±gain·sqrt(3 / mean(fan in, fan out)): the thesis's magnitude is a gain of sqrt(2.24 / 3)."""


class Outputs(NamedTuple):
    """What a net says of B positions, fp32, from the mover's side."""

    value: Tensor
    """[B] in [-1, 1]."""
    policy: Tensor
    """[B, A] logits."""
    wdl: Tensor | None = None
    """[B, 3] logits of win, draw and loss; None of a net without that head."""
    plies_left: Tensor | None = None
    """[B] plies until the game ends; None of a net without that head."""


def outputs_of(net: nn.Module, planes: Tensor) -> Outputs:
    """Everything a net says of planes [B, C, H, W]; of a plugin's net value and policy."""
    if isinstance(net, Network):
        return net.outputs(planes)
    return Outputs(*net(planes))


class Network(nn.Module):
    """planes [B, C, H, W] -> (value [B], policy logits [B, A]), both fp32.

    Under autocast the tower runs in the reduced type and the heads' output layers in fp32.
    `outputs` gives what further heads say as well.
    """

    def __init__(
        self,
        shape: NetShape,
        stem: nn.Module,
        tower: nn.Module,
        value: HeadModule | OutcomeHead,
        policy: HeadModule,
    ) -> None:
        super().__init__()
        self.shape = shape
        self.stem = stem
        self.tower = tower
        self.value = value
        self.policy = policy
        self.apply(initialise)

    @property
    def further(self) -> tuple[str, ...]:
        """Outputs beside value and policy, of `wdl` and `plies_left`."""
        if not isinstance(self.value, OutcomeHead):
            return ()
        return tuple(
            name for name in ("wdl", "plies_left") if getattr(self.value, name) is not None
        )

    @property
    def layers(self) -> list[nn.Module]:
        """The stem and the blocks of the tower, in order: what fine-tuning may freeze."""
        return [self.stem, *self.tower.children()]

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        said = self.outputs(planes)
        return said.value, said.policy

    def outputs(self, planes: Tensor) -> Outputs:
        features = self.tower(self.stem(planes))
        value, policy = self.value.stem(features), self.policy.stem(features)
        with _full_precision(planes.device.type):
            logits: Tensor = self.policy.output(policy.float())
            if isinstance(self.value, OutcomeHead):
                outcome, wdl, plies = self.value(value.float())
                return Outputs(outcome, logits, wdl, plies)
            return Outputs(self.value.output(value.float()).squeeze(1), logits)


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
