"""Compile missing functions in several processes at once.

A search with a net needs some eighty functions, half a minute of one processor. The process that
first misses one starts others like it, one for each further processor. All of them work through the
same tasks, and each takes by itself the next that it can: one whose callees are compiled and that
nobody else has locked, of these the one with the longest way behind it to the functions that nobody
calls. So no process holds a lock while it waits, and one that is killed leaves nothing behind but
its task. The others end when all is compiled, or with the process that started them.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from variant_ai.core.jit import functions
from variant_ai.core.jit.cache import cache_folder
from variant_ai.core.jit.signatures import called_by, signature_of, size_of
from variant_ai.core.system import compilation_progress as compilation
from variant_ai.core.system.child_processes import (
    end_with_parent,
    leave_signals_to_parent,
    signals_held,
)
from variant_ai.core.system.processors import processors

MOST_WORKERS = 7
"""Beside the process that waits; the longest chain of callers takes as long as an eighth of all."""
FIXED_SIZE = 200
"""Bytes of bytecode that take as long to compile as an empty function."""
PAUSE = 0.01
"""Seconds between two looks at what others have compiled."""
COLLECT_EVERY = 100_000
"""New objects between two collections of garbage."""
LOOK_EVERY = 0.25
"""Seconds between two counts of all that is compiled."""
PATIENCE = 30.0
"""Seconds without any progress of anybody after which a process compiles alone."""

SEARCH = "variant_ai.core.search."
"""Package that most commands need."""

_CORE = Path(__file__).resolve().parents[1]
_DECORATED = re.compile(r"^@(?:njit|borrowing)$", re.MULTILINE)
_SERVE = "import sys; sys.path[:] = {path!r}; from variant_ai.core.jit.crew import serve; serve({parent}, {modules!r})"


@dataclass(eq=False)
class Task:
    """A function to be compiled."""

    dispatcher: Any
    signature: tuple[Any, ...]
    file: Path
    callees: list[Task] = field(default_factory=list)
    callers: list[Task] = field(default_factory=list)
    size: int = 0
    """Of its bytecode, with that of the helpers that are compiled into it."""
    _done: bool = False

    def is_done(self) -> bool:
        """True if its machine code is on disk."""
        self._done = self._done or self.file.exists()
        return self._done

    def is_ready(self) -> bool:
        """True if nothing that it calls has to be compiled first."""
        return all(callee.is_done() for callee in self.callees)

    @functools.cached_property
    def closure(self) -> set[Task]:
        """The task and all that it calls, directly or not."""
        return {self}.union(*(callee.closure for callee in self.callees))

    @functools.cached_property
    def urgency(self) -> int:
        """Size of the longest chain of callers that waits for it, a measure of time."""
        return FIXED_SIZE + self.size + max((caller.urgency for caller in self.callers), default=0)

    def compile(self) -> None:
        """Compile and save it."""
        # a process that calls the function meets the error itself, and shows it
        with contextlib.suppress(Exception):
            self.dispatcher.compile(self.signature)
        self._done = True  # for this process, even if its file could not be written


class _State:
    """Of this process."""

    def __init__(self) -> None:
        self.tasks: dict[Any, Task] = {}
        self.known = 0
        """Compiled functions that `tasks` was made of."""
        self.working = False
        """True while this process compiles a task; other functions that it misses it compiles alone."""
        self.has_started = False


_state = _State()


def bring(dispatcher: Any, signature: Any) -> FileLock | None:
    """Have the missing machine code of a function compiled, and work along until it is.

    Returns None when its file is there, or when it cannot be had this way; otherwise it is this
    process's turn to compile it: the lock says so to the others and is released afterwards.
    """
    if _state.working:
        return None
    task = _tasks().get(dispatcher)
    if task is None or task.signature != tuple(getattr(signature, "args", signature)):
        return None
    if task.is_done():  # but could not be read
        return None
    others = set(_tasks().values()) - task.closure
    return _work([*_by_urgency(task.closure), *_by_urgency(others)], task)


def compile_all(modules: Iterable[str] | None = None) -> None:
    """Compile all functions of modules and of their imports (None: of the core) that are not on disk
    yet, sharing the work with other processes."""
    for name in modules_with_kernels() if modules is None else modules:
        importlib.import_module(name)
    tasks = _by_urgency(set(_tasks().values()))
    if all(task.is_done() for task in tasks):
        return
    _work(tasks, None)


def _work(tasks: Sequence[Task], wanted: Task | None) -> FileLock | None:
    """Compile one task after another, beside others, until the wanted one is done, or all are.

    Returns the lock of the wanted one when it is next: who asked for it compiles it.
    """
    if not _state.has_started and processors() > 1:
        _state.has_started = True
        _start_workers(min(processors() - 1, MOST_WORKERS))
    _state.working = True
    try:
        with _less_garbage_collection():
            return _work_on([task for task in tasks if not task.is_done()], wanted)
    finally:
        _state.working = False


@contextlib.contextmanager
def _less_garbage_collection() -> Iterator[None]:
    """A compiler makes many objects that live: looking through them again and again for garbage
    would cost about 6 % of its time."""
    before = gc.get_threshold()
    gc.set_threshold(COLLECT_EVERY, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _work_on(left: list[Task], wanted: Task | None) -> FileLock | None:
    moved, looked = time.monotonic(), 0.0
    compilation.report(*progress())
    while not (wanted.is_done() if wanted else not left):
        task, lock = _next(left)
        if task is None or lock is None:
            time.sleep(PAUSE)
        elif task is wanted:
            return lock
        else:
            try:
                task.compile()
            finally:
                lock.release()
        before, left = len(left), [task for task in left if not task.is_done()]
        if len(left) < before:
            moved = time.monotonic()
        if time.monotonic() > looked + LOOK_EVERY:
            looked = time.monotonic()
            compilation.report(*progress())
        if time.monotonic() - moved > PATIENCE:
            return None
    return None


def _next(tasks: list[Task]) -> tuple[Task | None, FileLock | None]:
    """The first task that can be begun now, locked."""
    for task in tasks:
        if task.is_ready() and not task.is_done():
            lock = _lock(task.file)
            if lock is None:
                continue
            if not task.is_done():
                return task, lock
            lock.release()
    return None, None


def _lock(file: Path) -> FileLock | None:
    """The lock of a task, which this process has now; None if somebody else has it.

    On a file system without locks nobody has it: two may compile the same, and nothing is wrong.
    """
    lock = FileLock(f"{file}.lock")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        return None
    except (OSError, NotImplementedError):
        pass
    return lock


# --- tasks ---------------------------------------------------------------------------------------


def _tasks() -> dict[Any, Task]:
    """By dispatcher, of all functions of the modules that are imported."""
    if _state.known == len(functions.compiled):
        return _state.tasks
    tasks: dict[Any, Task] = {}
    for dispatcher in functions.compiled:
        if (signature := signature_of(dispatcher.py_func)) is not None:
            tasks[dispatcher] = Task(dispatcher, signature, dispatcher._cache.path)
    for task in tasks.values():
        task.size = size_of(task.dispatcher)
        task.callees = [tasks[other] for other in called_by(task.dispatcher) if other in tasks]
        for callee in task.callees:
            callee.callers.append(task)
    _state.tasks, _state.known = tasks, len(functions.compiled)
    return tasks


def _by_urgency(tasks: set[Task]) -> list[Task]:
    return sorted(tasks, key=lambda task: -task.urgency)


# --- everything, whether imported or not ------------------------------------------------------------


@functools.cache
def _sources() -> dict[Path, int]:
    """Modules of the core with compiled functions, and how many these are."""
    found = {}
    for path in sorted(_CORE.rglob("*.py")):
        if count := len(_DECORATED.findall(path.read_text(encoding="utf-8"))):
            found[path] = count
    return found


def modules_with_kernels() -> list[str]:
    """Names of the modules of the core that have compiled functions."""
    root = _CORE.parent
    return [
        f"variant_ai.{path.relative_to(root).with_suffix('').as_posix().replace('/', '.')}"
        for path in _sources()
    ]


def progress() -> tuple[int, int]:
    """Functions compiled by anybody, and all there are."""
    version = f".py{sys.version_info.major}{sys.version_info.minor}."
    done = 0
    for path, count in _sources().items():
        files = cache_folder(path).rglob(f"*{version}*.nbc")
        done += min(count, len(list(files)))
    return done, sum(_sources().values())


def is_under_way() -> bool:
    """True while other processes still compile for this one: the machine is not quiet."""
    done, total = progress() if compilation.is_shared() else (0, 0)
    return done < total


# --- workers -----------------------------------------------------------------------------------------


def _slots() -> Iterator[FileLock]:
    """A lock for each worker that may be at work on this machine's cache, in order."""
    base = cache_folder(Path(functions.__file__)).parent
    for number in range(MOST_WORKERS):
        yield FileLock(base / f"compiling-{number}.lock")


