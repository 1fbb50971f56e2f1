"""Table of a tournament: ranking and cross table as text, CSV, JSON, and one HTML file with a plot.

`Standings` depend only on results, so a table can be made from the games at any time.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from variant_ai.core.arena.tables.elo import Ratings, Tally, estimate, fit
from variant_ai.core.system.templates import rendered
from variant_ai.core.system.text_tables import counted, fitted

FOLDER = Path(__file__).parent

NAME = 32
"""Characters of a player's name that are always shown."""
WIDTH, ROW, MARGIN = 780, 28, 44
"""Pixels of the plot: its width, the height of a player, the axis below."""
LETTER, LONGEST = 7.5, 44
"""Pixels of a letter, at most; letters shown of a name."""
_DECIMALS = 2
"""Decimals of coordinates."""


@dataclass(frozen=True)
class Standing:
    """Line of one player."""

    name: str
    rank: int
    """Counted from 1."""
    elo: float
    """Above the mean of all players; for two players, half their difference."""
    error: float
    """Half the width of its 95 % interval."""
    tally: Tally
    """All games, from the player's point of view."""
    first: Tally
    """Games in which the player moved first."""
    against: Mapping[str, Tally] = field(default_factory=dict)
    """By opponent."""
    extra: Mapping[str, str] = field(default_factory=dict)
    """Other columns, such as nodes per second."""


@dataclass(frozen=True)
class Standings:
    """All players, best first."""

    lines: tuple[Standing, ...]
    ratings: Ratings | None
    """None before any game."""
    title: str = ""

    @property
    def tally(self) -> Tally:
        """All games, from the point of view of the players who moved first."""
        return sum((line.first for line in self.lines), Tally())

    @property
    def games(self) -> int:
        return self.tally.games


def standings(
    names: Sequence[str],
    results: Sequence[Sequence[Tally]],
    *,
    title: str = "",
    extra: Mapping[str, Mapping[str, str]] | None = None,
) -> Standings:
    """Compute standings. results: `results[i][j]` are the games of i, moving first, against j, from
    i's point of view. extra: other columns by player."""
    played = any(tally.games for row in results for tally in row)
    ratings = fit(results) if played else None
    size = range(len(names))
    unranked = []
    for i, name in enumerate(names):
        against = {names[j]: results[i][j] + results[j][i].turned for j in size if j != i}
        unranked.append(
            Standing(
                name=name,
                rank=0,
                elo=float(ratings.elo[i]) if ratings else 0.0,
                error=ratings.error(i) if ratings else math.inf,
                tally=sum(against.values(), Tally()),
                first=sum((results[i][j] for j in size if j != i), Tally()),
                against={other: tally for other, tally in against.items() if tally.games},
                extra=dict((extra or {}).get(name, {})),
            )
        )
    unranked.sort(key=lambda line: (-line.elo, -line.tally.points))
    lines = tuple(replace(line, rank=rank) for rank, line in enumerate(unranked, start=1))
    return Standings(lines, ratings, title)


def columns(table: Standings) -> list[str]:
    """Headings of the columns of `rows`."""
    extra = dict.fromkeys(name for line in table.lines for name in line.extra)
    return ["rank", "player", "Elo", "±", "games", "score %", "W-L-D", "draws %", *extra]


def rows(table: Standings) -> list[list[str]]:
    """Cells of each player's line; ± is half the 95 % interval."""
    extra = columns(table)[8:]
    return [
        [
            str(line.rank),
            line.name,
            number(line.elo, "+.1f"),
            number(line.error, ".1f"),
            str(line.tally.games),
            f"{100 * line.tally.score:.1f}",
            line.tally.text,
            f"{100 * line.tally.draw_ratio:.1f}",
            *(line.extra.get(name, "") for name in extra),
        ]
        for line in table.lines
    ]


def text(table: Standings) -> str:
    """Ranking and cross table for terminals.

    The column Elo is the rating, a fit to the games of all players (`elo.fit`). Lines "A against B"
    have another Elo: the difference of the two, estimated from their games alone (`elo.estimate`).
    With two players the column shows half of the difference for each.
    """
    parts = [f"{table.title}\n\n"] if table.title else []
    parts.append(aligned([columns(table), *rows(table)], left={1}, repeated=2))
    if table.games:
        halves = ": for two, half of their difference" if len(table.lines) == 2 else ""
        parts.append(f"Elo is relative to the mean of the players{halves}.\n")
    if len(table.lines) == 2 and table.games:
        first, second = table.lines
        parts.append(
            f"\n{_encounter(first.name, second.name, first.tally)}, "
            f"LOS {100 * estimate(first.tally).los:.1f} %, "
            f"draws {100 * first.tally.draw_ratio:.1f} %\n"
        )
    elif table.games:
        parts.extend(_encounters(table))
        heads = ["", *(str(line.rank) for line in table.lines)]
        body = [[f"{line.rank} {line.name}", *_against(table, line)] for line in table.lines]
        parts.append("\n" + aligned([heads, *body], left={0}))
    if table.games:
        parts.append(f"\n{_summary(table)}\n")
    if table.ratings is not None and table.ratings.prior:
        parts.append(PRIOR_NOTE + "\n")
    return "".join(parts)


PRIOR_NOTE = (
    "Some players won all, lost all or played none of their games against the others: the ratings include "
    "one drawn game between all pairs."
)


def _summary(table: Standings) -> str:
    return (
        f"{counted(table.games, 'game')}, {100 * table.tally.draw_ratio:.1f} % drawn; the first player won "
        f"{100 * table.tally.score:.1f} % of the points"
    )


