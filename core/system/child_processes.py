"""Child processes that end with their parent, even if the parent is killed by SIGKILL.

There are three kinds of children:

- Python processes of this project watch their parent from a thread (`end_with_parent`). `WorkerPool`
  is a process pool of such children.
- A child that only answers requests through a pipe ends when the pipe closes. It only calls
  `leave_signals_to_parent`.
- Other programs do not watch their parent. `guard_child` registers them with a guard, a small Python
  process that waits until our end of a pipe closes and then kills the programs that still run.

Linux can kill children by itself (PR_SET_PDEATHSIG), but it does so when the thread that started them
ends, and it does not reach programs started by a wrapper script.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import multiprocessing.connection
import os
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any, NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""Signals sent to a whole process group at once; only the top process of ours handles them."""
LAST_WORK = 3.0
"""Seconds that a worker of a pool keeps working after SIGTERM: its parent, which got the same signal,
waits for the running tasks. The parent also uses SIGTERM to end workers that hang."""
PARENT_VARIABLE = "VARIANT_AI_PARENT"
"""Environment variable with the process id of the parent that a command must end with."""
SAVING = 60.0
"""Seconds that a command has to save its work after its parent has ended."""
_POLL = 0.3


# --- in the child ------------------------------------------------------------------------------


def end_with_parent(parent: int | None = None, *, grace: float = 0.0) -> None:
    """End this process soon after its parent has ended.

    parent: process id of the parent, passed on so that a parent that ended before this call is
    noticed; default: the current parent. grace: seconds between sending SIGTERM to this process,
    after which a command saves its work, and ending it by force; 0: end at once.
    """
    threading.Thread(
        target=_outlive, args=(parent, grace), name="parent watch", daemon=True
    ).start()


def _outlive(parent: int | None, grace: float) -> None:
    _wait_for_end(parent)
    if grace:
        if sys.platform == "win32":
            signal.raise_signal(signal.SIGTERM)  # `os.kill` ends the process at once there
        else:
            os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(grace)
    os._exit(1)


def _wait_for_end(parent: int | None) -> None:
    """Return when the parent process has ended."""
    spawned_by = multiprocessing.parent_process()
    if spawned_by is not None:
        multiprocessing.connection.wait([spawned_by.sentinel])
        return
    known = os.getppid() if parent is None else parent
    if sys.platform == "win32":
        _wait_on_windows(known)
        return
    with contextlib.suppress(OSError, AttributeError):
        watched = os.pidfd_open(known)  # type: ignore[attr-defined,unused-ignore]  # Linux
        if os.getppid() == known:
            select.select([watched], [], [])
    while os.getppid() == known:
        time.sleep(_POLL)


def _wait_on_windows(parent: int) -> None:
    import _winapi

    synchronise = 0x00100000
    windows: Any = _winapi
    try:
        handle = windows.OpenProcess(synchronise, False, parent)
    except OSError:  # it ended already
        return
    windows.WaitForSingleObject(handle, windows.INFINITE)


def leave_signals_to_parent(last_work: float | None = None) -> None:
    """Ignore Ctrl-C and similar signals in this process: the parent decides what to do.

    last_work: seconds after which SIGTERM ends the process anyway; None: SIGTERM is ignored too.
    """
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    if last_work is not None:

        def end_later(number: int, frame: object) -> None:
            timer = threading.Timer(last_work, os._exit, (1,))
            timer.daemon = True
            timer.start()

        signal.signal(signal.SIGTERM, end_later)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


# --- in the parent -----------------------------------------------------------------------------


