"""The machine code of one function: loaded from disk if it is there, compiled and saved if not.

numba copies the code of every callee into its caller and optimises it there anew, again in the
caller's caller, and so on. That is worth its time for small functions, and for large ones costs a
third of all compilation without making anything faster. So callers call a large function by its
symbol. Its symbols stand in their files, and are loaded before them.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import llvmlite.binding
from numba.core import types
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.runtime.nrt import rtsys

from variant_ai.core.jit.signatures import signature_of, size_of
from variant_ai.core.system import compilation_progress as compilation

LARGE = 3000
"""Bytes of bytecode, with the helpers that are compiled into it, from which a function is called by
its symbol."""

_FunctionCache: Any = FunctionCache
_Library: Any = JITCodeLibrary

owners: dict[str, MachineCode] = {}
"""Of the symbols of large functions that this process can call."""
by_name: dict[str, MachineCode] = {}
"""All functions made so far."""


class _CalledBySymbol(_Library):  # type: ignore[misc]
    """Code that is not copied into its callers."""

    def _get_module_for_linking(self) -> Any:
        return llvmlite.binding.parse_assembly(str(self._codegen._create_empty_module(self.name)))


class MachineCode(_FunctionCache):  # type: ignore[misc]
    """numba's cache of one function, in which a damaged file is a missing one.

    Truncated or foreign files raise whatever unpickling them raises, and would do so for ever.
    """

    def __init__(self, dispatcher: Any) -> None:
        super().__init__(dispatcher.py_func)
        self.dispatcher = dispatcher
        self.lock: Any = None
        """Says to other processes that this one compiles the function."""
        # numba doubts files by the source's time of change; our folders are named by its content
        self._cache_file._source_stamp = None
        self.name = f"{dispatcher.py_func.__module__}.{dispatcher.py_func.__qualname__}"
        by_name[self.name] = self

    @property
    def path(self) -> Path:
        """The file that is there once the function is compiled: it has one signature only."""
        return Path(self._cache_file._data_path(self._cache_file._data_name(1)))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = self._load(sig, target_context)
        if found is None:
            from variant_ai.core.jit import crew

            self.lock = crew.bring(self.dispatcher, sig)
            if self.lock is None:
                found = self._load(sig, target_context)
        if found is None:
            compilation.begins()
        return found

    def _load(self, sig: Any, target_context: Any) -> Any:
        try:
            # numba would first bring in the types of all it knows (lists, text, random numbers:
            # a third of a second), which a compilation needs and machine code that is there does
            # not; it does so itself when it next compiles. Code needs the memory manager only.
            rtsys.initialize(target_context)
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)
        except Exception:  # a pickle of anything may raise anything
            with contextlib.suppress(OSError):
                self.flush()
        return None

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        saved = self._cache_file.load(self._index_key(sig, target_context.codegen()))
        if saved is None:
            return None
        symbols, reduced = saved
        if not all(_is_callable(symbol, name) for symbol, name in symbols):
            return None
        result = self._impl.rebuild(target_context, reduced)
        self._offer(result)
        return result

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception:  # a full disk, or a damaged index, which is read first
            with contextlib.suppress(Exception):
                self.flush()
                super().save_overload(sig, data)
        self._offer(data)
        if self.lock is not None:
            self.lock.release()
            self.lock = None

    def _save_overload(self, sig: Any, data: Any) -> None:
        self._impl.locator.ensure_cache_path()
        declared = [f.name for f in data.library._final_module.functions if f.is_declaration]
        symbols = tuple((name, owners[name].name) for name in declared if name in owners)
        key = self._index_key(sig, data.codegen)
        self._cache_file.save(key, (symbols, self._impl.reduce(data)))

    def _offer(self, result: Any) -> None:
        """Have callers call it by its symbol, if it is large."""
        signature = signature_of(self.dispatcher.py_func)
        if (
            size_of(self.dispatcher) >= LARGE
            and signature is not None
            and not any(isinstance(kind, types.BaseTuple) for kind in signature)
        ):
            result.library.__class__ = _CalledBySymbol
            owners[result.fndesc.llvm_func_name] = self


def _is_callable(symbol: str, name: str) -> bool:
    """True if the function can be called by this symbol, after loading it if need be."""
    if symbol not in owners and name in by_name:
        owner = by_name[name]
        owner.dispatcher.compile(signature_of(owner.dispatcher.py_func))
    return symbol in owners
