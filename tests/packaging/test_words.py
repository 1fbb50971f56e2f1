"""Words that were retired: private metaphors, old-fashioned phrases, and names of our own making.

The text of pages, and comments and strings of modules, are searched. To use one of these words in
its plain sense, rephrase.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from source_text import CHECKED, ROOT, at, docstrings_of, prose_of, tracked

PHRASES = {
    # what was written: what to write
    r"drawn by lot|by lot\b|sortition": "random, sampled",
    r"foretell\w*|foretold": "predict",
    r"is told\b|are told\b|was told\b|were told\b|told of\b|tells? (of|it|that|whether|how)\b": "reported, printed, shows",
    r"further (outputs?|planes?|options?|keys?|ways?|letters?|sets?|stores?|moves?)\b": "other, more, auxiliary",
    r"\blacks?\b|\blacking\b": "is missing",
    r"\bwhatever\b": "independent of, any",
    r"(not|nothing|no \w+) (is |are |was |better is )?to be (had|seen|found)\b": "not available",
    r"in the place of\b|takes? its place|took its place": "instead of, replaces",
    r"as it was\b|as they were\b": "unchanged",
    r"in vain\b": "failed, without effect",
    r"the caller's word": "the caller must ensure",
    r"nothing follows from": "informational only",
    r"where there is none|where there are none": "if there is none",
    r"goes? before (it|them|that)\b": "overrides",
    r"comes? to nothing|what (it|they|these) comes? to": "result, total",
    r"speaks? of\b|spoken of\b": "mentions, describes",
    r"in words\b": "with an error message",
    r"\brefus(e|es|ed|ing|als?)\b": "reject",
    r"is wanted|are wanted|games wanted|moves wanted": "required, requested",
    r"\bmay not wait\b|\bwould have it\b": "must",
    r"it is said\b|is said (if|by|to|at|on|in)\b|are said\b": "reported, written",
    r"says? so\b": "reports it",
    r"goes? on (as|where|from|with) (it|they|before)\b": "continues",
    r"\banew\b": "again",
    r"\bto and fro\b|\bhither\b|\bthereof\b|\bwherein\b|\bthereupon\b|\bhenceforth\b": "modern words",
    r"\bparted by\b": "separated by",
    r"\bknows nothing of\b|\bknow nothing of\b": "does not use",
    r"\bmeets? (a|another|other) (?:net|program)s? in\b": "plays",
    r"(?<!there )\bis no (number|folder|file|address|store|net|move|plugin|experiment|range)\b": "is not a",
}
"""Pattern to the plain English for it."""

METAPHORS = {
    r"\bgroves?\b|\bplants?\b|\bplanted\b|\buproot\w*": "tree, create a node",
    r"\bgardener\w*|\bworkshops?\b|\bdesks?\b|\btrails?\b": "what the class does",
    r"\bflights?\b|\bin flight\b|\bflown\b": "pending, virtual loss",
    r"\bjudge-made\b|\bmen of\b": "plain words",
}
"""Private metaphors: what a term means is in the chess programming wiki, a paper, or its definition."""

RETIRED_NAMES = frozenset(
    "grove groves plant gardener workshop desk trail flight flown told spoken said".split()
)
"""Parts of names of functions, classes, parameters and variables that are not used any more."""

OPENINGS = re.compile(r"\s*(What|Whether|How|Where|Who|From|As)\b")
"""First words that a docstring does not have."""

QUOTED = re.compile(r"`[^`]*`")
"""Code in running text, which keeps its names."""
OPTION_ROW = re.compile(r"\| `[^`]+` \| (check|spin|combo|string|button) \|")
"""A protocol option in the manual: its text stands in the code, and is checked there."""

pytestmark = pytest.mark.skipif(
    not (ROOT / "docs").is_dir(), reason="needs the folder docs/ of the sources"
)


def files(room: str, *suffixes: str) -> list[Path]:
    """Return the files of a room, without this one and the table of old names."""
    found = tracked(room, suffixes=suffixes) if suffixes else tracked(room)
    left_out = (Path(__file__).resolve(), ROOT / "core" / "renamed.py")
    return [path for path in found if path not in left_out]


def retired(path: Path, words: dict[str, str]) -> list[str]:
    patterns = [(re.compile(pattern, re.IGNORECASE), better) for pattern, better in words.items()]
    found = []
    for line, text in prose_of(path):
        if path.suffix == ".md" and (OPTION_ROW.match(text) or text.startswith("    ")):
            continue  # indented: code and drawings
        plain = QUOTED.sub("``", text) if path.suffix == ".md" else text
        for pattern, better in patterns:
            match = pattern.search(plain)
            if match:
                found.append(at(path, line, f"{match[0]!r} ({better}): {text.strip()[:100]}"))
    return found


@pytest.mark.parametrize("room", CHECKED)
def test_retired_phrases(room: str) -> None:
    assert [line for path in files(room) for line in retired(path, PHRASES)] == []


@pytest.mark.parametrize("room", CHECKED)
def test_private_metaphors(room: str) -> None:
    assert [line for path in files(room) for line in retired(path, METAPHORS)] == []


def defined_names(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the names that a module defines: functions, classes, parameters, variables, fields."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr


def parts_of(name: str) -> set[str]:
    """Return the words of a name, in lower case."""
    return {part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}


@pytest.mark.parametrize("room", CHECKED)
def test_names_are_those_of_the_field(room: str) -> None:
    found = [
        at(path, line, name)
        for path in files(room, ".py")
        for line, name in defined_names(path)
        if parts_of(name) & RETIRED_NAMES and not name.startswith("test_")
    ]
    assert found == []


@pytest.mark.parametrize("room", CHECKED)
def test_docstrings_open_with_a_verb_or_a_noun(room: str) -> None:
    found = [
        at(path, line, text.splitlines()[0])
        for path in files(room, ".py")
        for line, text in docstrings_of(path)
        if OPENINGS.match(text)
    ]
    assert found == []


COUNTED_NOUNS = re.compile(
    r" (games|plies|moves|positions|nodes|files|stores|nets|steps|trials|months|lines|bytes|parameters)\b"
)


def numbers_before_plurals(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield numbers of f-strings, `{n:,}` or `{len(...)}`, with the plural that follows."""
    for text in (node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)):
        for field, after in pairwise(text.values):
            match field, after:
                case ast.FormattedValue(value, format_spec=spec), ast.Constant(str(words)):
                    number = ast.unparse(value)
                    is_count = spec is not None and ast.unparse(spec) == "f','"
                    is_count |= spec is None and number.startswith("len(")
                    noun = COUNTED_NOUNS.match(words)
                    if is_count and noun and not number.isupper():
                        yield field.lineno, f"{{{number}}}{noun[0]}"


@pytest.mark.parametrize("room", ("core", "cli", "plugins", "variants", "experiments/src"))
def test_one_thing_is_not_written_in_the_plural(room: str) -> None:
    found = [
        at(path, line, f"{text}: use counted() of core/system/text_tables.py")
        for path in files(room, ".py")
        for line, text in numbers_before_plurals(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert found == []


def test_the_search_works(tmp_path: Path) -> None:
    page = ROOT / "docs" / "search.md"
    assert retired(page, {r"\bmean\b": "average"})
    assert not retired(page, {r"\bnot a word of that page\b": ""})
    assert OPENINGS.match("Whether it moves.") and not OPENINGS.match("Return it.")
    assert parts_of("_told_once") & RETIRED_NAMES and parts_of("TreeTrail") & RETIRED_NAMES
    two = ast.parse("f'{n:,} games', f'{len(n)} nets', f'{n} games', f'{MOST:,} games'")
    assert [text for _, text in numbers_before_plurals(two)] == ["{n} games", "{len(n)} nets"]
    assert not parts_of("retell") & RETIRED_NAMES
