"""Runs as processes of their own: killed at random, on a full disk, and over many generations."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_runs import check_run, small_run, small_settings

from variant_ai.core.data.store.game_store import Store
from variant_ai.core.reinforce.games.game_journal import GameJournal
from variant_ai.core.reinforce.reinforce_folder import ReinforceFolder
from variant_ai.core.reinforce.settings_file import settings_text
from variant_ai.plugins import registry

resource = pytest.importorskip("resource", reason="limits of the size of files are those of Unix")
KILLS = 20
AT_ONCE = 6

COMMAND = [sys.executable, "-m", "variant_ai.cli.main", "reinforce"]


def begin(tmp_path: Path, **words: Any) -> list[str]:
    """The command that begins a small run in the folder `run`, and goes on with it."""
    file = tmp_path / "settings.yaml"
    file.write_text(settings_text(small_settings(**words)))
    return [*COMMAND, "--settings", str(file), "--run", str(tmp_path / "run")]


@pytest.mark.nightly
def test_a_run_that_is_killed_at_random_is_complete(tmp_path: Path) -> None:
    command = begin(tmp_path, generations=None)
    rng = np.random.default_rng(0)
    for _ in range(KILLS):
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(timeout=float(rng.uniform(3.0, 12.0)))
            process.kill()
    generations = ReinforceFolder(tmp_path / "run").state().generation + 2
    command += ["--generations", str(generations)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    check_run(tmp_path / "run", generations, in_hand=AT_ONCE)


@pytest.fixture
def compiled(tmp_path: Path) -> None:
    """Machine code is on disk before a limit of the size of files keeps it from being written."""
    settings = small_settings(generations=1)
    assert small_run(tmp_path / "first", settings).run()


@pytest.mark.nightly
@pytest.mark.usefixtures("compiled")
def test_a_run_on_a_full_disk_says_so_and_goes_on_when_there_is_space(tmp_path: Path) -> None:
    """A limit of the size of files has the effect of a full disk, at another file each time."""
    command = begin(tmp_path, generations=3)
    folder, spec = tmp_path / "run", registry().variant("dobutsu")
    run = ReinforceFolder(folder)
    failed = set()
    for limit in (1_000, 4_000, 10_000, 30_000, 60_000, 90_000):

        def limited(size: int = limit) -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

        done = subprocess.run(
            command, capture_output=True, text=True, check=False, preexec_fn=limited
        )
        if done.returncode == 0:
            break
        assert done.returncode == 1, done.stderr
        assert "Traceback" not in done.stderr
        assert "File too large" in done.stderr and str(folder) in done.stderr
        failed.add(done.stderr)
        for store in (folder / "games").glob("*.store"):
            assert len(Store(store, spec)) > 0
        for journal in (folder / "games").glob("*.journal"):
            GameJournal(journal, "dobutsu").close()
    assert len(failed) > 1
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    check_run(folder, 3, in_hand=AT_ONCE)
    assert run.state().generation == 3


@pytest.mark.nightly
def test_memory_stays_flat_over_many_generations(tmp_path: Path) -> None:
    command = begin(tmp_path, generations=100, evaluator="auto")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = check_run(tmp_path / "run", 100, in_hand=AT_ONCE).rows()
    memory = [row["memory_mb"] for row in rows]
    assert max(memory[80:]) < max(memory[10:30]) * 1.05
