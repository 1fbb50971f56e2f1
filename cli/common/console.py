"""Output of commands: tables, facts, JSON, notes and progress bars."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Literal

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


def program() -> str:
    """Return the command that runs this program again: a path if it is not in PATH."""
    name, called = "variant-ai", sys.argv[0]
    if shutil.which(name) is None and os.path.isfile(called) and name in os.path.basename(called):
        return shlex.quote(os.path.relpath(called))
    return name


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
