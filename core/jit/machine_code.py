"""Machine code of one function: loaded from disk if it is there, otherwise compiled and saved.

numba copies the code of every callee into its caller and optimises it there again, and once more in
the caller's caller, and so on. That pays off for small functions. For large ones it costs a third of
the whole compilation time without making anything faster, so callers call a large function by its
symbol. The symbols that a function calls are stored in its file and loaded before it.

numba keeps an index of a function's files and numbers them. Two processes that save code for two
signatures or two processor types at once would give both the same number, and one would run the code of
the other. Here the name of a file contains a hash of what numba's index has, and there is no index.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import uuid
from pathlib import Path
from typing import Any

import llvmlite.binding
from numba.core import types
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

import variant_ai.core.system.compilation_progress as compilation
from variant_ai.core.jit.signatures import signature_of, size_of

LARGE = 3000
"""Size of bytecode in bytes, including the helpers compiled into it, from which a function is called
by its symbol."""

_FunctionCache: Any = FunctionCache
_Library: Any = JITCodeLibrary
_dumps: Any = dumps

owners: dict[str, MachineCode] = {}
"""Functions by the symbols of large functions that this process can call."""
by_name: dict[str, MachineCode] = {}
"""All functions created so far, by their full name."""


class _CalledBySymbol(_Library):  # type: ignore[misc]
    """A library whose code is not copied into its callers."""

    def _get_module_for_linking(self) -> Any:
        return llvmlite.binding.parse_assembly(str(self._codegen._create_empty_module(self.name)))


class MachineCode(_FunctionCache):  # type: ignore[misc]
    """numba's cache of one function, but a damaged file counts as missing.

    Otherwise a truncated or foreign file would raise an unpickling error on every use.
    """

    def __init__(self, dispatcher: Any) -> None:
        super().__init__(dispatcher.py_func)
        self.dispatcher = dispatcher
        self.lock: Any = None
        """File lock held while this process compiles the function; None otherwise."""
        self.name = f"{dispatcher.py_func.__module__}.{dispatcher.py_func.__qualname__}"
        by_name[self.name] = self

    def path(self, sig: Any, codegen: Any) -> Path:
        """File of the machine code for a signature and a processor type."""
        key = "\n".join(map(str, self._index_key(sig, codegen)))
        digest = hashlib.sha256(key.encode()).hexdigest()[:16]
        return Path(self._cache_path) / f"{self._impl.filename_base}.{digest}.nbc"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = self._load(sig, target_context)
        if found is None:
            from variant_ai.core.jit import parallel_compilation

            self.lock = parallel_compilation.compile_missing(self.dispatcher, sig)
            if self.lock is None:
                found = self._load(sig, target_context)
        if found is None:
            compilation.begins()
        return found

    def _load(self, sig: Any, target_context: Any) -> Any:
        path = self.path(sig, target_context.codegen())
        try:
            content = path.read_bytes()
        except OSError:  # missing, or just being replaced (Windows)
            return None
        try:
            # numba would first load the types of all it supports (lists, text, random numbers: a
            # third of a second). Only compilation needs them, and loads them itself. Loaded code
            # needs the memory manager only.
            rtsys.initialize(target_context)
            return self._rebuilt(content, target_context)
        except Exception:  # unpickling may raise any error
            with contextlib.suppress(OSError):
                path.unlink()
        return None

    def _rebuilt(self, content: bytes, target_context: Any) -> Any:
        symbols, reduced = pickle.loads(content)
        if not all(_is_callable(symbol, name) for symbol, name in symbols):
            return None
        result = self._impl.rebuild(target_context, reduced)
        self._offer(result)
        return result

    def save_overload(self, sig: Any, data: Any) -> None:
        with contextlib.suppress(Exception):  # a full disk: it is compiled again next time
            _replace(self.path(sig, data.codegen), self._content(data))
        self._offer(data)
        if self.lock is not None:
            self.lock.release()
            self.lock = None

    def _content(self, data: Any) -> bytes:
        declared = [f.name for f in data.library._final_module.functions if f.is_declaration]
        symbols = tuple((name, owners[name].name) for name in declared if name in owners)
        content: bytes = _dumps((symbols, self._impl.reduce(data)))
        return content

    def _offer(self, result: Any) -> None:
        """If the function is large, let its callers call it by its symbol."""
        signature = signature_of(self.dispatcher.py_func)
        if (
            size_of(self.dispatcher) >= LARGE
            and signature is not None
            and not any(isinstance(kind, types.BaseTuple) for kind in signature)
        ):
            result.library.__class__ = _CalledBySymbol
            owners[result.fndesc.llvm_func_name] = self


def _replace(path: Path, content: bytes) -> None:
    """Write a file that other processes may write and read at the same time. Raises OSError."""
    part = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def _is_callable(symbol: str, name: str) -> bool:
    """Return True if the function can be called by this symbol, after loading it if needed."""
    if symbol not in owners and name in by_name:
        owner = by_name[name]
        owner.dispatcher.compile(signature_of(owner.dispatcher.py_func))
    return symbol in owners
