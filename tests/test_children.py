"""Child processes end with their parent."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from processes import PATIENCE, alive, left

from variant_ai.core.system import child_processes

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kills processes by POSIX signals")

PARENT = """
import subprocess, sys, time
from variant_ai.core.arena.programs.uci_client import UciClient
from variant_ai.core.system import child_processes
sys.path.insert(0, sys.argv[1])
import work

if __name__ == "__main__":
    pool = child_processes.WorkerPool(2)
    workers = [pool.submit(work.number).result()]
    busy = [pool.submit(work.hang) for _ in range(2)]
    workers += [number for number in pool._processes if number not in workers]
    hanging = UciClient([sys.executable, "-c", work.ENGINE])
    hanging._launch()
    inner = hanging._next(time.monotonic() + 20).text
    print(*workers, hanging.pid, inner, child_processes._guard._process.pid, flush=True)
    time.sleep(60)
"""
WORK = """
import os, time
def number():
    return os.getpid()
def hang():
    time.sleep(60)
# A wrapper that starts the real engine; both ignore signals and read no input.
ENGINE = '''
import signal, subprocess, sys, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
print(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]).pid, flush=True)
time.sleep(60)
'''
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_no_child_outlives_a_killed_parent(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "parent.py").write_text(PARENT)
    (tmp_path / "work.py").write_text(WORK)
    parent = subprocess.Popen(
        [sys.executable, tmp_path / "parent.py", tmp_path], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    try:
        numbers = [int(word) for word in parent.stdout.readline().split()]
        assert len(numbers) == 5
        assert all(map(alive, numbers))
        parent.send_signal(number)
        assert parent.wait(PATIENCE) == -number
    finally:
        parent.kill()
        parent.stdout.close()
        parent.wait()
    assert left(numbers) == []


def test_a_child_started_before_signals_are_heard_is_not_broken_by_them(tmp_path: Path) -> None:
    """Ctrl-C goes to the whole group: also to a child that is still importing."""
    child = (
        "from variant_ai.core.system.child_processes import leave_signals_to_parent\n"
        "input()\n"
        "leave_signals_to_parent()\n"
        "print('alive')\n"
    )
    starter = (
        "import signal, subprocess, sys\n"
        "from variant_ai.core.system.child_processes import signals_held\n"
        "with signals_held():\n"
        f"    child = subprocess.Popen([sys.executable, '-c', {child!r}], stdin=subprocess.PIPE)\n"
        "child.send_signal(signal.SIGINT); child.send_signal(signal.SIGTERM)\n"
        "child.communicate(b'\\n')\n"
        "sys.exit(child.returncode)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", starter], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "alive\n", "")


def test_an_error_in_a_worker_knows_the_frames_of_its_process() -> None:
    with child_processes.WorkerPool(1) as pool, pytest.raises(statistics.StatisticsError) as caught:
        pool.submit(statistics.mean, []).result()
    frames = child_processes.frames_of(caught.value)
    assert frames[0].module == __name__ and frames[-1].module == "statistics"
    lines = Path(frames[-1].file).read_text("utf-8").splitlines()
    assert "raise StatisticsError" in lines[frames[-1].line - 1]


def test_an_error_of_the_initializer_is_raised_by_the_tasks() -> None:
    with child_processes.WorkerPool(1, statistics.mean, ([],)) as pool:
        for _ in range(2):
            with pytest.raises(statistics.StatisticsError):
                pool.submit(os.getpid).result()
