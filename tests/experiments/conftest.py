"""Puzzles are solved by the players that the tests of the arena have made up."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "arena"))
