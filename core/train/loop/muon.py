"""Muon: steps along the orthogonalised momentum of each weight matrix ([Muon]).

The gradient of a layer is a matrix with a few large singular values and many small ones: its steps
change a few directions and hardly affect the others. Muon sets all singular values to about one, so
that all directions of a layer learn equally fast. Other weights (norms, biases, fully connected layers
of heads, depthwise convolutions) are trained by SGD with Nesterov momentum at the same learning rate.

`torch.optim.Muon` only takes matrices, averages the momentum differently and orthogonalises in bf16
one matrix at a time; nets and checkpoints trained with this one would not continue the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""a, b, c of x <- a x + b x³ + c x⁵, applied to the singular values: they grow fast from zero and then
stay between 0.7 and 1.2, which is close enough to one ([Muon])."""
ITERATIONS = 5


class Muon(torch.optim.SGD):
    """SGD with Nesterov momentum whose steps are orthogonalised for the kernels of convolutions.

    The step of a kernel [O, I, h, w], as a matrix of O rows and n = I h w columns, is
    U · √max(1, O / n) times the learning rate, where U [O, n] has singular values of about one.

    net: its parameters with gradients are trained. dtype: of the products in the orthogonalisation.
    """

    def __init__(
        self, net: nn.Module, *, lr: float, momentum: float, weight_decay: float, dtype: torch.dtype
    ) -> None:
        kernels = list(_kernels(net))
        known = {id(kernel) for kernel in kernels}
        others = [
            weight
            for weight in net.parameters()
            if weight.requires_grad and id(weight) not in known
        ]
        groups: list[dict[str, Any]] = [{"params": others}, {"params": kernels}]
        super().__init__(
            groups,
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
            nesterov=momentum > 0,
        )
        self._dtype = dtype

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Do one step of all weights."""
        kernels = self.param_groups.pop()
        try:
            result = super().step(closure)
        finally:
            self.param_groups.append(kernels)
        by_shape: dict[torch.Size, list[Tensor]] = {}
        for weight in kernels["params"]:
            if weight.grad is not None:
                by_shape.setdefault(weight.shape, []).append(weight)
        for weights in by_shape.values():
            self._step(weights, kernels)
        return result

    def _step(self, weights: list[Tensor], group: dict[str, Any]) -> None:
        """Do the step of kernels of one shape, orthogonalised together."""
        momentum, decay = group["momentum"], group["weight_decay"]
        directions: list[Tensor] = []
        has_gradient: list[Tensor] = []
        for weight in weights:
            assert weight.grad is not None
            gradient = weight.grad.add(weight, alpha=decay)
            state = self.state[weight]
            if state.get("momentum_buffer") is None:
                state["momentum_buffer"] = torch.zeros_like(weight)
            mean = state["momentum_buffer"].mul_(momentum).add_(gradient)
            directions.append(gradient.add(mean, alpha=momentum).flatten(1))
            has_gradient.append(weight.grad.any())
        steps = orthogonal(torch.stack(directions).to(self._dtype))
        # Kernels without a gradient (in a head whose loss has no weight) would take full steps along
        # the weight decay, and vanish within some hundred steps.
        steps = steps * torch.stack(has_gradient).view(-1, 1, 1)
        outputs, inputs = steps.shape[1:]
        rate = group["lr"] * max(1.0, outputs / inputs) ** 0.5
        for weight, step in zip(weights, steps, strict=True):
            weight.add_(step.view(weight.shape), alpha=-rate)


def orthogonal(matrices: Tensor) -> Tensor:
    """Set the singular values of matrices [K, O, n] to about one by Newton-Schulz iteration; zero
    matrices stay zero."""
    a, b, c = COEFFICIENTS
    is_tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if is_tall else matrices
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)
    for _ in range(ITERATIONS):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.mT if is_tall else x


def _kernels(net: nn.Module) -> Iterator[Tensor]:
    for module in net.modules():
        if isinstance(module, nn.Conv2d) and module.groups == 1 and module.weight.requires_grad:
            yield module.weight
