"""Compiled code: how functions become machine code, where it is kept, and who compiles it.

    functions    `njit`, `borrowing`, `inlined`: the decorators of all compiled functions
    arrays       what annotations of compiled functions say of their arrays
    signatures   the one signature of a function, read from its annotations
    cache        the folders that keep machine code
    crew         compiles missing functions in several processes at once

A compiled function has one signature, and its annotations give it. So everything can be compiled
before it is called, in any order that puts a function behind those it calls, by as many processes as
there are processors.
"""

from variant_ai.core.jit.arrays import Key, Number, Truth, array, element, field
from variant_ai.core.jit.functions import borrowing, inlined, njit

__all__ = [
    "Key",
    "Number",
    "Truth",
    "array",
    "borrowing",
    "element",
    "field",
    "inlined",
    "njit",
]
