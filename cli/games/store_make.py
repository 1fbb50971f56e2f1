"""`variant-ai store filter`, `merge` and `split`: new stores from existing ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import print_json, print_table
from variant_ai.cli.common.ending import fail
from variant_ai.cli.common.options import (
    FOLDER,
    FiniteRange,
    examples,
    json_option,
    output_option,
    reject_given,
    replace_option,
    require_new,
    seed_option,
)
from variant_ai.cli.common.store_options import (
    Indices,
    copy_games,
    duplicates_option,
    filter_options,
    game_filter,
    new_store_option,
    new_writer,
    open_store,
    store_argument,
    stores_argument,
)
from variant_ai.core.system.text_tables import counted

if TYPE_CHECKING:
    from variant_ai.core.data.store.game_store import Store, StoreWriter


@click.command(
    "filter",
    epilog=examples(
        "# the conditions of the published data sets",
        "variant-ai store filter games.store --min-rating 2000 --no-ending aborted -o strong.store",
        "variant-ai store filter games.store --min-rating 1615 --min-plies 20 -o amateur.store",
        "variant-ai store filter games.store --player 'Hu *' --since 1990 -o hu.store",
    ),
)
@store_argument
@new_store_option
@filter_options
@duplicates_option
@replace_option
@json_option
def filter_(
    path: Path, output: Path, drop_duplicates: bool, replace: bool, as_json: bool, **options: Any
) -> None:
    """Keep the games that meet all conditions.

    They are written to another store; the original store is not changed. If no game meets them,
    nothing is written and the command fails.
    """
    from variant_ai.core.data.store.stored_moves import SeenGames

    conditions = game_filter(options)
    store = open_store(path)
    kept, dropped = store.select(conditions)
    games: Indices = kept.tolist()
    if drop_duplicates:
        chosen, games = games, SeenGames().new_of(store, games)
        dropped |= {"duplicate": len(chosen) - len(games)} if len(games) < len(chosen) else {}
    if not games:
        require_new(output, replace, [path])
        reasons = ", ".join(f"{n:,} {why}" for why, n in _ordered(dropped))
        fail(f"no game of {path} meets the conditions ({reasons or 'it has no games'})")
    writer = new_writer(output, [store], replace, conditions)
    _copy(writer, [(store, games)], dropped, as_json)


@click.command(
    epilog=examples(
        "variant-ai store merge 2007.store 2008.store -o both.store",
        "variant-ai store merge --drop-duplicates *.store -o all.store",
        "# repair a store that was not closed; an unfinished shard is dropped",
        "variant-ai store merge unclosed.store -o repaired.store",
    )
)
@stores_argument
@new_store_option
@duplicates_option
@replace_option
@json_option
def merge(
    paths: tuple[Path, ...], output: Path, drop_duplicates: bool, replace: bool, as_json: bool
) -> None:
    """Join stores of one variant.

    Their games are written to another store, in the order of the stores.
    """
    from variant_ai.core.data.store.stored_moves import SeenGames

    stores = [open_store(path) for path in paths]
    for store in stores[1:]:
        store.require(stores[0].spec)
    parts: list[tuple[Store, Indices]] = [(store, range(len(store))) for store in stores]
    if drop_duplicates:
        seen = SeenGames()
        parts = [(store, seen.new_of(store)) for store in stores]
    copies = sum(len(store) - len(games) for store, games in parts)
    dropped = {"duplicate": copies} if copies else {}
    _copy(new_writer(output, stores, replace), parts, dropped, as_json)


@click.command(
    epilog=examples(
        "# 5 % of the games for validation: parts/train.store, parts/validation.store",
        "variant-ai store split games.store -o parts",
        "variant-ai store split games.store --by group --validation 0.1 --test 0.1 -o parts",
        "variant-ai store split games.store --by year --validation-on 2008 --test-on 2009 -o parts",
    )
)
@store_argument
@output_option(
    "Folder for train.store, validation.store and test.store; created if missing.",
    type=FOLDER,
    metavar="FOLDER",
)
@click.option(
    "--by",
    default="game",
    metavar="KEY",
    help="Games that stay together: game (its copies), group, year or source.",
)
@click.option(
    "--validation",
    type=FiniteRange(0, 1),
    default=0.05,
    help="Share of games for validation.",
)
@click.option(
    "--test",
    type=FiniteRange(0, 1),
    default=0.0,
    help="Share of games for test.",
)
@click.option(
    "--validation-on",
    multiple=True,
    metavar="KEYS",
    help="Years (2008, 2008-2010, 2010-, none) or sources (with * and ?) for validation.",
)
@click.option("--test-on", multiple=True, metavar="KEYS", help="Years or sources for test.")
@seed_option
@replace_option
@json_option
def split(
    path: Path,
    output: Path,
    by: str,
    validation: float,
    test: float,
    validation_on: tuple[str, ...],
    test_on: tuple[str, ...],
    seed: int,
    replace: bool,
    as_json: bool,
) -> None:
    """Divide a store into training, validation and test stores.

    The subset of a game depends on the game and the seed alone, so adding games does not change it.
    """
    import contextlib

    from variant_ai.core.data.sample.split import SUBSETS, SplitPlan, split_games

    if validation_on or test_on or by == "year":
        reason = f"has no effect in a split by {by} with named keys"
        reject_given(["validation", "test"], reason)
    plan = SplitPlan(by, validation, test, validation_on, test_on, seed)  # type: ignore[arg-type]
    store = open_store(path)
    subsets = [(name, games) for name, games in split_games(store, plan) if len(games)]
    output.mkdir(parents=True, exist_ok=True)
    targets = {name: output / f"{name}.store" for name, _ in subsets}
    old = [output / f"{name}.store" for name in SUBSETS if name not in targets]
    for target in (*targets.values(), *old):
        require_new(target, replace, [path])
    with contextlib.ExitStack() as stack:
        writers = []
        for name, target in targets.items():
            made = {"side": name, "split": str(plan)}
            writers.append(stack.enter_context(new_writer(target, [store], replace, made)))
        copy_games(writers, [(store, games.tolist()) for _, games in subsets])
    for target in old:  # of an earlier split, whose games are in the other subsets now
        target.unlink(missing_ok=True)
    rows = [
        (name, targets[name], len(games), int(store.lengths[games].sum()))
        for name, games in subsets
    ]
    if as_json:
        print_json(
            {
                name: {"path": str(target), "games": games, "plies": plies}
                for name, target, games, plies in rows
            }
        )
        return
    shown = [
        (name, f"{games:,}", f"{games / len(store):.1%}", f"{plies:,}", target)
        for name, target, games, plies in rows
    ]
    print_table(
        ["subset", "games", "share", "plies", "store"], shown, right=["games", "share", "plies"]
    )


def _copy(
    writer: StoreWriter,
    parts: Sequence[tuple[Store, Indices]],
    dropped: dict[str, int],
    as_json: bool,
) -> None:
    """Copy games into a store and report them. `dropped`: numbers of games left out, by reason."""
    with writer:
        copy_games([writer], parts)
        writer.close(dropped)
    if as_json:
        print_json({"path": str(writer.path), "games": writer.games, "dropped": dropped})
        return
    click.echo(f"{counted(writer.games, 'game')} to {writer.path}")
    if dropped:
        rows = [(f"{n:,}", why) for why, n in _ordered(dropped)]
        print_table(["dropped", "reason"], rows, right=["dropped"])


def _ordered(dropped: dict[str, int]) -> list[tuple[str, int]]:
    """Reasons and numbers of games, the most frequent reason first."""
    return sorted(dropped.items(), key=lambda item: (-item[1], item[0]))
