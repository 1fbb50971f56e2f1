"""One HTML page with everything inside: it opens from a disk, without a network, for ever.

No script, no link to anything outside, pictures as data.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from variant_ai.core.train.pictures.canvas import Picture

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, "DejaVu Sans", sans-serif; color: #1a1a1a; background: #fff;
  max-width: 68rem; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.6rem; margin: 0 0 .3rem; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .5rem; border-bottom: 1px solid #ccc; }
h3 { font-size: 1.02rem; margin: 1.4rem 0 .2rem; }
nav { margin: .6rem 0 0; }
nav a { margin-right: 1rem; color: #005a91; }
table { border-collapse: collapse; margin: .6rem 0; }
caption { text-align: left; font-weight: 600; padding: .2rem 0; }
th, td { padding: .18rem .8rem .18rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid #e4e4e4; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
figure { margin: .8rem 0 1.4rem; }
figure img { max-width: 100%; height: auto; }
figcaption { color: #444; font-size: .92rem; max-width: 52rem; }
pre { background: #f5f5f5; padding: .8rem; overflow-x: auto; font-size: .85rem; }
.tables { display: flex; flex-wrap: wrap; gap: 0 3rem; }
"""


@dataclass(frozen=True)
class Table:
    """Rows under heads; the first column is words, the others are numbers."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: bool = True
    """Whether all columns but the first are right-aligned."""


@dataclass(frozen=True)
class Chapter:
    """A part of the page."""

    title: str
    text: str = ""
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    folded: Sequence[tuple[str, str]] = ()
    """(what it is, text) shown as it is, folded away until asked for."""


def page(title: str, subtitle: str, chapters: Sequence[Chapter]) -> str:
    """The whole page as text."""
    numbered = list(enumerate(chapters, 1))
    links = "\n".join(f'<a href="#c{k}">{escape(c.title)}</a>' for k, c in numbered)
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
        f"<p>{escape(subtitle)}</p>",
        f"<nav>{links}</nav>",
        *(_chapter(k, chapter) for k, chapter in numbered),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _chapter(number: int, chapter: Chapter) -> str:
    parts = [f'<section id="c{number}"><h2>{escape(chapter.title)}</h2>']
    if chapter.text:
        parts.append(f"<p>{escape(chapter.text)}</p>")
    if chapter.tables:
        parts.append('<div class="tables">')
        parts += [_table(table) for table in chapter.tables]
        parts.append("</div>")
    parts += [_figure(shown) for shown in chapter.pictures]
    for what, text in chapter.folded:
        parts.append(
            f"<details><summary>{escape(what)}</summary><pre>{escape(text)}</pre></details>"
        )
    parts.append("</section>")
    return "\n".join(parts)


def _table(table: Table) -> str:
    def kind(column: int) -> str:
        return ' class="n"' if column and table.numbers else ""

    head = "".join(f"<th{kind(k)}>{escape(text)}</th>" for k, text in enumerate(table.heads))
    rows = "\n".join(
        "<tr>" + "".join(f"<td{kind(k)}>{escape(c)}</td>" for k, c in enumerate(row)) + "</tr>"
        for row in table.rows
    )
    caption = f"<caption>{escape(table.title)}</caption>" if table.title else ""
    heads = f"<thead><tr>{head}</tr></thead>" if any(table.heads) else ""
    return f"<table>{caption}{heads}<tbody>\n{rows}\n</tbody></table>"


def _figure(shown: Picture) -> str:
    data = base64.b64encode(shown.png).decode("ascii")
    return (
        f"<h3>{escape(shown.title)}</h3>\n<figure>"
        f'<img alt="{escape(shown.caption)}" src="data:image/png;base64,{data}">'
        f"<figcaption>{escape(shown.caption)}</figcaption></figure>"
    )
