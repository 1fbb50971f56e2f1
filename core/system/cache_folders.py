"""Cache folders: machine code, compiled nets and measurements. They can be deleted at any time.

`VARIANT_AI_CACHE_DIR` names one; otherwise they are in the user's cache folder.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

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
