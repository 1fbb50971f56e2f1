"""Fixed batch sizes, for libraries that compile a net for each input shape.

A new size costs them 25 ms and more in the middle of a search. B positions given, S the smallest
fixed size that holds them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Outputs = Mapping[str, NDArray[Any]]


def fixed_sizes(batch: int, factor: int = 2) -> tuple[int, ...]:
    """Return 1, 2, 4, ... (or powers of another factor) below the usual batch size, and that size."""
    if batch < 1:
        raise ValueError("a batch has at least one position")
    sizes = []
    size = 1
    while size < batch:
        sizes.append(size)
        size *= factor
    return (*sizes, batch)


class Padding:
    """Runs batches of any size B in pieces of fixed sizes S, padded with zeros.

    For one thread at a time: the padded input is reused.
    """

    def __init__(self, sizes: Sequence[int], planes_shape: tuple[int, int, int]) -> None:
        self.sizes = self._all = tuple(sorted(sizes))
        self._buffers = {size: np.zeros((size, *planes_shape), np.float32) for size in self.sizes}

    def cut(self, piece: int | None) -> None:
        """Use no size above `piece`; None: use all sizes."""
        within = tuple(size for size in self._all if piece is None or size <= piece)
        self.sizes = within or self._all[:1]

    def warm_up(self, run: Callable[[NDArray[np.float32]], Outputs]) -> None:
        """Run each size once, the largest and the smallest first: TensorRT compiles again for a size
        outside the range seen so far, but not for one inside it."""
        for size in dict.fromkeys((self.sizes[-1], *self.sizes)):
            run(self._buffers[size])

    def run(
        self, run: Callable[[NDArray[np.float32]], Outputs], planes: NDArray[np.float32]
    ) -> dict[str, NDArray[Any]]:
        """Call `run` on planes [B, C, H, W] in pieces of fixed sizes; return the outputs of the B
        positions."""
        parts = []
        largest = self.sizes[-1]
        for first in range(0, len(planes), largest):
            piece = planes[first : first + largest]
            size = next(size for size in self.sizes if size >= len(piece))
            padded = piece
            if size != len(piece):
                padded = self._buffers[size]
                padded[: len(piece)] = piece
                padded[len(piece) :] = 0
            parts.append({name: out[: len(piece)] for name, out in run(padded).items()})
        if len(parts) == 1:
            return parts[0]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
