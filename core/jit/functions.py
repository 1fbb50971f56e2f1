"""Decorators of compiled functions, the list of all such functions, and memory prefetch."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from variant_ai.core.jit.machine_code import MachineCode, code_folder, folder_for_numba
from variant_ai.core.jit.signatures import signature_of

F = TypeVar("F", bound=Callable[..., Any])

_njit: Any = numba.njit
_settings: Any = numba.config
_code: Any = cgutils
_lock = threading.Lock()
compiled: list[Any] = []
"""All dispatchers made so far by `njit` and `borrowing`."""


def njit(function: F) -> F:
    """Compile a function: cached on disk, without the GIL, with C division.

    Its annotations define the only signature it may be called with; a test checks this.
    """
    return _compiled(function)


def borrowing(function: F) -> F:
    """Compile like `njit`, without reference counting.

    For functions that only read and write their arguments: they neither create nor keep arrays. With
    a dozen arrays per call, counting references costs more than the work.
    """
    return _compiled(function, _nrt=False)


def _compiled(function: F, **options: Any) -> F:
    with _lock, folder_for_numba(code_folder(Path(function.__code__.co_filename))):
        # these functions are never called from C, so they need no wrapper for it
        options |= {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
        dispatcher: Any = _njit(**options)(function)
        if hasattr(dispatcher, "_cache"):  # a plain function with NUMBA_DISABLE_JIT
            dispatcher._cache = MachineCode(dispatcher)
            compiled.append(dispatcher)
    result: F = dispatcher
    return result


def inlined(function: F) -> F:
    """Compile a helper into each of its callers, not separately: for helpers with one caller.

    Every level of functions adds compile time, because machine code is optimised again in each
    caller.
    """
    result: F = _njit(nogil=True, error_model="numpy", inline="always")(function)
    return result


def load(*functions: Any) -> None:
    """Load functions, or compile them, so that no caller has to wait for it."""
    for function in functions:
        if function in compiled and not function.signatures:
            function.compile(signature_of(function.py_func))


# --- prefetch --------------------------------------------------------------------------------------

_READ, _KEEP, _DATA = 0, 3, 1
"""Arguments of `llvm.prefetch`: for reading, into all cache levels, data rather than instructions."""


@intrinsic
def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Generate the code of `prefetch`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        parts = context.make_array(kind)(context, builder, arguments[0])
        element = _code.get_item_pointer(context, builder, kind, parts, [arguments[1]])
        byte = builder.bitcast(element, ir.IntType(8).as_pointer())
        word = ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [byte.type, word, word, word])
        call = builder.module.declare_intrinsic("llvm.prefetch", [byte.type], shape)
        builder.call(call, [byte, word(_READ), word(_KEEP), word(_DATA)])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


def _no_prefetch(array: Any, index: int) -> None:
    """Do nothing, if compilation is switched off."""


prefetch: Any = _no_prefetch if _settings.DISABLE_JIT else _prefetch
"""`prefetch(array, index)`: start to load the cache line of an element; any index is allowed.

Reading memory that was last used long ago takes up to 100 ns. `prefetch` starts the transfer and
does not wait for it.
"""
