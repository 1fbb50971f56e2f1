"""Text for terminals: columns of tables that fit, numbers with their noun."""

from __future__ import annotations

from collections.abc import Sequence

WIDTH = 100
"""Characters per line, if there is no terminal."""

Group = list[tuple[int, int]]
"""Columns printed side by side: their numbers and widths."""


def counted(n: int, noun: str) -> str:
    """Return a number with its noun in singular or plural: `1 game`, `2,000 games`, `3 plies`.

    noun: singular; plurals in -s, -es and -ies are known.
    """
    return f"{n:,} {noun if n == 1 else _plural(noun)}"


def _plural(noun: str) -> str:
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("ch", "sh", "s", "x")) else "s")


def fitted(
    natural: Sequence[int],
    least: Sequence[int],
    *,
    gap: int,
    repeated: int = 1,
    width: int = WIDTH,
) -> list[Group]:
    """Arrange columns in groups of at most `width` characters, to be printed one below the other.

    natural, least: preferred width of each column, and its smallest readable width. gap: characters
    between two columns. The first `repeated` columns begin every group. The widest columns are
    narrowed first. A group that cannot fit is wider than `width`.
    """
    heads = list(range(min(repeated, len(natural))))
    rest = list(range(len(heads), len(natural)))
    groups: list[list[int]] = [heads[:]]
    for column in rest:
        tried = [*groups[-1], column]
        if len(groups[-1]) > len(heads) and _total([least[c] for c in tried], gap) > width:
            groups.append([*heads, column])
        else:
            groups[-1] = tried
    return [_narrowed(group, natural, least, gap, width) for group in groups]


def _narrowed(
    group: Sequence[int], natural: Sequence[int], least: Sequence[int], gap: int, width: int
) -> Group:
    widths = {column: natural[column] for column in group}
    while _total(list(widths.values()), gap) > width:
        wide = [column for column in group if widths[column] > least[column]]
        if not wide:
            break
        widths[max(wide, key=lambda column: widths[column])] -= 1
    return list(widths.items())


def _total(widths: Sequence[int], gap: int) -> int:
    return sum(widths) + gap * (len(widths) - 1)
