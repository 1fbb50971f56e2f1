"""Annotations of compiled functions, and the signatures that follow from them before anything is compiled.

`NDArray[np.int32]` is a contiguous array with one dimension. Everything else that Python has no type for
has an alias next to its dtype:

    Position: TypeAlias = Annotated[NDArray[np.void], array(POSITION)]
    PositionRow: TypeAlias = Annotated[Any, element(POSITION)]
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import numba
import numpy as np
from numba.core import types
from numba.np.numpy_support import from_dtype
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


# --- signatures, callees and sizes ----------------------------------------------------------------

_typeof: Any = numba.typeof
PLAIN: dict[Any, Any] = {int: types.int64, float: types.float64, bool: types.boolean}


@functools.cache
def signature_of(function: Callable[..., Any]) -> tuple[Any, ...] | None:
    """Return numba's types of all parameters; None if an annotation is missing or not specific
    enough."""
    names = list(inspect.signature(function).parameters)
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        return tuple(type_of(hints[name]) for name in names)
    except (KeyError, NameError, TypeError):
        return None


def type_of(hint: Any) -> Any:
    """Return numba's type for an annotation. Raises TypeError."""
    if isinstance(hint, type) and hasattr(hint, "_fields"):  # a named tuple
        fields = typing.get_type_hints(hint, include_extras=True)
        parts = [type_of(fields[name]) for name in hint._fields]
        tuple_type: Any = types.BaseTuple
        return tuple_type.from_types(parts, hint)
    if hint in PLAIN:
        return PLAIN[hint]
    if isinstance(hint, type) and issubclass(hint, np.generic):
        return from_dtype(np.dtype(hint))
    for annotation in getattr(hint, "__metadata__", ()):
        if isinstance(annotation, Shape):
            return _type_of_shape(annotation)
    hint = _without_alias(hint)
    if typing.get_origin(hint) is np.ndarray:
        (kind,) = typing.get_args(typing.get_args(hint)[1])
        if kind is not np.void:
            return _type_of_shape(Shape(np.dtype(kind), 1))
    raise TypeError(f"{hint} is no annotation of a compiled function; see core/jit/signatures.py")


def _without_alias(hint: Any) -> Any:
    """Return the type that an alias stands for: since numpy 2.5 `NDArray` is a `type` statement."""
    meaning = getattr(typing.get_origin(hint), "__value__", None)
    return hint if meaning is None else meaning[typing.get_args(hint)]


def _type_of_shape(shape: Shape) -> Any:
    if shape.inside:
        return types.NestedArray(from_dtype(shape.dtype), shape.inside)
    if shape.dimensions == 0:
        return from_dtype(shape.dtype)
    return _typeof(np.empty((1,) * shape.dimensions, shape.dtype))


def called_by(dispatcher: Any) -> list[Any]:
    """Compiled functions called by a function or by the helpers compiled into it."""
    return _reach(dispatcher)[1]


def size_of(dispatcher: Any) -> int:
    """Size of a function's bytecode in bytes, including the helpers compiled into it."""
    return _reach(dispatcher)[0]


@functools.cache
def _reach(dispatcher: Any) -> tuple[int, list[Any]]:
    code = dispatcher.py_func.__code__
    size, called = len(code.co_code), []
    for name in code.co_names:
        other = dispatcher.py_func.__globals__.get(name)
        if not hasattr(other, "py_func") or other is dispatcher:
            continue
        if other.targetoptions.get("inline") == "always":
            more, calls = _reach(other)
            size += more
            called += calls
        else:
            called.append(other)
    return size, list(dict.fromkeys(called))
