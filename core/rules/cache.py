"""Where compiled code is kept: in folders named by the state of the sources, safe to lose.

Every compiled function of the project is made with `njit` of this module. numba keys its cache by
a function's own file only, so that an edit of a callee or of a constant elsewhere would silently
keep old machine code. Here a module's folder is named by a hash of all it imports from the core,
directly or not, of numba's version and of the processor; bounds checking, which numba forgets as
well, has folders of its own.

They lie in the user's cache folder, or, where that cannot be written, in a private folder for
temporary files: the installation itself may be read-only. `VARIANT_AI_CACHE_DIR` names another.
A file that cannot be read is thrown away and compiled anew, a file that cannot be written (full
disk) costs a compilation next time and nothing else.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import llvmlite
import llvmlite.binding
import numba
from numba.core.caching import FunctionCache
from numba.core.runtime.nrt import rtsys

from variant_ai.core import compilation

F = TypeVar("F", bound=Callable[..., Any])
Record: TypeAlias = Any
"""A record or an array of records in compiled code: numpy has no static type for its fields."""
Number: TypeAlias = Any
"""An integer: int when run as Python, int64 (a key: uint64) when compiled."""
Truth: TypeAlias = Any
"""bool, or numpy's."""

FOLDER_VARIABLE = "VARIANT_AI_CACHE_DIR"
KEPT_FOLDERS = 6
"""Folders of a module left in place when a new one is made."""

_ROOT = Path(__file__).resolve().parents[2]
_IMPORT = re.compile(r"^\s*(?:from|import) variant_ai\.(core[\w.]*)", re.MULTILINE)
_lock = threading.Lock()
_settings: Any = numba.config
_FunctionCache: Any = FunctionCache


def njit(function: F) -> F:
    """Compile a function for machine speed on first call: cached, without the GIL, C division.

    Every such function must see one signature only: the tests count.
    """
    return _compiled(function)


def borrowing(function: F) -> F:
    """`njit` for functions that only borrow their arrays: they make none, and keep none.

    Reference counts are left out. Where a function takes a dozen arrays, and calls others with all
    of them, counting costs more than the work.
    """
    return _compiled(function, _nrt=False)


def _compiled(function: F, **options: Any) -> F:
    with _lock, _numba_cache_folder(cache_folder(Path(function.__code__.co_filename))):
        compile_: Any = numba.njit(nogil=True, error_model="numpy", **options)
        dispatcher: Any = compile_(function)
        if hasattr(dispatcher, "_cache"):  # a plain function with NUMBA_DISABLE_JIT
            dispatcher._cache = _ForgivingCache(dispatcher.py_func)
    compiled: F = dispatcher
    return compiled


def inlined(function: F) -> F:
    """Compile a helper into each of its callers, not by itself: what is called from one place.

    Every layer of functions costs compile time again, since machine code is optimised anew in
    each caller.
    """
    compile_: Any = numba.njit(nogil=True, error_model="numpy", inline="always")
    compiled: F = compile_(function)
    return compiled


class _ForgivingCache(_FunctionCache):  # type: ignore[misc]
    """numba's cache, in which a damaged file is a missing one.

    Truncated or foreign files raise whatever unpickling them raises, and would do so for ever.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            # numba would first bring in the types of all it knows (lists, text, random numbers:
            # a third of a second), which a compilation needs and machine code that is there does
            # not; it does so itself when it next compiles. Code needs the memory manager only.
            rtsys.initialize(target_context)
            with self._guard_against_spurious_io_errors():
                found = self._load_overload(sig, target_context)
        except Exception:  # a pickle of anything may raise anything
            with contextlib.suppress(OSError):
                self.flush()
            found = None
        if found is None:
            compilation.begins()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception:  # a full disk, or a damaged index, which is read first
            with contextlib.suppress(Exception):
                self.flush()
                super().save_overload(sig, data)


@contextlib.contextmanager
def _numba_cache_folder(folder: Path) -> Iterator[None]:
    """Point numba at our folder only while our functions are made: the setting is global, and an
    application that hosts us keeps its own."""
    before = _settings.CACHE_DIR
    _settings.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        _settings.CACHE_DIR = before


@functools.cache
def cache_folder(module: Path) -> Path:
    """The folder for compiled code of a module in its present state; made if need be."""
    name = f"{module.stem}-{sources_hash(module)}" + ("-bounds" if _settings.BOUNDSCHECK else "")
    for base in _candidates():
        folder = base / name
        if _make(base, folder, module.stem):
            return folder
    return Path(tempfile.mkdtemp(prefix="variant-ai-kernels-")) / name


def sources_hash(module: Path) -> str:
    """Hash (16 hex digits) of all that a module's machine code is made of."""
    digest = hashlib.sha256()
    digest.update(f"{numba.__version__} {llvmlite.__version__}".encode())
    digest.update(llvmlite.binding.get_host_cpu_name().encode())
    for path in sorted(sources_of(module)):
        digest.update(path.name.encode() + b"\0")
        digest.update(_source(path))
    return digest.hexdigest()[:16]


def sources_of(module: Path) -> set[Path]:
    """The module's file and every file of the core that it imports, directly or not."""
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
    for name in _IMPORT.findall(_source(path).decode("utf-8", "replace")):
        module = _ROOT / name.replace(".", "/")
        # from a package anything may have been taken
        found += module.glob("*.py") if module.is_dir() else [module.with_suffix(".py")]
    return tuple(file.resolve() for file in found if file.is_file())


def _candidates() -> Iterator[Path]:
    """Base folders in order of preference."""
    if chosen := os.environ.get(FOLDER_VARIABLE):
        yield Path(chosen)
    if os.name == "nt" and (local := os.environ.get("LOCALAPPDATA")):
        yield Path(local) / "variant-ai" / "kernels"
    elif xdg := os.environ.get("XDG_CACHE_HOME"):
        yield Path(xdg) / "variant-ai" / "kernels"
    with contextlib.suppress(RuntimeError):  # no home folder
        yield Path.home() / ".cache" / "variant-ai" / "kernels"
    user = os.getuid() if hasattr(os, "getuid") else "user"
    yield Path(tempfile.gettempdir()) / f"variant-ai-kernels-{user}"


def _make(base: Path, folder: Path, stem: str) -> bool:
    """Make a private folder if need be; False where it cannot be written or is not ours.

    Cached code is executed when it is loaded, so nobody else may have put it there.
    """
    try:
        base.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not folder.is_dir():
            folder.mkdir(exist_ok=True, mode=0o700)
            _prune(base, stem)
        else:
            os.utime(folder)  # in use: other versions being tried do not push it out
        owner = base.stat().st_uid
    except OSError:
        return False
    ours = not hasattr(os, "getuid") or owner == os.getuid()
    return ours and os.access(folder, os.W_OK)


def _prune(base: Path, stem: str) -> None:
    """Remove all but the folders of a module used last: each edit of a source leaves one behind."""
    with contextlib.suppress(OSError):
        folders = [p for p in base.glob(f"{stem}-*") if p.is_dir()]
        folders.sort(key=lambda p: p.stat().st_mtime, reverse=True)
        for stale in folders[KEPT_FOLDERS:]:
            shutil.rmtree(stale, ignore_errors=True)
