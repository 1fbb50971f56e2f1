"""`variant-ai stats`: statistics of the games of a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import print_facts, print_json, print_table
from variant_ai.cli.common.options import (
    COUNT,
    FILE,
    FOLDER,
    examples,
    json_option,
    notation_option,
)
from variant_ai.cli.common.store_options import (
    any_variant_option,
    filter_options,
    game_filter,
    open_store,
    rules_and_notation,
    store_argument,
)
from variant_ai.core.system.text_tables import counted

if TYPE_CHECKING:
    from variant_ai.core.data.statistics import Count, Numbers, Statistics

BAR = 40
"""Width of the longest bar in characters."""


@click.command(
    epilog=examples(
        "variant-ai stats games.store",
        "variant-ai stats games.store --min-rating 2000 --notation san",
        "variant-ai stats games.store --json",
        "# the same as pictures, with another store for comparison",
        "variant-ai stats games.store --figures pictures --beside others.store",
    )
)
@store_argument
@click.option(
    "--top",
    type=COUNT,
    default=20,
    help="Number of most active players that are listed and counted.",
)
@click.option(
    "--moves",
    type=COUNT,
    default=10,
    help="Number of first moves that are listed.",
)
@click.option(
    "--figures",
    type=FOLDER,
    metavar="FOLDER",
    help="Also draw players, results, ratings, lengths and first moves as PNG.",
)
@click.option(
    "--beside",
    multiple=True,
    type=FILE,
    metavar="STORE",
    help="Another store of the variant, with the same conditions, for comparison in the pictures. "
    "Repeatable.",
)
@notation_option()
@any_variant_option
@filter_options
@json_option
def command(
    path: Path,
    top: int,
    moves: int,
    figures: Path | None,
    beside: tuple[Path, ...],
    notation: str,
    variant: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Describe the games of a store: players, ratings, results, lengths, openings.

    The tables are those of the published data sets. With conditions, only the games that meet them
    are described.
    """
    from variant_ai.core.data.statistics import statistics

    if beside and figures is None:
        raise click.UsageError("--beside requires --figures, the folder of the pictures")
    conditions = game_filter(options)
    store = open_store(path, variant)
    rules, chosen = rules_and_notation(store, notation)

    def write_move(move: int) -> str:
        return chosen.write(rules, rules.position(), move)

    games, dropped = store.select(conditions)
    found = statistics(store, games, top=top, moves=moves, write_move=write_move)
    drawn: list[Path] = []
    if figures is not None:
        from variant_ai.core.train.pictures import write_pictures
        from variant_ai.core.train.pictures.data_set_pictures import DataSet, dataset_pictures

        sets = {path.stem: DataSet.of(store, games, found)}
        for other in beside:
            more = open_store(other)
            more.require(store.spec)
            chosen_games, _ = more.select(conditions)
            which = statistics(more, chosen_games, top=top, moves=moves, write_move=write_move)
            name = other.stem if other.stem not in sets else str(other)
            sets[name] = DataSet.of(more, chosen_games, which)
        drawn = write_pictures(dataset_pictures(sets, rules), figures)
    if as_json:
        head = {"path": str(path), "variant": store.info.variant}
        pictures = {"pictures": drawn} if figures is not None else {}
        print_json(head | asdict(found) | {"left_out": dropped} | pictures)
        return
    _print(found, f"{store.info.title}, {path}", sum(dropped.values()), str(conditions))
    if figures is not None:
        click.echo(f"\n{len(drawn)} pictures in {figures}: {', '.join(p.stem for p in drawn)}")


