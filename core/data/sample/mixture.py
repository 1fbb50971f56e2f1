"""Batches mixed from several samplers in fixed shares: stores by weight.

Each step holds a fixed number of samples of each part, so what a step contains still depends on
seed and step alone. A part is gone through in its own shuffled order and begins again when it is
used up, while others may not have been met once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.data.sample.sampler import Batch, BatchMaker, Sampler
from variant_ai.core.errors import DataError


class MixedSampler(BatchMaker):
    """A sampler over P samplers of one encoder, with a weight for each."""

    def __init__(
        self,
        parts: Sequence[Sampler],
        weights: Sequence[float],
        *,
        batch: int,
        rank: int = 0,
        world: int = 1,
        batches: int = 1,
    ) -> None:
        """`weights` are relative and positive; `rank` and `world` as of `Sampler`, whose own the
        parts leave alone. So many `batches` on end, whoever gets them, are one step: in them all the
        shares are kept, to the last sample. Raises DataError where a part would get less than one
        sample a step."""
        self.encoder = parts[0].encoder
        self.size, self.rank, self.world = batch, rank, world
        self._parts = tuple(parts)
        self.counts = share_out(batch * batches, weights)
        """Samples of each part in a step."""
        if 0 in self.counts:
            raise DataError(
                f"a batch of {batch * batches} holds no sample of a store with "
                f"{min(weights) / sum(weights):.2g} of the weight; give it more, or larger batches"
            )
        self._until = _dealt(self.counts, batches)
        self.positions = sum(part.positions for part in parts)
        self.choices = max(part.choices for part in parts)

    @property
    def searched(self) -> int:
        """Positions with visits of a search, of all parts."""
        return sum(part.searched for part in self._parts)

    @property
    def samples_per_epoch(self) -> int:
        """An epoch is as many samples as all parts have together, however they are mixed."""
        return sum(part.samples_per_epoch for part in self._parts)

    @property
    def steps_per_epoch(self) -> int:
        return -(-self.samples_per_epoch // (self.size * self.world))

    def new_batch(self, size: int | None = None) -> Batch:
        return self._parts[0].new_batch(self.size if size is None else size, self.choices)

    def batch(self, step: int, out: Batch | None = None) -> Batch:
        out = out or self.new_batch()
        whole, nth = divmod(step * self.world + self.rank, len(self._until) - 1)
        at = 0
        for part, count, (first, end) in zip(
            self._parts, self.counts, self._until[nth : nth + 2].T.tolist(), strict=True
        ):
            if first < end:
                part.fill(out.part(at, at + end - first), whole * count + first)
            at += end - first
        return out

    def sweep(self, *, limit: int | None = None) -> Iterator[Batch]:
        """Every position of every part once; with `limit`, in the parts' proportions."""
        for part in self._parts:
            of = None if limit is None else max(1, limit * part.positions // self.positions)
            yield from part.sweep(limit=of)


def _dealt(counts: Sequence[int], batches: int) -> NDArray[np.int64]:
    """[batches + 1, P]: how many samples of each part come before each batch of a step, and in all.
    Parts are spread over the step as evenly as can be."""
    parts = np.repeat(np.arange(len(counts)), counts)
    at = np.concatenate([(np.arange(count) + 0.5) / count for count in counts])
    of = parts[np.argsort(at, kind="stable")].reshape(batches, -1)
    dealt = np.stack([(of == part).sum(axis=1) for part in range(len(counts))], axis=1)
    return np.concatenate([np.zeros((1, len(counts)), np.int64), dealt.cumsum(axis=0)])


def share_out(total: int, weights: Sequence[float]) -> tuple[int, ...]:
    """`total` things shared out by weight, as integers: the largest remainders are rounded up."""
    exact = np.asarray(weights, np.float64) / sum(weights) * total
    counts = np.floor(exact).astype(int)
    for index in np.argsort(counts - exact, kind="stable")[: total - int(counts.sum())]:
        counts[index] += 1
    return tuple(counts.tolist())
