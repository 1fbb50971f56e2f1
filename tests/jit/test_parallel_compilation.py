"""Compiling in several processes: complete, in any order, and safe to kill."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
import typing_extensions
from numpy.typing import NDArray

from variant_ai.core.jit import functions, parallel_compilation
from variant_ai.core.jit.signatures import called_by, signature_of, type_of
from variant_ai.core.system.folders import FOLDER_VARIABLE

jitted = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="compilation is switched off by NUMBA_DISABLE_JIT"
)
COMPILE_ALL = "from variant_ai.core.jit.parallel_compilation import compile_all; compile_all()"
COUNT = """
import json, sys
from variant_ai.core.jit import functions, parallel_compilation
from variant_ai.core.system import compilation_progress as compilation
parallel_compilation.compile_all()
for task in parallel_compilation._tasks().values():
    task.dispatcher.compile(task.signature)
print(json.dumps([*parallel_compilation.progress(), compilation._state.alone]))
"""


@pytest.fixture
def kernels() -> list[parallel_compilation.Task]:
    for name in parallel_compilation.modules_with_kernels():
        importlib.import_module(name)
    return list(parallel_compilation._tasks().values())


@jitted
def test_annotations_give_the_signature_of_every_compiled_function(
    kernels: list[parallel_compilation.Task],
) -> None:
    ours = [d for d in functions.compiled if d.py_func.__module__.startswith("variant_ai.core.")]
    assert [d.py_func.__name__ for d in ours if signature_of(d.py_func) is None] == []
    assert len(ours) == sum(parallel_compilation._sources().values())


def test_arrays_are_recognised_as_numpy_2_5_spells_them() -> None:
    """There `NDArray` is a `type` statement, which Python 3.11 cannot read."""
    scalar = typing_extensions.TypeVar("scalar", bound=np.generic)
    array = np.ndarray[tuple[Any, ...], np.dtype[scalar]]
    alias: Any = typing_extensions.TypeAliasType("alias", array, type_params=(scalar,))
    assert type_of(alias[np.int32]) == type_of(NDArray[np.int32]) == numba.int32[::1]
    with pytest.raises(TypeError):
        type_of(alias[np.void])


PLAY = """
from variant_ai import Engine, Position
from variant_ai.core.jit import parallel_compilation
from variant_ai.core.rules.kernel.perft import perft
for name in ("crazyhouse", "xiangqi", "dobutsu"):
    position = Position(name)
    perft(position.game.rules, position.game.position, 2)
    with Engine(name, evaluator="uniform") as engine:
        engine.analyse(position, nodes=200)
called = [task for task in parallel_compilation._tasks().values() if task.dispatcher.signatures]
for task in called:
    if task.dispatcher.signatures != [task.signature]:
        raise SystemExit(f"{task}: {task.dispatcher.signatures}, not {task.signature}")
print(len(called))
"""


@jitted
def test_functions_are_called_with_the_signature_of_their_annotations() -> None:
    """In a process of its own: tests may call functions from Python with arrays of other kinds."""
    done = subprocess.run([sys.executable, "-c", PLAY], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) >= 10


def test_the_representation_of_a_task_is_short(kernels: list[parallel_compilation.Task]) -> None:
    """Tasks hold each other: a representation of all of them filled the memory of a failed test."""
    assert all(len(repr(task)) < 100 for task in kernels)


@jitted
def test_callees_come_before_their_callers(kernels: list[parallel_compilation.Task]) -> None:
    by_name = {task.dispatcher.py_func.__name__: task for task in kernels}
    descend = by_name["descend"]
    assert by_name["play_into"] in by_name["count_leaves"].closure | descend.closure
    for task in kernels:
        for callee in task.callees:
            assert callee.urgency > task.urgency
            assert callee.dispatcher in called_by(task.dispatcher)


@jitted
@pytest.mark.nightly
def test_an_empty_cache_is_filled_once_and_for_all(tmp_path: Path) -> None:
    environ = {**os.environ, FOLDER_VARIABLE: str(tmp_path)}
    subprocess.run([sys.executable, "-c", COMPILE_ALL], env=environ, check=True)
    done = subprocess.run(
        [sys.executable, "-c", COUNT], env=environ, check=True, capture_output=True, text=True
    )
    compiled, total, again = json.loads(done.stdout)
    assert compiled == total == sum(parallel_compilation._sources().values())
    assert again == 0


@jitted
@pytest.mark.nightly
def test_a_compilation_that_is_killed_leaves_no_lock_and_no_worker(tmp_path: Path) -> None:
    environ = {**os.environ, FOLDER_VARIABLE: str(tmp_path)}
    first = subprocess.Popen([sys.executable, "-c", COMPILE_ALL], env=environ)
    while not list(tmp_path.rglob("*.nbc")):
        assert first.poll() is None
        time.sleep(0.1)
    first.send_signal(signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
    first.wait()
    began = time.monotonic()
    while workers_are_compiling(tmp_path):
        assert time.monotonic() - began < 20, "a worker outlives its parent"
        time.sleep(0.2)
    done = subprocess.run(
        [sys.executable, "-c", COUNT], env=environ, check=True, capture_output=True, text=True
    )
    compiled, total, _ = json.loads(done.stdout)
    assert compiled == total


def workers_are_compiling(folder: Path) -> bool:
    """Return True if a process holds the lock of a worker."""
    from filelock import FileLock, Timeout

    for path in folder.glob("compiling-*.lock"):
        lock = FileLock(path)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return True
        lock.release()
    return False


@jitted
def test_a_cache_that_cannot_be_written_costs_time_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks count as done for the process that compiled them, which does not wait for their files."""
    source = tmp_path / "unsaved.py"
    source.write_text(
        "from variant_ai.core.jit import Number, njit\n\n"
        "@njit\ndef one(n: Number) -> Number:\n    return n + 1\n\n"
        "@njit\ndef two(n: Number) -> Number:\n    return one(n) + one(n)\n\n"
        "if __name__ == '__main__':\n"
        "    from numba.core.caching import IndexDataCacheFile\n"
        "    def full(*_):\n        raise OSError(28, 'No space left on device')\n"
        "    IndexDataCacheFile._save_data = full\n"
        "    from variant_ai.core.jit import parallel_compilation\n"
        "    parallel_compilation.compile_all([])\n"
        "    print(two(20))\n"
    )
    done = subprocess.run(
        [sys.executable, str(source)],
        env={**os.environ, FOLDER_VARIABLE: str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip() == "42"
