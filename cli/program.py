"""Entry points of the installed programs: signals are answered before anything else is imported.

Only `os` and `signal` stand above `begin`, which needs to be there as early as can be.
"""

import os
import signal


def begin() -> None:
    """Until `answer_signals` does more, a signal ends the program at once, in one line."""
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
