"""Compiled functions: how they are declared, compiled and cached. In reading order:

    arrays                  annotations for the array arguments of compiled functions
    functions               `njit`, `borrowing`, `inlined`: the decorators; `prefetch`
    bit_mixing              the mixing of bits that hashes and random numbers share
    signatures              the signature of a function, read from its annotations
    cache                   the folders that hold machine code
    machine_code            loading and saving the machine code of one function
    parallel_compilation    compiling missing functions in several processes

A compiled function has one signature, which its annotations define. So everything can be compiled
before it is called, in any order that puts callees before their callers, and by several processes at
once.
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
