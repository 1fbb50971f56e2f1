"""Shared parts of the commands: options, tables, progress bars, and the end of the program.

Nothing heavy is imported here at module level, because every `--help` imports this file. Commands
import numpy, torch and the core inside their functions.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar

import click
from click.core import ParameterSource

from variant_ai.core.system import interrupts

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from variant_ai.core.spec.schema import VariantSpec

F = TypeVar("F", bound=Callable[..., Any])

EXIT_ERROR = 1
EXIT_INTERRUPTED = interrupts.EXIT_INTERRUPTED


def program() -> str:
    """Return the command that runs this program again: a path if it is not in PATH."""
    name, called = "variant-ai", sys.argv[0]
    if shutil.which(name) is None and os.path.isfile(called) and name in os.path.basename(called):
        return shlex.quote(os.path.relpath(called))
    return name


# --- help and options --------------------------------------------------------------------------

PATH = click.Path(path_type=Path)
FILE = click.Path(path_type=Path, dir_okay=False)
EXISTING_FILE = click.Path(path_type=Path, dir_okay=False, exists=True)
FOLDER = click.Path(path_type=Path, file_okay=False)
COUNT = click.IntRange(min=1)
"""Types of options."""


def examples(*lines: str) -> str:
    """Return the `epilog` of a command with its examples, one per line.

    Use: `@click.command(epilog=examples("variant-ai spec show NAME"))`. A line that starts with
    `#` is a comment on the next line.
    """
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


class FiniteRange(click.FloatRange):
    """A number in a range; `inf` and `nan` are rejected."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


class NetPath(click.Path):
    """A net that exists, or `packaged` (see `Registry.net`)."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, exists=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from variant_ai.core.spec.catalogue import PACKAGED

        if str(value) == PACKAGED:
            return Path(value)
        return super().convert(value, param, ctx)


def variant_option(
    *, required: bool = True, help: str = "Variant: a name, or the path of a YAML spec."
) -> Callable[[F], F]:
    """Add `-V/--variant NAME`, passed to the command as `variant: str` (see `load_variant`)."""
    return click.option(
        "-V",
        "--variant",
        "variant",
        metavar="NAME",
        required=required,
        help=help,
        shell_complete=_complete_variant,
    )


def _complete_variant(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    from variant_ai.plugins import registry

    return sorted(name for name in registry().variants if name.startswith(incomplete))


def with_options(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Add several options to a command, in the order in which its help lists them."""

    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
"""`--json`, passed to the command as `as_json: bool`; print with `print_json`."""

seed_option = click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), default=0, help="Seed of all random numbers."
)
"""`--seed N`, passed to the command as `seed: int`."""


def reject_given(names: Iterable[str], reason: str) -> None:
    """Raise UsageError if the command was given one of its parameters `names`, such as `as_json`.

    reason: follows the option, as in `has no effect with --elo`.
    """
    for param in click.get_current_context().command.params:
        if param.name in names and was_given(param.name):
            raise click.UsageError(f"{next(o for o in param.opts if o[:2] == '--')} {reason}")


def was_given(name: str) -> bool:
    """Return true if the command was given its parameter of that name on the command line."""
    source = click.get_current_context().get_parameter_source(name)
    return source == ParameterSource.COMMANDLINE


def load_variant(name_or_path: str) -> VariantSpec:
    """Return the spec of `-V`: a registered name or a YAML file. Raises UnknownNameError, SpecError."""
    from variant_ai.plugins import registry

    return registry().variant(name_or_path)


# --- output ------------------------------------------------------------------------------------


