"""`variant-ai store export` and `verify`: stores as text, and checks of stores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import note, print_json, progress
from variant_ai.cli.common.ending import fail
from variant_ai.cli.common.options import FILE, examples, json_option, replace_option, require_new
from variant_ai.cli.common.store_options import (
    Indices,
    any_variant_option,
    filter_options,
    game_filter,
    open_store,
    parse_span,
    rules_and_notation,
    store_argument,
    stores_argument,
)
from variant_ai.core.errors import DataError, UnknownNameError, VariantAIError
from variant_ai.core.system.files import is_stream
from variant_ai.core.system.text_tables import counted

if TYPE_CHECKING:
    from variant_ai.core.data.game_record import GameRecord
    from variant_ai.core.data.store.game_store import Store
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.rules.text.notation import Notation


@click.command(
    epilog=examples(
        "variant-ai store export games.store -o games.pgn",
        "variant-ai store export games.store --notation uci --since 2008 -o games.pgn.gz",
        "# JSON objects or lists of moves, one a line, to standard output",
        "variant-ai store export games.store --format jsonl",
        "variant-ai store export games.store --format moves --games 1-10",
    )
)
@store_argument
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="FILE",
    help="File to write; .gz, .bz2, .xz and .zst are compressed; `-`: standard output.  "
    "[default: standard output]",
)
@click.option(
    "--format",
    "format_",
    metavar="NAME",
    help="pgn, jsonl or moves (one line for each game).  "
    "[default: from the suffix of FILE; pgn on standard output]",
)
@click.option(
    "--notation",
    metavar="NAME",
    help="Notation of moves: uci, san, iccs, or one of the variant's plugin.  "
    "[default: san in PGN, else uci]",
)
@click.option(
    "--games", "span", metavar="RANGE", help="Only games 17, 1-20, 1000-; numbered from 1."
)
@any_variant_option
@replace_option
@filter_options
def export(
    path: Path,
    output: Path | None,
    format_: str | None,
    notation: str | None,
    span: str | None,
    variant: str | None,
    replace: bool,
    **options: Any,
) -> None:
    """Write games as text: PGN, JSON lines or lists of moves."""
    from variant_ai.core.data.game_text import text_file

    conditions = game_filter(options)
    if output == Path("-"):
        output = None
    if output is not None:
        require_new(output, replace, [path])
    name = _format(format_, output)
    store = open_store(path, variant)
    rules, chosen = rules_and_notation(store, notation or ("san" if name == "pgn" else "uci"))
    write = _writer(name)
    kept, _ = store.select(conditions)
    games: Indices = kept.tolist()
    if span is not None:
        listed = set(parse_span(span, len(store)))
        games = [game for game in games if game in listed]
    with text_file(output) as file, progress(quiet=output is None) as bar:
        task = bar.add_task("games", total=len(games))
        for record in store.games(games):
            file.write(write(rules, chosen, record))
            bar.advance(task)
    if output is not None:
        note(f"{counted(len(games), 'game')} to {output}")


FORMATS = {".pgn": "pgn", ".jsonl": "jsonl", ".ndjson": "jsonl", ".uci": "moves", ".txt": "moves"}


def _format(given: str | None, output: Path | None) -> str:
    """Format of the option, or else of the suffix; `output` None is standard output."""
    from variant_ai.core.data.read.game_files import PACKED

    known = sorted(set(FORMATS.values()))
    if given is not None:
        if given not in known:
            raise UnknownNameError("format", given, known)
        return given
    if output is None or is_stream(output):
        return "pgn"
    suffix = Path(output.stem).suffix if output.suffix in PACKED else output.suffix
    if suffix.lower() not in FORMATS:
        fail(
            f"{output}: the format is not clear from the name; end it in {', '.join(FORMATS)}, "
            f"or use --format ({', '.join(known)})"
        )
    return FORMATS[suffix.lower()]


def _writer(name: str) -> Callable[[Rules, Notation, GameRecord], str]:
    from variant_ai.core.data.game_text import json_line, move_line, pgn_text

    if name == "jsonl":
        return json_line
    if name == "moves":
        return move_line
    return pgn_text


@click.command(
    epilog=examples(
        "variant-ai store verify games.store",
        "# also replay every game and check that each move is legal",
        "variant-ai store verify games.store --moves",
    )
)
@stores_argument
@click.option("--moves", is_flag=True, help="Replay the games and check that each move is legal.")
@any_variant_option
@json_option
def verify(paths: tuple[Path, ...], moves: bool, variant: str | None, as_json: bool) -> None:
    """Check every byte of stores.

    Exits with an error if a store is damaged or was not closed.
    """
    reports = [_verified(path, moves, variant) for path in paths]
    problems = [report["problem"] for report in reports if report["problem"]]
    if as_json:
        print_json(reports)
    for report in reports:
        if not as_json and not report["problem"]:
            size = f"{counted(report['games'], 'game')}, {counted(report['plies'], 'ply')}"
            click.echo(f"{report['path']}: no errors, {size}")
    if problems:
        for problem in problems[:-1]:
            note(f"Error: {problem}")
        fail(problems[-1])


def _verified(path: Path, moves: bool, variant: str | None) -> dict[str, Any]:
    """Contents of a store, and an error message if there is a problem."""
    report: dict[str, Any] = {"path": str(path), "games": None, "plies": None, "problem": None}
    try:
        store = open_store(path, variant, quiet=True)
        report |= {"games": len(store), "plies": store.plies}
        with progress() as bar:
            task = bar.add_task(path.name, total=len(store))
            store.verify(progress=lambda games: bar.advance(task, games))
            if moves:
                bar.reset(task, description="moves")
                _check_moves(store, lambda: bar.advance(task))
        if store.info.unfinished:
            report["problem"] = f"{store.info.unfinished}; repair it with `variant-ai store merge`"
    except VariantAIError as error:
        report["problem"] = str(error)
    return report


def _check_moves(store: Store, count: Callable[[], None]) -> None:
    """Raises DataError at the first move, played or searched, that is not legal."""
    from variant_ai.core.data.game_text import positions_of

    rules, notation = rules_and_notation(store, "uci")
    for number, record in enumerate(store.games(), 1):
        moves = zip(positions_of(rules, record), record.moves, strict=True)
        for ply, (position, move) in enumerate(moves, 1):
            legal = rules.legal_moves(position).tolist()
            visited = record.visits[ply - 1] if record.visits else ()
            for other in (move, *(searched for searched, _ in visited)):
                if other not in legal:
                    raise DataError(
                        f"{store.path}: game {number}, ply {ply}: "
                        f"{notation.write(rules, position, other)} is not legal in "
                        f"{rules.fen(position)}"
                    )
        count()
