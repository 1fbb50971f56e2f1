"""Machine code of compiled functions: loaded from disk if it is there, otherwise compiled and saved.

**Folders.** They are named by a hash of the sources, and may be deleted at any time. numba keys its cache
by a function's own file only, so after an edit of a callee, or of a constant in another file, it would
silently use old machine code. Here the name of a module's folder contains a hash of all files it imports
from the core, directly or indirectly, of numba's version and of the processor with its features. Bounds
checking, which numba's key ignores too, has separate folders. They are among the other caches
(`core/system/folders.py`), or in a private temporary folder if those cannot be written. A file that
cannot be read is deleted and compiled again. If a file cannot be written (full disk), the function is
compiled again next time.

**Files.** numba copies the code of every callee into its caller and optimises it there again, and once
more in the caller's caller, and so on. That pays off for small functions. For large ones it costs a third
of the whole compilation time without making anything faster, so callers call a large function by its
symbol. The symbols that a function calls are stored in its file and loaded before it.

numba keeps an index of a function's files and numbers them. Two processes that save code for two
signatures or two processor types at once would give both the same number, and one would run the code of
the other. Here the name of a file contains a hash of what numba's index has, and there is no index.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pickle
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding
import numba
from numba.core import types
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary, get_host_cpu_features
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

import variant_ai.core.system.compilation_progress as compilation
from variant_ai.core.errors import VariantAIError
from variant_ai.core.jit.signatures import signature_of, size_of
from variant_ai.core.system.folders import base_folders, make_private, temporary_folder

KEPT_FOLDERS = 6
"""Number of a module's folders that are kept when a new one is created."""

_ROOT = Path(__file__).resolve().parents[2]
_IMPORT = re.compile(r"^\s*(?:from|import) variant_ai\.(core[\w.]*)", re.MULTILINE)
_TYPES_ONLY = re.compile(r"^if TYPE_CHECKING:\n(?:[ \t]+.*\n|\n)+", re.MULTILINE)
"""Imports that only type checkers follow."""
_settings: Any = numba.config
_host_features: Any = get_host_cpu_features


@contextlib.contextmanager
def folder_for_numba(folder: Path) -> Iterator[None]:
    """Set numba's cache folder while our functions are created. The setting is global, so an
    application that imports this package gets its own value back."""
    before = _settings.CACHE_DIR
    _settings.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        _settings.CACHE_DIR = before


@functools.cache
def code_folder(module: Path) -> Path:
    """Return the folder for the compiled code of a module with its present sources; created if
    needed. Raises VariantAIError if no folder can be written."""
    name = f"{module.stem}-{sources_hash(module)}" + ("-bounds" if _settings.BOUNDSCHECK else "")
    tried = list(_candidates())
    for base in tried:
        folder = base / name
        if _make(base, folder, module.stem):
            return folder
    try:
        return _temporary_base() / name
    except OSError as error:
        raise VariantAIError(
            "compiled code needs a folder that can be written, which none of these is: "
            f"{', '.join(map(str, tried))}; name one in VARIANT_AI_CACHE_DIR"
        ) from error


@functools.cache
def _temporary_base() -> Path:
    """A folder for this process alone, removed at its end. Raises OSError if none can be made."""
    return temporary_folder("variant-ai-kernels-")


def sources_hash(module: Path) -> str:
    """Hash (16 hex digits) of everything that a module's machine code depends on."""
    digest = hashlib.sha256()
    digest.update(f"{numba.__version__} {llvmlite.__version__}".encode())
    processor = _settings.CPU_NAME or llvmlite.binding.get_host_cpu_name()
    features = _settings.CPU_FEATURES or _host_features()
    digest.update(f"{processor} {features}".encode())
    for path in sorted(sources_of(module)):
        digest.update(path.name.encode() + b"\0")
        digest.update(_source(path))
    return digest.hexdigest()[:16]


def sources_of(module: Path) -> set[Path]:
    """The module's file and all files of the core that it imports, directly or indirectly."""
    found: set[Path] = set()
    todo = [module.resolve()]
    while todo:
        path = todo.pop()
        if path not in found:
            found.add(path)
            todo += _imports(path)
    return found


@functools.cache
def _source(path: Path) -> bytes:
    return path.read_bytes()


@functools.cache
def _imports(path: Path) -> tuple[Path, ...]:
    found: list[Path] = []
    text = _TYPES_ONLY.sub("", _source(path).decode("utf-8", "replace"))
    for name in _IMPORT.findall(text):
        module = _ROOT / name.replace(".", "/")
        # any module of an imported package may be used
        found += module.glob("*.py") if module.is_dir() else [module.with_suffix(".py")]
    return tuple(file.resolve() for file in found if file.is_file())


def _candidates() -> Iterator[Path]:
    """Folders for the code of all modules, in order of preference."""
    for base in base_folders():
        yield base / "kernels"
    user = os.getuid() if hasattr(os, "getuid") else "user"
    with contextlib.suppress(FileNotFoundError):  # no folder for temporary files can be written
        yield Path(tempfile.gettempdir()) / f"variant-ai-kernels-{user}"


def _make(base: Path, folder: Path, stem: str) -> bool:
    """Create a private folder if needed. Return False if it, or its parent, is not ours."""
    if not make_private(base):
        return False
    is_new = not folder.is_dir()
    if not make_private(folder):
        return False
    if is_new:
        _prune(base, stem)
    else:
        os.utime(folder)  # in use: folders of other versions do not displace it
    return True


def _prune(base: Path, stem: str) -> None:
    """Remove all but the most recently used folders of a module: each edit creates a new one."""
    with contextlib.suppress(OSError):
        folders = [p for p in base.glob(f"{stem}-*") if p.is_dir()]
        folders.sort(key=lambda p: p.stat().st_mtime, reverse=True)
        for stale in folders[KEPT_FOLDERS:]:
            shutil.rmtree(stale, ignore_errors=True)


# --- files of one function ------------------------------------------------------------------------

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
