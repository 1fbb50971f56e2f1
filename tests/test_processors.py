"""The processors that a process may use: those of the machine, and the quota of its container."""

from __future__ import annotations

from pathlib import Path

import pytest

from variant_ai.core.system import processors as module


def written(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


@pytest.mark.parametrize(
    ("own", "files", "quotas"),
    [
        ("0::/\n", {".": "200000 100000\n"}, [2.0]),
        ("0::/\n", {".": "max 100000\n"}, []),
        ("0::/slice/unit\n", {"slice/unit": "max 100000\n", "slice": "150000 100000\n"}, [1.5]),
        ("0::/gone\n", {".": "50000 100000\n"}, [0.5]),
        ("", {}, []),
    ],
)
def test_quotas_of_version_2(
    tmp_path: Path, own: str, files: dict[str, str], quotas: list[float]
) -> None:
    for folder, text in files.items():
        written(tmp_path / "sys" / folder, cpu__max=text)
    written(tmp_path, own=own)
    assert list(module._quotas(tmp_path / "sys", tmp_path / "own")) == quotas


def test_quotas_of_version_1(tmp_path: Path) -> None:
    """Inside a container the group's path is that of the host, which is not there."""
    written(tmp_path / "sys/cpu", cpu__cfs_quota_us="300000\n", cpu__cfs_period_us="100000\n")
    written(tmp_path, own="4:memory:/docker/1\n1:cpu,cpuacct:/docker/1\n")
    assert list(module._quotas(tmp_path / "sys", tmp_path / "own")) == [3.0]
    written(tmp_path / "sys/cpu", cpu__cfs_quota_us="-1\n")
    assert list(module._quotas(tmp_path / "sys", tmp_path / "own")) == []


@pytest.mark.parametrize(("quota", "expected"), [(0.5, 1), (1.9, 1), (2.0, 2), (1000.0, 1000)])
def test_the_quota_limits_the_processors(
    monkeypatch: pytest.MonkeyPatch, quota: float, expected: int
) -> None:
    monkeypatch.setattr(module.os, "sched_getaffinity", lambda _: set(range(4000)), raising=False)
    monkeypatch.setattr(module, "_quotas", lambda: iter([quota]))
    assert module.processors() == expected
