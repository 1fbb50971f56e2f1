"""Compiled functions: how they are declared, compiled and cached. In reading order:

    functions               `njit`, `borrowing`, `inlined`: the decorators; `prefetch`
    signatures              annotations of compiled functions, and the signatures that follow from them
    random_numbers          random numbers and hashes in compiled code
    machine_code            loading and saving machine code; the folders that hold it
    parallel_compilation    compiling missing functions in several processes

A compiled function has one signature, which its annotations define. So everything can be compiled
before it is called, in any order that puts callees before their callers, and by several processes at
once.
"""

from variant_ai.core.jit.functions import borrowing, inlined, njit
from variant_ai.core.jit.signatures import Key, Number, Truth, array, element, field

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
