"""docs/engine.md documents every option and every command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from variant_ai.core.engine.json_service import ACTIONS, FIELDS
from variant_ai.core.engine.protocols import uci
from variant_ai.core.engine.protocols.chosen_options import OptionSet
from variant_ai.core.engine.protocols.engine_options import UCCI_OPTIONS, documented

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "engine.md"

pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="needs the folder docs/ of the sources")


def rows(text: str) -> set[str]:
    return {
        line
        for line in text.splitlines()
        if re.match(r"\| `[^`]+` \| (check|spin|combo|string|button) ", line)
    }


def test_exactly_the_existing_options_are_documented() -> None:
    told = rows(PAGE.read_text(encoding="utf-8"))
    there = {documented(o) for o in (*OptionSet(["a"], "a").uci, *UCCI_OPTIONS)}
    assert told - there == set()
    assert there - told == set()


def test_every_command_is_documented() -> None:
    text = PAGE.read_text(encoding="utf-8")
    source = Path(uci.__file__).read_text(encoding="utf-8")
    words = set(uci._SIMPLE) | uci._GO_WORDS | set(re.findall(r'word == "(\w+)"', source))
    assert {"isready", "position", "go", "setoption", "wtime"} <= words
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    told = {word for code in re.findall(r"`([^`]+)`", text) for word in code.split()}
    assert words - told == set()


def test_every_field_of_a_query_is_documented() -> None:
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    for name in (*FIELDS, *ACTIONS):
        assert f"`{name}`" in text or f'"{name}"' in text, name
