"""The optimisers that a training can use, one record each, and their schedules.

To add an optimiser, add a record to `OPTIMISERS`: configuration, plan, checkpoints and reports
follow from it. torch is imported when an optimiser is made, not before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from variant_ai.core.errors import UnknownNameError

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from variant_ai.core.spec.schema import Training
    from variant_ai.core.train.run.training_settings import TrainConfig

FINE_TUNE_RATE = 0.01 / 0.35
"""Greatest learning rate of fine-tuning, as a share of the usual one ([CrazyAra-preprint] section
8)."""
ADAM_RATE, ADAM_BETA = 1e-3, 0.9
"""Learning rate and β₁ of Adam ([CrazyAra-preprint] section 4.1); β₁ is logged as its momentum."""
MUON_RATE = 0.05
"""Default rate of Muon for every batch size: the length of its steps does not depend on it."""


@dataclass(frozen=True)
class OneCycle:
    """One cycle of learning rate and momentum ([CrazyAra-preprint] section 8, [Xiangqi-thesis]
    figure 4.4).

    The learning rate rises linearly during the warm-up from its least to its greatest value, and
    then falls linearly to the least again. Momentum mirrors it: it is least where the rate is
    greatest ([One-cycle]). Both are functions of the step, so that training can resume at
    any step. With equal limits both are constant: this is also the class of a constant rate
    (`Optimiser.constant_momentum`).
    """

    steps: int
    """Steps of the whole training."""
    lr_max: float
    lr_min: float
    momentum: tuple[float, float]
    """(least, greatest)."""
    warmup: float
    """Share of the steps in which the rate rises, in (0, 1)."""

    @property
    def peak(self) -> int:
        """The step at which the learning rate is greatest."""
        return min(max(1, round(self.steps * self.warmup)), max(1, self.steps - 1))

    def height(self, step: int) -> float:
        """Height on the cycle: 0 at the first step and after the last, 1 at the peak."""
        if step < self.peak:
            return step / self.peak
        return max(0.0, (self.steps - step) / max(1, self.steps - self.peak))

    def lr_at(self, step: int) -> float:
        return self.lr_min + (self.lr_max - self.lr_min) * self.height(step)

    def momentum_at(self, step: int) -> float:
        least, greatest = self.momentum
        return greatest - (greatest - least) * self.height(step)


@dataclass(frozen=True)
class Optimiser:
    """An optimiser, and everything that depends on the choice of it."""

    name: str
    """Name in `--optimiser` and in config.json."""
    title: str
    """Name in reports."""
    about: str
    """A line about it, for the help of `--optimiser`."""
    make: Callable[[nn.Module, TrainConfig], torch.optim.Optimizer]
    default_rate: Callable[[Training, int, float], float]
    """(training settings of the spec, batch, factor of fine-tuning) -> greatest learning rate."""
    state: Mapping[str, str]
    """Tensors that torch keeps for each parameter: key in torch -> prefix of the parameter's name in
    a checkpoint."""
    constant_momentum: float | None = None
    """Momentum of an optimiser whose learning rate is constant, for the log; None: rate and momentum follow
    one cycle."""
    counts_steps: bool = False
    """True if torch keeps the number of steps for each parameter."""

    def schedule(self, config: TrainConfig) -> OneCycle:
        """Return the learning rate and momentum of each step."""
        least, momentum = config.lr_min, config.momentum
        if self.constant_momentum is not None:
            least, momentum = config.lr_max, (self.constant_momentum, self.constant_momentum)
        return OneCycle(config.steps, config.lr_max, least, momentum, config.warmup)

    def describe(self, config: TrainConfig) -> str:
        """Optimiser and schedule of a training, for its model card."""
        if self.constant_momentum is not None:
            return f"{self.title} with the learning rate {config.lr_max:g}"
        least, greatest = config.momentum
        return (
            f"{self.title} with momentum {least:g} to {greatest:g}, one cycle of the "
            f"learning rate up to {config.lr_max:g} and down to {config.lr_min:g}"
        )

    # --- saved state -----------------------------------------------------------------------------

    def tensors(self, net: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
        """State of each parameter by its name in a checkpoint; empty before the first step."""
        found = {}
        for name, weight in net.named_parameters():
            state = optimiser.state.get(weight, {})
            for key, prefix in self.state.items():
                if state.get(key) is not None:
                    found[prefix + name] = state[key]
        return found

    def empty_tensors(self, net: nn.Module, names: Iterable[str]) -> dict[str, Tensor]:
        """Zeros in the shapes of the tensors of these names."""
        import torch

        shapes = {
            prefix + name: weight
            for name, weight in net.named_parameters()
            for prefix in self.state.values()
        }
        return {name: torch.zeros_like(shapes[name]) for name in names}

    def load_tensors(
        self,
        net: nn.Module,
        optimiser: torch.optim.Optimizer,
        tensors: Mapping[str, Tensor],
        step: int,
    ) -> None:
        """Set the state of each parameter, in the parameter's own memory layout, after `step`
        steps."""
        import torch

        optimiser.state.clear()
        for name, weight in net.named_parameters():
            state: dict[str, Tensor] = {}
            for key, prefix in self.state.items():
                if prefix + name in tensors:
                    state[key] = torch.empty_like(weight, requires_grad=False)
                    state[key].copy_(tensors[prefix + name])
            if state and self.counts_steps:
                state["step"] = torch.tensor(float(step))
            if state:
                optimiser.state[weight] = state


def _torch(name: str, net: nn.Module, config: TrainConfig, **options: Any) -> torch.optim.Optimizer:
    """Make an optimiser of torch by its name there."""
    import torch

    made: torch.optim.Optimizer = getattr(torch.optim, name)(
        [weight for weight in net.parameters() if weight.requires_grad],
        lr=config.lr_max,
        weight_decay=config.weight_decay,
        **options,
    )
    return made


def _sgd(net: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    momentum = config.momentum[1]
    # torch rejects Nesterov without momentum
    return _torch("SGD", net, config, momentum=momentum, nesterov=momentum > 0)


def _muon(net: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    from variant_ai.core.train.loop.devices import PRECISIONS
    from variant_ai.core.train.loop.muon import Muon

    return Muon(
        net,
        lr=config.lr_max,
        momentum=config.momentum[1],
        weight_decay=config.weight_decay,
        dtype=PRECISIONS[config.precision],
    )


OPTIMISERS: dict[str, Optimiser] = {
    record.name: record
    for record in (
        Optimiser(
            "nesterov",
            "SGD",
            "SGD with Nesterov momentum on one cycle of the rate",
            _sgd,
            # The published rate is for the published batch size.
            lambda training, batch, factor: factor * training.lr_max * batch / training.batch,
            {"momentum_buffer": ""},
        ),
        *(
            Optimiser(
                kind.lower(),
                kind,
                f"{about} ({ADAM_RATE:g} by default)",
                partial(_torch, kind),
                lambda training, batch, factor: factor * ADAM_RATE,
                {"exp_avg": "", "exp_avg_sq": "exp_avg_sq/"},
                constant_momentum=ADAM_BETA,
                counts_steps=True,
            )
            for kind, about in (
                ("Adam", "Adam at a constant rate"),
                ("AdamW", "Adam with separate weight decay"),
            )
        ),
        Optimiser(
            "muon",
            "Muon",
            f"Muon on one cycle (up to {MUON_RATE:g} by default), which orthogonalises the steps of "
            "convolutions",
            _muon,
            lambda training, batch, factor: factor * MUON_RATE,
            {"momentum_buffer": ""},
        ),
    )
}


def find_optimiser(name: str) -> Optimiser:
    """Return the optimiser of that name. Raises UnknownNameError."""
    try:
        return OPTIMISERS[name]
    except KeyError:
        raise UnknownNameError("optimiser", name, OPTIMISERS) from None
