"""Promises about the source itself: what each room may import, name, and leave in the package."""

from __future__ import annotations

import ast
import io
import os
import shutil
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("specs", "core", "plugins", "variants", "cli")
ORDER = (
    "core/system",
    "core/spec",
    "core/jit",
    "core/rules",
    "core/draw",
    "core/encoding",
    "core/nets",
    "core/inference",
    "core/search",
    "core/data",
    "core/analysis",
    "core/train",
    "core/arena",
    "core/reinforce",
    "core/engine",
    "core/testing",
    "core/derive",
    "core/web",
    "plugins",
    "variants",
    "cli",
)
"""Lower rooms never import higher ones."""
CHEAP = (
    "variant_ai.core.errors",
    "variant_ai.core.factories",
    "variant_ai.core.spec.catalogue",
    "variant_ai.core.system.compilation_progress",
    "variant_ai.core.system.interrupts",
    "variant_ai.core.system",
    "variant_ai.core.train.measure.metric_tables",
)
"""Of the core, what needs the standard library alone."""
THESIS = "[xiangqi-thesis]"
"""Key of a source, which settings of the search name."""
HEAVY = {"numpy", "torch", "pydantic", "numba", "onnx", "onnxruntime", "pyffish", "rich"}

pytestmark = pytest.mark.skipif(
    not (ROOT / "core").is_dir(), reason="needs the source folders at the root"
)


def modules(*rooms: str) -> list[Path]:
    return sorted(path for room in rooms for path in (ROOT / room).rglob("*.py"))


def room_of(name: str) -> str | None:
    """The room of a path relative to the root, or of a module's path."""
    return next((room for room in ORDER if name == room or name.startswith(f"{room}/")), None)


