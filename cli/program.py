"""Entry points of the installed programs. Signal handlers are set before anything else is imported.

Only `os`, `signal` and `sys` are imported before `begin`.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing would take time to import
    from collections.abc import Callable


def begin() -> None:
    """Let a signal end the program at once with one line, until `answer_signals` takes over. Streams
    that are closed (`>&-`) are empty and swallow what is written."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # in this order, for each to get its own number
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _leave)


def _leave(number: int, frame: object) -> None:
    os.write(2, b"Interrupted.\n")
    os._exit(130)


def run_program(program: Callable[[], object]) -> None:
    """Run a program to its end.

    After an interrupt the interpreter is not torn down: threads that compile or run nets may still be
    at work, and crash if it is.
    """
    from variant_ai.cli.common.ending import EXIT_INTERRUPTED, exit_at_once

    try:
        program()
    except SystemExit as end:
        if end.code != EXIT_INTERRUPTED:
            raise
        import atexit
        import contextlib

        atexit._run_exitfuncs()
        with contextlib.suppress(OSError, ValueError, AttributeError):
            sys.stdout.flush()
        exit_at_once(EXIT_INTERRUPTED)


def main() -> None:
    """The program `variant-ai`."""
    begin()
    from variant_ai.cli.main import main as run

    run_program(run)


def engine() -> None:
    """The program `variant-ai-engine`."""
    begin()
    from variant_ai.cli.play.engine import main as run

    run_program(run)