@contextlib.contextmanager
def signals_held() -> Iterator[None]:
    """Start children within this context with their signals blocked, so that no signal can break
    their start until they call `leave_signals_to_parent`. Our own signals arrive when the context
    ends."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class WorkerPool(ProcessPoolExecutor):
    """A pool of fresh Python processes that end with this one and leave signals to it.

    Errors of a task know the frames of their process (`frames_of`); those of the initializer are raised
    by the tasks.
    """

    def __init__(
        self, workers: int, initializer: Callable[..., None] | None = None, initargs: Any = ()
    ) -> None:
        context = multiprocessing.get_context("spawn")
        if sys.platform == "win32":
            workers = min(workers, 61)  # what it can wait for at once
        super().__init__(workers, context, _begin_work, (initializer, initargs))

    def submit(
        self, function: Callable[P, T], /, *arguments: P.args, **named: P.kwargs
    ) -> Future[T]:
        with signals_held():  # a worker may be started here
            return super().submit(_work, function, arguments, named)

    def kill(self) -> None:
        """End all workers at once; calls in progress raise BrokenProcessPool."""
        for process in list((self._processes or {}).values()):
            process.kill()


class _Worker:
    """State of a process of a pool."""

    failure: Exception | None = None
    """Error of the initializer."""


def _begin_work(initializer: Callable[..., None] | None, initargs: Any) -> None:
    leave_signals_to_parent(LAST_WORK)
    end_with_parent()
    if initializer is not None:
        try:
            initializer(*initargs)
        except Exception as error:
            _Worker.failure = error


def _work(function: Callable[..., T], arguments: Any, named: dict[str, Any]) -> T:
    try:
        if _Worker.failure is not None:
            raise _Worker.failure
        return function(*arguments, **named)
    except Exception as error:
        if not hasattr(error, _FRAMES):  # an initializer's error is raised by every task
            with contextlib.suppress(AttributeError):
                setattr(error, _FRAMES, frames_of(error))
        raise


_FRAMES = "frames_in_worker"
"""Attribute of an error that was raised in a worker; tracebacks cannot be sent to another process."""


class Frame(NamedTuple):
    """A call that an error passed through."""

    module: str
    file: str
    line: int


def frames_of(error: BaseException) -> list[Frame]:
    """Return the frames of an error, the outermost first; those in a worker of `WorkerPool` come last."""
    own = [
        Frame(str(frame.f_globals.get("__name__", "")), frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    return [*own, *getattr(error, _FRAMES, ())]


# --- other people's programs -------------------------------------------------------------------

_GUARD = """# variant-ai: engines end with the process that started them
import os, signal, sys
for name in ("SIGINT", "SIGTERM", "SIGHUP"):
    if hasattr(signal, name):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
kept = set()
for line in sys.stdin.buffer:
    (kept.add if line[:1] == b"+" else kept.discard)(int(line[1:]))
for number in kept:
    try:
        if hasattr(os, "killpg"):
            os.killpg(number, signal.SIGKILL)
        else:
            os.kill(number, signal.SIGTERM)
    except OSError:
        pass
"""


class _Guard:
    """The guard process of this process, started when the first child is registered."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._kept: set[int] = set()

    def add(self, number: int) -> None:
        """Have a process killed when this one ends, however it ends. `number` is its process id. On
        POSIX its whole group is killed; it must lead that group (`start_new_session`)."""
        with self._lock:
            self._kept.add(number)
            if self._process is None or self._process.poll() is not None:
                self._start()
            else:
                self._write(f"+{number}\n")

    def remove(self, number: int) -> None:
        """Unregister a process, because it has ended."""
        with self._lock:
            if number in self._kept:
                self._kept.discard(number)
                self._write(f"-{number}\n")

    def _start(self) -> None:
        with signals_held():
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _GUARD],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # not in the process group that is killed with this process
                start_new_session=True,
            )
            atexit.register(self._end, self._process)
        self._write("".join(f"+{number}\n" for number in self._kept))

    @staticmethod
    def _end(process: subprocess.Popen[bytes]) -> None:
        """Close our end of the pipe, as the operating system would if we were killed."""
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            process.communicate(timeout=5.0)

    def _write(self, lines: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            os.write(self._process.stdin.fileno(), lines.encode())


_guard = _Guard()
guard_child, release_child = _guard.add, _guard.remove
