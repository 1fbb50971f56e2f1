"""The decorators that make machine code of Python functions, and the list of all such functions."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

from variant_ai.core.jit.cache import cache_folder, folder_for_numba
from variant_ai.core.jit.machine_code import MachineCode

F = TypeVar("F", bound=Callable[..., Any])

_njit: Any = numba.njit
_lock = threading.Lock()
compiled: list[Any] = []
"""Every dispatcher made so far by `njit` and `borrowing`."""


def njit(function: F) -> F:
    """Compile a function for machine speed: cached, without the GIL, C division.

    Its annotations give the one signature that it may be called with; a test looks.
    """
    return _compiled(function)


def borrowing(function: F) -> F:
    """`njit` for functions that only borrow their arrays: they make none, and keep none.

    Reference counts are left out. If a function takes a dozen arrays, and calls others with all of
    them, counting costs more than the work.
    """
    return _compiled(function, _nrt=False)


def _compiled(function: F, **options: Any) -> F:
    with _lock, folder_for_numba(cache_folder(Path(function.__code__.co_filename))):
        # nobody calls these functions from C: no wrapper for it
        options |= {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
        dispatcher: Any = _njit(**options)(function)
        if hasattr(dispatcher, "_cache"):  # a plain function with NUMBA_DISABLE_JIT
            dispatcher._cache = MachineCode(dispatcher)
            compiled.append(dispatcher)
    result: F = dispatcher
    return result


def inlined(function: F) -> F:
    """Compile a helper into each of its callers, not by itself: for helpers with one caller.

    Every layer of functions costs compile time again, since machine code is optimised anew in
    each caller.
    """
    result: F = _njit(nogil=True, error_model="numpy", inline="always")(function)
    return result
