"""What the commands on game stores share: arguments, opening, ranges of games, copying."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import fail, load_variant, note, progress, variant_option

if TYPE_CHECKING:
    from variant_ai.core.data.filters import GameFilter
    from variant_ai.core.data.store.game_store import Store, StoreWriter
    from variant_ai.core.data.store.store_writer import Mode
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.rules.text.notation import Notation

Indices = Sequence[int]


class StorePath(click.Path):
    def __init__(self) -> None:
        super().__init__(dir_okay=False, path_type=Path)


store_argument = click.argument("path", metavar="STORE", type=StorePath())
output_option = click.option(
    "-o", "--output", type=StorePath(), required=True, metavar="STORE", help="Store to write."
)
replace_option = click.option(
    "--replace", is_flag=True, help="Take the place of a store that exists."
)
duplicates_option = click.option(
    "--drop-duplicates", is_flag=True, help="Of games with the same start and moves keep the first."
)
any_variant_option = variant_option(
    required=False, help="Variant the store must be of; by default what it says of itself."
)


def new_writer(
    output: Path,
    parents: Sequence[Store],
    replace: bool,
    conditions: GameFilter | Mapping[str, Any] | None = None,
) -> StoreWriter:
    """A writer of a store made of others, whose spec it takes from the first."""
    from variant_ai.core.data.store.game_store import StoreWriter

    if output.exists() and not replace:
        fail(f"{output} exists already; --replace takes its place")
    mode: Mode = "replace" if replace else "new"
    return StoreWriter(output, parents[0].spec, mode=mode, parents=parents, conditions=conditions)


def copy_games(writers: Sequence[StoreWriter], parts: Sequence[tuple[Store, Indices]]) -> None:
    """Copy games, each part by the writer beside it (or all by the only one).

    Ctrl-C undoes the writing: half a copy of games that are all there still helps nobody.
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
    """The store, refused if it is of another variant than named; says what was torn off."""
    from variant_ai.core.data.store.game_store import Store

    store = Store(path, load_variant(variant) if variant else None)
    if store.info.unfinished and not quiet:
        note(f"Note: {store.info.unfinished}.")
    return store


def rules_and_notation(store: Store, name: str) -> tuple[Rules, Notation]:
    """Rules of the store's variant and the notation named. Raises UnknownNameError."""
    from variant_ai.cli.common.notation_options import load_notation
    from variant_ai.plugins import registry

    return registry().rules(store.spec), load_notation(store.spec, name)


def parse_span(text: str, count: int) -> range:
    """Games `17`, `0-19`, `1000-`, `-20` (the first 21) of `count`. Fails in words."""
    first, dash, last = text.strip().partition("-")
    try:
        begin = int(first) if first else 0
        end = begin if not dash else int(last) if last else count - 1
    except ValueError:
        fail(f"{text!r} is no range of games; accepted: 17, 0-19, 1000-")
    if begin >= count or end < begin:
        fail(f"there are no games {text} in a store of {count}; they count from 0")
    return range(begin, min(end, count - 1) + 1)
