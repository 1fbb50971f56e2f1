"""What is learnt from a batch: the net with its loss, as one module.

B positions of a (micro) batch. The loss is the mean over positions of

    policy + α · value + γ · plies left

with policy -log p(move played), or -Σ π · log p where a search's visits are learnt, and value
(z - v)² (paper 000, equation 1). A net that tells win,
draw and loss learns them by cross entropy instead of the square, and its value follows from them.
Plies left are learnt by Huber's loss in units of `PLIES_UNIT`, quadratic up to half a unit, so that
games that ended long before or after what could be foreseen pull no harder than others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.nn import functional

from variant_ai.core.nets.heads import PLIES_UNIT
from variant_ai.core.nets.network import Network, outputs_of
from variant_ai.core.train.measure.metrics import Soft, losses, rank_of


class Learnt(NamedTuple):
    """What a batch taught. Nothing but `loss` carries gradients."""

    loss: Tensor
    """Mean over the batch."""
    policy_loss: Tensor
    """[B]."""
    rank: Tensor
    """[B] int64, how many actions have a greater logit than the move played (or visited most)."""
    value: Tensor
    """[B] v."""
    wdl_loss: Tensor | None
    """[B] cross entropy of the result, of a net that tells win, draw and loss."""
    plies_error: Tensor | None
    """[B] |plies told - plies left|, of a net that tells them."""


class Learner(nn.Module):
    """The net, asked for its loss."""

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
        soft: Soft | None = None,
    ) -> Learnt:
        """planes [B, C, H, W], action int64 [B], outcome z [B], plies_left [B] or None; `soft`
        instead of `action` for the policy to learn."""
        said = outputs_of(self.net, planes)
        policy, value = losses(said.value, said.policy, action, outcome, soft)
        wdl = error = None
        if said.wdl is not None:
            # Of 1, 0 and -1 the classes 0 (win), 1 (draw) and 2 (loss).
            wdl = functional.cross_entropy(said.wdl.float(), (1 - outcome).long(), reduction="none")
            value = wdl
        loss = (policy + self.value_weight * value).mean()
        if said.plies_left is not None and plies_left is not None:
            told = said.plies_left.float()
            huber = functional.huber_loss(told / PLIES_UNIT, plies_left / PLIES_UNIT, delta=0.5)
            loss = loss + self.plies_weight * huber
            error = (told - plies_left).abs().detach()
        return Learnt(
            loss,
            policy.detach(),
            rank_of(said.policy, action),
            said.value.detach(),
            None if wdl is None else wdl.detach(),
            error,
        )


def further_outputs(net: nn.Module) -> tuple[str, ...]:
    """Outputs beside value and policy, of `wdl` and `plies_left`."""
    return net.further if isinstance(net, Network) else ()


class FurtherSums:
    """Running means of what is learnt beside policy and value; kept in checkpoints as they are."""

    def __init__(self, sums: dict[str, float] | None = None) -> None:
        self.sums = dict(sums or {})

    def add(self, name: str, values: Any) -> None:
        """Adds per-position numbers, an array [n]."""
        self.sums[name] = self.sums.get(name, 0.0) + float(values.sum(dtype="float64"))
        count = f"{name}:count"
        self.sums[count] = self.sums.get(count, 0.0) + len(values)

    def means(self) -> dict[str, float]:
        return {
            name: total / self.sums[f"{name}:count"]
            for name, total in self.sums.items()
            if not name.endswith(":count")
        }
