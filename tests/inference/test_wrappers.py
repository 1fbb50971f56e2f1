"""Padding to fixed sizes, and the cache of evaluations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from variant_ai.core.inference import CachedEvaluator, Evaluation, RandomEvaluator
from variant_ai.core.inference.padding import Padding, fixed_sizes

SHAPE = (2, 3, 4)


def test_fixed_sizes() -> None:
    assert fixed_sizes(1) == (1,)
    assert fixed_sizes(16) == (1, 2, 4, 8, 16)
    assert fixed_sizes(12) == (1, 2, 4, 8, 12)


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


class Counting(RandomEvaluator):
    """Counts the positions it is asked for; says win, draw, loss and plies left too."""

    asked = 0

    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        self.asked += len(planes)
        said = super().evaluate(planes)
        share = np.abs(said.value)
        wdl = np.stack([share, 1 - share, 0 * share], 1)
        return said._replace(wdl=wdl, plies_left=100 * share)


def batch_of(keys: list[int]) -> tuple[NDArray[np.uint64], NDArray[np.float32]]:
    """Keys, and planes that depend on nothing else."""
    planes = [np.random.default_rng(key).random(SHAPE, np.float32) for key in keys]
    return np.array(keys, np.uint64), np.stack(planes)


def test_the_cache_answers_as_the_net() -> None:
    net = Counting(SHAPE, 6)
    cached = CachedEvaluator(net, memory_mb=1)
    fresh = Counting(SHAPE, 6)
    rng = np.random.default_rng(2)
    for _ in range(50):
        keys, planes = batch_of([int(k) for k in rng.integers(0, 40, rng.integers(1, 9))])
        said, expected = cached.evaluate_keyed(keys, planes), fresh.evaluate(planes)
        for mine, theirs in zip(said, expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)
    assert net.asked == 40 == cached.misses == len(cached)
    assert cached.hits == fresh.asked - 40


def test_the_cache_keeps_to_its_memory_and_forgets_the_longest_unused() -> None:
    net = Counting(SHAPE, 1000)
    cached = CachedEvaluator(net, memory_mb=4 * 4300 / 2**20)
    assert cached.capacity == 4
    for keys in ([1, 2, 3, 4], [1], [5]):  # 5 takes the place of 2
        cached.evaluate_keyed(*batch_of(keys))
    assert len(cached) == 4
    before = net.asked
    cached.evaluate_keyed(*batch_of([1, 3, 4, 5]))
    assert net.asked == before
    cached.evaluate_keyed(*batch_of([2]))
    assert net.asked == before + 1


def test_a_batch_larger_than_the_cache() -> None:
    cached = CachedEvaluator(Counting(SHAPE, 1000), memory_mb=4 * 4300 / 2**20)
    cached.evaluate_keyed(*batch_of([1, 2]))
    keys, planes = batch_of([1, 7, 8, 9, 10, 11, 2, 7])
    said, expected = cached.evaluate_keyed(keys, planes), Counting(SHAPE, 1000).evaluate(planes)
    for mine, theirs in zip(said, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    nothing = CachedEvaluator(Counting(SHAPE, 1000), memory_mb=0)
    np.testing.assert_array_equal(nothing.evaluate_keyed(keys, planes).value, expected.value)
