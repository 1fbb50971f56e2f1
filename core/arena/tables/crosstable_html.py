"""The table of a tournament as one HTML file: no script, no picture beside it, nothing fetched."""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape

from variant_ai.core.arena.tables.crosstable import Standing, Standings, columns, number, rows

WIDTH, ROW, MARGIN = 780, 28, 44
"""Pixels of the plot: its width, a player's height, the axis below with its words."""
LETTER, LONGEST = 7.5, 44
"""Pixels of a name's letter, at most; letters shown of a name."""
_SHARPEST = 2
"""Decimals of coordinates."""

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 66rem; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .2rem .6rem; border-bottom: 1px solid #ddd; text-align: right; }
td { white-space: nowrap; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
svg { max-width: 100%; height: auto; }
th { border-bottom: 2px solid #888; }
td.name, th.name { text-align: left; }
td.self { background: #eee; }
svg text { font: 13px system-ui, sans-serif; fill: #222; }
@media (prefers-color-scheme: dark) {
  body { background: #1b1b1b; color: #ddd; } svg text { fill: #ddd; } td.self { background: #333; }
  th, td { border-color: #444; }
}
"""


def html(table: Standings, notes: Iterable[str] = ()) -> str:
    """A whole page: the ranking, a plot of the ratings with their 95 % intervals, the cross table
    with points won and lost, and `notes` (settings, machine), a paragraph each."""
    title = escape(table.title or "Match")
    body = [
        f"<h1>{title}</h1>",
        *(f"<p>{escape(note)}</p>" for note in notes),
        _ranking(table),
        plot(table),
        _cross(table),
        f"<p>{table.games} games, {100 * table.draw_ratio:.1f} % drawn; the first player took "
        f"{100 * table.first_score:.1f} % of the points. ± is half the 95 % interval.</p>",
    ]
    if table.ratings is not None and table.ratings.prior:
        body.append(
            "<p>Some players won or lost everything against the rest: the ratings lean on one "
            "drawn game between all pairs.</p>"
        )
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{title}</title>\n'
        f"<style>{_STYLE}</style>\n" + "\n".join(body) + "\n</html>\n"
    )


def plot(table: Standings) -> str:
    """Ratings as points with bars for their intervals: an `<svg>` element."""
    lines = table.lines
    reaches = [line.error if math.isfinite(line.error) else 0.0 for line in lines]
    low = min((line.elo - r for line, r in zip(lines, reaches, strict=True)), default=0.0)
    high = max((line.elo + r for line, r in zip(lines, reaches, strict=True)), default=0.0)
    step = _tick(high - low)
    low, high = step * math.floor(low / step - 0.1), step * math.ceil(high / step + 0.1)
    height = ROW * len(lines)
    label = LETTER * max((len(_shown(line.name)) for line in lines), default=0) + 16

    def x(elo: float) -> float:
        return round(label + (WIDTH - label - 24) * (elo - low) / (high - low), _SHARPEST)

    parts = []
    for tick in range(round(low / step), round(high / step) + 1):
        at = x(tick * step)
        ink = "#8889" if tick == 0 else "#8884"
        parts.append(f'<line x1="{at}" y1="0" x2="{at}" y2="{height}" stroke="{ink}"/>')
        parts.append(
            f'<text x="{at}" y="{height + 17}" text-anchor="middle">'
            f"{_signed(f'{tick * step:g}')}</text>"
        )
    for row, (line, reach) in enumerate(zip(lines, reaches, strict=True)):
        y = ROW * row + ROW // 2
        parts.append(
            f'<text x="{label - 12}" y="{y + 4}" text-anchor="end">'
            f"{escape(_shown(line.name))}</text>"
        )
        left, right = x(line.elo - reach), x(line.elo + reach)
        parts.append(
            f'<line x1="{left}" y1="{y}" x2="{right}" y2="{y}" stroke="#37c" stroke-width="2"/>'
        )
        parts.append(f'<circle cx="{x(line.elo)}" cy="{y}" r="4" fill="#37c"/>')
    parts.append(
        f'<text x="{(label + WIDTH - 24) / 2}" y="{height + 36}" text-anchor="middle">'
        "Elo with 95 % intervals</text>"
    )
    return (
        f'<svg width="{WIDTH}" height="{height + MARGIN}" viewBox="0 0 {WIDTH} {height + MARGIN}" '
        f'role="img" aria-label="Elo with 95 % intervals">{"".join(parts)}</svg>'
    )


def _shown(name: str) -> str:
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def _signed(number: str) -> str:
    """With a minus sign as wide as the plus sign."""
    return "−" + number[1:] if number.startswith("-") else number


def _tick(span: float) -> float:
    """A round distance that gives four to ten ticks."""
    if span <= 0:
        return 10.0
    power = 10.0 ** math.floor(math.log10(span / 4))
    return next(power * n for n in (1, 2, 5, 10) if span / (power * n) <= 8)


def _ranking(table: Standings) -> str:
    heads = columns(table)
    out = [
        '<div class="wide"><table>',
        "<tr>",
        *(_cell("th", head.replace("-", "\u2011"), head == "player") for head in heads),
        "</tr>",
    ]
    for cells in rows(table):
        shown = (c if i == 1 else _signed(c) for i, c in enumerate(cells))
        out += ["<tr>", *(_cell("td", c, i == 1) for i, c in enumerate(shown)), "</tr>"]
    return "".join([*out, "</table></div>"])


def _cross(table: Standings) -> str:
    heads = ["", *(str(line.rank) for line in table.lines)]
    out = ['<div class="wide"><table>', "<tr>", *(_cell("th", head) for head in heads), "</tr>"]
    for line in table.lines:
        out += ["<tr>", _cell("td", f"{line.rank} {line.name}", True)]
        out += [_meeting(line, other) for other in table.lines]
        out.append("</tr>")
    return "".join([*out, "</table></div>"])


def _meeting(line: Standing, other: Standing) -> str:
    if other is line:
        return '<td class="self"></td>'
    tally = line.against.get(other.name)
    if tally is None:
        return "<td></td>"
    hue = round(120 * tally.score)
    share = number(100 * tally.score, ".1f")
    return (
        f'<td style="background: hsl({hue} 60% 50% / .35)" '
        f'title="wins-losses-draws, {share} %">{tally.text}</td>'
    )


def _cell(tag: str, words: str, name: bool = False) -> str:
    kind = ' class="name"' if name else ""
    return f"<{tag}{kind}>{escape(words)}</{tag}>"
