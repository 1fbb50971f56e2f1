"""Scores of the steps since the last line of the record, kept on the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from variant_ai.core.train.loop.distributed import Workers
from variant_ai.core.train.loop.learner import Learnt
from variant_ai.core.train.measure.metrics import Scores


@dataclass(frozen=True)
class Seen:
    """What a window held: positions in the order of their steps."""

    scores: Scores
    further: dict[str, NDArray[np.float32]]
    """[n] of each thing learnt beside policy and value."""


class Window:
    """Room for the scores of a number of positions.

    In one place from the start, for the reason that `Scores.room` gives, and so that a GPU need
    not be waited for at every step.
    """

    def __init__(self, positions: int, device: torch.device, further: tuple[str, ...]) -> None:
        """`further`: outputs the net has beside value and policy."""
        names = ["policy_loss", "value", "outcome"]
        names += [_COLUMNS[name] for name in further]
        self._columns: dict[str, Tensor] = {
            name: torch.zeros(positions, device=device) for name in names
        }
        self._columns["rank"] = torch.zeros(positions, dtype=torch.int64, device=device)
        self._size = positions
        self.filled = 0

    def put(self, learnt: Learnt, outcome: Tensor) -> None:
        """Adds a batch; outcome [B]."""
        end = self.filled + len(outcome)
        if end > self._size:
            self.filled, end = 0, len(outcome)  # a trial that nobody logs: forget what was there
        for name, column in self._columns.items():
            values = outcome if name == "outcome" else getattr(learnt, name)
            column[self.filled : end].copy_(values)
        self.filled = end

    def take(self, workers: Workers, part: int) -> Seen:
        """What was added, in all processes together, `part` positions of each in turn. The window
        is empty then; the arrays hold until the next `put`."""
        n, self.filled = self.filled, 0
        taken: dict[str, NDArray[Any]] = {
            name: workers.interleave(column[:n].cpu().numpy(), part)
            for name, column in self._columns.items()
        }
        scores = Scores(
            log_probability=-taken.pop("policy_loss"),
            rank=taken.pop("rank"),
            value=taken.pop("value"),
            outcome=taken.pop("outcome"),
        )
        return Seen(scores, taken)


_COLUMNS = {"wdl": "wdl_loss", "plies_left": "plies_error"}
"""Of each further output, the column of `Learnt` that tells how well it does."""
