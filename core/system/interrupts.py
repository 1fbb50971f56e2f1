"""Ctrl-C, and what means the same: SIGTERM (Slurm, Docker, `kill`) and SIGHUP (a terminal closed).

A program calls `answer_signals` before it imports anything else. From then on a signal ends it in one
line, with exit status 130, at any moment:

- while it starts, at once: there is nothing to save yet;
- while a command runs, by KeyboardInterrupt, on which commands keep what they have. One that has
  something to finish first runs it within `stop_on_signal`: there the first signal is only a wish.
  A second signal ends at once what the first one only asked for; a third ends the process;
- while a module is being imported, when that is done or takes long: an exception in the middle of it
  comes out as anything, or leaves half a module behind;
- when the command is over, at once.

Signals within a second are one: a closing terminal sends two, and torchrun passes on to its workers
what they had already. Only the standard library is imported here.
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
"""Seconds within which signals are one."""
PATIENCE = 2.0
"""Seconds that a signal waits for an import to end."""
_SOON = 0.02
_IMPORTING = "<frozen importlib._bootstrap>"


class Interrupt:
    """A signal's wish to stop, and the functions that are called at once when it comes."""

    def __init__(self) -> None:
        self.asked = False
        self.stops: list[Callable[[], None]] = []
        self._at = 0.0

    def __call__(self) -> bool:
        return self.asked

    def _answer(self, number: int, frame: FrameType | None) -> None:
        now = _program.latest = time.monotonic()
        if not self.asked:
            self.asked, self._at = True, now
            for stop in self.stops:
                stop()
        elif now - self._at > TOGETHER:
            self._at = now
            _program.interrupt()


@contextlib.contextmanager
def stop_on_signal() -> Iterator[Interrupt]:
    """Within, the first signal only asks to stop; a second interrupts at once (KeyboardInterrupt).

    In another thread than the main one nothing is asked, and signals do what they did.
    """
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    before = _handle(interrupt._answer)
    try:
        yield interrupt
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _handle(handler: Callable[[int, FrameType | None], None]) -> dict[signal.Signals, Any]:
    """Set the handler of all signals; those of before. A SIGHUP that was ignored when we started
    (`nohup`) stays ignored."""
    before = {}
    for number in SIGNALS:
        old = signal.getsignal(number)
        if not (number == getattr(signal, "SIGHUP", None) and old == signal.SIG_IGN):
            before[number] = signal.signal(number, handler)
    return before


class _Program:
    """Stage of this process, if it is a program of ours and not a library in another one."""

    def __init__(self) -> None:
        self.age = ""
        """"", "starting", "running" or "over"."""
        self.interrupts = 0
        """KeyboardInterrupts raised."""
        self.latest = -TOGETHER
        """When the last signal came (`time.monotonic`)."""
        self.waiting_since = 0.0
        """When a signal came in the middle of an import, 0 if none waits for its end."""

    def answer(self, number: int, frame: FrameType | None) -> None:
        if self.age != "running":
            self.leave(say=not self.interrupts)
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
            self.leave(say=True)
        raise KeyboardInterrupt

    def leave(self, *, say: bool) -> None:
        with contextlib.suppress(OSError):
            if os.isatty(2):
                os.write(2, b"\x1b[?25h")  # a progress bar may have hidden the cursor
            if say:
                os.write(2, b"Interrupted.\n")
        os._exit(EXIT_INTERRUPTED)


_program = _Program()


def answer_signals() -> None:
    """This process is a program of ours: it answers signals as this module says."""
    if _program.age or threading.current_thread() is not threading.main_thread():
        return
    _program.age = "starting"
    _handle(_program.answer)
    atexit.register(_ignore_signals)  # the first one registered is called last
    ordinary = sys.unraisablehook

    def unraisable(said: Any) -> None:
        """An interrupt in a callback out of compiled code goes nowhere: there will be another."""
        if issubclass(said.exc_type, KeyboardInterrupt):
            _program.interrupts -= 1
            _program.latest = -TOGETHER
            _again(signal.SIGINT)
        else:
            ordinary(said)

    sys.unraisablehook = unraisable


def command_begins() -> None:
    """From here on there may be something to save."""
    if _program.age == "starting":
        _program.age = "running"


def command_is_over() -> None:
    """From here on there is nothing to save."""
    if _program.age:
        _program.age = "over"


def was_interrupted() -> bool:
    """True if a signal interrupted this program, which can cause odd errors afterwards."""
    return _program.interrupts > 0


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == _IMPORTING:
            return True
        frame = frame.f_back
    return False


def _again(number: int) -> None:
    """Send the signal to ourselves once more, a little later."""
    send: Callable[[int], None] = signal.raise_signal
    main = threading.main_thread().ident
    if main is not None and hasattr(signal, "pthread_kill"):
        # To the main thread: one that waits in the system must wake up.
        send = partial(signal.pthread_kill, main)
    timer = threading.Timer(_SOON, send, (number,))
    timer.daemon = True
    timer.start()


def _ignore_signals() -> None:
    """The interpreter is being taken apart, and ends by itself."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
