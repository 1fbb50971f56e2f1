"""Saved choices of `auto`: their files, the machine they are valid for, and when to measure again.

A choice is saved with the measured rate and with the load of other programs during the measurement.
It is measured again if that load was high, or if the evaluator is now much faster or slower than it
was, as soon as the machine is quiet enough.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import time
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from variant_ai.core.inference.choosing.evaluator_timing import random_planes
from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.system.folders import cache_folder, keep_newest
from variant_ai.core.system.missing_packages import installed_version
from variant_ai.core.system.processors import processors
from variant_ai.core.system.text_tables import counted

MOST_FILES = 200
FORMAT = 5
"""Increased when the meaning of saved choices changes, or an evaluator has become faster."""
MOST_CHANGE = 1.5
"""Factor by which today's rate may differ from the saved one."""
PROBE = 0.12
"""Seconds for which the evaluator of a saved choice is timed."""
BUSY = 0.25
"""Processors used by other programs from which a measurement is not trusted."""


@dataclass(frozen=True)
class Choice:
    """An evaluator and its use of the cores."""

    evaluator: str
    device: str = "cpu"
    threads: int | None = None
    spin: bool = True
    sessions: int = 1
    precision: str | None = None
    """None: the requested one, or that of the model."""

    def describe(self) -> str:
        """Return `onnx, 2 threads that do not spin`."""
        named = f"{self.evaluator} {self.precision}" if self.precision else self.evaluator
        if self.device != "cpu":
            return f"{named} on {self.device}"
        if self.threads is None:
            return named
        many = f"{self.sessions} sessions of " if self.sessions > 1 else ""
        calm = "" if self.spin or self.threads == 1 else " that do not spin"
        return f"{named}, {many}{counted(self.threads, 'thread')}{calm}"


@dataclass(frozen=True)
class SavedChoice:
    """A choice with its measurement."""

    choice: Choice
    rate: float
    """Positions per second of the whole batch."""
    piece: int | None
    """Positions evaluated at once, if that is faster than the whole batch."""
    others: float | None
    """Processors used by other programs during the measurement; None if unknown."""
    measured: str
    """Day."""
    rates: dict[str, float]
    """Positions per second of every contender."""

    @property
    def is_provisional(self) -> bool:
        """True if other programs disturbed the measurement."""
        return self.others is not None and self.others > BUSY

    def reason_to_repeat(self, evaluator: Evaluator, batch: int) -> str:
        """Return a reason to measure again now; empty if there is none. Takes `PROBE` seconds.

        While other programs use the machine there is none: a new measurement would be no better.
        """
        load = OtherLoad()
        rate = observed_rate(evaluator, batch)
        others = load.processors()
        if others is not None and others > BUSY:
            return ""
        if self.is_provisional:
            return f"it was measured beside programs that used {self.others:.1f} processors"
        if not self.rate / MOST_CHANGE <= rate <= self.rate * MOST_CHANGE:
            return f"{rate:,.0f} positions/s now, {self.rate:,.0f} then"
        return ""


def observed_rate(evaluator: Evaluator, batch: int) -> float:
    """Time the evaluator for `PROBE` seconds; return positions per second of the fastest batch."""
    planes = random_planes(evaluator, batch)
    evaluator.evaluate(planes)
    best = float("inf")
    began = time.perf_counter()
    while time.perf_counter() - began < PROBE:
        before = time.perf_counter()
        evaluator.evaluate(planes)
        best = min(best, time.perf_counter() - before)
    return batch / best if best > 0 else 0.0


# --- files -----------------------------------------------------------------------------------------


def choice_file(settings: list[Any], contenders: list[Choice]) -> Path | None:
    """Return the file of a choice, named by all that it depends on; None without a cache folder."""
    folder = cache_folder("evaluators")
    if folder is None:
        return None
    key = json.dumps([FORMAT, machine(), settings, [asdict(choice) for choice in contenders]])
    return folder / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"


@cache
def machine() -> dict[str, Any]:
    """Return everything that speed depends on: processor, cores, versions of the libraries."""
    packages = ("onnxruntime", "onnxruntime-gpu", "openvino", "torch")
    return {
        "processor": _processor(),
        "cores": processors(),
        "system": platform.system(),
        "versions": {name: found for name in packages if (found := installed_version(name))},
    }


IDENTITY = ("model name", "flags", "Features", "CPU implementer", "CPU part")
"""Beginnings of lines of /proc/cpuinfo that tell processors apart; the last three are those of ARM."""


def _processor() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        lines = [line for line in file if line.startswith(IDENTITY)]
        # The flags too: virtual machines use one name for different processors.
        return hashlib.sha256("".join(sorted(set(lines))).encode()).hexdigest()[:16]
    return f"{platform.machine()} {platform.processor()}"


def read_choice(path: Path | None) -> SavedChoice | None:
    """Read a saved choice; None if the file is missing or damaged."""
    if path is None:
        return None
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        return SavedChoice(**{**fields, "choice": Choice(**fields["choice"])})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_choice(path: Path, choice: SavedChoice) -> None:
    """Write the file completely or not at all; a full disk only costs another measurement."""
    part = path.with_suffix(f".{os.getpid()}.part")
    with contextlib.suppress(OSError):
        part.write_text(json.dumps(asdict(choice), indent=2), encoding="utf-8")
        part.replace(path)
        keep_newest(path.parent, MOST_FILES)


# --- load of other programs ------------------------------------------------------------------------


class OtherLoad:
    """Processors used by other programs since it was made.

    Linux counts the busy time of each processor; the time of this process is subtracted. On other
    systems the load is unknown, and measurements are trusted.
    """

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._busy, self._own = _busy_seconds(), time.process_time()

    def processors(self) -> float | None:
        """Return the mean number of processors that others used; None if unknown."""
        busy = _busy_seconds()
        seconds = time.perf_counter() - self._began
        if busy is None or self._busy is None or seconds <= 0:
            return None
        others = (busy - self._busy) - (time.process_time() - self._own)
        return min(max(others / seconds, 0.0), float(processors()))


def _busy_seconds() -> float | None:
    """Busy seconds of the processors of this process since the machine was started."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    ours = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    try:
        with open("/proc/stat", encoding="ascii") as file:
            rows = [line.split() for line in file if line.startswith("cpu")]
        # user nice system idle iowait irq softirq steal, in ticks
        ticks = sum(
            sum(map(int, row[1:4])) + sum(map(int, row[6:9])) for row in rows if row[0] in ours
        )
    except (OSError, ValueError):
        return None
    return ticks / float(os.sysconf("SC_CLK_TCK"))
