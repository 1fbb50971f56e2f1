"""Choices of `auto` that are kept: where, for what machine, and when one is doubted.

A choice is kept with the rate that was measured and with the load of other programs meanwhile. It is
doubted when it was made beside other programs, or when the evaluator is now much faster or slower
than it was: then it is measured again, as soon as the machine is quiet enough to be measured.
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

from variant_ai.core.inference.cache_folders import cache_folder, keep_newest
from variant_ai.core.inference.choosing.machine_load import BUSY, OtherLoad
from variant_ai.core.inference.choosing.timing import random_planes
from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.system.processors import processors

KEPT = 200
FORMAT = 4
"""Raised when kept choices come to mean something else, or an evaluator has become faster."""
FAR = 1.5
"""Factor by which the rate at use may differ from the one kept."""
PROBE = 0.12
"""Seconds of the look at an evaluator whose choice was kept."""


@dataclass(frozen=True)
class Choice:
    """An evaluator and how it uses the cores."""

    evaluator: str
    device: str = "cpu"
    threads: int | None = None
    spin: bool = True
    sessions: int = 1
    precision: str | None = None
    """None: as asked for, or the model's own."""

    def describe(self) -> str:
        """`onnx, 2 threads that do not spin`."""
        named = f"{self.evaluator} {self.precision}" if self.precision else self.evaluator
        if self.device != "cpu":
            return f"{named} on {self.device}"
        if self.threads is None:
            return named
        many = f"{self.sessions} sessions of " if self.sessions > 1 else ""
        noun = "thread" if self.threads == 1 else "threads"
        calm = "" if self.spin or self.threads == 1 else " that do not spin"
        return f"{named}, {many}{self.threads} {noun}{calm}"


@dataclass(frozen=True)
class Kept:
    """A choice with what was measured."""

    choice: Choice
    rate: float
    """Positions a second of the whole batch."""
    piece: int | None
    """Positions evaluated at once, if that is quicker than the whole batch."""
    others: float | None
    """Processors that other programs used meanwhile; None if it is not known."""
    measured: str
    """Day."""
    rates: dict[str, float]
    """Of every contender."""

    @property
    def is_provisional(self) -> bool:
        return self.others is not None and self.others > BUSY

    def doubt(self, evaluator: Evaluator, batch: int) -> str:
        """Reason to measure again now, empty without one. Takes `PROBE` seconds.

        Nothing is doubted while other programs use the machine: a measurement would be no better.
        """
        load = OtherLoad()
        rate = observed_rate(evaluator, batch)
        others = load.processors()
        if others is not None and others > BUSY:
            return ""
        if self.is_provisional:
            return f"it was measured beside programs that used {self.others:.1f} processors"
        if not self.rate / FAR <= rate <= self.rate * FAR:
            return f"{rate:,.0f} positions/s now, {self.rate:,.0f} then"
        return ""


def observed_rate(evaluator: Evaluator, batch: int) -> float:
    """Positions a second of a short look, by the fastest of its batches."""
    planes = random_planes(evaluator, batch)
    evaluator.evaluate(planes)
    best = float("inf")
    began = time.perf_counter()
    while time.perf_counter() - began < PROBE:
        before = time.perf_counter()
        evaluator.evaluate(planes)
        best = min(best, time.perf_counter() - before)
    return batch / best if best > 0 else 0.0


def kept_path(asked: list[Any], contenders: list[Choice]) -> Path | None:
    """The file of a choice: named by all that it depends on. None without a cache folder."""
    folder = cache_folder("evaluators")
    if folder is None:
        return None
    key = json.dumps([FORMAT, machine(), asked, [asdict(choice) for choice in contenders]])
    return folder / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"


@cache
def machine() -> dict[str, Any]:
    """All that speed depends on: processor, cores, versions of the libraries."""
    from importlib.metadata import PackageNotFoundError, version

    versions = {}
    for package in ("onnxruntime", "onnxruntime-gpu", "openvino", "torch"):
        with contextlib.suppress(PackageNotFoundError):
            versions[package] = version(package)
    return {
        "processor": _processor(),
        "cores": processors(),
        "system": platform.system(),
        "versions": versions,
    }


def _processor() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        lines = [line for line in file if line.startswith(("model name", "flags"))]
        # The flags too: virtual machines give different processors one name.
        return hashlib.sha256("".join(sorted(set(lines))).encode()).hexdigest()[:16]
    return f"{platform.machine()} {platform.processor()}"


def read(path: Path | None) -> Kept | None:
    """A kept choice; a damaged file is a missing one."""
    if path is None:
        return None
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        return Kept(**{**said, "choice": Choice(**said["choice"])})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write(path: Path, kept: Kept) -> None:
    """Whole or not at all; a full disk costs a measurement next time and nothing else."""
    part = path.with_suffix(f".{os.getpid()}.part")
    with contextlib.suppress(OSError):
        part.write_text(json.dumps(asdict(kept), indent=2), encoding="utf-8")
        part.replace(path)
        keep_newest(path.parent, KEPT)
