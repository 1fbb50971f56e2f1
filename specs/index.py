"""Names of the specs, without reading one: engines list them as they start."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

SPEC_SUFFIXES = (".yaml", ".yml")
_WORD = re.compile(rb"^(variant|fairy|protocols):[ \t]*([^#\r\n]*)", re.MULTILINE)


def home_path(text: str | os.PathLike[str]) -> Path:
    """A path with `~` and `~name` replaced; as it stands where there is no such home."""
    path = Path(text)
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def builtin_specs() -> dict[str, Path]:
    """Name -> file of every spec in this folder."""
    return {path.stem: path for path in sorted(Path(__file__).parent.glob("*.yaml"))}


def builtin_plugins() -> tuple[str, ...]:
    """Names of the variants that ship with a plugin of their own, sorted."""
    folder = Path(__file__).resolve().parent.parent / "variants"
    return tuple(sorted(path.parent.name for path in folder.glob("*/plugin.py")))


def user_spec_folders(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Folders of `VARIANT_AI_SPECS` (several as in PATH), else `~/.config/variant-ai/specs`."""
    given = environ.get("VARIANT_AI_SPECS")
    if given is not None:
        return tuple(home_path(part) for part in given.split(os.pathsep) if part)
    config = environ.get("XDG_CONFIG_HOME") or "~/.config"
    return (home_path(config) / "variant-ai" / "specs",)


def user_specs(environ: Mapping[str, str]) -> dict[str, Path]:
    """Name -> file of every spec in the user's folders; of two files of one name the first."""
    found: dict[str, Path] = {}
    for folder in user_spec_folders(environ):
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if path.suffix in SPEC_SUFFIXES:
                found.setdefault(path.stem, path)
    return found


def spec_words(path: Path) -> dict[str, str]:
    """What stands after `variant:`, `fairy:` and `protocols:` in a spec, as text; {} for an
    unreadable file.

    Not a YAML parser: an engine asks this of every spec while a client waits.
    """
    try:
        text = path.read_bytes()
    except OSError:
        return {}
    return {
        name.decode(): value.decode("utf-8", "replace").strip()
        for name, value in _WORD.findall(text)
    }
