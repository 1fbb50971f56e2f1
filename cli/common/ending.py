"""The end of commands and scripts: exit statuses, errors in one sentence, Ctrl-C, closed pipes."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import NoReturn

import click

from variant_ai.core.system import interrupts

EXIT_ERROR = 1
EXIT_INTERRUPTED = interrupts.EXIT_INTERRUPTED


def fail(message: str) -> NoReturn:
    """End the command with one sentence on stderr and exit status 1."""
    raise CommandError(message)


class CommandError(click.ClickException):
    """One sentence on stderr and exit status 1; every VariantAIError ends as one."""

    exit_code = EXIT_ERROR

    def format_message(self) -> str:
        return " ".join(self.message.split("\n")).strip()


@contextlib.contextmanager
def reported_errors() -> Iterator[None]:
    """Report user errors (VariantAIError, OSError) as one sentence with exit status 1.

    With `VARIANT_AI_DEBUG=1` they keep their traceback.
    """
    from variant_ai.core.errors import SettingError, SpecError, VariantAIError
    from variant_ai.core.system.missing_packages import missing_packages_explained

    if os.environ.get("VARIANT_AI_DEBUG"):
        yield
        return
    try:
        with missing_packages_explained():
            yield
    except (SettingError, SpecError) as error:  # several problems are on several lines
        raise CommandError(str(error).replace("\n", "; ")) from error
    except VariantAIError as error:
        raise CommandError(str(error)) from error
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(_os_message(error)) from error
    except (click.ClickException, click.Abort, click.exceptions.Exit):
        raise
    except Exception as error:
        if isinstance(error, (MemoryError, RuntimeError)) and _is_out_of_memory(error):
            raise CommandError(
                "there is not enough memory; in a training use a smaller --batch, or split it with "
                "--accumulate"
            ) from error
        blame = _blame(error)
        if not blame:
            raise
        raise CommandError(f"{blame} (VARIANT_AI_DEBUG=1 shows the traceback)") from error


def _blame(error: Exception) -> str:
    """Return a sentence about the plugin that failed, if one did and plugins are loaded."""
    loaded = sys.modules.get("variant_ai.plugins.registered")
    return loaded.registry().blame(error) if loaded is not None else ""


def _is_out_of_memory(error: Exception) -> bool:
    """Recognise the errors of numpy, torch and GPU libraries without importing torch."""
    names = {kind.__name__ for kind in type(error).__mro__}
    message = str(error).lower()
    words = ("allocate memory", "out of memory", "alloc_failed")
    return bool(names & {"MemoryError", "OutOfMemoryError"}) or any(
        word in message for word in words
    )


def run_script(main: Callable[[], int | None]) -> NoReturn:
    """Run a program that is no command (`benchmarks/`) and end it like one: user errors in one
    sentence, Ctrl-C without a traceback."""
    interrupts.answer_signals()
    interrupts.command_begins()
    with plain_ends(), reported_errors():
        status = main() or 0
    sys.exit(status)


@contextlib.contextmanager
def plain_ends() -> Iterator[None]:
    """End the program without a traceback after an error, Ctrl-C or a closed pipe."""
    try:
        yield
        sys.stdout.flush()
    except (click.exceptions.Abort, KeyboardInterrupt):
        _interrupted()
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # Python flushes once more at exit, into a closed pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_ERROR)
    except Exception:
        # An interrupt inside compiled code may appear as any error.
        if not interrupts.was_interrupted() or os.environ.get("VARIANT_AI_DEBUG"):
            raise
        _interrupted()
    finally:
        interrupts.command_is_over()


def exit_at_once(status: int) -> NoReturn:
    """End the process without waiting for its threads."""
    sys.stderr.flush()
    os._exit(status)


def _interrupted() -> NoReturn:
    click.echo("Interrupted.", err=True)
    sys.exit(EXIT_INTERRUPTED)


def _os_message(error: OSError) -> str:
    from variant_ai.core.errors import os_reason

    if error.strerror is None:
        return str(error) or type(error).__name__
    names = [os.fspath(n) for n in (error.filename, error.filename2) if isinstance(n, str)]
    return f"{' -> '.join(names)}: {os_reason(error, names[-1])}" if names else error.strerror
