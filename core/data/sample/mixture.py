"""Batches mixed from several samplers in fixed shares, for stores with weights.

Each step has a fixed number of samples of each part, so the contents of a step still depend on seed
and step alone. Each part is used in its own shuffled order and restarts when it is used up, even if
other parts have samples that were not used yet. Parts with orders of their own (`part_seed`) do not
visit the same games at the same time if two stores have the same games, with other labels say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from variant_ai.core.data.sample.sampler import Batch, BatchMaker, Sampler
from variant_ai.core.data.store.columns import Longs
from variant_ai.core.errors import DataError


class MixedSampler(BatchMaker):
    """Sampler that mixes P samplers of one encoder by weight."""

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
        """`weights` are relative and positive; `rank` and `world` are as in `Sampler` (those of the
        parts are not used). `batches` consecutive batches, of all processes, form one step, in which
        the shares are exact. Raises DataError if a part has less than one sample per step."""
        self.encoder = parts[0].encoder
        self.size, self.rank, self.world = batch, rank, world
        self._parts = tuple(parts)
        self.counts = sample_counts(batch * batches, weights)
        """Samples of each part in a step."""
        self._until = _distributed(self.counts, batches)
        self.positions = sum(part.positions for part in parts)
        self.choices = max(part.choices for part in parts)

    @property
    def searched(self) -> int:
        """Number of positions with visits of a search, of all parts."""
        return sum(part.searched for part in self._parts)

    @property
    def valued(self) -> int:
        """Number of positions whose value label has a value of the search, of all parts."""
        return sum(part.valued for part in self._parts)

    @property
    def samples_per_epoch(self) -> int:
        """Samples of all parts in total, independent of the weights."""
        return sum(part.samples_per_epoch for part in self._parts)

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
        """Yield every position of every part once; with `limit`, in proportion to the parts."""
        for part in self._parts:
            of = None if limit is None else max(1, limit * part.positions // self.positions)
            yield from part.sweep(limit=of)


def part_seed(seed: int, number: int) -> int:
    """Return the seed of part `number` of a mixture with this seed; the first part has it unchanged."""
    return (seed + (number << 32)) % (1 << 63)


def _distributed(counts: Sequence[int], batches: int) -> Longs:
    """[batches + 1, P] samples of each part before each batch of a step, and in total. Parts are
    spread over the step as evenly as possible."""
    parts = np.repeat(np.arange(len(counts)), counts)
    at = np.concatenate([(np.arange(count) + 0.5) / count for count in counts])
    of = parts[np.argsort(at, kind="stable")].reshape(batches, -1)
    distributed = np.stack([(of == part).sum(axis=1) for part in range(len(counts))], axis=1)
    return np.concatenate([np.zeros((1, len(counts)), np.int64), distributed.cumsum(axis=0)])


def sample_counts(batch: int, weights: Sequence[float]) -> tuple[int, ...]:
    """Return the samples of each part in a batch, at least one. Raises DataError if a weight is too
    small for that."""
    counts = distribute(batch, weights)
    if 0 in counts:
        raise DataError(
            f"a batch of {batch} has no sample of a store with "
            f"{min(weights) / sum(weights):.2g} of the weight; use a larger weight or batch"
        )
    return counts


def distribute(total: int, weights: Sequence[float]) -> tuple[int, ...]:
    """Distribute `total` items by weight as integers; the largest remainders are rounded up."""
    exact = np.asarray(weights, np.float64) / sum(weights) * total
    counts = np.floor(exact).astype(int)
    for index in np.argsort(counts - exact, kind="stable")[: total - int(counts.sum())]:
        counts[index] += 1
    return tuple(counts.tolist())
