"""Processes of the system, as tests look for them after they killed the one that started them."""

from __future__ import annotations

import os
import time
from pathlib import Path

PATIENCE = 60.0
"""Seconds after which what was waited for does not come."""


def alive(number: int) -> bool:
    try:
        status = Path(f"/proc/{number}/status").read_text(encoding="utf-8")
    except OSError:
        if Path("/proc/self").exists():
            return False
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return False
        return True
    return "State:\tZ" not in status  # nobody may collect a dead orphan in a container


def left(numbers: list[int]) -> list[int]:
    """Those that are still there after a while."""
    deadline = time.monotonic() + PATIENCE
    while numbers and time.monotonic() < deadline:
        time.sleep(0.05)
        numbers = [number for number in numbers if alive(number)]
    return numbers


def children(number: int) -> list[int]:
    """All that the process started, and what these started. Linux alone tells."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue
        parent = int(text.rpartition(")")[2].split()[1])
        parents.setdefault(parent, []).append(int(stat.parent.name))
    found = parents.get(number, [])
    for child in found:
        found = found + parents.get(child, [])
    return found
