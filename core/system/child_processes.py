"""Child processes that end with their parent, in whatever way it ends: by SIGKILL too.

Three kinds of children, three ways:

- Our own Python processes watch their parent from a thread (`end_with_parent`). `WorkerPool` is a
  process pool of such children.
- A child that only answers questions through a pipe ends when the pipe closes, and calls
  `leave_signals_to_parent` alone.
- Other people's programs know nothing of us. `end_with_us` names them to a guard, a small Python
  process that waits for our end of a pipe to close, and then kills what is still there.

Linux could kill children by itself (PR_SET_PDEATHSIG), but does so when the thread that started them
ends, and does not reach what a wrapper script started.
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
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""Signals that whole groups of processes get at once, and that the first of our processes answers."""
LAST_WORK = 3.0
"""Seconds that a pool's worker still works after a SIGTERM: its parent, which had the same signal,
waits for what is under way. The parent itself uses SIGTERM to end workers that hang."""
PARENT_VARIABLE = "VARIANT_AI_PARENT"
"""Holds the number of the process that a command of ours is to end with."""
SAVING = 60.0
"""Seconds that a command of ours whose parent is gone has to save what it did."""
_POLL = 0.3


# --- in the child ------------------------------------------------------------------------------


def end_with_parent(parent: int | None = None, *, grace: float = 0.0) -> None:
    """End this process soon after its parent has ended.

    parent: the number that the parent is known by to whoever started us, to notice that it ended
    before this call; by default the parent of now. grace: seconds between a SIGTERM to ourselves,
    by which a command saves what it has, and the end by force; 0: at once.
    """
    threading.Thread(
        target=_outlive, args=(parent, grace), name="parent watch", daemon=True
    ).start()


def _outlive(parent: int | None, grace: float) -> None:
    _wait_for_end(parent)
    if grace:
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
    """What Ctrl-C and its kin mean, the parent decides; this process hears nothing of them.

    last_work: seconds after which a SIGTERM ends the process all the same; None: it does not.
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
    """A child that is started within begins with its signals held back: none can break its start,
    until it calls `leave_signals_to_parent`. Ours come when the context ends."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class WorkerPool(ProcessPoolExecutor):
    """A pool of fresh Python processes that end with this one and leave signals to it."""

    def __init__(
        self, workers: int, initializer: Callable[..., None] | None = None, initargs: Any = ()
    ) -> None:
        context = multiprocessing.get_context("spawn")
        super().__init__(workers, context, _begin_work, (initializer, initargs))

    def submit(
        self, function: Callable[P, T], /, *arguments: P.args, **named: P.kwargs
    ) -> Future[T]:
        with signals_held():  # a worker may be started here
            return super().submit(function, *arguments, **named)


def _begin_work(initializer: Callable[..., None] | None, initargs: Any) -> None:
    leave_signals_to_parent(LAST_WORK)
    end_with_parent()
    if initializer is not None:
        initializer(*initargs)


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
    """The guard of this process, started when there is something to guard."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._kept: set[int] = set()

    def add(self, number: int) -> None:
        with self._lock:
            self._kept.add(number)
            if self._process is None or self._process.poll() is not None:
                self._start()
            else:
                self._say(f"+{number}\n")

    def remove(self, number: int) -> None:
        with self._lock:
            if number in self._kept:
                self._kept.discard(number)
                self._say(f"-{number}\n")

    def _start(self) -> None:
        with signals_held():
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _GUARD],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # Not in the group that is killed with this process.
                start_new_session=True,
            )
            atexit.register(self._end, self._process)
        self._say("".join(f"+{number}\n" for number in self._kept))

    @staticmethod
    def _end(process: subprocess.Popen[bytes]) -> None:
        """Our end of the pipe closes, as it would without us."""
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            process.communicate(timeout=5.0)

    def _say(self, lines: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            os.write(self._process.stdin.fileno(), lines.encode())

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid


_guard = _Guard()


def end_with_us(number: int) -> None:
    """Kill the process of this number when ours ends, in whatever way; on POSIX with its group,
    which it must lead (`start_new_session`)."""
    _guard.add(number)


def ended(number: int) -> None:
    """A process named to `end_with_us` is no more."""
    _guard.remove(number)


def guard_pid() -> int | None:
    """Number of the process that guards, None where nothing was to be guarded."""
    return _guard.pid
