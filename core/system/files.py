"""Writing whole files, errors that name the file, and short names of files."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from variant_ai.core.errors import DataError

WINDOWS = os.name == "nt"
ATTEMPTS, PAUSE = 20, 0.05
"""Attempts to rename on Windows, and seconds between them."""


@contextmanager
def naming(path: Path, temporary: Path | None = None) -> Iterator[None]:
    """Raise OSErrors of this block again with `path` as their file, if they name no file (such as for a
    full disk), or `temporary`, under which the file is written, or a file inside it."""
    try:
        yield
    except OSError as error:
        own = error.filename is None or (
            temporary is not None and Path(error.filename).is_relative_to(temporary)
        )
        if not own or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def is_stream(path: Path) -> bool:
    """Return True for a device, such as /dev/null, or a pipe: it is written to, and never replaced."""
    return path.exists() and not path.is_file() and not path.is_dir()


def is_same_file(path: Path, other: Path) -> bool:
    """Return True if both paths lead to one existing file, also through links."""
    try:
        return path.samefile(other)
    except OSError:
        return False


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to, renamed to `path` at the end; deleted after an error. A
    loss of power leaves the old file or the new one. Yields `path` itself if it is a stream.

    Raises OSError that names `path`, never the temporary file.
    """
    if is_stream(path):
        with naming(path):
            yield path
        return
    part = path.with_name(path.name + ".part")
    try:
        with naming(path, part):
            yield part
            if part.is_file():
                synchronise(part)
            rename(part, path)
        synchronise_names(path.parent)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def rename(old: Path, new: Path) -> None:
    """Rename a file, in place of one that is there, or a folder.

    On Windows that fails while another program reads the file, or one in the folder, which lasts a moment:
    it is tried again for a second. Raises OSError.
    """
    for _ in range(ATTEMPTS - 1 if WINDOWS else 0):
        with suppress(PermissionError):
            old.replace(new)
            return
        time.sleep(PAUSE)
    old.replace(new)


def synchronise(path: Path) -> None:
    """Force a file to the disk, if the system can do that."""
    if os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS):
            raise
    finally:
        os.close(handle)


def synchronise_names(folder: Path) -> None:
    """Force the names in a folder to the disk, if the system and its permissions allow that."""
    with suppress(OSError):
        synchronise(folder)


def first_settings(path: Path, now: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that a folder began with; a new one begins with `now`, which is written.
    Raises DataError for a file that has no settings."""
    if not path.exists():
        write_whole(path, json.dumps(now, indent=2, ensure_ascii=False))
        return now
    try:
        before = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error
    if not isinstance(before, dict):
        raise DataError(f"{path}: a mapping is expected, not {type(before).__name__}")
    return before


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file under another name and rename it. Text is written as UTF-8 and ends with a
    newline. Raises OSError that names `path`."""
    if isinstance(content, str):
        content = (content if content.endswith("\n") else content + "\n").encode()
    with whole(path) as part:
        part.write_bytes(content)


def short_names(paths: Sequence[Path]) -> list[str]:
    """Return the last part of each path, or as many parts as are needed to tell the paths apart."""
    for parts in range(1, max((len(path.parts) for path in paths), default=1)):
        names = ["/".join(path.parts[-parts:]) for path in paths]
        if len(set(names)) == len(set(paths)):
            return names
    return [str(path) for path in paths]
