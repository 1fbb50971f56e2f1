"""The folders of machine code: named by the state of the sources, safe to lose.

numba keys its cache by a function's own file only, so that an edit of a callee or of a constant
elsewhere would silently keep old machine code. Here a module's folder is named by a hash of all it
imports from the core, directly or not, of numba's version and of the processor; bounds checking,
which numba forgets as well, has folders of its own.

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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding
import numba

FOLDER_VARIABLE = "VARIANT_AI_CACHE_DIR"
KEPT_FOLDERS = 6
"""Folders of a module left in place when a new one is made."""

_ROOT = Path(__file__).resolve().parents[2]
_IMPORT = re.compile(r"^\s*(?:from|import) variant_ai\.(core[\w.]*)", re.MULTILINE)
_settings: Any = numba.config


@contextlib.contextmanager
def folder_for_numba(folder: Path) -> Iterator[None]:
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
