"""`variant-ai store label`: new labels for the positions of a store, by a stronger player."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import note, print_json, print_table, progress
from variant_ai.cli.common.ending import fail
from variant_ai.cli.common.model_options import ModelCommand
from variant_ai.cli.common.options import (
    examples,
    json_option,
    replace_option,
    require_new,
    require_no_input,
)
from variant_ai.cli.common.store_options import (
    command_digest,
    new_store_option,
    open_store,
    store_argument,
    writing_mode,
)
from variant_ai.core.system.text_tables import counted

if TYPE_CHECKING:
    from variant_ai.core.arena.games.labelling import LabelReport
    from variant_ai.core.data.store.store_writer import StoreWriter

SHARD_GAMES = 50
"""Games of a shard: a kill loses fewer than these."""


@click.command(
    "label",
    cls=ModelCommand,
    model="variant_ai.core.arena.games.labelling:LabelSettings",
    options={
        "--nodes": "nodes",
        "--lines": "lines",
        "--temperature CP": "temperature",
        "--timeout SECONDS": "timeout",
    },
    epilog=examples(
        "# games of a net with itself, with the answers of a stronger program",
        "variant-ai generate -V NAME --nodes 48 --games 1000 -o own.store",
        "variant-ai store label own.store --engine fairy-stockfish --nodes 3000 -o labelled.store",
        "variant-ai train -V NAME --data labelled.store --labels visits --value-labels score \\",
        "    --from packaged",
        "# a net with a long search as the teacher of a smaller one",
        "variant-ai store label own.store --engine net:large.onnx --nodes 1600 -o labelled.store",
    ),
)
@store_argument
@new_store_option
@click.option(
    "--engine",
    metavar="PLAYER",
    default="fairy-stockfish",
    help="Player that labels, as in `match`: a UCI program, or net:FILE.",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=1,
    help="Games at the same time, each with a player of its own.",
)
@replace_option
@json_option
def label(
    path: Path,
    output: Path,
    engine: str,
    workers: int,
    replace: bool,
    as_json: bool,
    given: dict[str, Any],
) -> None:
    """Let a stronger player label the positions of a store.

    Moves and results stay. Each position gets a policy and a value. A program gives the scores of the
    moves that it compared and its own score (`train --labels visits --value-labels score`), a net the
    visits of its search and the value of its move (`--value-labels root`). A position in which the player
    finds no move keeps its labels; a game in which it dies or hangs is left out and counted. After Ctrl-C
    or a kill, the same command continues.
    """
    from variant_ai.cli.common.player_options import steady_player
    from variant_ai.core.arena.games.labelling import (
        Labelling,
        LabelReport,
        LabelSettings,
        write_labels,
    )
    from variant_ai.core.arena.players.player_spec import parse_player
    from variant_ai.core.data.store.store_writer import StoreWriter, find_interruption
    from variant_ai.core.system.checked_models import checked
    from variant_ai.plugins import registry

    settings = checked(LabelSettings, given, "label")
    require_no_input(output, [path])
    store = open_store(path)
    if not len(store):
        fail(f"{path} has no games")
    rules = registry().rules(store.spec)
    player = parse_player(engine)
    make_player = partial(steady_player, player, rules, lines=settings.lines)
    labelling = Labelling(settings, rules, make_player, workers)
    name, digest = labelling.check_player()
    deciding = (store.content_hash, engine, name, digest, settings.model_dump_json())
    run = command_digest(deciding)
    if find_interruption(output, run) is None:
        require_new(output, replace)
    writer = StoreWriter(
        output,
        store.spec,
        mode=writing_mode(False, replace),
        parents=[store],
        conditions={"labels": name, **settings.model_dump()},
        shard_games=SHARD_GAMES,
        command=run,
    )
    report = LabelReport.resumed(writer.resumed)
    if writer.resumed is not None:
        note(f"resuming after {counted(report.read, 'game')} of {path}")
    with writer, progress(quiet=as_json) as bar:
        task = bar.add_task("games", total=len(store), completed=report.read)

        def show() -> None:
            bar.update(task, completed=report.read, note=counted(report.positions, "position"))

        write_labels(store, writer, labelling, report, show)
    if report.interrupted and not report.games:
        note("Interrupted before a game was labelled; nothing was written.")
        raise KeyboardInterrupt
    if not report.games:
        fail(f"no game was labelled: {'; '.join(report.failed)}")
    _print(report, writer, name, as_json)
    if report.interrupted:
        note(
            f"{report.games:,} of {counted(len(store), 'game')} are labelled; the same command continues"
        )
        raise KeyboardInterrupt
    if report.failure:
        fail(report.failure)


def _print(report: LabelReport, writer: StoreWriter, name: str, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "path": str(writer.path),
                "player": name,
                "games": report.games,
                "positions": report.positions,
                "left_out": report.failed,
            }
        )
        return
    click.echo(
        f"{counted(report.positions, 'position')} of {counted(report.games, 'game')} labelled by {name}, "
        f"to {writer.path}"
    )
    if report.failed:
        rows = [(f"{count:,}", reason) for reason, count in report.failed.items()]
        print_table(["left out", "reason"], rows, right=["left out"])
