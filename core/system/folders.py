"""Cache folders, and temporary folders of one process.

Cache folders hold machine code, compiled nets and measurements. They can be deleted at any time.
`VARIANT_AI_CACHE_DIR` names one; otherwise they are in the user's cache folder.

No ending of a process leaves its temporary folders behind for long.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

FOLDER_VARIABLE = "VARIANT_AI_CACHE_DIR"


def base_folders() -> Iterator[Path]:
    """Yield the folders for all caches, in order of preference; they may not exist or be writable."""
    if chosen := os.environ.get(FOLDER_VARIABLE):
        yield Path(chosen)
    if os.name == "nt" and (local := os.environ.get("LOCALAPPDATA")):
        yield Path(local) / "variant-ai"
    elif xdg := os.environ.get("XDG_CACHE_HOME"):
        yield Path(xdg) / "variant-ai"
    with contextlib.suppress(RuntimeError):  # no home folder
        yield Path.home() / ".cache" / "variant-ai"


def make_private(folder: Path) -> bool:
    """Create a private folder if needed. Return False if it cannot be written or belongs to another
    user: what is cached is trusted when it is read back, and code is executed."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        ours = not hasattr(os, "getuid") or folder.stat().st_uid == os.getuid()
        return ours and os.access(folder, os.W_OK)
    except OSError:
        return False


def cache_folder(name: str) -> Path | None:
    """Return a private folder of that name, created if necessary; None if none is writable."""
    return next((base / name for base in base_folders() if make_private(base / name)), None)


def keep_newest(folder: Path, files: int) -> None:
    """Delete all but the newest files of a folder; errors are ignored."""
    with contextlib.suppress(OSError):
        found = sorted(
            (p for p in folder.iterdir() if p.is_file()), key=lambda p: p.stat().st_mtime
        )
        for stale in found[: max(0, len(found) - files)]:
            stale.unlink(missing_ok=True)


# --- temporary folders ----------------------------------------------------------------------------

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
