"""Temporary folders of one process, which no ending of it leaves behind for long."""

from __future__ import annotations

import atexit
import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

LOCK = "lock"
"""File of a folder that its process holds locked; the system releases it even after a kill."""
_held: list[IO[bytes]] = []


def temporary_folder(prefix: str) -> Path:
    """Make a private folder that is removed at the end of this process, and remove those of the same prefix
    whose processes were killed. Raises OSError if none can be made."""
    for left in _left_behind(Path(tempfile.gettempdir()), prefix):
        shutil.rmtree(left, ignore_errors=True)
    # Until it is locked it has a name that no other process looks for.
    unlocked = Path(tempfile.mkdtemp(prefix=f".{prefix}"))
    file = (unlocked / LOCK).open("wb")
    _held.append(file)
    _lock(file)
    folder = unlocked.rename(unlocked.with_name(unlocked.name.removeprefix(".")))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _left_behind(parent: Path, prefix: str) -> Iterator[Path]:
    """Yield the folders of a prefix whose lock nobody holds."""
    for path in parent.glob(f"{prefix}*/{LOCK}"):
        with contextlib.suppress(OSError), path.open("r+b") as file:
            if _lock(file):
                yield path.parent


def _lock(file: IO[bytes]) -> bool:
    """Lock a file until it is closed. False if another holds the lock, or if this system has none."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True