def _take_slot(most: int) -> FileLock | None:
    for _, slot in zip(range(most), _slots(), strict=False):
        with contextlib.suppress(Timeout, OSError, NotImplementedError):
            slot.acquire(timeout=0)
            return slot
    return None


def _start_workers(most: int) -> None:
    """Start workers until there are `most` on this machine's cache."""
    if getattr(sys, "frozen", False):
        return  # our executable is no Python
    free = []
    for _ in range(most):
        if (slot := _take_slot(most)) is not None:
            free.append(slot)
    for slot in free:
        slot.release()
    modules = [name for name in modules_with_kernels() if name in sys.modules]
    code = _SERVE.format(path=sys.path, parent=os.getpid(), modules=modules)
    for _ in free:
        with contextlib.suppress(OSError), signals_held():
            worker = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            # takes note of its end, or it would stay in the list of processes
            threading.Thread(target=worker.wait, name="compiler", daemon=True).start()


def serve(parent: int, modules: list[str]) -> None:
    """A worker's life: compile until nothing is left or the parent is gone.

    modules: those that the parent has imported; their functions come first, then the search's.
    """
    leave_signals_to_parent()
    end_with_parent(parent)
    slot = _take_slot(min(processors() - 1, MOST_WORKERS))
    if slot is not None:
        _state.has_started = True  # workers start no others
        everything = modules_with_kernels()
        for names in (modules, [n for n in everything if SEARCH in n], everything):
            compile_all(names)
        slot.release()
