"""The cache of compiled code: contents of its folders, and errors that it survives."""

from __future__ import annotations

import errno
import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numba
import pytest
from numba.core.dispatcher import Dispatcher

from variant_ai.core.errors import VariantAIError
from variant_ai.core.jit import machine_code
from variant_ai.core.rules.kernel import movegen, play_move
from variant_ai.core.rules.kernel.kernel_rules import KernelRules
from variant_ai.core.rules.kernel.perft import count_in_kernel
from variant_ai.core.spec import builtin_specs, load_spec
from variant_ai.core.system import compilation_progress
from variant_ai.core.system.compilation_progress import Announcer, Progress
from variant_ai.core.system.folders import FOLDER_VARIABLE

KERNEL = Path(movegen.__file__)
jitted = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="compilation is switched off by NUMBA_DISABLE_JIT"
)
COMPILED = ("attacks", "game_ends", "move_filters", "movegen", "play_move", "perft")

SMALL = """
from variant_ai.core.jit import njit

@njit
def add(n):
    return n + 128

if __name__ == "__main__":
    print(add(1))
"""

TWO = """
import numpy as np
from variant_ai.core.jit import njit

@njit
def fill(out, n):
    scratch = np.zeros(4, np.int64)
    scratch[:] = n
    out[:] = scratch.sum()

@njit
def twice(out, n):
    fill(out, n)
    return int(out.sum())

if __name__ == "__main__":
    out = np.zeros(8, np.int64)
    fill(out, 8)
    print(twice(out, 32), sum(fill.stats.cache_hits.values()))
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A new compiled module."""
    path = tmp_path / "small.py"
    path.write_text(SMALL)
    return path


@pytest.fixture(autouse=True)
def forgotten_folders() -> Iterator[None]:
    """Clear the cached folder names of this process before and after."""
    machine_code.code_folder.cache_clear()
    yield
    machine_code.code_folder.cache_clear()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Base folder of the caches of this test."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def run(module: Path) -> tuple[int, int]:
    """Result of add(1) of the reloaded module, and the number of loads from the cache."""
    machine_code.code_folder.cache_clear()
    spec = importlib.util.spec_from_file_location("small", module)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    result = int(loaded.add(1))
    return result, sum(loaded.add.stats.cache_hits.values())


COUNT_SIGNATURES = """
import sys
sys.path.insert(0, {folder!r})
import test_cache
test_cache.play_all_variants()
print(max(test_cache.signatures().values()), len(test_cache.signatures()))
"""


