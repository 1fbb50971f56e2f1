"""The documents are executed: Python examples run, and commands exist as they are written."""

from __future__ import annotations

import doctest
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from variant_ai.cli.main import COMMANDS, cli

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    path
    for folder in ("", "docs", "examples", "experiments", "variants", "core", "plugins", "specs")
    for path in (ROOT / folder).glob("*.md" if folder in ("", "docs") else "**/*.md")
)


def names(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def command_lines(text: str) -> Iterator[str]:
    """Lines of shell blocks that call variant-ai, continuation lines joined."""
    for block in re.findall(r"```(?:sh|bash|console)\n(.*?)```", text, re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            if "variant-ai " in line:
                yield line.strip()


def anchors(path: Path) -> set[str]:
    """Anchors of the headings of a document, as GitHub makes them."""
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in titles)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in plain}


def check(line: str) -> None:
    """Raise AssertionError if command or options do not exist."""
    words = shlex.split(line, comments=True)
    start = next((i for i, word in enumerate(words) if word.split("/")[-1] == "variant-ai"), None)
    if start is None:  # named in passing: pip install variant-ai
        return
    args = words[start + 1 :]
    for stop in ("|", ">", "&&", ";", "2>"):
        if stop in args:
            args = args[: args.index(stop)]
    command: click.Command = cli
    while isinstance(command, click.Group) and args and not args[0].startswith("-"):
        inner = command.get_command(click.Context(command), args[0])
        if inner is None and hasattr(command, "default"):
            break
        assert inner is not None, f"there is no command {args[0]!r}: {line}"
        command, args = inner, args[1:]
    if isinstance(command, click.Group) and hasattr(command, "default"):
        command = command.commands[command.default]
    known = {"-h", "--help"} | {
        option
        for parameter in command.get_params(click.Context(command))
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    for arg in args:
        if re.match(r"--?[A-Za-z]", arg):
            assert arg.partition("=")[0] in known, f"there is no option {arg}: {line}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=names)
def test_python_in_documents_runs(path: Path) -> None:
    failures, _ = doctest.testfile(
        str(path), module_relative=False, encoding="utf-8", optionflags=doctest.ELLIPSIS
    )
    assert failures == 0


@pytest.mark.parametrize("path", DOCUMENTS, ids=names)
def test_commands_in_documents_exist(path: Path) -> None:
    for line in command_lines(path.read_text(encoding="utf-8")):
        check(line)


def options_of(command: click.Command) -> Iterator[str]:
    """Yield the options of a command and of its subcommands."""
    for parameter in command.get_params(click.Context(command)):
        yield from (*parameter.opts, *parameter.secondary_opts)
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            inner = command.get_command(click.Context(command), name)
            assert inner is not None
            yield from options_of(inner)


@pytest.fixture(scope="module")
def known_options() -> set[str]:
    """Options of all commands and benchmarks, and of other programs that the manual names."""
    scripts = (ROOT / "benchmarks").glob("*.py")
    ours = {
        option
        for path in scripts
        for option in re.findall(r'"(--[a-z][a-z-]*)"', path.read_text(encoding="utf-8"))
    }
    others = {
        "--help",
        "--no-deps",
        "--nproc-per-node",
        "--doctest-modules",
        "--no-experimental-fetch",
    }
    return {*options_of(cli), *ours, *others}


@pytest.mark.parametrize("path", DOCUMENTS, ids=names)
def test_options_in_the_text_exist(path: Path, known_options: set[str]) -> None:
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    given = {
        option
        for code in re.findall(r"`([^`]+)`", text)
        for option in re.findall(r"(?<![\w-])(--[a-z][a-z-]*)", code)
    }
    assert given - known_options == set()


@pytest.mark.parametrize("path", DOCUMENTS, ids=names)
def test_links_in_documents_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
        if target.startswith(("http://", "https://")):
            continue
        file, _, anchor = target.partition("#")
        place = path.parent / file if file else path
        assert place.exists(), target
        if anchor and place.suffix == ".md":
            assert anchor in anchors(place), target


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_in_help_exist(name: str) -> None:
    def walk(command: click.Command) -> Iterator[str]:
        text = (command.epilog or "").replace("\\\n", " ")
        yield from (line for line in text.splitlines() if "variant-ai " in line)
        if isinstance(command, click.Group):
            for inner in command.list_commands(click.Context(command)):
                found = command.get_command(click.Context(command), inner)
                assert found is not None
                yield from walk(found)

    for line in walk(COMMANDS[name].load()):
        check(line)


@pytest.mark.parametrize(
    "line", ["variant-ai no-such-command", "variant-ai variants --no-such", "variant-ai -x"]
)
def test_the_check_of_commands_works(line: str) -> None:
    with pytest.raises(AssertionError):
        check(line)


def test_readme_names_every_variable() -> None:
    used = {
        name
        for room in ("core", "plugins", "cli", "specs", "variants")
        for path in (ROOT / room).rglob("*.py")
        for name in re.findall(r"\bVARIANT_AI_[A-Z_]+\b", path.read_text(encoding="utf-8"))
    }
    described = set(re.findall(r"\bVARIANT_AI_[A-Z_]+\b", (ROOT / "README.md").read_text("utf-8")))
    assert used == described
