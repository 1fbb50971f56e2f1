"""CPU time of a run, and its budget: generations and minutes, and how much of them is used up.

CPU time is that of this process with all its threads, and of child processes that have ended, without
those that compute rules (their time would be added at once, when they end).
"""

from __future__ import annotations

import os
import time

from variant_ai.core.jit import parallel_compilation
from variant_ai.core.reinforce.reinforce_settings import ReinforceSettings
from variant_ai.core.rules.fairy.fairy_workers import ended_workers
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.kernel.kernel_rules import is_compiled
from variant_ai.core.system.text_tables import counted


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


def used_share(settings: ReinforceSettings, generation: int, seconds: float) -> float:
    """Share of the budget that is used up, in [0, 1]; 0 without a budget.

    generation: the last complete one. seconds: of CPU time, of the whole run.
    """
    shares = [0.0]
    if settings.generations is not None:
        shares.append(generation / settings.generations)
    if settings.minutes is not None:
        shares.append(seconds / 60 / settings.minutes)
    return min(1.0, max(shares))


def used_up(settings: ReinforceSettings, generation: int, seconds: float) -> str:
    """Return which budgets are used up and how to give more of them; empty if none is."""
    spent, options = [], []
    if settings.generations is not None and generation >= settings.generations:
        spent.append(f"{generation} of {counted(settings.generations, 'generation')}")
        options.append("--generations")
    if settings.minutes is not None and seconds >= 60 * settings.minutes:
        spent.append(f"{seconds / 60:.1f} of {settings.minutes:g} minutes of CPU time")
        options.append("--minutes")
    if not spent:
        return ""
    return f"the budget is used up ({', '.join(spent)}); give more with {' and '.join(options)}"
