"""Screenshots of the page: the manual shows each, and the script takes them."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "docs" / "web_pictures.py"
pytestmark = pytest.mark.skipif(
    not SCRIPT.is_file(), reason="needs the folder docs/ of the sources"
)


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("web_pictures", SCRIPT)
    assert spec and spec.loader
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_every_screenshot_is_taken_and_shown() -> None:
    pictures = script()
    taken = {f"{shot[0]}.png" for shot in pictures.SHOTS}
    assert {path.name for path in pictures.FOLDER.iterdir()} == taken
    text = (ROOT / "docs" / "web.md").read_text("utf-8")
    assert set(re.findall(r"web-pictures/([\w.-]+)", text)) == taken


@pytest.mark.nightly
def test_screenshots_can_be_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("playwright", reason="needs playwright")
    pictures = script()
    from page_driver import CHROMIUM

    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    monkeypatch.setattr(sys, "argv", ["web_pictures.py", str(tmp_path)])
    pictures.main()
    assert len(list(tmp_path.glob("*.png"))) == len(pictures.SHOTS)
