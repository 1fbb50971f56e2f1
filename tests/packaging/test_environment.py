"""Environment variables: each one that the program reads is in the README."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from source_text import ROOT, at, tracked

ROOMS = ("core", "cli", "plugins", "variants", "specs", "src/variant_ai", "experiments/src")
OURS = re.compile(r"VARIANT_AI_[A-Z_]+")

pytestmark = pytest.mark.skipif(
    not (ROOT / "README.md").is_file(), reason="needs the README of the sources"
)


def is_environment(node: ast.expr) -> bool:
    """Return True for `os.environ` and for the parameter `environ` that stands for it."""
    match node:
        case ast.Attribute(ast.Name("os"), "environ") | ast.Name("environ"):
            return True
        case _:
            return False


def keys_of(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield the names with which the environment is read or written."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Attribute(owner, "get" | "pop" | "setdefault"), [key, *_]):
                if is_environment(owner):
                    yield key
            case ast.Call(ast.Attribute(ast.Name("os"), "getenv"), [key, *_]):
                yield key
            case ast.Subscript(owner, key):
                if is_environment(owner):
                    yield key
            case ast.Compare(key, [ast.In() | ast.NotIn()], [owner]):
                if is_environment(owner):
                    yield key


def variables_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines and names of the variables that a module uses; `?` for unknown ones."""
    for key in keys_of(ast.parse(path.read_text(encoding="utf-8"))):
        match key:
            case ast.Constant(str(name)):
                yield key.lineno, name
            case ast.Name(name):
                yield key.lineno, CONSTANTS.get(name, f"?{name}")
            case _:
                yield key.lineno, f"?{ast.unparse(key)}"


def constants() -> dict[str, str]:
    """Names of module constants that are names of variables, with their values."""
    found = {}
    for path in tracked(*ROOMS, suffixes=(".py",)):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            match node:
                case ast.Assign([ast.Name(name)], ast.Constant(str(value))):
                    if name.endswith("_VARIABLE"):
                        found[name] = value
    return found


CONSTANTS = constants()


def test_every_variable_is_in_the_readme() -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    known = set(re.findall(r"`([A-Z_]+)`", page.split("## Environment variables")[1]))
    used = [
        (path, line, name)
        for path in tracked(*ROOMS, suffixes=(".py",))
        for line, name in variables_of(path)
    ]
    computed = {"?variable"}  # CXX or CC: see `core/train/run/plan.py`
    missing = [at(path, line, name) for path, line, name in used if name not in known | computed]
    assert missing == []
    ours = {name for _, _, name in used} | set(CONSTANTS.values())
    assert {name for name in known if OURS.fullmatch(name)} <= ours


def test_variables_are_found() -> None:
    text = "os.environ.get('A', ''), environ['B'], 'C' in os.environ, os.getenv('D'), other['E']"
    assert {ast.literal_eval(key) for key in keys_of(ast.parse(text))} == set("ABCD")
