"""Helpers of the commands on games and stores: options that select games, arguments, opening, copying."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import note, progress
from variant_ai.cli.common.ending import fail
from variant_ai.cli.common.options import (
    FILE,
    load_variant,
    output_option,
    require_new,
    variant_option,
    with_options,
)
from variant_ai.core.system.text_tables import counted

if TYPE_CHECKING:
    from variant_ai.core.data.filters import GameFilter
    from variant_ai.core.data.store.game_store import Store, StoreWriter
    from variant_ai.core.data.store.store_writer import Mode
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.rules.text.notation import Notation

Indices = Sequence[int]


store_argument = click.argument("path", metavar="STORE", type=FILE)
stores_argument = click.argument("paths", metavar="STORE...", type=FILE, nargs=-1, required=True)
new_store_option = output_option("Store to write.", metavar="STORE")
duplicates_option = click.option(
    "--drop-duplicates",
    is_flag=True,
    help="Of games with the same start and moves, keep only the first.",
)
any_variant_option = variant_option(
    required=False, help="Variant that the store must have; by default that of the store."
)


_number = partial(click.option, type=click.IntRange(min=0), metavar="N")
_repeated = partial(click.option, multiple=True)

filter_options = with_options(
    _number(
        "--min-rating", help="Both players rated at least N; games without ratings are dropped."
    ),
    _number(
        "--max-rating", help="Both players rated at most N; games without ratings are dropped."
    ),
    _number("--min-plies", help="At least N plies (half moves)."),
    _number("--max-plies", help="At most N plies."),
    click.option("--since", metavar="DATE", help="Earliest date: 2016, 2016.01 or 2016.01.15."),
    click.option("--until", metavar="DATE", help="Latest date; 2018 includes all of 2018."),
    click.option("--known-result", is_flag=True, help="Drop games without a result (`*`)."),
    _repeated(
        "--result",
        "results",
        metavar="RESULT",
        help="Keep only this result: 1-0, 0-1, 1/2-1/2, *. Repeatable.",
    ),
    _repeated(
        "--ending",
        "endings",
        metavar="KIND",
        help="Keep only games with this ending: checkmate, resignation, time, draw, stalemate, "
        "variant, disconnection, rules, adjudication, normal, aborted, unfinished, other, unknown. "
        "Repeatable.",
    ),
    _repeated(
        "--no-ending",
        "not_endings",
        metavar="KIND",
        help="Drop games with this ending. Repeatable.",
    ),
    _repeated(
        "--player",
        "players",
        metavar="NAME",
        help="Keep only games of this player (`*` and `?` as in file names). Repeatable.",
    ),
    _repeated(
        "--no-player", "not_players", metavar="NAME", help="Drop games of this player. Repeatable."
    ),
    _repeated(
        "--event",
        "events",
        metavar="NAME",
        help="Keep only games of this event (`*`, `?`). Repeatable.",
    ),
    _repeated(
        "--source",
        "sources",
        metavar="NAME",
        help="Keep only games of this source (`*`, `?`). Repeatable.",
    ),
    click.option(
        "--standard-start", is_flag=True, help="Drop games that begin at another position."
    ),
)
"""All conditions of `core.data.filters.GameFilter` as options.

Use: `def command(..., **options)`, then `game_filter(options)`."""


def game_filter(options: dict[str, Any]) -> GameFilter:
    """Return the filter of the options, which are removed from `options`."""
    from dataclasses import fields

    from variant_ai.core.data.filters import GameFilter

    names = [item.name for item in fields(GameFilter)]
    return GameFilter(**{name: options.pop(name) for name in names if name in options})


def command_digest(deciding: object) -> str:
    """Digest by which a command that was stopped recognises its store. deciding: all that decides the
    games, with a `repr` that is the same in every process."""
    return hashlib.blake2b(repr(deciding).encode(), digest_size=16).hexdigest()


def writing_mode(append: bool, replace: bool) -> Mode:
    """Return the mode of a store that is written. Raises UsageError for both options at once."""
    if append and replace:
        raise click.UsageError("--append and --replace exclude each other")
    return "append" if append else "replace" if replace else "new"


def new_writer(
    output: Path,
    parents: Sequence[Store],
    replace: bool,
    conditions: GameFilter | Mapping[str, Any] | None = None,
) -> StoreWriter:
    """Return a writer of a store with games of other stores, and the spec of the first."""
    from variant_ai.core.data.store.game_store import StoreWriter

    require_new(output, replace, [parent.path for parent in parents])
    mode = writing_mode(False, replace)
    return StoreWriter(output, parents[0].spec, mode=mode, parents=parents, conditions=conditions)


def copy_games(writers: Sequence[StoreWriter], parts: Sequence[tuple[Store, Indices]]) -> None:
    """Copy games, each part with its own writer, or all with a single one.

    Ctrl-C undoes all changes: the games still exist, and half a copy is of no use.
    """
    every = list(writers) * len(parts) if len(writers) == 1 else writers
    try:
        with progress() as bar:
            task = bar.add_task("games", total=sum(len(games) for _, games in parts))
            for writer, (store, games) in zip(every, parts, strict=True):
                writer.copy(store, _counted(games, lambda: bar.advance(task)))
    except KeyboardInterrupt:
        for writer in writers:
            writer.abort()
        raise


def _counted(games: Indices, count: Callable[[], None]) -> Iterator[int]:
    for game in games:
        yield game
        count()


def open_store(path: Path, variant: str | None = None, *, quiet: bool = False) -> Store:
    """Open a store, which must be of `variant` if that is given; reports an unfinished shard."""
    from variant_ai.core.data.store.game_store import Store

    store = Store(path, load_variant(variant) if variant else None)
    if store.info.unfinished and not quiet:
        note(f"Note: {store.info.unfinished}.")
    return store


def rules_and_notation(store: Store, name: str) -> tuple[Rules, Notation]:
    """Rules of the store's variant, and a notation by name. Raises UnknownNameError."""
    from variant_ai.plugins import registry

    return registry().rules(store.spec), registry().notation(store.spec, name)


def parse_span(text: str, count: int) -> range:
    """Parse a range of `count` games, numbered from 1: `17`, `1-20`, `1000-`, `-20` (the first 20).

    Returns their indices, from 0.
    """
    first, dash, last = text.strip().partition("-")
    try:
        begin = int(first) if first or not dash else 1
        end = begin if not dash else int(last) if last else count
    except ValueError:
        fail(f"{text!r} is not a range of games; accepted: 17, 1-20, 1000-, -20")
    if not 1 <= begin <= count or end < begin:
        fail(f"there are no games {text} in a store of {counted(count, 'game')}, numbered from 1")
    return range(begin - 1, min(end, count))
