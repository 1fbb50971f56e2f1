"""The page's bundle is what its sources become, and loads nothing from elsewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from variant_ai.core.web.web_server import FILES, STATIC

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "web"


def test_the_bundle_is_there_and_small() -> None:
    for name in ("index.html", *FILES):
        assert 0 < (STATIC / name).stat().st_size < 400_000, name


def test_the_bundle_names_no_other_host() -> None:
    known = {"www.w3.org"}
    for name in ("index.html", "app.js", "app-style.css"):
        text = (STATIC / name).read_text(encoding="utf-8")
        assert set(re.findall(r"https?://([\w.-]+)", text)) <= known, name
        assert "eval(" not in text


@pytest.mark.skipif(
    not (SOURCES / "node_modules" / "esbuild").is_dir() or shutil.which("node") is None,
    reason="needs node and `npm ci` in web/",
)
def test_the_bundle_is_up_to_date(tmp_path: Path) -> None:
    subprocess.run(["node", "build.mjs", str(tmp_path)], cwd=SOURCES, check=True, timeout=120)
    for path in sorted(tmp_path.iterdir()):
        assert path.read_bytes() == (STATIC / path.name).read_bytes(), (
            f"{path.name}: run `make web`"
        )
