"""The manual as a site: links are rewritten for it, and a broken one is found."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "docs" / "site" / "build.py"
pytestmark = pytest.mark.skipif(
    not SCRIPT.is_file(), reason="needs the folder docs/ of the sources"
)


def script(name: str) -> ModuleType:
    """Import a module of docs/site by its path."""
    spec = importlib.util.spec_from_file_location(f"manual_{name}", SCRIPT.with_name(f"{name}.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_links_are_rewritten_and_broken_ones_found(tmp_path: Path) -> None:
    pages = script("build").Pages(tmp_path)
    text = (
        "[a](search.md#settings) [b](../specs/xiangqi.yaml) [c](../nothing.md)\n"
        "```yaml\n[d](../nothing.yaml)\n```\n`[e](x)` [f](https://example.org) [g](#here)\n"
        "![h](../experiments/results/self-play/xiangqi.svg) [i](../experiments)\n"
    )
    found = pages.rewritten(text, ROOT / "docs", tmp_path / "sub" / "page.md")
    assert "[a](../search.md#settings)" in found
    assert "[b](../files/specs/xiangqi.yaml.md)" in found
    assert "[d](../nothing.yaml)" in found and "[e](x)" in found
    assert "[f](https://example.org) [g](#here)" in found
    assert "![h](../files/experiments/results/self-play/xiangqi.svg)" in found
    assert pages.broken == ["sub/page.md: ../nothing.md"]
    assert "variant: xiangqi" in (tmp_path / "files/specs/xiangqi.yaml.md").read_text("utf-8")
    assert "`xiangqi-nets.yaml`" in (tmp_path / "files/experiments.md").read_text("utf-8")


def test_every_command_is_on_its_page() -> None:
    from variant_ai.cli.main import COMMANDS

    page = script("command_pages").commands_page()
    for name in COMMANDS:
        assert f"### variant-ai {name}\n" in page
    assert "#### variant-ai spec derive\n" in page
    assert "`-m, --model FILE`" in page


def test_every_page_of_the_manual_is_in_its_contents() -> None:
    listed = (SCRIPT.with_name("index.md")).read_text(encoding="utf-8").splitlines()
    assert {path.stem for path in (ROOT / "docs").glob("*.md")} <= set(listed)
