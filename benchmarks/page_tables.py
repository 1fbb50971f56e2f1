"""Tables of measurements in pages of the manual, between two marks that name the script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from variant_ai.core.errors import DataError


def marks(script: str) -> tuple[str, str]:
    """Return the lines between which the tables of a script stand."""
    return f"<!-- written by {script} -->", f"<!-- end of {script} -->"


def replaced(page: str, tables: str, path: Path, script: str) -> str:
    """Return the page with the tables between its two marks. Raises DataError if a mark is missing."""
    first, last = marks(script)
    before, begin, rest = page.partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise DataError(
            f"{path}: the lines {first!r} and {last!r} are missing; the tables go between them"
        )
    return f"{before}{first}\n\n{tables}\n{last}{after}"


def markdown_table(lines: Iterable[Sequence[str]], right: Sequence[bool]) -> str:
    """Return a table. lines: the head, then the rows. right: True for each column that is aligned right."""
    head, *rows = lines
    rule = ["---:" if aligned else "---" for aligned in right]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *rows))
