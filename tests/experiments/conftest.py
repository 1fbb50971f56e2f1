"""The experiments use players and trainings that the tests of other rooms have made up."""

from __future__ import annotations

import sys
from pathlib import Path

for room in ("arena", "train"):
    folder = str(Path(__file__).resolve().parents[1] / room)
    if folder not in sys.path:
        sys.path.append(folder)
