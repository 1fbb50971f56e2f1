"""Compiling missing functions in several processes at once.

The first process that needs a missing function starts a worker for each other processor, seven at
most. All of them work on the same tasks without a coordinator: each takes a task whose callees are
compiled and that no other process has locked, and of these the one with the longest chain of callers.
So no process holds a lock while it waits, and a killed process only leaves its own task undone. The
workers end when everything is compiled, or with the process that started them.
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

import variant_ai.core.system.compilation_progress as compilation
from variant_ai.core.jit import functions
from variant_ai.core.jit.machine_code import code_folder
from variant_ai.core.jit.signatures import called_by, signature_of, size_of
from variant_ai.core.system.child_processes import (
    end_with_parent,
    leave_signals_to_parent,
    signals_held,
)
from variant_ai.core.system.processors import processors

MOST_WORKERS = 7
"""Workers besides the process that waits. More would not help: the longest chain of callers takes an
eighth of the total time."""
FIXED_SIZE = 200
"""Bytes of bytecode that take as long to compile as an empty function."""
PAUSE = 0.01
"""Seconds between two checks for functions compiled by other processes."""
COLLECT_EVERY = 100_000
"""New objects between two garbage collections."""
COUNT_EVERY = 0.25
"""Seconds between two progress reports."""
PATIENCE = 30.0
"""Seconds without progress of any process after which this one compiles alone."""

SEARCH = "variant_ai.core.search."
"""Package that most commands need."""

_CORE = Path(__file__).resolve().parents[1]
_DECORATED = re.compile(r"^@(?:njit|borrowing)$", re.MULTILINE)
_SERVE = "import sys; sys.path[:] = {path!r}; from variant_ai.core.jit.parallel_compilation import serve; serve({parent}, {modules!r})"


@dataclass(eq=False, repr=False)
class Task:
    """A function to compile."""

    dispatcher: Any
    signature: tuple[Any, ...]
    file: Path
    callees: list[Task] = field(default_factory=list)
    callers: list[Task] = field(default_factory=list)
    size: int = 0
    """Bytes of bytecode, including the helpers compiled into it."""
    _done: bool = False

    def __repr__(
        self,
    ) -> str:  # without callees and callers, whose representation would have no end
        return f"Task({self.dispatcher.py_func.__qualname__})"

    def is_done(self) -> bool:
        """Return True if the machine code is on disk."""
        self._done = self._done or self.file.exists()
        return self._done

    def is_ready(self) -> bool:
        """Return True if all callees are compiled."""
        return all(callee.is_done() for callee in self.callees)

    @functools.cached_property
    def closure(self) -> set[Task]:
        """The task and all its direct and indirect callees."""
        return {self}.union(*(callee.closure for callee in self.callees))

    @functools.cached_property
    def urgency(self) -> int:
        """Size of the longest chain of callers that waits for this task; a measure of time."""
        return FIXED_SIZE + self.size + max((caller.urgency for caller in self.callers), default=0)

    def compile(self) -> None:
        """Compile the function and save its machine code."""
        # on an error, a process that calls the function gets it again and shows it
        with contextlib.suppress(Exception):
            self.dispatcher.compile(self.signature)
        self._done = True  # for this process, even if its file could not be written


class _State:
    """State of this process."""

    def __init__(self) -> None:
        self.tasks: dict[Any, Task] = {}
        self.known = 0
        """Number of compiled functions when `tasks` was filled."""
        self.working = False
        """True while this process compiles tasks; it then compiles other missing functions alone."""
        self.has_started = False
        """True if this process has started workers, or is one."""


_state = _State()


def compile_missing(dispatcher: Any, signature: Any) -> FileLock | None:
    """Compile the missing machine code of a function, together with other processes.

    Returns None if its file exists now, or cannot be made this way. Otherwise the caller must
    compile the function itself and then release the returned lock.
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
    """Compile all missing functions of modules and of their imports (None: of the core), sharing the
    work with other processes."""
    for name in modules_with_kernels() if modules is None else modules:
        importlib.import_module(name)
    tasks = _by_urgency(set(_tasks().values()))
    if all(task.is_done() for task in tasks):
        return
    _work(tasks, None)


