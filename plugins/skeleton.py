"""The skeleton of a plugin: a package with a variant of its own that installs, passes its tests, trains
by self-play and plays, before anything in it is changed.

The files are made from the templates in `plugins/templates/`.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from variant_ai.core.errors import SettingError, os_reason
from variant_ai.core.system.templates import rendered
from variant_ai.plugins.hookspecs import API_VERSION

if TYPE_CHECKING:
    from variant_ai.plugins.registered import Registry

TEMPLATES = Path(__file__).parent / "templates"
PREFIX = "variant-ai-"
MAX_NAME = 40
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def distribution_of(name: str) -> str:
    """Name of the package on an index, and of its folder: `variant-ai-NAME`."""
    return PREFIX + name


def check_name(name: str, registry: Registry) -> None:
    """Raise SettingError unless the name can be that of a new variant."""
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME:
        guess = re.sub(r"[^a-z0-9]+", "-", name.lower().removeprefix(PREFIX)).strip("-0123456789")
        hint = f"did you mean {guess[:MAX_NAME]!r}? " if guess else ""
        raise SettingError(
            f"{name!r} is not a name of a variant; {hint}accepted: at most {MAX_NAME} lower-case "
            "letters and digits, with hyphens between them, a letter first"
        )
    if name.startswith(PREFIX):
        raise SettingError(
            f"{name!r}: the package is called {PREFIX}NAME by itself; give {name[len(PREFIX) :]!r}"
        )
    taken = registry.variants.get(name)
    if taken is not None:
        raise SettingError(
            f"{name!r} is a variant already, of the plugin {taken.plugin!r}; choose another name"
        )
    if name in (plugin.name for plugin in registry.plugins):
        raise SettingError(f"{name!r} is an installed plugin already; choose another name")


def write_skeleton(
    name: str, folder: Path, *, reader: bool = False, notation: bool = False
) -> list[Path]:
    """Write the package of a variant into a new folder and return its files, relative to it.

    All files are written or none. Raises SettingError if the folder has files already, or if it
    cannot be written.
    """
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise SettingError(f"{folder} already exists; name another folder, or remove it")
    parent = folder.absolute().parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=parent) as temporary:
            made = Path(temporary) / "package"
            for path, text in _files(name, reader, notation):
                (made / path).parent.mkdir(parents=True, exist_ok=True)
                (made / path).write_text(text, encoding="utf-8", newline="\n")
            folder.mkdir(exist_ok=True)  # one that is there may be where the user stands
            for part in made.iterdir():
                shutil.move(part, folder)
    except OSError as error:
        raise SettingError(f"{folder} cannot be written: {os_reason(error, folder)}") from error
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


def _files(name: str, reader: bool, notation: bool) -> Iterator[tuple[str, str]]:
    """Paths of the package, and the text of each file."""
    module = name.replace("-", "_")
    package = f"variant_ai_{module}"
    words = {
        "name": name,
        "module": module,
        "package": package,
        "distribution": distribution_of(name),
        "title": name.replace("-", " ").capitalize(),
        "api": API_VERSION,
        "reader": reader,
        "notation": notation,
    }
    places = {
        "pyproject.toml": "pyproject.toml",
        "README.md": "README.md",
        ".gitignore": "gitignore",
        f"{package}/__init__.py": "init.py",
        f"{package}/plugin.py": "plugin.py",
        f"{package}/{name}.yaml": "spec.yaml",
        f"tests/test_{module}.py": "test.py",
    }
    if reader:
        places |= {f"{package}/reader.py": "reader.py", "tests/example.games": "example.games"}
    if notation:
        places[f"{package}/notation.py"] = "notation.py"
    for path, template in places.items():
        text = rendered(TEMPLATES / f"{template}.jinja", **words)
        yield path, text.rstrip("\n") + "\n"
