"""Processors of the machine."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUP = Path("/proc/self/cgroup")


def processors() -> int:
    """Return the number of processors that this process may use, at least 1.

    In a container the quota counts (Docker's `--cpus`), although the container sees more processors.
    """
    if hasattr(os, "sched_getaffinity"):
        usable = len(os.sched_getaffinity(0))
    else:
        usable = os.cpu_count() or 1
    return max(1, min([usable, *(int(quota) for quota in _quotas())]))


def _quotas(root: Path = _CGROUPS, own: Path = _OWN_CGROUP) -> Iterator[float]:
    """Yield the quotas of this process's control groups, in processors (Linux)."""
    with contextlib.suppress(OSError, ValueError):
        for line in own.read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "cpu" not in controllers.split(","):
                continue
            base = root if not controllers else root / "cpu"
            group = base / path.lstrip("/")
            for folder in (group, *group.parents):
                yield from _quota(folder)
                if folder == base:
                    break


def _quota(folder: Path) -> Iterator[float]:
    """Yield the quota of a control group of version 2 or 1, if it has one."""
    with contextlib.suppress(OSError, ValueError):
        most, period = (folder / "cpu.max").read_text(encoding="utf-8").split()
        if most != "max":
            yield int(most) / int(period)
    with contextlib.suppress(OSError, ValueError):
        most = (folder / "cpu.cfs_quota_us").read_text(encoding="utf-8")
        period = (folder / "cpu.cfs_period_us").read_text(encoding="utf-8")
        if int(most) > 0:
            yield int(most) / int(period)
