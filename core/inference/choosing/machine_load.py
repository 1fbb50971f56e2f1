"""Load of other programs on the processors while something is measured.

Linux counts the time of each processor; from it the time of this process is taken away. Elsewhere
the answer is None, and measurements are taken as they are.
"""

from __future__ import annotations

import os
import time

from variant_ai.core.system.processors import processors

BUSY = 0.25
"""Processors that others use from which a measurement is not trusted."""
_STAT = "/proc/stat"


class OtherLoad:
    """Load of other programs between two moments; begins when it is made."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._busy, self._own = _busy_seconds(), time.process_time()

    def processors(self) -> float | None:
        """Processors that others used on average since the start; None if it is not known."""
        busy = _busy_seconds()
        seconds = time.perf_counter() - self._began
        if busy is None or self._busy is None or seconds <= 0:
            return None
        others = (busy - self._busy) - (time.process_time() - self._own)
        return min(max(others / seconds, 0.0), float(processors()))


def _busy_seconds() -> float | None:
    """Seconds that the processors of this process were busy since the machine was started."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    ours = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    try:
        with open(_STAT, encoding="ascii") as file:
            rows = [line.split() for line in file if line.startswith("cpu")]
        # user nice system idle iowait irq softirq steal, in ticks
        ticks = sum(
            sum(map(int, row[1:4])) + sum(map(int, row[6:9])) for row in rows if row[0] in ours
        )
    except (OSError, ValueError):
        return None
    return ticks / float(os.sysconf("SC_CLK_TCK"))
