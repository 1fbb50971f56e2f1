"""`docs/map.md` is true: every path exists, every `file:function` is defined, every room is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from test_rooms import ORDER, ROOT

MAP = ROOT / "docs" / "map.md"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
FOLDERS = (
    "core",
    "cli",
    "plugins",
    "variants",
    "specs",
    "src",
    "tests",
    "benchmarks",
    "experiments",
)
NAMED = re.compile(rf"`((?:{'|'.join(FOLDERS)})/[\w/.-]*)(?::([A-Za-z_][\w.]*))?`")
"""`folder/file.py:name`, with or without the name."""
MOST_MODULES = 15
README_FROM = 11
"""Modules of a folder, `__init__` aside, from which on it has a README."""

pytestmark = pytest.mark.skipif(
    not (ROOT / "docs").is_dir(), reason="needs the folder docs/ of the sources"
)


def named(page: Path) -> list[tuple[str, str]]:
    return NAMED.findall(page.read_text("utf-8"))


def defined(path: Path, name: str) -> bool:
    """Return True if a module defines `name` at its top, or `Class.name` in a class."""
    body: list[ast.stmt] = ast.parse(path.read_text("utf-8")).body
    for part in name.split("."):
        found = next((node for node in body if part in names_of(node)), None)
        if found is None:
            return False
        body = found.body if isinstance(found, ast.ClassDef) else []
    return True


def names_of(node: ast.stmt) -> set[str]:
    """Names that a statement defines."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    return {
        name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)
    }


def code_folders() -> list[Path]:
    rooms = (ROOT / room for room in ("core", "cli", "plugins", "variants", "experiments"))
    return sorted({path.parent for room in rooms for path in room.rglob("*.py")})


def modules_of(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")


@pytest.mark.parametrize("page", [MAP, ARCHITECTURE], ids=lambda path: path.stem)
def test_everything_named_exists(page: Path) -> None:
    missing = []
    for file, name in named(page):
        path = ROOT / file
        if not path.exists():
            missing.append(file)
        elif name and not defined(path, name):
            missing.append(f"{file}:{name}")
    assert missing == []
    assert len(named(page)) > 10


def test_the_map_shows_the_rooms_in_their_order() -> None:
    rows = re.findall(r"^\| `([\w/]+)/` \| [^|]+ \| (.*) \|$", MAP.read_text("utf-8"), re.MULTILINE)
    assert [room for room, _ in rows] == list(ORDER)
    for room, modules in rows:
        first = re.findall(r"`([\w/.]+)`", modules)
        assert 2 <= len(first) <= 3, f"{room}: the modules to read first"
        assert all(name.startswith(f"{room}/") for name in first), room


def test_the_map_is_the_first_link() -> None:
    for page in ("README.md", "CONTRIBUTING.md"):
        links = re.findall(r"(?<!!)\[[^]]*\]\(([^)\s]+)\)", (ROOT / page).read_text("utf-8"))
        assert links[0] == "docs/map.md", page


def test_no_folder_is_crowded() -> None:
    crowded = {
        folder.relative_to(ROOT).as_posix(): len(modules_of(folder))
        for folder in code_folders()
        if len(modules_of(folder)) > MOST_MODULES
    }
    assert crowded == {}


def test_large_folders_have_a_readme() -> None:
    silent = [
        folder.relative_to(ROOT).as_posix()
        for folder in code_folders()
        if len(modules_of(folder)) >= README_FROM and not (folder / "README.md").exists()
    ]
    assert silent == []


def test_readmes_with_a_table_of_modules_list_all_of_them() -> None:
    """Those of folders without a README of their own stand in the README above."""
    silent = []
    for readme in sorted({f"{folder}/README.md" for folder in code_folders()}):
        text = Path(readme).read_text("utf-8") if Path(readme).exists() else ""
        if not re.search(r"^\| module \|", text, re.MULTILINE):
            continue
        room = Path(readme).parent
        for folder in code_folders():
            nearest = next(
                path for path in (folder, *folder.parents) if (path / "README.md").exists()
            )
            if nearest == room:
                place = "" if folder == room else f"{folder.relative_to(room).as_posix()}/"
                whole = bool(place) and f"`{place}`" in text
                silent += [
                    f"{room.relative_to(ROOT).as_posix()}: {place}{module}.py"
                    for module in modules_of(folder)
                    if not whole and f"`{place}{module}.py`" not in text
                ]
    assert silent == []


def test_packages_that_list_their_modules_list_all_of_them() -> None:
    """The docstring of a package is a list if it names more than half of the modules."""
    silent = []
    for folder in code_folders():
        init, modules = folder / "__init__.py", modules_of(folder)
        tree = ast.parse(init.read_text("utf-8") if init.exists() else "")
        words = set(re.findall(r"\w+", ast.get_docstring(tree) or ""))
        missing = [module for module in modules if module not in words]
        if 2 * len(missing) < len(modules):
            silent += [f"{folder.relative_to(ROOT).as_posix()}: {module}" for module in missing]
    assert silent == []


def test_readmes_name_modules_that_exist() -> None:
    gone = [
        f"{readme.relative_to(ROOT).as_posix()}: {module}"
        for folder in code_folders()
        if (readme := folder / "README.md").exists() and len(modules_of(folder)) >= README_FROM
        for module in re.findall(r"^\|? *`([a-z_]+\.py)`", readme.read_text("utf-8"), re.MULTILINE)
        if not (folder / module).exists()
    ]
    assert gone == []


def test_the_search_for_definitions_works(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text("A: int = 1\nB, C = 1, 2\nclass D:\n    def e(self): ...\ndef f(): ...\n")
    for name in ("A", "B", "C", "D", "D.e", "f"):
        assert defined(file, name)
    for name in ("e", "D.f", "A.b", "g"):
        assert not defined(file, name)