def console(*, stderr: bool = False) -> Console:
    """Return a rich console that neither wraps nor cuts lines if output goes to a file or pipe."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 10_000
    return Console(file=stream, width=width, highlight=False, soft_wrap=not stream.isatty())


GAP = 3
"""Characters between the columns of a table."""
NARROW = 14
"""Least width of a column of text, or of the head of a column of numbers."""


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    title: str = "",
    right: Iterable[str] = (),
) -> None:
    """Print a table on stdout; the columns named in `right` are right-aligned.

    `None` is printed as an empty cell; rich's markup in cells has no effect. Lines are no longer
    than those of the terminal, or 100 characters without one: text is wrapped, numbers never, and
    columns that do not fit follow in a second table with the first column repeated.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from variant_ai.core.system.text_tables import WIDTH, fitted

    aligned = [name in set(right) for name in columns]
    cells = [["" if cell is None else str(cell) for cell in row] for row in rows]
    natural, least = _widths(columns, cells, aligned)
    out = console()
    width = out.width if sys.stdout.isatty() else WIDTH
    with out.capture() as capture:
        if title:
            out.print(Text(title, style="bold"))
        for number, group in enumerate(fitted(natural, least, gap=GAP, width=width)):
            if number:
                out.print()
            table = Table(box=box.SIMPLE, pad_edge=False, show_edge=False)
            for column, wide in group:
                justify: Literal["left", "right"] = "right" if aligned[column] else "left"
                table.add_column(
                    Text(columns[column]), justify=justify, overflow="fold", width=wide
                )
            for row in cells:
                table.add_row(*(Text(row[column]) for column, _ in group))
            out.print(table)
    for line in capture.get().splitlines():
        click.echo(line.rstrip())


def _widths(
    columns: Sequence[str], cells: Sequence[Sequence[str]], aligned: Sequence[bool]
) -> tuple[list[int], list[int]]:
    """Natural width of each column, and the least width at which it is readable."""
    from rich.cells import cell_len

    natural, least = [], []
    for column, (head, numbers) in enumerate(zip(columns, aligned, strict=True)):
        body = max((cell_len(row[column]) for row in cells), default=0)
        natural.append(max(cell_len(head), body, 1))
        least.append(
            min(natural[-1], max(body if numbers else NARROW, min(cell_len(head), NARROW)))
        )
    return natural, least


def print_facts(facts: Iterable[tuple[str, object]], *, title: str = "") -> None:
    """Print names and values on stdout, aligned, one pair per line."""
    listed = [(name, "" if value is None else str(value)) for name, value in facts]
    width = max((len(name) for name, _ in listed), default=0)
    if title:
        click.echo(title)
    for name, value in listed:
        click.echo(f"{name:<{width}}  {value}".rstrip())


def print_json(value: object) -> None:
    """Print one JSON document on stdout; paths become text, numpy scalars become numbers."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False, default=_jsonable))


def _jsonable(value: Any) -> Any:
    from pydantic_core import to_jsonable_python

    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if is_dataclass(value) and not isinstance(value, type):  # sets in it are sorted, too
        return {each.name: getattr(value, each.name) for each in fields(value)}
    return to_jsonable_python(value, fallback=lambda scalar: scalar.tolist())


def note(text: str) -> None:
    """Print a line for the user on stderr; stdout is for data.

    A stderr that nobody reads any more (`2>&1 | head`) does not end the command: it may be in the
    middle of work that is worth more than the line.
    """
    with contextlib.suppress(OSError):
        click.echo(text, err=True)


@contextlib.contextmanager
def progress(*, quiet: bool = False) -> Iterator[Progress]:
    """Show progress with rate and remaining time on stderr, if that is a terminal.

    Use: `with progress() as bar: task = bar.add_task("games", total=n); bar.advance(task)`.
    A task's field `note` (`bar.update(task, note="3 skipped")`) appears at the end of its line.
    """
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Task as RichTask
    from rich.text import Text

    class Rate(TextColumn):
        def render(self, task: RichTask) -> Text:
            return Text(f"{task.speed:,.1f}/s" if task.speed else "")

    class Note(TextColumn):
        def render(self, task: RichTask) -> Text:
            return Text(str(task.fields.get("note", "")))

    display = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(""),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        Note(""),
        console=console(stderr=True),
        disable=quiet or not sys.stderr.isatty(),
        transient=False,
    )
    with display:
        yield display


# --- errors and the end of the program ---------------------------------------------------------


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
    from variant_ai.core.errors import SpecError, VariantAIError
    from variant_ai.core.system.missing_packages import missing_packages_explained

    if os.environ.get("VARIANT_AI_DEBUG"):
        yield
        return
    try:
        with missing_packages_explained():
            yield
    except SpecError as error:  # several problems are on several lines
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
