"""Runs of the arms of an experiment: child processes that train, time and measure nets."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from variant_ai.cli.common.console import note
from variant_ai.cli.common.ending import EXIT_INTERRUPTED, CommandError, fail
from variant_ai.core.system.text_tables import counted

if TYPE_CHECKING:
    from variant_ai_experiments.comparison import ArmRuns
    from variant_ai_experiments.experiment_file import Experiment

Planned = list[tuple[Path, list[str]]]
"""Run directories of an arm and the words after `variant-ai` that make each."""
CONFIG, RESULTS, MEASURED = "config.json", "results.json", "measured.json"
RECORD = "experiment.json"
"""File with the command of each run."""
MATES = "1000"
"""Positions of a mate-in-one set ([CrazyAra-preprint] section 8)."""
_COMMAND = (sys.executable, "-m", "variant_ai.cli.main")


def keep_plan(target: Path, planned: Mapping[str, Planned]) -> None:
    """Write down the command of each run. Ends the program if an existing run had another one."""
    from variant_ai.core.system.files import write_whole

    path = target / RECORD
    now = {folder.name: words for runs in planned.values() for folder, words in runs}
    try:
        before = json.loads(path.read_text(encoding="utf-8"))["runs"]
    except (OSError, ValueError, KeyError):
        before = {}
    for name, words in now.items():
        if name in before and before[name] != words and (target / name).exists():
            fail(
                f"{target / name} was made with other options (variant-ai "
                f"{shlex.join(before[name])}); delete it, or run into another folder with -o"
            )
    write_whole(path, json.dumps({"runs": {**before, **now}}, indent=2, ensure_ascii=False))


@contextlib.contextmanager
def locked(target: Path) -> Any:
    """Hold the folder alone; yield the locked file, which child processes inherit."""
    from variant_ai.core.data.store.blocks import write_lock

    with (target / ".lock").open("a+b") as file, write_lock(file, target):
        yield file


# --- trainings and timings -----------------------------------------------------------------------


def run_arm(arm: str, runs: Planned, lock: Any, *, run_missing: bool) -> tuple[ArmRuns, bool]:
    """Run the missing runs of an arm. Returns its runs, and True if it was interrupted."""
    from variant_ai_experiments.comparison import ArmRuns

    finished: list[Path] = []
    failures: list[str] = []
    for folder, words in runs:
        if not _is_finished(folder):
            if not run_missing:
                continue
            note(f"{arm}: {folder.name}")
            if (before := _start_of(words, folder.parent)) and not _is_finished(before):
                failures.append(f"{before.name}, whose net it starts from, is not finished")
                continue
            given = ["train", "--resume", str(folder)] if _has_begun(folder) else words
            status, last = run_child(given, f"  {folder.name}", lock)
            if status == EXIT_INTERRUPTED:
                return ArmRuns(arm, tuple(finished), ()), True
            if status != 0:
                failures.append(last or f"exit status {status}")
                continue
        finished.append(folder)
    commands = tuple(shlex.join(("variant-ai", *words)) for _, words in runs)
    return ArmRuns(arm, tuple(finished), commands, tuple(failures)), False


def _start_of(words: Sequence[str], target: Path) -> Path | None:
    """Return the run of this experiment whose net a run starts from."""
    from variant_ai_experiments.experiment_file import START

    for option, value in itertools.pairwise(words):
        if option == f"--{START}" and Path(value).parent == target:
            return Path(value)
    return None


def time_net(arm: str, runs: Planned, lock: Any, *, run_missing: bool) -> ArmRuns:
    """Time a net, unless that was done."""
    from variant_ai.core.system.files import write_whole
    from variant_ai.core.train.run.training_run import describe_environment
    from variant_ai_experiments.comparison import ArmRuns

    ((folder, words),) = runs
    results = folder / RESULTS
    if not results.is_file():
        if not run_missing:
            return ArmRuns(arm, (), ())
        note(f"{arm}: {folder.name}")
        try:
            timings = child_json([*words, "--json"], lock)
        except CommandError as error:
            return ArmRuns(arm, (), (), (error.message,))
        if len(timings) != 1:
            given = f"{counted(len(timings), 'timing')}; an arm times one net with one evaluator"
            return ArmRuns(arm, (), (), (given,))
        (timing,) = timings
        folder.mkdir(exist_ok=True)
        write_whole(folder / "environment.json", json.dumps(describe_environment()))
        write_whole(results, json.dumps(timing))
    return ArmRuns(arm, (folder,), (shlex.join(("variant-ai", *words)),))


def _is_finished(folder: Path) -> bool:
    """Return True if a run made its last step and was measured. (Results are also written by a run
    that was stopped.)"""
    try:
        steps = [json.loads((folder / name).read_text())["steps"] for name in (CONFIG, RESULTS)]
    except (OSError, ValueError, KeyError):
        return False
    return bool(steps[0] == steps[1])


def _has_begun(folder: Path) -> bool:
    """Return True if a run can be resumed; remove the folder of one that was killed too early."""
    if (folder / CONFIG).is_file():
        return True
    with contextlib.suppress(OSError):  # other files stay, and `train` rejects the folder
        (folder / f"{CONFIG}.part").unlink(missing_ok=True)
        folder.rmdir()
    return False


# --- measurements --------------------------------------------------------------------------------


def measure(
    experiment: Experiment,
    scale: str,
    arms: Sequence[ArmRuns],
    stores: Mapping[str, Path],
    target: Path,
    lock: Any,
) -> list[ArmRuns]:
    """Measure all nets on the stores of `measure` and on mates in one.

    Results are kept in `target` and not measured again. `lock` is passed to the child process.
    """
    from variant_ai.core.system.files import write_whole
    from variant_ai_experiments.comparison import MATE_IN_ONE

    path = target / MEASURED
    known: dict[str, Any] = {}
    with contextlib.suppress(FileNotFoundError, ValueError):  # a damaged file is measured again
        known = json.loads(path.read_text(encoding="utf-8"))
    # A result belongs to a net, a store and the words of the command, not to a folder.
    now = {str(folder): _identity(folder) for arm in arms for folder in arm.folders}
    sets: list[tuple[str, str, Sequence[str]]] = [
        (title, store, ()) for title, store in experiment.measure.items()
    ]
    mates = experiment.scales[scale].mates  # type: ignore[index]
    if mates is not None:
        sets.append((MATE_IN_ONE, mates, ("--mates", MATES)))
    for title, store, options in sets:
        with stores[store].open("rb") as file:
            data = hashlib.file_digest(file, "sha256").hexdigest()[:16]
        known[title] = {
            net: result
            for net, result in known.get(title, {}).items()
            if result.get("of") == [now.get(net), data]
        }
        nets = [net for net in now if net not in known[title]]
        if not nets:
            continue
        note(f"measuring {counted(len(nets), 'net')} on {title}")
        more = [word for net in nets[1:] for word in ("--model", net)]
        words = ["evaluate", nets[0], str(stores[store]), *more, *options]
        results = child_json([*words, "-V", experiment.variant, "--json"], lock)["nets"]
        known[title].update({net: {**results[net], "of": [now[net], data]} for net in nets})
        write_whole(path, json.dumps(known))
    return [
        dataclasses.replace(
            arm,
            measured={
                title: [
                    known[title][str(folder)]
                    for folder in arm.folders
                    if str(folder) in known[title]
                ]
                for title, *_ in sets  # `known` may have sets that the file had before
            },
        )
        for arm in arms
    ]


def _identity(run: Path) -> str:
    """Digest of the results of a finished run, which identifies its net."""
    return hashlib.sha256((run / RESULTS).read_bytes()).hexdigest()[:16]


# --- child processes -----------------------------------------------------------------------------


def run_child(words: Sequence[str], prefix: str, lock: IO[bytes]) -> tuple[int, str]:
    """Run a command of `variant-ai` and show its stderr, each line after `prefix`.

    Returns its exit status and the last line of its stderr. Ctrl-C is passed on once, and the child
    awaited. `lock` stays held as long as the command runs, even if this process is killed.
    """
    last = ""
    with _started(words, lock, subprocess.DEVNULL) as child:
        assert child.stderr is not None
        while True:
            try:
                for line in child.stderr:
                    last = line.strip() or last
                    note(f"{prefix}: {line.rstrip()}")
                return child.wait(), last.removeprefix("Error: ")
            except KeyboardInterrupt:
                _interrupt(child)
                child.wait()
                return EXIT_INTERRUPTED, last


def _interrupt(child: subprocess.Popen[str]) -> None:
    """Stop a child as Ctrl-C does; on Windows it got that from the console itself."""
    if os.name != "nt":
        child.send_signal(signal.SIGINT)


def child_json(words: Sequence[str], lock: IO[bytes]) -> Any:
    """Return the JSON that a command prints. Ends this program if the command fails."""
    with _started(words, lock, subprocess.PIPE) as child:
        try:
            output, errors = child.communicate()
        except KeyboardInterrupt:
            _interrupt(child)
            raise
    if child.returncode != 0:
        fail(f"variant-ai {words[0]} failed: {errors.strip().splitlines()[-1] if errors else ''}")
    return json.loads(output)


def _started(words: Sequence[str], lock: IO[bytes], stdout: int) -> subprocess.Popen[str]:
    """Start a command; write its process id into the file of the lock."""
    from variant_ai.core.system.child_processes import PARENT_VARIABLE

    options: dict[str, Any] = {}
    if os.name == "posix":
        # A process group of its own, so that Ctrl-C in a terminal reaches it once, through us.
        options = {"start_new_session": True, "pass_fds": (lock.fileno(),)}
    child = subprocess.Popen(
        [*_COMMAND, *words],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        # It ends with this process, in whichever way that ends, and saves before.
        env={**os.environ, PARENT_VARIABLE: str(os.getpid())},
        **options,
    )
    lock.seek(0)
    lock.truncate()
    lock.write(f"{child.pid}\n".encode())
    lock.flush()
    return child