def _work(tasks: Sequence[Task], target: Task | None) -> FileLock | None:
    """Compile tasks, next to other processes, until the target (None: every task) is done.

    When the target is next, its lock is returned: the caller compiles it.
    """
    if not _state.has_started and processors() > 1:
        _state.has_started = True
        _start_workers(min(processors() - 1, MOST_WORKERS))
    _state.working = True
    try:
        with _less_garbage_collection():
            return _work_on([task for task in tasks if not task.is_done()], target)
    finally:
        _state.working = False


@contextlib.contextmanager
def _less_garbage_collection() -> Iterator[None]:
    """Collect garbage less often: a compiler creates many objects that stay, and searching them for
    garbage again and again would cost about 6 % of its time."""
    before = gc.get_threshold()
    gc.set_threshold(COLLECT_EVERY, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _work_on(left: list[Task], target: Task | None) -> FileLock | None:
    advanced, counted = time.monotonic(), 0.0
    compilation.report(*progress())
    while not (target.is_done() if target else not left):
        task, lock = _next(left)
        if task is None or lock is None:
            time.sleep(PAUSE)
        elif task is target:
            return lock
        else:
            try:
                task.compile()
            finally:
                lock.release()
        before, left = len(left), [task for task in left if not task.is_done()]
        if len(left) < before:
            advanced = time.monotonic()
        if time.monotonic() > counted + COUNT_EVERY:
            counted = time.monotonic()
            compilation.report(*progress())
        if time.monotonic() - advanced > PATIENCE:
            return None
    return None


def _next(tasks: list[Task]) -> tuple[Task | None, FileLock | None]:
    """Return the first task that can be started now, and its lock."""
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
    """Acquire the lock of a task and return it; None if another process has it.

    On a file system without locks every process gets it, and two may compile the same function,
    which does no harm.
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
    """Tasks of all functions in imported modules, by dispatcher."""
    if _state.known == len(functions.compiled):
        return _state.tasks
    tasks: dict[Any, Task] = {}
    for dispatcher in functions.compiled:
        if (signature := signature_of(dispatcher.py_func)) is not None:
            file = dispatcher._cache.path(signature, dispatcher.targetctx.codegen())
            tasks[dispatcher] = Task(dispatcher, signature, file)
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
    """Modules of the core with compiled functions, and their number of such functions."""
    found = {}
    for path in sorted(_CORE.rglob("*.py")):
        if count := len(_DECORATED.findall(path.read_text(encoding="utf-8"))):
            found[path] = count
    return found


def modules_with_kernels() -> list[str]:
    """Names of all modules of the core with compiled functions."""
    root = _CORE.parent
    return [
        f"variant_ai.{path.relative_to(root).with_suffix('').as_posix().replace('/', '.')}"
        for path in _sources()
    ]


def progress() -> tuple[int, int]:
    """Return the number of functions that are compiled, by any process, and of all functions."""
    version = f".py{sys.version_info.major}{sys.version_info.minor}{getattr(sys, 'abiflags', '')}."
    done = 0
    for path, count in _sources().items():
        files = code_folder(path).rglob(f"*{version}*.nbc")
        done += min(count, len(list(files)))
    return done, sum(_sources().values())


def is_under_way() -> bool:
    """Return True while other processes still compile for this one and keep the machine busy."""
    done, total = progress() if compilation.is_shared() else (0, 0)
    return done < total


# --- workers -----------------------------------------------------------------------------------------


def _slots() -> Iterator[FileLock]:
    """Locks of the workers that may run on this machine's cache, in order."""
    base = code_folder(Path(functions.__file__)).parent
    for number in range(MOST_WORKERS):
        yield FileLock(base / f"compiling-{number}.lock")


def _take_slot(most: int) -> FileLock | None:
    for _, slot in zip(range(most), _slots(), strict=False):
        with contextlib.suppress(Timeout, OSError, NotImplementedError):
            slot.acquire(timeout=0)
            return slot
    return None


def _start_workers(most: int) -> None:
    """Start workers until `most` run on this machine's cache."""
    if getattr(sys, "frozen", False):
        return  # sys.executable is not a Python interpreter
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
            # waits for its end, or it would stay as a zombie process
            threading.Thread(target=worker.wait, name="compiler", daemon=True).start()


def serve(parent: int, modules: list[str]) -> None:
    """Run a worker: compile until nothing is left or the parent has ended.

    modules: modules that the parent has imported; their functions are compiled first, then those of
    the search, then the rest.
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
