"""The network of stem, tower and two heads, its initial weights, and nets on unscaled counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from variant_ai.core.errors import DataError, VariantAIError
from variant_ai.core.nets.heads import HeadModule, OutcomeHead

XAVIER_MAGNITUDE = 2.24
"""MXNet's Xavier samples from ±sqrt(magnitude / mean(fan in, fan out)), torch's xavier_uniform from
±gain·sqrt(3 / mean(fan in, fan out)): the thesis's magnitude is a gain of sqrt(2.24 / 3)."""


class Outputs(NamedTuple):
    """Outputs of a net for B positions, fp32, from the mover's side."""

    value: Tensor
    """[B] in [-1, 1]."""
    policy: Tensor
    """[B, A] logits."""
    wdl: Tensor | None = None
    """[B, 3] logits of win, draw and loss; None for a net without that head."""
    plies_left: Tensor | None = None
    """[B] plies until the game ends; None for a net without that head."""

    def by_name(self) -> dict[str, Tensor]:
        """The outputs as evaluators return them: `wdl` as probabilities, and none that is None."""
        wdl = None if self.wdl is None else self.wdl.float().softmax(1)
        found = {**self._asdict(), "wdl": wdl}
        return {name: output.float() for name, output in found.items() if output is not None}


def outputs_of(net: nn.Module, planes: Tensor) -> Outputs:
    """All outputs of a net for planes [B, C, H, W]; for a plugin's net value and policy."""
    if isinstance(net, Network):
        return net.outputs(planes)
    return Outputs(*net(planes))


class Network(nn.Module):
    """planes [B, C, H, W] -> (value [B], policy logits [B, A]), both fp32.

    Under autocast the tower runs in the reduced type and the heads' output layers in fp32.
    `outputs` returns the auxiliary outputs as well.
    """

    def __init__(
        self,
        stem: nn.Module,
        tower: nn.Module,
        value: HeadModule | OutcomeHead,
        policy: HeadModule,
    ) -> None:
        super().__init__()
        self.stem = stem
        self.tower = tower
        self.value = value
        self.policy = policy
        self.apply(initialise)

    @property
    def auxiliary(self) -> tuple[str, ...]:
        """Outputs besides value and policy, out of `wdl` and `plies_left`."""
        if not isinstance(self.value, OutcomeHead):
            return ()
        return tuple(
            name for name in ("wdl", "plies_left") if getattr(self.value, name) is not None
        )

    @property
    def layers(self) -> list[nn.Module]:
        """The stem and the blocks of the tower, in order: the layers that fine-tuning can freeze."""
        return [self.stem, *self.tower.children()]

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        outputs = self.outputs(planes)
        return outputs.value, outputs.policy

    def outputs(self, planes: Tensor) -> Outputs:
        features = self.tower(self.stem(planes))
        value, policy = self.value.stem(features), self.policy.stem(features)
        with _full_precision(planes.device.type):
            logits: Tensor = self.policy.output(policy.float())
            if isinstance(self.value, OutcomeHead):
                outcome, wdl, plies = self.value(value.float())
                return Outputs(outcome, logits, wdl, plies)
            return Outputs(self.value.output(value.float()).squeeze(1), logits)


def auxiliary_outputs(net: nn.Module) -> tuple[str, ...]:
    """Outputs of a net besides value and policy, out of `wdl` and `plies_left`."""
    return net.auxiliary if isinstance(net, Network) else ()


def _full_precision(device: str) -> torch.autocast | nullcontext[None]:
    """Context without autocast; the meta device, on which nets are only counted, has none."""
    if torch.amp.is_autocast_available(device):
        return torch.autocast(device, enabled=False)
    return nullcontext()


def initialise(module: nn.Module) -> None:
    """Initialise weights by Xavier with the thesis's magnitude and biases by zero; norms are left
    unchanged."""
    if isinstance(module, nn.Conv2d | nn.Linear):
        nn.init.xavier_uniform_(module.weight, gain=math.sqrt(XAVIER_MAGNITUDE / 3))
        if module.bias is not None:
            nn.init.zeros_(module.bias)


def first_layers(net: nn.Module, count: int) -> Sequence[nn.Module]:
    """Return the first `count` layers of a net: its stem, then block after block.

    Raises VariantAIError if it has fewer, or does not list its layers.
    """
    if count == 0:
        return ()
    layers = getattr(net, "layers", None)
    if layers is None:
        raise VariantAIError("this net does not list its layers, so none of them can be frozen")
    if count > len(layers):
        raise VariantAIError(
            f"{count} layers cannot be frozen: the net has {len(layers)}, its stem and "
            f"{len(layers) - 1} more, before the heads"
        )
    first: Sequence[nn.Module] = layers[:count]
    return first


def load_model(net: nn.Module, tensors: dict[str, Tensor], where: Path) -> None:
    """Copy parameters and buffers into a net of the same shape. Raises DataError if one differs."""
    own = net.state_dict()
    wrong = [name for name in own if name not in tensors or own[name].shape != tensors[name].shape]
    wrong += [name for name in tensors if name not in own]
    if wrong:
        raise DataError(
            f"{where}: its weights do not fit the net it names ({len(wrong)} of {len(own)} "
            f"tensors differ, the first is {wrong[0]})"
        )
    net.load_state_dict(tensors)


class InputScale(nn.Module):
    """Multiply each plane by its own number: planes [B, C, H, W] -> [B, C, H, W].

    Every net is fed planes in [0, 1]. A net that is to learn from raw counts, to measure the effect
    of normalisation ([CrazyAra-preprint] section 4.1), undoes it itself, so that training, export and
    search need not know.
    """

    scale: Tensor

    def __init__(self, scale: Sequence[float]) -> None:
        super().__init__()
        self.register_buffer("scale", torch.tensor(scale).reshape(1, -1, 1, 1))

    def forward(self, planes: Tensor) -> Tensor:
        return planes * self.scale


def scale_input(net: nn.Module, scale: Sequence[float]) -> nn.Module:
    """The net with an `InputScale` of C numbers before it; a `Network` stays a `Network`."""
    if isinstance(net, Network):
        net.stem = nn.Sequential(InputScale(scale), net.stem)
        return net
    return nn.Sequential(InputScale(scale), net)
