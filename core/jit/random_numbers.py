"""Random numbers and hashes of compiled code, both by splitmix64.

Each game has a generator of its own, so that a game does not depend on the games beside it.
"""

from __future__ import annotations

import math
from typing import Annotated, TypeAlias

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.jit import Key, Number, array, borrowing


@borrowing
def mixed(x: Key) -> Number:
    """Return uint64 of which every bit depends on every bit of x; 0 stays 0."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


States: TypeAlias = Annotated[NDArray[np.uint64], array(np.uint64)]
"""State of each generator, uint64 [G]."""


@borrowing
def uniform(states: States, i: Number) -> float:
    """Return a number in (0, 1) from generator i."""
    states[i] += np.uint64(0x9E3779B97F4A7C15)
    return (np.float64(mixed(states[i]) >> np.uint64(12)) + 0.5) / 4503599627370496.0


@borrowing
def gumbel(states: States, i: Number) -> float:
    """Return a sample of the Gumbel distribution with location 0 and scale 1."""
    return -math.log(-math.log(uniform(states, i)))


@borrowing
def gamma(states: States, i: Number, shape: float) -> float:
    """Return a sample of the gamma distribution with scale 1 (Marsaglia and Tsang, 2000)."""
    boost = 1.0
    if shape < 1.0:
        boost = uniform(states, i) ** (1.0 / shape)
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        # a normal number by Box and Muller
        radius = math.sqrt(-2.0 * math.log(uniform(states, i)))
        x = radius * math.cos(2.0 * math.pi * uniform(states, i))
        v = 1.0 + c * x
        if v <= 0.0:
            continue
        v = v * v * v
        if math.log(uniform(states, i)) < 0.5 * x * x + d - d * v + d * math.log(v):
            return boost * d * v
