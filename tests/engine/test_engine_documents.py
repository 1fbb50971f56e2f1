"""The manual has every option, setting and command of the program."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from variant_ai.core.engine.json_service import ACTIONS, QueryFields
from variant_ai.core.engine.protocols import uci

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "engine.md"

pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="needs the folder docs/ of the sources")


def test_tables_are_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("manual_tables", DOCS / "tables.py")
    assert spec and spec.loader
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    pages = {path: path.read_text(encoding="utf-8") for path in DOCS.glob("*.md")}
    for name in tables.tables():
        assert sum(f"<!-- table: {name} -->" in text for text in pages.values()) == 1
    for path, text in pages.items():
        assert tables.current(text) == text, f"{path.name}: run python docs/tables.py"


def test_every_command_is_documented() -> None:
    text = PAGE.read_text(encoding="utf-8")
    source = Path(uci.__file__).read_text(encoding="utf-8")
    words = (
        set(uci._SIMPLE)
        | {*uci._TIMES, *uci._COUNTS, *uci._FLAGS}
        | set(re.findall(r'word == "(\w+)"', source))
    )
    assert {"isready", "position", "go", "setoption", "wtime"} <= words
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    told = {word for code in re.findall(r"`([^`]+)`", text) for word in code.split()}
    assert words - told == set()


def test_every_field_of_a_query_is_documented() -> None:
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    for name in {*QueryFields.model_fields, *ACTIONS} - {"action", "layer"}:
        assert f"`{name}`" in text or f'"{name}"' in text, name
