"""Asking for memory before it is needed.

A descent meets nodes that were last read long ago: a wait of up to a hundred nanoseconds each, as
long as playing the move that leads there. `prefetch` starts the transfer and goes on.
"""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_settings: Any = numba.config
_code: Any = cgutils
_READ, _KEEP, _DATA = 0, 3, 1
"""LLVM's words: for reading, into all caches, not instructions."""


@intrinsic
def _compiled(typing_context: Any, array: Any, index: Any) -> Any:
    """Compiled code of `prefetch`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        parts = context.make_array(kind)(context, builder, arguments[0])
        place = _code.get_item_pointer(context, builder, kind, parts, [arguments[1]])
        byte = builder.bitcast(place, ir.IntType(8).as_pointer())
        word = ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [byte.type, word, word, word])
        call = builder.module.declare_intrinsic("llvm.prefetch", [byte.type], shape)
        builder.call(call, [byte, word(_READ), word(_KEEP), word(_DATA)])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


def _interpreted(array: Any, index: int) -> None:
    """Where compilation is switched off there is nothing to gain."""


prefetch: Any = _interpreted if _settings.DISABLE_JIT else _compiled
"""`prefetch(array, index)`: start to load the cache line of an element. Any index is allowed."""
