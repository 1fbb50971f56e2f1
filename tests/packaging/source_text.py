"""Text of the repository that people read: the manual, and what modules say."""

from __future__ import annotations

import ast
import io
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHECKED = (
    "README.md",
    "CONTRIBUTING.md",
    "docs",
    "experiments",
    "benchmarks",
    ".github",
    "tests/docs",
    "tests/experiments",
    "tests/packaging",
    "core",
    "cli",
    "plugins",
    "specs",
    "variants",
    "src/variant_ai",
    "examples",
    "tests/search",
    "tests/encoding",
    "tests/jit",
)
"""Files and folders whose words and citations are checked."""


def tracked(
    *folders: str, suffixes: tuple[str, ...] = (".py", ".md", ".yaml", ".yml")
) -> list[Path]:
    """Return the files of folders (or single files) with one of the suffixes, sorted.

    Folders that git ignores, such as game stores beside the experiments, are left out if git is
    available.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *folders],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode == 0:
        paths = {ROOT / name for name in listed.stdout.split("\0") if name}
    else:
        paths = {path for folder in folders for path in (ROOT / folder).rglob("*")}
        paths |= {ROOT / folder for folder in folders}
    return sorted(path for path in paths if path.suffix in suffixes and path.is_file())


def prose_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line numbers and text: every line of a page, comments and strings of a module.

    Raw strings, which are regular expressions, are left out.
    """
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield from enumerate(text.splitlines(), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kinds = ("COMMENT", "STRING", "FSTRING_MIDDLE")  # the last from Python 3.12 on
        raw = token.string[:2].lower().startswith(("r'", 'r"', "rf", "fr", "rb", "br"))
        if tokenize.tok_name[token.type] in kinds and not raw:
            for i, line in enumerate(token.string.splitlines()):
                yield token.start[0] + i, line


def docstrings_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line numbers and texts of the docstrings of a module, attributes' included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text


def at(path: Path, line: int, text: str) -> str:
    """Return `file:line: text`."""
    return f"{path.relative_to(ROOT).as_posix()}:{line}: {text.strip()}"
