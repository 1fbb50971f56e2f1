"""Names of the specs in this folder, without reading one: engines list them as they start."""

from __future__ import annotations

from pathlib import Path


def builtin_specs() -> dict[str, Path]:
    """Name -> file of every spec in this folder."""
    return {path.stem: path for path in sorted(Path(__file__).parent.glob("*.yaml"))}