@pytest.mark.nightly
@jitted
def test_nothing_is_compiled_twice_from_an_empty_cache(tmp_path: Path) -> None:
    command = COUNT_SIGNATURES.format(folder=str(Path(__file__).parent))
    done = subprocess.run(
        [sys.executable, "-c", command],
        env={**os.environ, FOLDER_VARIABLE: str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    most, functions = map(int, done.stdout.split())
    assert most == 1
    assert functions >= 10


def test_every_kernel_function_is_compiled_for_one_signature() -> None:
    play_all_variants()
    counts = signatures()
    assert {name for name, count in counts.items() if count > 1} == set()
    if not numba.config.DISABLE_JIT:
        assert len(counts) >= 5


def play_all_variants() -> None:
    for name, path in builtin_specs().items():
        spec = load_spec(path)
        if spec.rules.engine == "kernel":
            rules = KernelRules(spec)
            position = rules.position()
            count_in_kernel(rules.tables, position, 2)
            rules.outcome(rules.play(position, int(rules.legal_moves(position)[0])))
            assert rules.in_check(position) is False, name


def signatures() -> dict[str, int]:
    """Kernel function -> number of signatures for which it is compiled or loaded; all are included.

    What is loaded from the cache hides what it calls: only an empty cache shows all.
    """
    found = {}
    for name in COMPILED:
        module = sys.modules[f"variant_ai.core.rules.kernel.{name}"]
        for function in vars(module).values():
            if isinstance(function, Dispatcher) and function.py_func.__module__ == module.__name__:
                found[f"{name}.{function.py_func.__name__}"] = len(function.signatures)
    return {name: count for name, count in found.items() if count}


def test_the_global_cache_folder_is_left_alone() -> None:
    assert "variant-ai" not in str(numba.config.CACHE_DIR)
    if not numba.config.DISABLE_JIT:
        folder = play_move.play_into.stats.cache_path  # type: ignore[attr-defined]
        assert str(machine_code.code_folder(Path(play_move.__file__))) in folder


def test_the_hash_covers_what_a_module_imports() -> None:
    sources = {path.name for path in machine_code.sources_of(KERNEL)}
    assert {"movegen.py", "attacks.py", "position.py", "table_layout.py", "functions.py"} <= sources
    assert not {"kernel_rules.py", "files.py"} & sources  # edits of them compile nothing again


def test_an_edit_of_an_imported_source_names_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = tmp_path / "core" / "rules"
    rules.mkdir(parents=True)
    (rules / "one.py").write_text("from variant_ai.core.rules.two import X\n")
    (rules / "two.py").write_text("X = 1\n")
    monkeypatch.setattr(machine_code, "_ROOT", tmp_path)
    before = machine_code.sources_hash(rules / "one.py")
    machine_code._source.cache_clear()
    (rules / "two.py").write_text("X = 2\n")
    try:
        assert machine_code.sources_hash(rules / "one.py") != before
    finally:
        machine_code._source.cache_clear()
        machine_code._imports.cache_clear()


@jitted
def test_what_was_compiled_once_is_loaded(module: Path, folder: Path) -> None:
    assert run(module) == (129, 0)
    assert run(module) == (129, 1)


@jitted
def test_bounds_checking_has_separate_folders(
    module: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(module)
    monkeypatch.setattr(numba.config, "BOUNDSCHECK", 1 - bool(numba.config.BOUNDSCHECK))
    assert run(module) == (129, 0)
    monkeypatch.undo()
    monkeypatch.setenv(FOLDER_VARIABLE, str(folder))
    assert run(module) == (129, 1)


@jitted
@pytest.mark.parametrize("damage", ["truncated", "emptied", "overwritten"])
def test_a_damaged_file_is_compiled_again(module: Path, folder: Path, damage: str) -> None:
    run(module)
    files = list(folder.rglob("*.nbc"))
    assert files
    for path in files:
        content = path.read_bytes()
        path.write_bytes(
            {
                "truncated": content[: len(content) // 2],
                "emptied": b"",
                "overwritten": b"\xff\x00garbage" * 9,
            }[damage]
        )
    assert run(module) == (129, 0)
    assert run(module) == (129, 1)


@jitted
def test_a_disk_that_is_full_costs_nothing_but_time(
    module: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert run(module) == (129, 0)
    assert [path for path in folder.rglob("small.*") if path.suffix != ".lock"] == []
    monkeypatch.undo()
    monkeypatch.setenv(FOLDER_VARIABLE, str(folder))
    assert run(module) == (129, 0)
    assert run(module) == (129, 1)


def test_two_processes_may_start_on_an_empty_cache(module: Path, tmp_path: Path) -> None:
    environ = {**os.environ, FOLDER_VARIABLE: str(tmp_path / "cache")}
    command = [sys.executable, str(module)]
    both = [
        subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    for process in both:
        assert process.communicate()[0].strip() == "129"
        assert process.returncode == 0


SIGNATURES = """
import sys
from variant_ai.core.jit import machine_code, njit

@njit
def half(n):
    return n / 2

def wait(path, content, write=machine_code._replace):
    # both have looked for files, and neither has written one
    print("compiled", flush=True)
    sys.stdin.readline()
    write(path, content)

if __name__ == "__main__":
    number = int(sys.argv[1]) if sys.argv[1] == "3" else float(sys.argv[1])
    machine_code._replace = wait
    print(half(number), sum(half.stats.cache_hits.values()))
"""


@jitted
def test_processes_that_compile_for_two_signatures_at_once_keep_their_own_code(
    tmp_path: Path,
) -> None:
    """Both save their code after both have looked for it; later each loads its own."""
    path = tmp_path / "signatures.py"
    path.write_text(SIGNATURES)
    environ = {**os.environ, FOLDER_VARIABLE: str(tmp_path / "cache")}

    def begin(number: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(path), number],
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    both = [begin("3"), begin("5.5")]
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline() == "compiled\n"
    for process, answer in zip(both, ("1.5 0", "2.75 0"), strict=True):
        assert process.communicate("\n")[0].strip() == answer
    for number, answer in (("3", "1.5 1"), ("5.5", "2.75 1")):
        assert begin(number).communicate("")[0].strip() == answer


@pytest.mark.parametrize("name", ["CPU_NAME", "CPU_FEATURES"])
def test_another_processor_has_another_folder(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Machines that share a home may differ in their features only."""
    before = machine_code.sources_hash(KERNEL)
    monkeypatch.setattr(numba.config, name, "other")
    assert machine_code.sources_hash(KERNEL) != before


def test_a_folder_that_cannot_be_written_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv(FOLDER_VARIABLE, str(blocked))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    folder = machine_code.code_folder(KERNEL)
    assert folder.is_dir()
    assert folder.is_relative_to(tmp_path / "home")


def test_old_folders_of_a_module_are_removed(tmp_path: Path) -> None:
    for number in range(machine_code.KEPT_FOLDERS + 4):
        assert machine_code._make(tmp_path, tmp_path / f"small-{number}", "small")
        os.utime(tmp_path / f"small-{number}", (number, number))
    assert machine_code._make(tmp_path, tmp_path / "other-1", "other")
    assert machine_code._make(tmp_path, tmp_path / "small-last", "small")
    kept = {path.name for path in tmp_path.iterdir()}
    assert {"other-1", "small-last"} <= kept
    assert len(kept) == machine_code.KEPT_FOLDERS + 1


def test_a_folder_in_use_outlives_newer_ones(tmp_path: Path) -> None:
    for number in range(3 * machine_code.KEPT_FOLDERS):
        assert machine_code._make(tmp_path, tmp_path / f"small-{number}", "small")
        os.utime(tmp_path / f"small-{number}", (number, number))
        assert machine_code._make(tmp_path, tmp_path / "small-0", "small")
    assert (tmp_path / "small-0").is_dir()
    assert not (tmp_path / "small-1").is_dir()


@jitted
def test_what_is_compiled_may_call_what_was_loaded(tmp_path: Path, folder: Path) -> None:
    """Loading does not load numba's types; compiling does. Both must work in one process."""
    path = tmp_path / "two.py"
    path.write_text(TWO)

    def run_anew() -> list[str]:
        done = subprocess.run(
            [sys.executable, str(path)], capture_output=True, text=True, check=True
        )
        return done.stdout.split()

    assert run_anew() == ["1024", "0"]
    assert run_anew() == ["1024", "1"]
    files = list(folder.rglob("two.twice-*.nbc"))
    assert files
    for file in files:
        file.unlink()
    assert run_anew() == ["1024", "1"]


def test_compilation_is_announced_and_reading_the_cache_is_not() -> None:
    code = (
        "import numpy as np\n"
        "from variant_ai.core import compilation\n"
        "lines = []\n"
        "compilation.listen(compilation.Announcer(lines.append, every=0.0))\n"
        "from variant_ai.core.data.sample.compiled_replay import mix\n"
        "assert mix(np.uint64(1)) > 0\n"
        "print(len(lines), lines[:1])\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        runs = [
            subprocess.run(
                [sys.executable, "-c", code],
                env={**os.environ, "VARIANT_AI_CACHE_DIR": folder},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            for _ in range(2)
        ]
    assert "compiling for this machine, once: 0 of" in runs[0]
    assert runs[1].startswith("0 ")


def test_a_sentence_is_written_once_and_none_if_all_is_compiled() -> None:
    written: list[str] = []
    announce = Announcer(written.append, every=0.0)
    announce(Progress(5, 5))
    assert written == []
    for done in (1, 1, 5, 5):
        announce(Progress(done, 5))
    assert [text.split(": ")[1][:6] for text in written] == ["1 of 5", "5 of 5"]


def test_no_time_is_promised_before_one_was_estimated() -> None:
    assert str(Progress(0, 80)).endswith("0 of 80 functions")
    assert str(Progress(40, 80, 12.4)).endswith("40 of 80 functions; about 12 s left")


def test_without_any_folder_the_message_names_those_that_were_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere(*args: object, **named: object) -> str:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr(machine_code, "base_folders", lambda: [tmp_path / "file" / "cache"])
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(machine_code.tempfile, "gettempdir", nowhere)
    monkeypatch.setattr(tempfile, "mkdtemp", nowhere)
    with pytest.raises(VariantAIError, match=r"file.cache.kernels; name one in VARIANT_AI_CACHE"):
        machine_code.code_folder.__wrapped__(KERNEL)


def test_the_time_left_does_not_count_other_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Estimate from the compilation alone, not from a training between two functions."""
    state = compilation_progress._State()
    monkeypatch.setattr(compilation_progress, "_state", state)
    left = []
    for now, done in [(0.0, 10), (3.0, 11), (5.0, 15), (5000.0, 15), (5005.0, 20)]:
        monkeypatch.setattr(compilation_progress.time, "monotonic", lambda now=now: now)
        compilation_progress.report(done, 60)
        assert state.latest is not None
        left.append(state.latest.seconds_left)
    assert left[:3] == [None, None, 45.0], "the first functions are large"
    assert left[4] is not None and left[4] <= 40 * (5 + compilation_progress.LONGEST_GAP + 5) / 10
