"""The script of `make release` that runs README's commands knows the README of today."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / ".ci" / "readme_commands.py"

pytestmark = pytest.mark.skipif(not SCRIPT.is_file(), reason="needs the folder .ci of the sources")


def script() -> ModuleType:
    found = importlib.util.spec_from_file_location("readme_commands", SCRIPT)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_every_key_is_the_beginning_of_a_command() -> None:
    module = script()
    lines = module.commands((ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(lines) > 15 and all(line.startswith("variant-ai ") for line in lines)
    for table in (module.SHORT, module.INSTEAD, module.LEFT_OUT, module.INPUT, module.PROGRAMS):
        for key in table:
            assert any(line.startswith(key) for line in lines), key
    for key, (first, *_) in module.INSTEAD.items():
        assert first in next(line for line in lines if line.startswith(key))


def test_the_longest_key_counts() -> None:
    module = script()
    assert module.found({"a b": "", "a b c": ""}, "a b c d") == "a b c"
    assert module.found({"a b": ""}, "b") is None
