"""Entry points of the installed programs. Signal handlers are set before anything else is imported.

Only `os` and `signal` are imported before `begin`.
"""

import os
import signal


def begin() -> None:
    """Let a signal end the program at once with one line, until `answer_signals` takes over."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _leave)


def _leave(number: int, frame: object) -> None:
    os.write(2, b"Interrupted.\n")
    os._exit(130)


def main() -> None:
    """The program `variant-ai`."""
    begin()
    from variant_ai.cli.main import main as run

    run()


def engine() -> None:
    """The program `variant-ai-engine`."""
    begin()
    from variant_ai.cli.play.engine import main as run

    run()
