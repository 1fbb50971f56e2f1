"""Sources are cited by keys that `docs/references.md` explains."""

from __future__ import annotations

import re

import pytest
from source_text import CHECKED, ROOT, at, prose_of, tracked

PAGE = ROOT / "docs" / "references.md"
KEY = re.compile(r"(?<![\w`\]])\[([A-Z][A-Za-z0-9]+(?:-[A-Za-z0-9]+)*)\](?![(\[:`])")
"""A citation: [CrazyAra-preprint]. Keys have two characters or more and stand outside of code."""
NOT_KEYS = {"DhtmlXQ", "PLAYER"}
"""Other words in brackets: a file format, an argument of a command."""
OLD = re.compile(
    r"\b[Pp]apers? 00\d|\b00[014](/00\d)?,? (eq|section|table|figure|\d+\.\d)|"
    r"\b[Tt]hesis,? (eq|section|table|figure|chapter|\d)|\bet al\b|\barXiv \d|"
    r"\b[A-Z][a-z]+ and [A-Z][a-z]+ (19|20)\d\d\b|\b(White|Owen|Ford|Smith) (19|20)\d\d\b"
)
"""Citations that only those who have the files know."""

pytestmark = pytest.mark.skipif(
    not (ROOT / "docs").is_dir(), reason="needs the folder docs/ of the sources"
)


def keys() -> set[str]:
    return set(re.findall(r"^\| \[([\w-]+)\] \|", PAGE.read_text("utf-8"), re.MULTILINE))


@pytest.mark.parametrize("room", CHECKED)
def test_cited_keys_are_explained(room: str) -> None:
    unknown = [
        at(path, line, text)
        for path in tracked(room)
        for line, text in prose_of(path)
        for key in KEY.findall(text)
        if key not in keys() | NOT_KEYS
    ]
    assert unknown == []


@pytest.mark.parametrize("room", CHECKED)
def test_sources_are_cited_by_their_keys(room: str) -> None:
    old = [
        at(path, line, text)
        for path in tracked(room)
        for line, text in prose_of(path)
        if OLD.search(text)
    ]
    assert old == []


def test_every_source_can_be_found() -> None:
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| [")]
    assert len(rows) == len(keys()) > 20
    for row in rows:
        assert re.search(r"\]\(https://|ISBN|CC BY", row), row


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("as in [CrazyAra-preprint] eq. 3", ["CrazyAra-preprint"]),
        ("[B, C, H, W] or [N] or list[Tensor]", []),
        ("a [link](page.md), `[Qn]`", []),
    ],
)
def test_citations_are_recognised(text: str, found: list[str]) -> None:
    assert KEY.findall(text) == found
