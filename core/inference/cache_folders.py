"""Cache folders of evaluators, for compiled nets and measurements; they can be deleted at any time.

They lie beside the compiled kernels, in the user's cache folder; `VARIANT_AI_CACHE_DIR` names
another.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

FOLDER_VARIABLE = "VARIANT_AI_CACHE_DIR"


def cache_folder(name: str) -> Path | None:
    """Return a private folder of that name, created if necessary; None if none is writable.

    Its files are read back and trusted, so it must belong to this user.
    """
    for base in _candidates():
        folder = base / name
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            ours = not hasattr(os, "getuid") or folder.stat().st_uid == os.getuid()
            if ours and os.access(folder, os.W_OK):
                return folder
    return None


def keep_newest(folder: Path, files: int) -> None:
    """Delete all but the newest files of a folder; errors are ignored."""
    with contextlib.suppress(OSError):
        found = sorted(
            (p for p in folder.iterdir() if p.is_file()), key=lambda p: p.stat().st_mtime
        )
        for stale in found[: max(0, len(found) - files)]:
            stale.unlink(missing_ok=True)


def _candidates() -> list[Path]:
    """Base folders in order of preference; one named by the user is the only one."""
    if chosen := os.environ.get(FOLDER_VARIABLE):
        return [Path(chosen)]
    bases = []
    if os.name == "nt" and (local := os.environ.get("LOCALAPPDATA")):
        bases.append(Path(local) / "variant-ai")
    elif xdg := os.environ.get("XDG_CACHE_HOME"):
        bases.append(Path(xdg) / "variant-ai")
    with contextlib.suppress(RuntimeError):  # no home folder
        bases.append(Path.home() / ".cache" / "variant-ai")
    return bases
