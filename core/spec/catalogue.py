"""Files of specs, and names of variants that are known without reading a spec.

Engines list variants before they answer `uciok`, so nothing heavy is imported here.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from variant_ai.core.errors import SpecError
from variant_ai.specs.names import FAIRY_NAMES, SHIPPED

ROOT = Path(__file__).resolve().parents[2]
"""The folder that holds the rooms: `core/`, `specs/`, `variants/`."""
SPECS = ROOT / "specs"
NETS = ROOT / "variants" / "nets"
"""Nets of the variants without a folder of their own; README.md there is their card."""
SPEC_SUFFIXES = (".yaml", ".yml")
PACKAGED = "packaged"
"""Name for the net that comes with a variant, accepted wherever a net is given."""


# --- files -----------------------------------------------------------------------------------


def home_path(text: str | os.PathLike[str]) -> Path:
    """Replace `~` and `~name` in a path; return it unchanged if there is no such home."""
    path = Path(text)
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def builtin_specs() -> dict[str, Path]:
    """Name -> file of every spec that ships with the project."""
    return {path.stem: path for path in sorted(SPECS.glob("*.yaml"))}


def builtin_net(name: str) -> Path | None:
    """File of the net that ships for a variant without a plugin of its own; None if there is none."""
    path = NETS / f"{name}.onnx"
    return path if path.is_file() else None


def builtin_plugins() -> tuple[str, ...]:
    """Names of the variants that ship with a plugin, sorted."""
    folder = ROOT / "variants"
    return tuple(sorted(path.parent.name for path in folder.glob("*/plugin.py")))


def user_spec_files(environ: Mapping[str, str]) -> list[Path]:
    """Specs in the folders of `VARIANT_AI_SPECS` (separated as in PATH), else in
    `~/.config/variant-ai/specs`."""
    given = environ.get("VARIANT_AI_SPECS")
    if given is None:
        config = environ.get("XDG_CONFIG_HOME") or "~/.config"
        folders = [home_path(config) / "variant-ai" / "specs"]
    else:
        folders = [home_path(part) for part in given.split(os.pathsep) if part]
    files = (file for folder in folders if folder.is_dir() for file in sorted(folder.iterdir()))
    return [file for file in files if file.suffix in SPEC_SUFFIXES]


def user_specs(environ: Mapping[str, str]) -> dict[str, Path]:
    """Name -> file of every spec in the user's folders; the first of two files with one name."""
    found: dict[str, Path] = {}
    for path in user_spec_files(environ):
        found.setdefault(path.stem, path)
    return found


# --- names in a spec -------------------------------------------------------------------------


class SpecNames(NamedTuple):
    """Names in a spec that an engine reports before any variant is played."""

    variant: str = ""
    fairy: str = ""
    """Fairy-Stockfish's name of the variant; empty if it has none."""
    protocols: tuple[str, ...] = ("uci",)


def spec_names(path: Path) -> SpecNames:
    """Return the names in a spec file; the defaults of `SpecNames` if it cannot be read.

    Those of shipped specs are a table. Any other file is parsed once, which imports the YAML
    reader and takes a tenth of a second.
    """
    if path.parent == SPECS and path.stem in SHIPPED:
        return SpecNames(*SHIPPED[path.stem])
    try:
        status = path.stat()
    except OSError:
        return SpecNames()
    return _parsed_names(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=1024)
def _parsed_names(path: Path, changed: int, size: int) -> SpecNames:
    """Parse a spec file; `changed` and `size` are part of the cache key of the file's content."""
    from variant_ai.core.spec.inheritance import read_spec_file

    try:
        tree = read_spec_file(path)
    except SpecError:
        return SpecNames()
    listed = tree.get("protocols")
    protocols = tuple(map(str, listed)) if isinstance(listed, list) and listed else ("uci",)
    return SpecNames(str(tree.get("variant") or ""), str(tree.get("fairy") or ""), protocols)


# --- names of Fairy-Stockfish ----------------------------------------------------------------


def similar_names(name: str, known: Sequence[str] = FAIRY_NAMES) -> str:
    """Return the known names similar to a given one, as the end of an error message."""
    found = difflib.get_close_matches(name.lower(), known, n=5, cutoff=0.5)
    return f"similar: {', '.join(found)}" if found else "no similar name"


def unknown_fairy_variant(name: str, variant: str) -> str:
    """Return the error message for a spec of `variant` with an unknown name in `fairy:`."""
    return (
        f"Fairy-Stockfish has no variant {name!r} ({similar_names(name)}); use one of its "
        f"{len(FAIRY_NAMES)} names, or leave `fairy:` out if it does not have {variant!r}, which then "
        "cannot be checked against it"
    )
