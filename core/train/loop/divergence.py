"""What tells a training that went wrong from one that goes up and down."""

from __future__ import annotations

import math


class Guard:
    """Tells a loss that cannot be right: no number, or far above what is usual.

    Usual is a running mean over about a hundred steps. The first twenty prove little, so that only
    a multiple is refused there that no training comes back from.
    """

    SPAN, WARM, STEEP = 100, 20, 10.0

    def __init__(self, spike: float, usual: float = 0.0, steps: int = 0) -> None:
        self.spike, self.usual, self.steps = spike, usual, steps

    def objects(self, loss: float) -> bool:
        """Whether the loss is to be refused; if not, it is remembered."""
        if not math.isfinite(loss):
            return True
        if self.spike and self.steps:
            warm = self.steps >= self.WARM
            factor = self.spike if warm else max(self.spike, self.STEEP)
            if loss > factor * self.usual + 1:
                return True
        self.steps += 1
        self.usual += (loss - self.usual) / min(self.steps, self.SPAN)
        return False
