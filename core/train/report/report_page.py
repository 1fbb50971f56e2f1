"""A report as one HTML page (`report_page.html.jinja`): chapters of tables, pictures and boards.

The page is a single file without scripts or links to other files; its pictures are embedded.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from variant_ai.core.train.pictures.canvas import Picture


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


def page(title: str, subtitle: str, chapters: Sequence[Chapter]) -> str:
    """Render the page."""
    from jinja2 import Environment, FileSystemLoader

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, keep_trailing_newline=True
    )
    environment.globals["base64"] = lambda data: base64.b64encode(data).decode("ascii")
    template = environment.get_template("report_page.html.jinja")
    return template.render(title=title, subtitle=subtitle, chapters=chapters)
