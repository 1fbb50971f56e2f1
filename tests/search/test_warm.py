"""After the warm-up of a search all compiled code is loaded, so that none is loaded while a clock runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LATE = Path(__file__).with_name("late_code.py")
LONG_WIN = "2bak4/4a4/3cb4/p8/8p/4n4/P3r3P/2R1C1R2/4r4/3K5 b - - 0 1"
"""Xiangqi: the first win proven is not the shortest."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [("crazyhouse",), ("xiangqi", LONG_WIN), ("atomic on fairy",)],
    ids=lambda words: words[0],
)
def test_no_code_is_loaded_in_a_game(words: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, str(LATE), *words],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
