"""Padding to fixed sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from variant_ai.core.inference.backends.padding import Padding, fixed_sizes

SHAPE = (2, 3, 4)


def test_fixed_sizes() -> None:
    assert fixed_sizes(1) == (1,)
    assert fixed_sizes(16) == (1, 2, 4, 8, 16)
    assert fixed_sizes(12) == (1, 2, 4, 8, 12)
    assert fixed_sizes(16, 4) == (1, 4, 16)
    assert fixed_sizes(48, 4) == (1, 4, 16, 48)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 12, 13, 30])
def test_padding_asks_for_fixed_sizes_only(n: int) -> None:
    padding = Padding(fixed_sizes(12), SHAPE)
    asked: list[int] = []

    def run(planes: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
        asked.append(len(planes))
        return {"sum": planes.sum((1, 2, 3))}

    padding.warm_up(run)
    assert sorted(asked) == [1, 2, 4, 8, 12]
    planes = np.random.default_rng(n).random((n, *SHAPE), np.float32)
    for _ in range(2):  # what a batch left in the buffers does not reach the next
        out = padding.run(run, planes)
        np.testing.assert_array_equal(out["sum"], planes.sum((1, 2, 3)))
        planes = planes[::-1].copy()
    assert set(asked) <= {1, 2, 4, 8, 12}
