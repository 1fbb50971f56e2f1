"""The one-cycle schedule of learning rate and momentum (papers 000 section 8, thesis figure 4.4).

The learning rate climbs linearly from its least to its greatest value during the warm-up and then
goes down linearly, for the rest of the training, to the least again. Momentum mirrors it: least
where the rate is greatest (Smith and Topin 2019).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Constant:
    """The same at every step."""

    rate: float
    momentum: float

    def lr_at(self, step: int) -> float:
        return self.rate

    def momentum_at(self, step: int) -> float:
        return self.momentum


@dataclass(frozen=True)
class OneCycle:
    """Rates as functions of the step, so that any step can be resumed at."""

    steps: int
    """Steps of the whole training."""
    lr_max: float
    lr_min: float
    momentum: tuple[float, float]
    """(least, greatest)."""
    warmup: float
    """Share of the steps on the way up, in (0, 1)."""

    @property
    def peak(self) -> int:
        """The step at which the learning rate is greatest."""
        return min(max(1, round(self.steps * self.warmup)), max(1, self.steps - 1))

    def height(self, step: int) -> float:
        """Place on the cycle: 0 at the first step and after the last, 1 at the peak."""
        if step < self.peak:
            return step / self.peak
        return max(0.0, (self.steps - step) / max(1, self.steps - self.peak))

    def lr_at(self, step: int) -> float:
        return self.lr_min + (self.lr_max - self.lr_min) * self.height(step)

    def momentum_at(self, step: int) -> float:
        least, greatest = self.momentum
        return greatest - (greatest - least) * self.height(step)
