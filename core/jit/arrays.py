"""Annotations of compiled functions beyond Python's own types.

`NDArray[np.int32]` is a contiguous array of one dimension. Where that is not enough, an alias beside
the dtype says more:

    Position: TypeAlias = Annotated[NDArray[np.void], array(POSITION)]
    PositionRow: TypeAlias = Annotated[Any, element(POSITION)]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray


@dataclass(frozen=True)
class Shape:
    """Layout in memory: a contiguous array, or one element of it."""

    dtype: np.dtype[Any]
    dimensions: int
    """0: one element; of a structured dtype it is a record inside its array."""
    inside: tuple[int, ...] = ()
    """Shape of a field that is an array inside a record; empty for all else."""


def array(dtype: DTypeLike, dimensions: int = 1) -> Shape:
    """A contiguous array."""
    return Shape(np.dtype(dtype), dimensions)


def element(dtype: DTypeLike) -> Shape:
    """One element: a number, or a record of an array."""
    return Shape(np.dtype(dtype), 0)


def field(dtype: DTypeLike, *shape: int) -> Shape:
    """A field of a record that is itself an array."""
    return Shape(np.dtype(dtype), len(shape), shape)


Number: TypeAlias = Annotated[Any, element(np.int64)]
"""An integer: int when run as Python, int64 when compiled."""
Key: TypeAlias = Annotated[Any, element(np.uint64)]
"""64 bits of a hash."""
Truth: TypeAlias = Annotated[Any, element(np.bool_)]
"""bool, or numpy's."""

Floats2D: TypeAlias = Annotated[NDArray[np.float32], array(np.float32, 2)]
Ints2D: TypeAlias = Annotated[NDArray[np.int32], array(np.int32, 2)]
Ints3D: TypeAlias = Annotated[NDArray[np.int32], array(np.int32, 3)]
Longs2D: TypeAlias = Annotated[NDArray[np.int64], array(np.int64, 2)]
