"""The commands of docs/getting-started.md, run from its first line to its last."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "getting-started.md"
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not PAGE.is_file(), reason="needs the folder docs/ of the sources"),
]
SETS_UP = ("make install", ". .venv/bin/activate")
"""Lines that set up what these tests run in."""
SHORTER = (
    (r"(reinforce .*)--minutes \d+", r"\1--minutes 0.3 --set positions=300"),
    (r"--minutes [1-9]\d*", "--minutes 0.3"),
    (r"--games 20", "--games 2"),
)
"""Limits of the page, and those of the test."""
FIRST_WORDS = "e2e4\nquit\n"
"""Typed into `play`."""


def test_every_command_of_the_page_runs(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = 0
    for kind, block in re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL):
        if kind == "yaml":
            name = block.splitlines()[0].removeprefix("# ")
            (tmp_path / name).write_text(block, encoding="utf-8")
            continue
        for line in block.splitlines():
            if line in SETS_UP:
                continue
            for pattern, shorter in SHORTER:
                line = re.sub(pattern, shorter, line)
            done = subprocess.run(
                line,
                shell=True,
                cwd=tmp_path,
                env={**os.environ, "PATH": path},
                input=FIRST_WORDS,
                text=True,
                capture_output=True,
                timeout=600,
                check=False,
            )
            assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
            ran += 1
    assert ran > 12
