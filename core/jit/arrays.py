"""Annotations of compiled functions, beyond Python's own types.

`NDArray[np.int32]` is a contiguous array with one dimension. Everything else has an alias next to
its dtype:

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
    """Memory layout: a contiguous array, or one element of it."""

    dtype: np.dtype[Any]
    dimensions: int
    """0: one element; with a structured dtype, a record inside its array."""
    inside: tuple[int, ...] = ()
    """Shape of an array field of a record; empty for everything else."""


def array(dtype: DTypeLike, dimensions: int = 1) -> Shape:
    """Annotation of a contiguous array."""
    return Shape(np.dtype(dtype), dimensions)


def element(dtype: DTypeLike) -> Shape:
    """Annotation of one element: a number, or a record of an array."""
    return Shape(np.dtype(dtype), 0)


def field(dtype: DTypeLike, *shape: int) -> Shape:
    """Annotation of an array field of a record."""
    return Shape(np.dtype(dtype), len(shape), shape)


Number: TypeAlias = Annotated[Any, element(np.int64)]
"""Integer: int in Python, int64 in compiled code."""
Key: TypeAlias = Annotated[Any, element(np.uint64)]
"""64-bit hash."""
Truth: TypeAlias = Annotated[Any, element(np.bool_)]
"""Boolean: bool or np.bool_."""

Floats2D: TypeAlias = Annotated[NDArray[np.float32], array(np.float32, 2)]
Ints2D: TypeAlias = Annotated[NDArray[np.int32], array(np.int32, 2)]
Ints3D: TypeAlias = Annotated[NDArray[np.int32], array(np.int32, 3)]
Longs2D: TypeAlias = Annotated[NDArray[np.int64], array(np.int64, 2)]
