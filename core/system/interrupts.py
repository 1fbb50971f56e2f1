"""Ctrl-C and equivalent signals: SIGTERM (Slurm, Docker, `kill`) and SIGHUP (a closed terminal).

A program calls `answer_signals` before it imports anything else. From then on a signal ends it at any
moment, with one line of output and exit status 130:

- while it starts: at once, because there is nothing to save yet;
- while a command runs: by KeyboardInterrupt, on which commands save their work. A command that must
  finish something first runs it within `stop_on_signal`: there the first signal only requests a stop,
  the second one raises KeyboardInterrupt, and a third one ends the process;
- while a module is being imported: when the import is done or takes too long, because an exception
  in the middle of an import can turn into any other error or leave half a module behind;
- when the command is over: at once.

Signals within one second count as one: a closing terminal sends two, and torchrun forwards to its
workers a signal that they already got. Only the standard library is imported here.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any

SIGNALS = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
    if hasattr(signal, name)
)
EXIT_INTERRUPTED = 130
TOGETHER = 1.0
"""Seconds within which several signals count as one."""
PATIENCE = 2.0
"""Seconds that a signal waits for the end of an import."""
_SOON = 0.02
_IMPORTING = "<frozen importlib._bootstrap>"


class Interrupt:
    """A request to stop. Calling it returns True if a signal has arrived."""

    def __init__(self) -> None:
        self.requested = False
        self.stops: list[Callable[[], None]] = []
        """Functions that are called as soon as the first signal arrives."""
        self._at = 0.0

    def __call__(self) -> bool:
        return self.requested

    def _answer(self, number: int, frame: FrameType | None) -> None:
        now = _program.latest = time.monotonic()
        if not self.requested:
            self._at = now
            self._request()
        elif now - self._at > TOGETHER:
            self._at = now
            _program.interrupt()

    def _request(self) -> None:
        self.requested = True
        for stop in self.stops:
            stop()


@contextlib.contextmanager
def stop_on_signal() -> Iterator[Interrupt]:
    """Turn the first signal within this context into a request to stop; the second one raises
    KeyboardInterrupt.

    Within another such context, the request reaches that one at the end of this one. Outside the main
    thread this does nothing.
    """
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    before = _handle(interrupt._answer)
    outer, _program.stopping = _program.stopping, interrupt
    try:
        yield interrupt
    finally:
        _program.stopping = outer
        for number, old in before.items():
            signal.signal(number, old)
        if interrupt.requested and outer is not None and not outer.requested:
            outer._at = interrupt._at
            outer._request()


def _handle(handler: Callable[[int, FrameType | None], None]) -> dict[signal.Signals, Any]:
    """Set the handler of all signals and return the previous handlers. A SIGHUP that was ignored at
    the start of the program (`nohup`) stays ignored."""
    before = {}
    for number in SIGNALS:
        old = signal.getsignal(number)
        if not (number == getattr(signal, "SIGHUP", None) and old == signal.SIG_IGN):
            before[number] = signal.signal(number, handler)
    return before


@contextlib.contextmanager
def handlers_kept() -> Iterator[None]:
    """Restore the handlers of signals that a library replaces within this context. Outside the main
    thread this does nothing."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, old in before.items():
                if signal.getsignal(number) != old:
                    signal.signal(number, old)


class _Program:
    """Stage of this process, if it runs one of our programs and not another one that imports us."""

    def __init__(self) -> None:
        self.age = ""
        """"", "starting", "running" or "over"."""
        self.interrupts = 0
        """Number of KeyboardInterrupts raised."""
        self.latest = -TOGETHER
        """Time of the last signal (`time.monotonic`)."""
        self.waiting_since = 0.0
        """Time of a signal that waits for the end of an import; 0 if none waits."""
        self.stopping: Interrupt | None = None
        """That of the innermost `stop_on_signal`."""

    def answer(self, number: int, frame: FrameType | None) -> None:
        if self.age != "running":
            self.leave(message=not self.interrupts)
        now = time.monotonic()
        if _is_importing(frame):
            self.waiting_since = self.waiting_since or now
            if now - self.waiting_since < PATIENCE:
                _again(number)
                return
        self.waiting_since = 0.0
        is_new, self.latest = now - self.latest > TOGETHER, now
        if is_new:
            self.interrupt()

    def interrupt(self) -> None:
        self.interrupts += 1
        if self.interrupts > 2:
            self.leave(message=True)
        raise KeyboardInterrupt

    def leave(self, *, message: bool) -> None:
        with contextlib.suppress(OSError):
            if os.isatty(2):
                os.write(2, b"\x1b[?25h")  # a progress bar may have hidden the cursor
            if message:
                os.write(2, b"Interrupted.\n")
        os._exit(EXIT_INTERRUPTED)


_program = _Program()


def answer_signals() -> None:
    """Handle signals in this process as described in this module; for programs, not for libraries."""
    if _program.age or threading.current_thread() is not threading.main_thread():
        return
    _program.age = "starting"
    _handle(_program.answer)
    atexit.register(_ignore_signals)  # the first one registered is called last
    ordinary = sys.unraisablehook

    def unraisable(arguments: Any) -> None:
        """Send the signal again if its KeyboardInterrupt got lost in a callback from compiled code."""
        if issubclass(arguments.exc_type, KeyboardInterrupt):
            _program.interrupts -= 1
            _program.latest = -TOGETHER
            _again(signal.SIGINT)
        else:
            ordinary(arguments)

    sys.unraisablehook = unraisable


def command_begins() -> None:
    """Mark the start of a command: from here on there may be something to save."""
    if _program.age == "starting":
        _program.age = "running"


def command_is_over() -> None:
    """Mark the end of a command: from here on there is nothing to save."""
    if _program.age:
        _program.age = "over"


def was_interrupted() -> bool:
    """Return True if a signal interrupted this program, which can cause unrelated errors later."""
    return _program.interrupts > 0


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == _IMPORTING:
            return True
        frame = frame.f_back
    return False


def _again(number: int) -> None:
    """Send the signal to this process again, a little later."""
    send: Callable[[int], None] = signal.raise_signal
    main = threading.main_thread().ident
    if main is not None and hasattr(signal, "pthread_kill"):
        # to the main thread, which has to wake up if it waits in a system call
        send = partial(signal.pthread_kill, main)
    timer = threading.Timer(_SOON, send, (number,))
    timer.daemon = True
    timer.start()


def _ignore_signals() -> None:
    """Ignore all signals while the interpreter shuts down."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