def imports(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Imported modules and names of them, and their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute here"
            yield node.module or "", node.lineno
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node.lineno


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def shown(path: Path, line: int, text: str) -> str:
    return f"{path.relative_to(ROOT).as_posix()}:{line}: {text}"


# --- what rooms import ---------------------------------------------------------------------------


def test_lower_rooms_never_import_higher_ones() -> None:
    wrong = []
    for path in modules(*ROOMS):
        own = room_of(path.relative_to(ROOT).as_posix())
        if own is None:
            continue
        for name, line in imports(parsed(path)):
            other = room_of(name.removeprefix("variant_ai.").replace(".", "/"))
            if (
                name.startswith("variant_ai.")
                and other is not None
                and ORDER.index(other) > ORDER.index(own)
            ):
                wrong.append(shown(path, line, f"{own} imports {name}"))
    assert wrong == []


def test_modules_have_at_most_500_lines() -> None:
    lengths = {path: path.read_text("utf-8").count("\n") for path in modules(*ROOMS)}
    assert [str(path) for path, lines in lengths.items() if lines > 500] == []


def test_nobody_imports_a_room_bare() -> None:
    wrong = [
        shown(path, line, name)
        for path in modules(*ROOMS, "tests", "benchmarks")
        for name, line in imports(parsed(path))
        if name.split(".")[0] in ROOMS
    ]
    assert wrong == []


def test_torch_stays_in_its_rooms() -> None:
    """Outside nets and train it is imported inside functions, if at all."""
    wrong = []
    for path in modules(*ROOMS):
        if room_of(path.relative_to(ROOT).as_posix()) in ("core/nets", "core/train"):
            continue
        for node in top_level(parsed(path)):
            for name, line in imports(node):
                if name.split(".")[0] == "torch":
                    wrong.append(shown(path, line, name))
    assert wrong == []


def test_commands_and_plugins_import_cheaply() -> None:
    wrong = []
    for path in modules("cli", "plugins"):
        for node in top_level(parsed(path)):
            for name, line in imports(node):
                if name.startswith(CHEAP) or name == "variant_ai.core":
                    continue
                if name.split(".")[0] in HEAVY or name.startswith("variant_ai.core"):
                    wrong.append(shown(path, line, name))
    assert wrong == []


def top_level(tree: ast.Module | ast.ClassDef) -> Iterator[ast.stmt]:
    """Statements that run when the module is imported, functions and TYPE_CHECKING aside."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from top_level(node)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


# --- what rooms name -----------------------------------------------------------------------------


def code_words(path: Path) -> Iterator[tuple[str, int]]:
    """Names and strings of a module; docstrings, comments and the examples of help left out."""
    text = path.read_text(encoding="utf-8")
    prose: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            for statement in node.body:
                if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                    prose.add(statement.lineno)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "examples":
            prose.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME or (
            token.type == tokenize.STRING and token.start[0] not in prose
        ):
            yield token.string, token.start[0]


def test_core_names_no_variant() -> None:
    names = [path.name for path in (ROOT / "variants").iterdir() if (path / "plugin.py").exists()]
    assert len(names) >= 2
    wrong = [
        shown(path, line, word)
        for path in modules("core", "plugins", "cli")
        if path.name != "fairy_names.py"  # a list of all names of Fairy-Stockfish
        for word, line in code_words(path)
        if any(name in word.lower().replace(THESIS, "") for name in names)
    ]
    assert wrong == []


def test_the_search_for_names_works(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(
        '"""About xiangqi."""\n\n'
        "examples('variant-ai spec show xiangqi')\n"
        "def f(xiangqi_board):  # xiangqi\n"
        '    """As in xiangqi."""\n'
        '    return "xiangqi" if xiangqi_board else 0\n'
    )
    found = [(word, line) for word, line in code_words(file) if "xiangqi" in word]
    assert found == [("xiangqi_board", 4), ('"xiangqi"', 6), ("xiangqi_board", 6)]


# --- packaging -----------------------------------------------------------------------------------


def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_every_room_is_linked_and_packed() -> None:
    wheel = project()["tool"]["hatch"]["build"]["targets"]["wheel"]  # type: ignore[index]
    for room in ROOMS:
        link = ROOT / "src" / "variant_ai" / room
        if link.is_symlink():  # a checkout without links has a text file there
            assert os.readlink(link) == f"../../{room}"
        assert room in wheel["only-include"]
        assert wheel["sources"][room] == f"variant_ai/{room}"


def test_ignore_patterns_are_anchored() -> None:
    # The packager follows .gitignore: `data/` would take core/data out of the wheel.
    lines = (ROOT / ".gitignore").read_text().split()
    loose = [line for line in lines if not line.startswith("/")]
    assert set(loose) <= {"__pycache__/", "*.egg-info/"}


def test_constraints_fit_the_ranges_and_are_complete() -> None:
    pinned = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, version = line.partition("==")
            assert version, line
            pinned[canonical(name)] = version
    described = project()["project"]
    assert isinstance(described, dict)
    extras = [text for group in described["optional-dependencies"].values() for text in group]
    for text in described["dependencies"] + extras:
        requirement = Requirement(text)
        version = pinned[canonical(requirement.name)]
        assert requirement.specifier.contains(version), f"{text} excludes {version}"


def canonical(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def test_every_module_says_what_it_is() -> None:
    silent = [
        path.relative_to(ROOT).as_posix()
        for path in modules(*ROOMS)
        if not ast.get_docstring(parsed(path))
    ]
    assert silent == []


def test_modules_of_the_core_have_names_of_their_own() -> None:
    """No two modules have one name, interfaces aside, and none is the plural of another."""
    names = [path.stem for path in modules("core") if path.stem not in ("__init__", "interface")]
    assert sorted({name for name in names if names.count(name) > 1}) == []
    plurals = {name + ending: name for name in names for ending in ("s", "es")}
    assert {name: plurals[name] for name in names if name in plurals} == {}


def test_core_cannot_be_imported_bare_from_elsewhere(tmp_path: Path) -> None:
    code = (
        "import importlib.util, sys, variant_ai.plugins\n"
        f"rooms = {ROOMS!r}\n"
        "print([r for r in rooms if r in sys.modules or importlib.util.find_spec(r)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.skipif(os.name == "nt", reason="make is not a part of Windows")
def test_make_says_what_it_can_do() -> None:
    done = subprocess.run(["make", "-s"], capture_output=True, text=True, cwd=ROOT, check=True)
    for target in ("train", "test", "lint", "check"):
        assert f"make {target}" in done.stdout


STAND_IN = """\
#!/bin/sh
# stands in for python, pip and variant-ai
case "$*" in
*venv*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; cp "$0" "$3/bin/variant-ai" ;;
*"pip install"*) echo "$*" >> pip.log; echo "Collecting numpy" ;;
train*) echo '{"trained": true}' ;;
esac
"""


@pytest.mark.skipif(os.name == "nt", reason="make is not a part of Windows")
@pytest.mark.parametrize(
    ("terminal", "ci", "quiet"), [(True, "", False), (True, "1", True), (False, "", True)]
)
def test_make_train_shows_what_it_installs(
    tmp_path: Path, terminal: bool, ci: str, quiet: bool
) -> None:
    """To a person at a terminal; what the command prints is all there is on stdout."""
    import pty

    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "experiments").mkdir()
    for name in ("pyproject.toml", "constraints.txt", "experiments/pyproject.toml"):
        (tmp_path / name).touch()
    python = tmp_path / "python"
    python.write_text(STAND_IN)
    python.chmod(0o755)
    screen, errors = pty.openpty() if terminal else os.pipe()
    process = subprocess.run(
        ["make", "train", f"PYTHON={python}", "ARGS=--json"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=errors, text=True, timeout=60, check=True,
        env={"PATH": os.environ["PATH"], **({"CI": ci} if ci else {})},
    )  # fmt: skip
    os.close(errors)
    shown = os.read(screen, 10_000).decode()
    os.close(screen)
    assert process.stdout == '{"trained": true}\n'
    assert ("-qq" in (tmp_path / "pip.log").read_text()) == quiet
    assert shown.startswith("installing into .venv")
