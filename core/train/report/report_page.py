"""A report as one HTML page (`report_page.html.jinja`): chapters of tables, pictures and boards.

The page is a single file without scripts or links to other files; its pictures are embedded.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from variant_ai.core.system.files import write_whole
from variant_ai.core.system.templates import rendered
from variant_ai.core.train.pictures.canvas import Picture, write_pictures
from variant_ai.core.train.run.run_folder import ENVIRONMENT, PICTURES, REPORT, read_object


@dataclass(frozen=True)
class Table:
    """Rows under heads; the first column is text, the others are numbers."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: bool = True
    """True if all columns but the first are right-aligned."""


@dataclass(frozen=True)
class Board:
    """A small picture of a position."""

    png: bytes
    caption: str
    """Text below it; lines are separated by `\\n`."""


@dataclass(frozen=True)
class BoardRow:
    """Boards side by side, such as those of a game; hidden until clicked."""

    title: str
    text: str
    boards: Sequence[Board]


@dataclass(frozen=True)
class Chapter:
    """A part of the page."""

    title: str
    text: str = ""
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    board_rows: Sequence[BoardRow] = ()
    folded: Sequence[tuple[str, str]] = ()
    """(title, preformatted text) of parts that are hidden until clicked."""


class WrittenReport(NamedTuple):
    """The files of a report."""

    page: Path
    pictures: list[Path]


def write_page(
    run: Path, title: str, subtitle: str, chapters: Sequence[Chapter], out: Path | None
) -> WrittenReport:
    """Write the pictures of a run's report into `run/pictures`, and its page to `out` (None:
    `run/report.html`). Raises OSError."""
    shown = [drawn for chapter in chapters for drawn in chapter.pictures]
    pictures = write_pictures(shown, run / PICTURES)
    target = out or run / REPORT
    write_whole(target, page(title, subtitle, chapters).encode())
    return WrittenReport(target, pictures)


def making(run: Path, title: str, settings: str) -> Chapter:
    """The chapter with the settings of a run, and the machine and the packages it ran with."""
    folded = [(title, settings)]
    if (run / ENVIRONMENT).is_file():
        folded.append(("Environment", json.dumps(read_object(run / ENVIRONMENT), indent=2)))
    return Chapter("How it was made", folded=folded)


def page(title: str, subtitle: str, chapters: Sequence[Chapter]) -> str:
    """Render the page."""
    return rendered(
        Path(__file__).parent / "report_page.html.jinja",
        base64=lambda data: base64.b64encode(data).decode("ascii"),
        title=title,
        subtitle=subtitle,
        chapters=chapters,
    )
