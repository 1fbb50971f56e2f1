"""Pictures of the README and the manual: each comes from a command and is shown somewhere."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "docs" / "pictures.py"
pytestmark = pytest.mark.skipif(
    not SCRIPT.is_file(), reason="needs the folder docs/ of the sources"
)


def test_every_picture_has_a_command_and_is_shown() -> None:
    spec = importlib.util.spec_from_file_location("manual_pictures", SCRIPT)
    assert spec and spec.loader
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)
    drawn = {path.name for path in pictures.FOLDER.iterdir()}
    assert drawn == set(pictures.COMMANDS)
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    text = "\n".join(page.read_text("utf-8") for page in pages)
    assert drawn == set(re.findall(r"pictures/([\w.-]+\.svg)", text))
