"""Folders of machine code, named by a hash of the sources. They may be deleted at any time.

numba keys its cache by a function's own file only, so after an edit of a callee, or of a constant in
another file, it would silently use old machine code. Here the name of a module's folder contains a
hash of all files it imports from the core, directly or indirectly, of numba's version and of the
processor with its features. Bounds checking, which numba's key ignores too, has separate folders.

The folders are among the other caches (`core/system/cache_folders.py`), or in a private temporary
folder if those cannot be written. A file that cannot be read is deleted and compiled again. If a file cannot be written (full disk), the
function is compiled again next time.
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
from numba.core.codegen import get_host_cpu_features

from variant_ai.core.errors import VariantAIError
from variant_ai.core.system.cache_folders import base_folders, make_private
from variant_ai.core.system.temporary_folders import temporary_folder

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
