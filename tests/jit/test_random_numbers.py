"""Random numbers of compiled code have the distributions that they are named after."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from variant_ai.core.jit.random_numbers import gamma, gumbel, uniform

SAMPLES = 40_000


def sampled(draw: Callable[[np.ndarray], float]) -> np.ndarray:
    states = np.array([5], np.uint64)
    return np.array([draw(states) for _ in range(SAMPLES)])


def test_uniform() -> None:
    values = sampled(lambda states: uniform(states, np.int64(0)))
    assert values.min() > 0 and values.max() < 1
    assert values.mean() == pytest.approx(0.5, abs=0.01)
    assert values.var() == pytest.approx(1 / 12, abs=0.002)
    counts = np.histogram(values, 20, (0, 1))[0]
    assert np.abs(counts - SAMPLES / 20).max() < 5 * (SAMPLES / 20) ** 0.5


def test_gumbel() -> None:
    values = sampled(lambda states: gumbel(states, np.int64(0)))
    assert values.mean() == pytest.approx(0.5772, abs=0.03)
    assert values.var() == pytest.approx(np.pi**2 / 6, abs=0.06)


@pytest.mark.parametrize("shape", [0.1, 0.5, 1.0, 3.0])
def test_gamma(shape: float) -> None:
    values = sampled(lambda states: gamma(states, np.int64(0), shape))
    assert values.mean() == pytest.approx(shape, rel=0.06)
    assert values.var() == pytest.approx(shape, rel=0.12)


def test_generators_are_independent() -> None:
    states = np.array([1, 2], np.uint64)
    first = [uniform(states, np.int64(0)) for _ in range(5)]
    alone = np.array([2], np.uint64)
    assert [uniform(states, np.int64(1)) for _ in range(5)] == [
        uniform(alone, np.int64(0)) for _ in range(5)
    ]
    assert len(set(first)) == 5
