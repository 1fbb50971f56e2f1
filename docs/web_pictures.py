"""Takes the screenshots of the page for its manual: `python docs/web_pictures.py [FOLDER]`.

It needs Chromium and playwright. The page of runs shows one that is made for it, in a minute.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "web"))

FOLDER = Path(__file__).parent / "web-pictures"
COLOURS = 96
WIDE, PHONE = {"width": 1240, "height": 860}, {"width": 390, "height": 800}
GAME = (
    "variant=crazyhouse&moves=e2e4+e7e5+g1f3+b8c6+f1c4+f8c5+c2c3+g8f6+d2d4+e5d4+c3d4+c5b4+c1d2+f6e4+"
    "d2b4+c6b4+c4f7+e8f7"
)
RUN = (
    "reinforce -V dobutsu --generations 6 --positions 1500 --games 48 --nodes 12 --seed 1 --run"
).split()
SPEC = """spec: 1
extends: minishogi
variant: riverside
title: Riverside
pieces:
  G: {name: gold, moves: WfFfA}
  B: {name: bishop, moves: BmW}
drawing: {board: chequered, pieces: discs}
rules:
  stalemate: los
"""


def shoot(folder: Path, runs: Path) -> None:
    """Write all screenshots into a folder. runs: folder of run folders."""
    from page_driver import Server, browser_page

    server = Server("--runs", str(runs))
    try:
        for name, dark, size, path, prepare in SHOTS:
            scheme = "dark" if dark else "light"
            with browser_page(viewport=size, color_scheme=scheme) as page:
                page.goto(f"{server.address}{path}")
                page.wait_for_selector("main > *:not(.loading)")
                prepare(page)
                page.wait_for_timeout(400)
                (folder / f"{name}.png").write_bytes(_small(page.screenshot()))
            print(f"{name}.png", file=sys.stderr)
    finally:
        server.close()


def _small(png: bytes) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def _play(page: Any) -> None:
    page.wait_for_selector("cg-board piece")


def _analyse(page: Any) -> None:
    page.wait_for_selector("cg-board piece")
    page.locator(".lines-of-play li").first.wait_for()
    page.get_by_label("Nodes of annotation").select_option("100")
    page.get_by_role("button", name="Annotate the game").click()
    page.wait_for_function("() => document.querySelector('progress').hidden", timeout=120_000)
    page.get_by_role("button", name="Search", exact=True).click()
    page.wait_for_timeout(4000)


def _watch(page: Any) -> None:
    page.locator(".rungames button").first.wait_for()
    page.wait_for_timeout(4000)


def _spec(page: Any) -> None:
    text = page.locator("textarea.code")
    text.fill(SPEC.replace("los\n", "loss\n"))
    page.get_by_text("moves in the start position").wait_for()
    text.fill(SPEC)
    page.locator(".mistakes li").first.wait_for()


SHOTS = (
    ("play", False, WIDE, f"?{GAME}", _play),
    ("xiangqi", True, WIDE, "?variant=xiangqi&moves=h3e3+h10g8+h1g3+i10h10+g4g5+c7c6", _play),
    ("analyse", False, WIDE, f"analyse?{GAME}", _analyse),
    ("watch", False, {**WIDE, "height": 1180}, "watch", _watch),
    ("variant", False, WIDE, "variant", _spec),
    ("phone", True, PHONE, "?variant=shogi", _play),
)
"""Name, dark, size, address, and what is done before the picture is taken."""


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as runs:
        command = [sys.executable, "-m", "variant_ai.cli.main", *RUN, f"{runs}/dobutsu"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        shoot(folder, Path(runs))


if __name__ == "__main__":
    main()
