"""Names of the specs, without reading one: engines list them as they start."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from variant_ai.core.errors import SpecError

ROOT = Path(__file__).resolve().parents[2]
"""The folder that holds the rooms: `core/`, `specs/`, `variants/`."""
SPEC_SUFFIXES = (".yaml", ".yml")
_PLAIN = re.compile(
    r"^(variant|fairy|protocols|extends):[ \t]+"
    r"(?:([A-Za-z0-9_.-]+|~)|\[[ \t]*([A-Za-z0-9_.-]+(?:[ \t]*,[ \t]*[A-Za-z0-9_.-]+)*)[ \t]*\])"
    r"[ \t]*(?:#.*)?\r?$(?!\r?\n(?:[ \t]*(?:#.*)?\r?\n)*[ \t]+[^ \t#])",
    re.MULTILINE,
)
"""A word at the left edge, with one plain value or a list of them in one line, which goes on in no
other: all that is read here, because it means the same to every reader of YAML."""
_ANY = re.compile(r"(?:variant|fairy|protocols|extends)[\"']?[ \t]*:")
_NONE = ("null", "Null", "NULL", "~")


def home_path(text: str | os.PathLike[str]) -> Path:
    """A path with `~` and `~name` replaced; as it stands where there is no such home."""
    path = Path(text)
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def builtin_specs() -> dict[str, Path]:
    """Name -> file of every spec that ships with the project."""
    return {path.stem: path for path in sorted((ROOT / "specs").glob("*.yaml"))}


def builtin_plugins() -> tuple[str, ...]:
    """Names of the variants that ship with a plugin of their own, sorted."""
    folder = ROOT / "variants"
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


class SpecWords(NamedTuple):
    """What an engine says of a spec before anybody plays it."""

    variant: str = ""
    fairy: str = ""
    """Empty without a judge."""
    protocols: tuple[str, ...] = ("uci",)


def spec_words(path: Path) -> SpecWords:
    """Names and protocols of a spec; those of an empty one for a file that cannot be read.

    An engine asks this of every spec while a client waits, so a file that says them in the plainest
    way is not given to the YAML reader, which takes a tenth of a second to import.
    """
    try:
        told = path.stat()
    except OSError:
        return SpecWords()
    return _words(path, told.st_mtime_ns, told.st_size)


@lru_cache(maxsize=1024)
def _words(path: Path, changed: int, size: int) -> SpecWords:
    """changed, size: so that a file is read again when it is another."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return SpecWords()
    bare = re.sub(r"(?m)^[ \t]*#.*$", "", text)
    found = _PLAIN.findall(bare)
    names = [name for name, _, _ in found]
    if len(names) == len(_ANY.findall(bare)) == len(set(names)) and "variant" in names:
        words = {name: listed or value for name, value, listed in found}
        lists = {name: bool(listed) for name, _, listed in found}
        single = not any(lists.get(name) for name in ("variant", "fairy", "extends"))
        parent = _plain_parent(words.get("extends"), path)
        if single and lists.get("protocols", True) and parent is not None:
            protocols = words.get("protocols", " ".join(parent.protocols)).replace(",", " ").split()
            fairy = words.get("fairy", parent.fairy)
            return SpecWords(words["variant"], "" if fairy in _NONE else fairy, tuple(protocols))
    return _loaded_words(text, path)


def _plain_parent(name: str | None, path: Path) -> SpecWords | None:
    """Words of the spec that is extended, empty ones if none is; None where only the YAML reader can
    tell."""
    if name is None:
        return SpecWords()
    beside = path.with_name(f"{name}.yaml")
    found = beside if beside.is_file() else builtin_specs().get(name)
    return None if found is None or found == path else spec_words(found)


def _loaded_words(text: str, path: Path) -> SpecWords:
    """The same by the YAML reader."""
    from variant_ai.core.spec.inheritance import read_spec_tree
    from variant_ai.core.spec.located import plain

    try:
        tree = plain(read_spec_tree(text, str(path), path.parent))
    except SpecError:
        return SpecWords()
    listed = tree.get("protocols")
    protocols = tuple(map(str, listed)) if isinstance(listed, list) and listed else ("uci",)
    return SpecWords(str(tree.get("variant") or ""), str(tree.get("fairy") or ""), protocols)
