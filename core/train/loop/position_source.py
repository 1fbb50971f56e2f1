"""What the trainer asks of its data: batches by step, and a sweep over all positions.

`core.data.sample.sampler.Sampler` is one; tests use another. B batch, C planes, H ranks, W files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.rules.position import Position


class Samples(Protocol):
    """A batch: arrays that the source may reuse once the next batch is asked for."""

    @property
    def planes(self) -> NDArray[np.float32]:
        """[B, C, H, W], normalised, in the mover's view."""

    @property
    def action(self) -> NDArray[np.int64]:
        """[B] index of the move played; with the labels `visits`, of the move visited most."""

    @property
    def value(self) -> NDArray[np.float32]:
        """[B] 1 won, 0 drawn, -1 lost by the player to move."""

    @property
    def plies_left(self) -> NDArray[np.float32]:
        """[B] plies to the end of the game; asked for by nets that tell them."""

    @property
    def positions(self) -> Position:
        """[B] the positions themselves, dtype POSITION."""

    @property
    def choices(self) -> NDArray[np.int64]:
        """[B, K] moves that a search visited; K is 0 where the move played is all there is."""

    @property
    def shares(self) -> NDArray[np.float32]:
        """[B, K] of the visits, each row adding up to 1."""


class Source(Protocol):
    """Batches that depend on the step alone, so that training resumes by naming the step."""

    @property
    def positions(self) -> int:
        """Positions that `sweep` goes through."""

    @property
    def steps_per_epoch(self) -> int: ...

    def batches(self, first: int = 0, last: int | None = None) -> Iterator[Samples]:
        """Batches of steps `first` to `last - 1`, endless without `last`."""

    def whole(self) -> Source:
        """What one process alone would train on; itself, where this is one."""

    def sweep(self, *, limit: int | None = None) -> Iterator[Samples]:
        """Every position once, always in the same order; or `limit` of them, spread evenly."""