def _print(found: Statistics, title: str, left_out: int, conditions: str) -> None:
    facts: list[tuple[str, object]] = [("games", f"{found.games:,}")]
    if left_out:
        facts.append(("left out", f"{left_out:,} ({conditions})"))
    facts += [
        ("plies", f"{found.plies_in_all:,}"),
        ("events", f"{found.events:,}"),
        ("players", f"{found.players:,}"),
        ("groups", f"{found.groups:,}"),
        ("sources", f"{found.sources:,}"),
        ("copies of an earlier game", f"{found.copies:,}"),
        ("from another start position", f"{found.other_starts:,}"),
    ]
    searches = found.searches
    if searches.visits or searches.root_values:
        facts += [
            ("positions with visits", f"{searches.visits:,}"),
            ("with root values", f"{searches.root_values:,}"),
            ("that teach a policy", f"{searches.policies:,}"),
            ("that teach a result", f"{searches.results:,}"),
        ]
    print_facts(facts, title=title)
    _table("plies", ["least", "mean", "median", "most", "deviation"], [_numbers(found.plies)])
    _ratings(found)
    _bars("results", found.results)
    _bars("endings", found.endings)
    _bars("time controls", [_named(count) for count in found.time_controls[:12]])
    if found.years:
        first, last = found.years[0].name, found.years[-1].name
        undated = f" ({counted(found.undated, 'game')} without a date)" if found.undated else ""
        _bars(f"years {first} to {last}{undated}", _decades(found.years))
    elif found.games:
        click.echo("\nNo game has a date.")
    _players(found)
    _table(
        "first moves",
        ["move", "games", "share", "score"],
        [
            (
                move.move,
                f"{move.games:,}",
                _percent(move.share),
                None if move.score is None else f"{move.score:.3f}",
            )
            for move in found.first_moves
        ],
        left=["move"],
    )


def _ratings(found: Statistics) -> None:
    if not any(rating.numbers.count for rating in found.ratings.values()):
        click.echo("\nNo game has a rating.")
        return
    rows = [
        (name, f"{rating.numbers.count:,}", _percent(rating.missing), *_numbers(rating.numbers))
        for name, rating in found.ratings.items()
    ]
    _table(
        f"ratings ({_percent(found.rating_missing)} of the games have a missing rating)",
        ["of", "known", "missing", "least", "mean", "median", "most", "deviation"],
        rows,
        left=["of"],
    )


def _players(found: Statistics) -> None:
    if not found.players:
        click.echo("\nNo game has the name of a player.")
        return
    shown = len(found.top_players)
    title = (
        f"players: the most active {shown} in {_percent(found.top_players_share)} of the games, "
        f"the most active fifth ({found.top_fifth_players:,}) in {_percent(found.top_fifth_share)}"
    )
    if found.nameless:
        title += f"; {counted(found.nameless, 'game')} without names are not counted"
    _bars(title, found.top_players)


def _named(count: Count) -> Count:
    return count if count.name else replace(count, name="(unknown)")


def _decades(years: Sequence[Count]) -> list[Count]:
    """Counts of years, by decade if there are many."""
    if len(years) <= 15:
        return list(years)
    made: dict[str, Count] = {}
    for year in years:
        name = f"{year.name[:3]}0s"
        old = made.get(name, replace(year, name=name, games=0, share=0.0))
        made[name] = replace(old, games=old.games + year.games, share=old.share + year.share)
    return list(made.values())


def _numbers(numbers: Numbers) -> tuple[str | None, ...]:
    values = (numbers.least, numbers.mean, numbers.median, numbers.most, numbers.deviation)
    return tuple(map(_number, values))


def _number(value: float | None) -> str | None:
    if value is None:
        return None
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def _percent(share: float) -> str:
    return f"{share:.2%}"


def _table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], left: Sequence[str] = ()
) -> None:
    if rows:
        click.echo()
        print_table(columns, rows, title=title, right=[c for c in columns if c not in left])


def _bars(title: str, counts: Sequence[Count]) -> None:
    most = max((count.games for count in counts), default=0)
    rows = [
        (
            count.name,
            f"{count.games:,}",
            _percent(count.share),
            "█" * round(BAR * count.games / most) if most else "",
        )
        for count in counts
    ]
    _table(title, ["", "games", "share", " "], rows, left=["", " "])
