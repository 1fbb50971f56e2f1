"""The table of a tournament: who stands where, and how each did against each.

`Standings` are made of results and nothing else, so a table can be made again at any time from the
games. Text and CSV are written here, HTML with a plot in `crosstable_html.py`.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from variant_ai.core.arena.tables.elo import Tally, estimate
from variant_ai.core.arena.tables.ratings import Ratings, fit
from variant_ai.core.system.text_tables import fitted

NAME = 32
"""Characters of a player's name that a table always shows."""


@dataclass(frozen=True)
class Standing:
    """One player's line."""

    name: str
    rank: int
    """From 1."""
    elo: float
    """Above the mean of all players; of two players, half their difference."""
    error: float
    """Half the width of its 95 % interval."""
    tally: Tally
    """All games, from the player's view."""
    first: Tally
    """Games in which the player moved first."""
    against: Mapping[str, Tally] = field(default_factory=dict)
    """By opponent."""
    extra: Mapping[str, str] = field(default_factory=dict)
    """Further columns, such as nodes a second."""


@dataclass(frozen=True)
class Standings:
    """All players, best first."""

    lines: tuple[Standing, ...]
    ratings: Ratings | None
    """None before any game."""
    title: str = ""

    @property
    def games(self) -> int:
        return sum(line.first.games for line in self.lines)

    @property
    def draw_ratio(self) -> float:
        return sum((line.first for line in self.lines), Tally()).draw_ratio

    @property
    def first_score(self) -> float:
        """Share of the points that the players who moved first took."""
        return sum((line.first for line in self.lines), Tally()).score


def standings(
    names: Sequence[str],
    results: Sequence[Sequence[Tally]],
    *,
    title: str = "",
    extra: Mapping[str, Mapping[str, str]] | None = None,
) -> Standings:
    """Standings of players by name; `results[i][j]` are the games of i, moving first, against j,
    as i sees them. `extra` has further columns by player."""
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
    lines = tuple(
        Standing(**{**vars(line), "rank": rank}) for rank, line in enumerate(unranked, start=1)
    )
    return Standings(lines, ratings, title)


def columns(table: Standings) -> list[str]:
    """Heads of the columns of `rows`."""
    extra = dict.fromkeys(name for line in table.lines for name in line.extra)
    return ["rank", "player", "Elo", "±", "games", "score %", "W-L-D", "draws %", *extra]


def rows(table: Standings) -> list[list[str]]:
    """A line of text cells for each player; ± is the 95 % interval."""
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
    """The table and who did what against whom, for terminals; ends with a line end."""
    parts = [f"{table.title}\n\n"] if table.title else []
    parts.append(aligned([columns(table), *rows(table)], left={1}, repeated=2))
    if len(table.lines) == 2 and table.games:
        first, second = table.lines
        said = estimate(first.tally)
        parts.append(
            f"\n{first.name} against {second.name}: {first.tally.text}, Elo "
            f"{number(said.elo, '+.1f')} ± {number(said.error, '.1f')}, "
            f"LOS {100 * said.los:.1f} %, draws {100 * first.tally.draw_ratio:.1f} %\n"
        )
    elif table.games:
        parts.extend(_encounters(table))
        heads = ["", *(str(line.rank) for line in table.lines)]
        body = [[f"{line.rank} {line.name}", *_against(table, line)] for line in table.lines]
        parts.append("\n" + aligned([heads, *body], left={0}))
    if table.games:
        parts.append(
            f"\n{table.games} games, {100 * table.draw_ratio:.1f} % drawn; the first player took "
            f"{100 * table.first_score:.1f} % of the points\n"
        )
    if table.ratings is not None and table.ratings.prior:
        parts.append(
            "Some players won or lost everything against the rest: the ratings lean on one drawn "
            "game between all pairs.\n"
        )
    return "".join(parts)


def _encounters(table: Standings) -> Iterator[str]:
    """A line for each pair that met, where these are no more than there are players (gauntlets,
    single matches): seen from the better one."""
    met = [
        (line.name, other.name, line.against[other.name])
        for i, line in enumerate(table.lines)
        for other in table.lines[i + 1 :]
        if other.name in line.against
    ]
    if len(met) <= len(table.lines):
        yield "\n"
        for first, second, tally in met:
            said = estimate(tally)
            elo, error = number(said.elo, "+.1f"), number(said.error, ".1f")
            yield f"{first} against {second}: {tally.text}, Elo {elo} ± {error}\n"


def csv_text(table: Standings) -> str:
    """A line for each player, then a column for each opponent with wins-losses-draws."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [line.name for line in table.lines]
    writer.writerow([*columns(table), *(f"against {name}" for name in names)])
    for line, cells in zip(table.lines, rows(table), strict=True):
        against = (line.against.get(name) for name in names)
        writer.writerow([*cells, *(tally.text if tally else "" for tally in against)])
    return out.getvalue()


def as_json(table: Standings) -> dict[str, object]:
    """The same for `--json`; what is infinite is null."""
    return {
        "title": table.title,
        "games": table.games,
        "draw_ratio": table.draw_ratio,
        "first_score": table.first_score,
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
    """Lines of cells in columns, right-aligned but for the columns in `left`.

    Lines have 100 characters at most: names in `left` are cut to fit, and columns beyond that
    follow below, under the first `repeated` ones again.
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
    """The text in `width` characters: long names often differ at their ends alone."""
    if len(text) <= width:
        return text
    head = width // 3
    return f"{text[:head]}…{text[head + 1 - width :]}"


def number(value: float, form: str) -> str:
    """A number, or `∞` with its sign where it is infinite."""
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
