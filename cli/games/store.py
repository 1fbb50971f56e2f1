"""`variant-ai store`: the group of commands on stores, and `store show`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import print_facts, print_json, print_table
from variant_ai.cli.common.ending import fail
from variant_ai.cli.common.options import examples, json_option, notation_option
from variant_ai.cli.common.store_options import (
    Indices,
    any_variant_option,
    open_store,
    parse_span,
    rules_and_notation,
    store_argument,
)
from variant_ai.cli.games.store_label import label
from variant_ai.cli.games.store_make import filter_, merge, split
from variant_ai.cli.games.store_text import export, verify
from variant_ai.cli.train.mate_options import mates
from variant_ai.core.system.text_tables import counted

if TYPE_CHECKING:
    from variant_ai.core.data.game_record import GameRecord
    from variant_ai.core.data.store.game_store import Run, Store

LISTED_SOURCES = 10
_UNLEARNT = {0: "teaches nothing", 1: "no result", 2: "no policy", 3: ""}
"""By `GameRecord.trains`."""


@click.group(
    epilog=examples(
        "variant-ai store show games.store",
        "variant-ai store filter games.store --min-rating 2000 -o strong.store",
        "variant-ai store export games.store -o games.pgn",
    )
)
def command() -> None:
    """Show, filter, merge, split, label, export or verify game stores, or find their mates in one."""


@command.command(
    epilog=examples(
        "variant-ai store show games.store",
        "# games 1 to 20 as a list, and one game with its moves",
        "variant-ai store show games.store --games 1-20",
        "variant-ai store show games.store --game 17 --notation san",
    )
)
@store_argument
@click.option(
    "--games", "span", metavar="RANGE", help="List games: 17, 1-20, 1000-; numbered from 1."
)
@click.option(
    "--game",
    type=int,
    metavar="N",
    help="Show one game with its moves, numbered from 1; -1 is the last.",
)
@notation_option()
@any_variant_option
@json_option
def show(
    path: Path,
    span: str | None,
    game: int | None,
    notation: str,
    variant: str | None,
    as_json: bool,
) -> None:
    """Show the contents and history of a store, or its games."""
    if span is not None and game is not None:
        raise click.UsageError("--games and --game exclude each other")
    store = open_store(path, variant)
    if game is not None:
        _show_game(store, game, notation, as_json)
    elif span is not None:
        _list_games(store, parse_span(span, len(store)), as_json)
    else:
        _show_store(store, as_json)


def _show_store(store: Store, as_json: bool) -> None:
    import numpy as np

    info, roots = store.info, store.root_values
    valued = 0 if roots is None else int((~np.isnan(roots)).sum())
    bytes_per_ply = info.bytes / info.plies if info.plies else None
    values = {
        **asdict(info),
        "bytes_per_ply": bytes_per_ply,
        "content_hash": store.content_hash,
        "plies_with_root_values": valued,
        "closed": not info.unfinished,
    }
    if as_json:
        print_json(values)
        return
    per_ply = f", {bytes_per_ply:.2f} a ply" if bytes_per_ply else ""
    facts: list[tuple[str, object]] = [
        ("store", info.path),
        ("variant", f"{info.variant} ({info.title})"),
        ("games", f"{info.games:,}"),
        ("plies", f"{info.plies:,}"),
        ("bytes", f"{info.bytes:,}{per_ply}"),
        ("shards", f"{info.shards:,}"),
    ]
    if info.games_with_visits:
        searched = counted(info.plies_with_visits, "ply")
        facts.append(("visits", f"of {searched} of {counted(info.games_with_visits, 'game')}"))
    if valued:
        facts.append(("root values", f"of {counted(valued, 'ply')}"))
    hashes = ("format", "rules_hash", "spec_hash", "content_hash")
    facts += [(name.replace("_", " "), values[name]) for name in hashes]
    for number, run in enumerate(info.runs):
        name = "written" if len(info.runs) == 1 else f"written {number + 1}"
        facts.append((name, f"by {run.tool}"))
        facts += [("  from", source) for source in run.sources[:LISTED_SOURCES]]
        if len(run.sources) > LISTED_SOURCES:
            facts.append(("", f"and {len(run.sources) - LISTED_SOURCES:,} more"))
        facts += _conditions(run)
    print_facts(facts)


def _conditions(run: Run) -> list[tuple[str, object]]:
    """Conditions of the games of a run, and of the stores that they were copied from."""
    from variant_ai.core.data.filters import conditions_text

    facts: list[tuple[str, object]] = []
    for parent in run.parents:
        facts.append(("  from store", f"{parent.content_hash}, {counted(parent.games, 'game')}"))
        for earlier in parent.runs:
            facts += [(f"  {name}", value) for name, value in _conditions(earlier)]
    if run.conditions:
        facts.append(("  conditions", conditions_text(run.conditions)))
    facts += [("  dropped", f"{count:,} {why}") for why, count in run.dropped.items()]
    if run.interrupted:
        facts.append(("  ended", "by an interrupt, before the end of its sources"))
    return facts


def _list_games(store: Store, games: Indices, as_json: bool) -> None:
    listed = set(games)
    rows = [
        (i + 1, game, int(plies))
        for i, (game, plies) in enumerate(zip(store.facts(), store.lengths.tolist(), strict=True))
        if i in listed
    ]
    if as_json:
        print_json([{"game": i, "plies": plies, **_values(game)} for i, game, plies in rows])
        return
    print_table(
        ["game", "first player", "second player", "result", "plies", "date", "event"],
        [
            (
                i,
                _player(game.white, game.white_elo),
                _player(game.black, game.black_elo),
                game.result,
                plies,
                game.date,
                game.event,
            )
            for i, game, plies in rows
        ],
        right=["game", "plies"],
    )


def _player(name: str, rating: int | None) -> str:
    return f"{name or '?'} ({rating})" if rating is not None else name or "?"


def _values(game: GameRecord) -> dict[str, Any]:
    """Fields of a game that are not empty, except moves and visits."""
    left_out = ("moves", "visits")
    return {
        name: value
        for name, value in asdict(game).items()
        if name not in left_out and value not in (None, "", {}, [])
    }


def _show_game(store: Store, number: int, notation: str, as_json: bool) -> None:
    from variant_ai.core.data.game_text import move_texts, visit_texts

    if not 1 <= abs(number) <= len(store):
        fail(
            f"{store.path} has no game {number}; it has {counted(len(store), 'game')}, numbered from 1"
        )
    index = number - 1 if number > 0 else len(store) + number
    rules, chosen = rules_and_notation(store, notation)
    game = store.game(index)
    texts = move_texts(rules, chosen, game)
    if as_json:
        values = {"game": index + 1, "plies": game.plies, **_values(game)}
        values |= {"notation": chosen.name, "moves": texts}
        if game.visits is not None:
            values["visits"] = visit_texts(rules, chosen, game)
        print_json(values)
        return
    hidden = ("variant", "scores", "clocks", "root_values", "trains", "comments", "tags")
    facts = ((n.replace("_", " "), v) for n, v in _values(game).items() if n not in hidden)
    print_facts(facts)
    print_facts(game.tags.items())
    click.echo()
    first = int(rules.position(game.start_fen)[0]["ply"])
    last = game.plies - 1
    columns = (game.scores, game.clocks, game.root_values, game.trains)
    if all(column is None for column in columns) and game.comments.keys() <= {last}:
        lines = _in_pairs(texts, first)
        end = game.comments.get(last, "")
    else:
        lines, end = _annotated(game, texts, first), ""
    for line in lines:
        click.echo(line)
    click.echo(f"{game.result}  {end}".rstrip())


def _in_pairs(texts: list[str], first: int) -> Iterator[str]:
    """Yield lines with the moves of both players; `first` is the ply of the first move."""
    cells = ["..."] * (first % 2) + texts
    width = max(map(len, cells), default=0)
    for at in range(0, len(cells), 2):
        number = first // 2 + at // 2 + 1
        yield f"{number:>4}. {'  '.join(f'{cell:<{width}}' for cell in cells[at : at + 2])}".rstrip()


def _score_text(score: int) -> str:
    """Centipawns, or the moves to mate: `+35`, `#-2`."""
    from variant_ai.core.search.report import moves_to_mate

    mate = moves_to_mate(score)
    return f"{score:+d}" if mate is None else f"#{mate:+d}"


def _annotated(game: GameRecord, texts: list[str], first: int) -> Iterator[str]:
    """Yield lines with a move, its score and root value (of the mover), clock, what of the position
    must not be learnt, and comment."""
    if -1 in game.comments:
        yield game.comments[-1]
    scores, clocks = (values or [None] * game.plies for values in (game.scores, game.clocks))
    roots = game.root_values or [None] * game.plies
    unlearnt = [_UNLEARNT[bits] for bits in game.trains] if game.trains else [""] * game.plies
    for ply, text in enumerate(texts):
        number, side = divmod(first + ply, 2)
        count = f"{number + 1}." if side == 0 else f"{number + 1}..." if ply == 0 else ""
        score, clock = scores[ply], clocks[ply]
        value = "" if score is None else _score_text(score)
        left = "" if clock is None else f"{clock / 1000:.1f} s"
        root, comment = roots[ply], game.comments.get(ply, "")
        if game.root_values is not None:
            value = f"{value:>7} {'' if root is None else f'{root:+.4f}':>7}"
        rest = "  ".join(filter(None, (unlearnt[ply], comment)))
        yield f"{count:>6} {text:<8} {value:>7} {left:>9}  {rest}".rstrip()


for _subcommand in (filter_, merge, split, label, export, verify, mates):
    command.add_command(_subcommand)
