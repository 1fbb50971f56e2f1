"""CPU time of a run: this process with all its threads, and child processes that have ended, without
those that compute rules (their time would be added at once, when they end)."""

from __future__ import annotations

import os
import time

from variant_ai.core.jit import parallel_compilation
from variant_ai.core.rules.fairy.fairy_workers import ended_workers
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.kernel.kernel_rules import is_compiled


def cpu_seconds() -> float:
    """CPU time of this process and of its children that have ended, but for the workers of rules, in
    seconds."""
    times = os.times()
    children = times.children_user + times.children_system - ended_workers.cpu_seconds
    return times.user + times.system + children


class CpuClock:
    """Adds CPU time and elapsed time to what earlier processes of a run have used."""

    def __init__(self, cpu: float, elapsed: float) -> None:
        """cpu, elapsed: seconds used before."""
        self._cpu = cpu - cpu_seconds()
        self._elapsed = elapsed - time.monotonic()
        self.elsewhere = 0.0
        """CPU time of processes on other machines."""

    @property
    def cpu(self) -> float:
        return self._cpu + cpu_seconds() + self.elsewhere

    @property
    def elapsed(self) -> float:
        return self._elapsed + time.monotonic()


def compile_uncounted(rules: Rules) -> None:
    """Compile the missing functions of compiled rules before a clock begins, as on a new machine: that
    takes minutes of CPU time, and not a game is played in them.

    Workers that compiled with this process have ended when it has opened its nets."""
    done, total = parallel_compilation.progress()
    if done < total and is_compiled(rules):
        parallel_compilation.compile_all()


def memory_mb() -> float | None:
    """Resident memory of this process in MB; None where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="utf-8") as file:
            pages = int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
