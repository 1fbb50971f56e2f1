"""The losses of policy and value of each position ([CrazyAra-preprint] eq. 1). `learner.py` adds those of
other outputs, and takes another value loss for nets that predict win, draw and loss."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor
from torch.nn import functional


class LossWeights(NamedTuple):
    """Weights of the losses of B positions, 0 if a policy or a value must not be learnt."""

    policy: Tensor
    """[B]."""
    value: Tensor
    """[B]."""


class SoftLabels(NamedTuple):
    """Labels of a policy that are more than one move: π of a search ([CrazyAra-preprint] eq. 1)."""

    choices: Tensor
    """[B, K] int64 actions."""
    shares: Tensor
    """[B, K], each row adding up to 1; a share of 0 is padding."""


def losses(
    value: Tensor, logits: Tensor, action: Tensor, outcome: Tensor, soft: SoftLabels | None = None
) -> tuple[Tensor, Tensor]:
    """Policy loss and value loss (z - v)^2 of each position, both [B]. The policy loss is -log p(move
    played), or -Σ π · log p if `soft` gives π.

    The softmax is over all A actions, illegal moves included: the net learns to give them small
    logits. The search leaves them out (`core/search/tree/priors.py:expand_node`).

    value [B], logits [B, A], action int64 [B], outcome [B]. The training loss is the mean of
    policy + α · value ([CrazyAra-preprint] eq. 1); its term c ‖θ‖² is the optimiser's weight decay.
    """
    if soft is None:
        policy = functional.cross_entropy(logits.float(), action, reduction="none")
    else:
        known = functional.log_softmax(logits.float(), 1).gather(1, soft.choices)
        policy = -(soft.shares * known).sum(1)
    return policy, (outcome - value.float()).square()
