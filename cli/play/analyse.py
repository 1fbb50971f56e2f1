"""`variant-ai analyse`: the search's evaluation of a position, or of every move of games."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import note, print_facts, print_json, print_table, progress
from variant_ai.cli.common.ending import EXIT_INTERRUPTED, fail
from variant_ai.cli.common.options import (
    COUNT,
    FILE,
    examples,
    json_option,
    load_variant,
    notation_option,
    reject_given,
    replace_option,
    require_new,
    variant_option,
)
from variant_ai.cli.common.search_options import (
    NetChoice,
    fail_if_over,
    is_file,
    limits_option,
    load_engine,
    net_options,
)
from variant_ai.cli.common.store_options import open_store
from variant_ai.cli.play.analyse_games import GamesAnalysis
from variant_ai.core.system.files import write_whole
from variant_ai.core.system.interrupts import stop_on_signal
from variant_ai.core.system.text_tables import counted

if TYPE_CHECKING:
    from variant_ai.core.inference import Evaluator
    from variant_ai.core.rules.game import Game
    from variant_ai.core.rules.text.notation import Notation
    from variant_ai.core.search.interface import BaseSearch
    from variant_ai.core.search.move.limits import Limits
    from variant_ai.core.search.report import Line, Report
    from variant_ai.core.spec.schema import VariantSpec

PV_PLIES = 8
"""Moves of a line shown in a table."""


@click.command(
    epilog=examples(
        "variant-ai analyse startpos -V NAME --model net.onnx",
        "variant-ai analyse 'FEN' -V NAME --movetime 10 --multipv 3 --svg board.svg",
        "variant-ai analyse startpos --moves 'e2e4 e7e5' -V NAME --nodes 5000 --json",
        "# judge every move of games: scores, better lines, ?! ? ??, accuracy",
        "variant-ai analyse games.pgn -V NAME --nodes 800 -o annotated.pgn",
        "variant-ai analyse games.store --nodes 800",
    )
)
@click.argument("what", metavar="FEN|FILE", nargs=-1, required=True)
@variant_option(
    required=False,
    help="Variant: a name, or the path of a YAML spec; by default that of a game store.",
)
@net_options
@limits_option(1000)
@click.option(
    "--moves",
    metavar="MOVES",
    default="",
    show_default=False,
    help="Moves played from FEN, in UCI.",
)
@click.option(
    "--multipv",
    type=click.IntRange(min=0),
    default=10,
    metavar="K",
    help="Number of moves shown, best first; 0 means all.",
)
@notation_option("san")
@click.option("--svg", type=FILE, help="Draw the position as SVG.")
@click.option("--png", type=FILE, help="Draw the position as PNG.")
@click.option(
    "--arrows",
    type=click.IntRange(min=0),
    default=3,
    metavar="N",
    help="Number of moves drawn as arrows; width shows visits.",
)
@click.option("--flip", is_flag=True, help="Draw the board from the second player's side.")
@click.option("--game", "number", type=COUNT, help="Only this game of FILE.")
@click.option(
    "-o",
    "--output",
    type=FILE,
    help="Annotated PGN of the games; compressed if its name ends in .gz, .bz2, .xz or .zst.",
)
@replace_option
@json_option
def command(
    what: tuple[str, ...],
    variant: str | None,
    net: NetChoice,
    limits: Limits,
    moves: str,
    multipv: int,
    notation: str,
    svg: Path | None,
    png: Path | None,
    arrows: int,
    flip: bool,
    number: int | None,
    output: Path | None,
    replace: bool,
    as_json: bool,
) -> int:
    """Analyse a position (FEN, or `startpos`) or the games of a file.

    A position gives a table of moves: visits, prior probability, value Q from -1 (lost) to 1 (won),
    centipawns, win/draw/loss in per cent and the expected line. In the table, in the JSON and on
    the arrows of a picture, all numbers are for the side to move: + is good for that player.

    Games give each move's score, better lines for inaccuracies (?!), mistakes (?) and blunders
    (??), and the accuracy of both players. In the table and the JSON, scores are for the player who
    made the move; in the annotated PGN, [%eval] is for the first player (White, Red), as usual in
    PGN. FILE is a game store or any file that `variant-ai import` reads, - is standard input.
    Annotated games keep headers and comments, but not variations and glyphs. Ctrl-C keeps the
    finished part.
    """
    from variant_ai.api import Position
    from variant_ai.plugins import registry

    from_file = len(what) == 1 and is_file(what[0])
    spec = _spec_of(what[0], variant) if from_file else load_variant(_require_variant(variant))
    chosen = registry().notation(spec, notation)
    _check_usage(what, from_file, moves, [p for p in (svg, png) if p], number, output, replace)
    game = None
    if not from_file:
        fen = " ".join(what)
        _require_no_file_name(fen)
        game = Position(spec, fen, moves).game
        fail_if_over(game)
    with load_engine(spec, net) as engine, stop_on_signal() as interrupt:
        interrupt.stops.append(engine.search.stop)
        if game is None:
            games = GamesAnalysis(engine, chosen, limits, interrupt, number)
            return games.run(what[0], output, as_json)
        report = _search(engine.search, game, limits, multipv, chosen, as_json)
    if svg or png:
        _draw(spec, game, report, arrows, flip, svg, png)
    if as_json:
        print_json(_position_json(spec, game, report, chosen, engine.evaluator))
    else:
        _print(spec, game, report, chosen)
    return EXIT_INTERRUPTED if interrupt() else 0


def _spec_of(file: str, variant: str | None) -> VariantSpec:
    """Spec of the named variant, else of the game store."""
    from variant_ai.core.data.store.blocks import is_store

    if variant is None and is_store(Path(file)):
        return open_store(Path(file)).spec
    return load_variant(_require_variant(variant))


def _require_variant(variant: str | None) -> str:
    if variant is None:
        raise click.UsageError("Missing option '-V' / '--variant': only a game store names its own")
    return variant


def _check_usage(
    what: tuple[str, ...],
    from_file: bool,
    moves: str,
    pictures: list[Path],
    number: int | None,
    output: Path | None,
    replace: bool,
) -> None:
    if from_file and (moves or pictures):
        raise click.UsageError("--moves, --svg and --png need a position, not a file")
    if from_file:
        reject_given(["multipv", "arrows", "flip"], "needs a position, not a file")
    elif not pictures:
        reject_given(["arrows", "flip"], "needs --svg or --png")
    if not from_file and (number or output):
        _require_no_file_name(" ".join(what))
        raise click.UsageError("--game and --output need a file of games, not a FEN")
    for picture in pictures:
        require_new(picture, replace)
    if output is not None:
        require_new(output, replace, what[:1])


def _require_no_file_name(fen: str) -> None:
    if len(fen.split()) == 1 and Path(fen).suffix:
        fail(f"{fen}: there is no such file, and it is not a FEN")


# --- a position --------------------------------------------------------------------------------


def _search(
    search: BaseSearch, game: Game, limits: Limits, multipv: int, notation: Notation, quiet: bool
) -> Report:
    """Search the position, with progress on stderr."""
    count = multipv or len(game.legal_moves())
    search.set_game(game)
    with progress(quiet=quiet) as bar:
        task = bar.add_task("simulations", total=limits.visits)

        def show(report: Report) -> None:
            bar.update(task, completed=report.visits, note=_progress_note(game, report, notation))

        report = search.run(limits, multipv=count, on_report=show, interval=0.25)
        show(report)
    return report


def _progress_note(game: Game, report: Report, notation: Notation) -> str:
    if not report.lines:
        return ""
    line = report.lines[0]
    text = notation.write(game.rules, game.position, line.move)
    return " ".join(filter(None, (text, line.score_text, f"depth {report.depth}")))


def _print(spec: VariantSpec, game: Game, report: Report, notation: Notation) -> None:
    from variant_ai.core.draw import board_text

    tty = sys.stdout.isatty()
    click.echo(board_text(game, signs=tty, colour=tty))
    click.echo()
    print_facts(
        [
            ("fen", game.fen()),
            ("simulations", f"{report.visits:,} in {report.seconds:.1f} s, {report.nps:,}/s"),
            ("evaluations", f"{report.evaluations:,}"),
            (
                "tree",
                f"{counted(report.tree_nodes, 'node')}, depth {report.depth}/{report.seldepth}",
            ),
            ("ended by", report.stopped_by),
            ("scores", f"for {_side_to_move(spec, game)}, to move"),
        ]
    )
    click.echo()
    draws = any(line.wdl for line in report.lines)
    rows = []
    for line in report.lines:
        texts = notation.write_line(game.rules, game.position, line.pv[:PV_PLIES])
        row = [texts[0], f"{line.visits:,}", f"{100 * line.prior:.2f}%"]
        row.append(f"{line.q:+.4f}" if line.is_known else "")
        row.append(_score(line))
        row += [line.wdl_text] if draws else []
        rows.append([*row, " ".join(texts)])
    columns = ["move", "visits", "prior", "Q", "cp", *(["W D L"] if draws else []), "line"]
    print_table(columns, rows, right=("visits", "prior", "Q", "cp", "W D L"))


def _side_to_move(spec: VariantSpec, game: Game) -> str:
    return spec.players[int(game.position[0]["side"])]


def _score(line: Line) -> str:
    """Centipawns or moves to mate; empty for a move that was not searched."""
    return str(line.cp) if line.is_known and line.mate is None else line.score_text


def _position_json(
    spec: VariantSpec, game: Game, report: Report, notation: Notation, evaluator: Evaluator
) -> dict[str, Any]:
    text = game.rules.uci

    def line_json(line: Line) -> dict[str, Any]:
        fields = line.as_json(text, digits=6)
        value, score = fields.pop("value"), fields["cp"]
        fields["text"] = notation.write(game.rules, game.position, line.move)
        return fields | {
            "q": value if line.is_known else None,
            "cp": score if line.is_known else None,
        }

    return {
        "variant": spec.variant,
        "fen": game.fen(),
        "side_to_move": _side_to_move(spec, game),
        "scores_seen_by": "the side to move",
        "evaluator": evaluator.name,
        "net": evaluator.info.source,
        "best": None if report.best is None else text(report.best),
        "ponder": None if report.ponder is None else text(report.ponder),
        "lines": [line_json(line) for line in report.lines],
        "simulations": report.visits,
        "evaluations": report.evaluations,
        "terminals": report.terminals,
        "collisions": report.collisions,
        "merges": report.merges,
        "tree_nodes": report.tree_nodes,
        "depth": report.depth,
        "seldepth": report.seldepth,
        "seconds": round(report.seconds, 3),
        "simulations_per_second": report.nps,
        "hashfull": report.hashfull,
        "stopped_by": report.stopped_by,
    }


def _draw(
    spec: VariantSpec,
    game: Game,
    report: Report,
    count: int,
    flipped: bool,
    svg: Path | None,
    png: Path | None,
) -> None:
    from variant_ai.core.draw import Arrow, board_svg, png_bytes
    from variant_ai.core.spec.start_position import walls_of_fen

    most = max((line.visits for line in report.lines), default=0)
    arrows = [
        Arrow(line.move, line.visits / max(most, 1), line.score_text)
        for line in report.known_lines[:count]
    ]
    picture = board_svg(
        spec,
        game.position,
        last_move=game.moves[-1] if game.moves else None,
        arrows=arrows,
        flipped=flipped,
        walls=walls_of_fen(spec, game.fen()),
        size=640,
    )
    if svg is not None:
        write_whole(svg, picture)
        note(f"drawn: {svg}")
    if png is not None:
        write_whole(png, png_bytes(picture))
        note(f"drawn: {png}")
