"""The finaliser of splitmix64, for hashes and random numbers."""

from __future__ import annotations

import numpy as np

from variant_ai.core.jit.arrays import Key, Number
from variant_ai.core.jit.functions import borrowing


@borrowing
def mixed(x: Key) -> Number:
    """Return uint64 of which every bit depends on every bit of x; 0 stays 0."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