def _encounter(first: str, second: str, tally: Tally) -> str:
    found = estimate(tally)
    elo, error = number(found.elo, "+.1f"), number(found.error, ".1f")
    return f"{first} against {second}: {tally.text}, Elo {elo} ± {error}"


def _encounters(table: Standings) -> Iterator[str]:
    """A line for each pair that met, if there are no more pairs than players (gauntlets); from the
    better player's point of view."""
    met = [
        (line.name, other.name, line.against[other.name])
        for i, line in enumerate(table.lines)
        for other in table.lines[i + 1 :]
        if other.name in line.against
    ]
    if len(met) <= len(table.lines):
        yield "\n"
        for first, second, tally in met:
            yield _encounter(first, second, tally) + "\n"


def csv_text(table: Standings) -> str:
    """CSV with a line for each player, and a column for each opponent with wins-losses-draws."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [line.name for line in table.lines]
    writer.writerow([*columns(table), *(f"against {name}" for name in names)])
    for line, cells in zip(table.lines, rows(table), strict=True):
        against = (line.against.get(name) for name in names)
        writer.writerow([*cells, *(tally.text if tally else "" for tally in against)])
    return out.getvalue()


def as_json(table: Standings) -> dict[str, object]:
    """The table for `--json`; infinite numbers are null."""
    return {
        "title": table.title,
        "games": table.games,
        "draw_ratio": table.tally.draw_ratio,
        "first_score": table.tally.score,
        "prior": bool(table.ratings and table.ratings.prior),
        "players": [
            {
                "rank": line.rank,
                "name": line.name,
                "elo": _finite(line.elo),
                "error": _finite(line.error),
                "wins": line.tally.wins,
                "losses": line.tally.losses,
                "draws": line.tally.draws,
                "score": line.tally.score,
                "against": {name: tally.text for name, tally in line.against.items()},
                **line.extra,
            }
            for line in table.lines
        ],
    }


def aligned(cells: Sequence[Sequence[str]], *, left: set[int], repeated: int = 1) -> str:
    """Align cells in columns: to the left for the columns in `left`, else to the right.

    Lines have at most 100 characters: names in `left` are shortened to fit, and the other columns
    follow below, after the first `repeated` ones again.
    """
    natural = [max(map(len, column)) for column in zip(*cells, strict=True)]
    least = [min(width, NAME) if i in left else width for i, width in enumerate(natural)]
    parts = []
    for group in fitted(natural, least, gap=2, repeated=repeated):
        lines = []
        for row in cells:
            words = (
                _cut(row[i], width).ljust(width) if i in left else row[i].rjust(width)
                for i, width in group
            )
            lines.append("  ".join(words).rstrip() + "\n")
        parts.append("".join(lines))
    return "\n".join(parts)


def _cut(text: str, width: int) -> str:
    """Shorten a text in the middle: long names often differ only at their ends."""
    if len(text) <= width:
        return text
    head = width // 3
    return f"{text[:head]}…{text[head + 1 - width :]}"


def number(value: float, form: str) -> str:
    """Format a number; infinite ones are `∞` with their sign."""
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return format(value, form)


def _against(table: Standings, line: Standing) -> list[str]:
    tallies = (line.against.get(other.name) for other in table.lines)
    return [
        "·" if other is line else (tally.text if tally else "")
        for other, tally in zip(table.lines, tallies, strict=True)
    ]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


# --- HTML --------------------------------------------------------------------------------------


def html(table: Standings, notes: Iterable[str] = ()) -> str:
    """A page without scripts or other files: ranking, plot of the ratings with their 95 %
    intervals, cross table. notes: paragraphs at the top."""
    return rendered(
        FOLDER / "crosstable.html.jinja",
        signed=_signed,
        number=number,
        table=table,
        notes=notes,
        columns=columns(table),
        rows=rows(table),
        summary=_summary(table),
        prior_note=PRIOR_NOTE if table.ratings is not None and table.ratings.prior else "",
        plot=plot(table),
    )


def plot(table: Standings) -> str:
    """Plot ratings as points with bars for their intervals: an `<svg>` element."""
    lines = table.lines
    reaches = [line.error if math.isfinite(line.error) else 0.0 for line in lines]
    low = min((line.elo - r for line, r in zip(lines, reaches, strict=True)), default=0.0)
    high = max((line.elo + r for line, r in zip(lines, reaches, strict=True)), default=0.0)
    step = _tick(high - low)
    low, high = step * math.floor(low / step - 0.1), step * math.ceil(high / step + 0.1)
    names = [_cut(line.name, LONGEST) for line in lines]
    label = LETTER * max(map(len, names), default=0) + 16

    def x(elo: float) -> float:
        return round(label + (WIDTH - label - 24) * (elo - low) / (high - low), _DECIMALS)

    ticks = [step * number for number in range(round(low / step), round(high / step) + 1)]
    bars = [
        (name, x(line.elo - reach), x(line.elo), x(line.elo + reach))
        for name, line, reach in zip(names, lines, reaches, strict=True)
    ]
    return rendered(
        FOLDER / "rating_plot.svg.jinja",
        signed=_signed,
        width=WIDTH,
        row=ROW,
        height=ROW * len(lines),
        margin=MARGIN,
        label=label,
        middle=(label + WIDTH - 24) / 2,
        ticks=[(x(tick), f"{tick:g}") for tick in ticks],
        bars=bars,
    )


def _signed(number: str) -> str:
    """Replace a hyphen by a minus sign, which is as wide as a plus sign."""
    return "−" + number[1:] if number.startswith("-") else number


def _tick(span: float) -> float:
    """A round step that gives four to ten ticks."""
    if span <= 0:
        return 10.0
    power = 10.0 ** math.floor(math.log10(span / 4))
    return next(power * n for n in (1, 2, 5, 10) if span / (power * n) <= 8)
