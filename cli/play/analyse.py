"""`variant-ai analyse`: what the search thinks of a position, or of every move of games."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import (
    EXIT_INTERRUPTED,
    examples,
    fail,
    json_option,
    load_variant,
    note,
    print_facts,
    print_json,
    print_table,
    progress,
    require_folder,
    variant_option,
)
from variant_ai.cli.common.notation_options import load_notation, notation_option
from variant_ai.cli.common.search_options import (
    NetChoice,
    fail_if_over,
    is_file,
    limits_option,
    load_evaluator,
    net_options,
    score_text,
    search_params,
    wdl_text,
)
from variant_ai.cli.play.analyse_games import Games, uci_text
from variant_ai.core.system.interrupts import stop_on_signal

if TYPE_CHECKING:
    from variant_ai.core.inference import Evaluator
    from variant_ai.core.rules.game import Game
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.rules.text.notation import Notation
    from variant_ai.core.search.move.limits import Limits
    from variant_ai.core.search.report import Line, Report
    from variant_ai.core.search.search import Search
    from variant_ai.core.spec.schema import VariantSpec

PV_PLIES = 8
"""Moves of a line shown in a table."""


@click.command(
    epilog=examples(
        "variant-ai analyse startpos -V NAME --model net.onnx",
        "variant-ai analyse 'FEN' -V NAME --movetime 10 --multipv 3 --svg board.svg",
        "variant-ai analyse startpos --moves 'e2e4 e7e5' -V NAME --nodes 5000 --json",
        "# every move of the games judged: evaluations, better lines, ?! ? ??, accuracy",
        "variant-ai analyse games.pgn -V NAME --nodes 800 -o annotated.pgn",
    )
)
@click.argument("what", metavar="FEN|FILE", nargs=-1, required=True)
@variant_option()
@net_options
@limits_option(1000)
@click.option("--moves", metavar="MOVES", default="", help="Moves played from FEN, in UCI.")
@click.option(
    "--multipv",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    metavar="K",
    help="Moves shown of a position, best first; 0 is all.",
)
@notation_option("san")
@click.option("--svg", type=click.Path(path_type=Path, dir_okay=False), help="Draw the position.")
@click.option("--png", type=click.Path(path_type=Path, dir_okay=False), help="Draw the position.")
@click.option(
    "--arrows",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    metavar="N",
    help="Moves drawn as arrows, as wide as they have visits.",
)
@click.option("--flip", is_flag=True, help="Draw the board from the second player's side.")
@click.option("--game", "number", type=click.IntRange(min=1), help="Only this game of FILE.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Annotated PGN of the games; .gz and the like are compressed.",
)
@click.option("--replace", is_flag=True, help="Take the place of a file that exists.")
@json_option
def command(
    what: tuple[str, ...],
    variant: str,
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
    centipawns, win/draw/loss in per cent and the line expected. All of them, in the table, in the
    JSON and on the arrows of a picture, are seen by the side to move: + is good for that player.

    Games give each move's score, better lines for inaccuracies (?!), mistakes (?) and blunders
    (??), and the accuracy of both players. In the table and the JSON the player who made the move
    sees the score; the annotated PGN says [%eval] as the first player (White, Red) sees it, as PGN
    does everywhere. FILE is a game store or anything that `variant-ai
    import` reads, - is standard input. Annotated games keep its headers and comments, not its variations and glyphs.
    Ctrl-C keeps what is done.
    """
    from variant_ai.plugins import registry

    spec = load_variant(variant)
    chosen = load_notation(spec, notation)
    params = search_params(spec, net)
    from_file = len(what) == 1 and is_file(what[0])
    _check_usage(what, from_file, moves, svg or png, number, output, replace)
    rules = registry().rules(spec)
    game = None
    if not from_file:
        game = _game(rules, " ".join(what), moves)
    evaluator = load_evaluator(spec, net, params.batch_size)
    from variant_ai.core.search.search import Search

    search = Search(spec, evaluator, params, rules=rules)
    try:
        with stop_on_signal() as interrupt:
            interrupt.stops.append(search.stop)
            if game is None:
                games = Games(search, rules, chosen, limits, evaluator.name, interrupt, number)
                return games.run(spec, what[0], output, as_json)
            report = _look(search, game, limits, multipv, chosen, as_json)
    finally:
        search.close()
    if svg or png:
        _draw(spec, game, report, arrows, flip, svg, png)
    if as_json:
        print_json(_position_json(spec, game, report, chosen, evaluator))
    else:
        _print(spec, game, report, chosen)
    return EXIT_INTERRUPTED if interrupt() else 0


def _check_usage(
    what: tuple[str, ...],
    from_file: bool,
    moves: str,
    picture: Path | None,
    number: int | None,
    output: Path | None,
    replace: bool,
) -> None:
    if from_file and (moves or picture):
        raise click.UsageError("--moves, --svg and --png belong to a position, not to a file")
    if not from_file and (number or output):
        _require_no_file_name(" ".join(what))
        raise click.UsageError("--game and --output belong to a file of games, which FEN is not")
    if picture is not None:
        require_folder(picture)
    if output is not None and output.exists():
        if not replace:
            fail(f"{output} exists already; --replace takes its place")
        if what and is_file(what[0]) and what[0] != "-" and output.samefile(what[0]):
            fail(f"{output} is the file that is read; give the annotated games another name")


def _require_no_file_name(fen: str) -> None:
    if len(fen.split()) == 1 and Path(fen).suffix:
        fail(f"{fen}: there is no such file, and it is no FEN")


# --- a position --------------------------------------------------------------------------------


def _game(rules: Rules, fen: str, moves: str) -> Game:
    """The game to look at. Fails where it is over."""
    from variant_ai.core.rules.game import Game

    _require_no_file_name(fen)
    game = Game.from_uci(rules, None if fen == "startpos" else fen, moves.split())
    fail_if_over(game)
    return game


def _look(
    search: Search, game: Game, limits: Limits, multipv: int, notation: Notation, quiet: bool
) -> Report:
    """Search the position, with progress on stderr."""
    count = multipv or len(game.legal_moves())
    search.set_game(game)
    with progress(quiet=quiet) as bar:
        task = bar.add_task("simulations", total=limits.visits)

        def show(report: Report) -> None:
            bar.update(task, completed=report.visits, note=_news(game, report, notation))

        report = search.run(limits, multipv=count, on_report=show, interval=0.25)
        show(report)
    return report


def _news(game: Game, report: Report, notation: Notation) -> str:
    if not report.lines:
        return ""
    line = report.lines[0]
    text = notation.write(game.rules, game.position, line.move)
    return f"{text} {score_text(line)} depth {report.depth}"


def _texts(game: Game, moves: tuple[int, ...], notation: Notation) -> list[str]:
    """A line in the notation, each move from its own position."""
    texts, position = [], game.position
    for move in moves:
        texts.append(notation.write(game.rules, position, move))
        position = game.rules.play(position, move)
    return texts


def _print(spec: VariantSpec, game: Game, report: Report, notation: Notation) -> None:
    from variant_ai.core.draw import board_text

    last = game.moves[-1] if game.moves else None
    tty = sys.stdout.isatty()
    click.echo(board_text(spec, game.position, last_move=last, signs=tty, colour=tty))
    click.echo()
    print_facts(
        [
            ("fen", game.fen()),
            ("simulations", f"{report.visits:,} in {report.seconds:.1f} s, {report.nps:,}/s"),
            ("evaluations", f"{report.evaluations:,}"),
            ("tree", f"{report.tree_nodes:,} nodes, depth {report.depth}/{report.seldepth}"),
            ("ended by", report.stopped_by),
            ("scores", f"as {_side_to_move(spec, game)}, to move, sees them"),
        ]
    )
    click.echo()
    draws = any(line.wdl for line in report.lines)
    rows = []
    for line in report.lines:
        texts = _texts(game, line.pv[:PV_PLIES], notation)
        row = [texts[0], f"{line.visits:,}", f"{100 * line.prior:.2f}%"]
        row.append(f"{line.q:+.4f}" if line.is_known else "")
        row.append(_score(line))
        row += [wdl_text(line)] if draws else []
        rows.append([*row, " ".join(texts)])
    columns = ["move", "visits", "prior", "Q", "cp", *(["W D L"] if draws else []), "line"]
    print_table(columns, rows, right=("visits", "prior", "Q", "cp", "W D L"))


def _side_to_move(spec: VariantSpec, game: Game) -> str:
    return spec.players[int(game.position[0]["side"])]


def _score(line: Line) -> str:
    """Centipawns or a mate; nothing of a move that was not looked at."""
    if not line.is_known:
        return ""
    return score_text(line) if line.mate is not None else str(line.cp)


def _position_json(
    spec: VariantSpec, game: Game, report: Report, notation: Notation, evaluator: Evaluator
) -> dict[str, Any]:
    return {
        "variant": spec.variant,
        "fen": game.fen(),
        "side_to_move": _side_to_move(spec, game),
        "scores_seen_by": "the side to move",
        "evaluator": evaluator.name,
        "net": evaluator.info.source,
        "best": uci_text(game.rules, report.best),
        "ponder": uci_text(game.rules, report.ponder),
        "lines": [_line_json(game, line, notation) for line in report.lines],
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


def _line_json(game: Game, line: Line, notation: Notation) -> dict[str, Any]:
    return {
        "move": uci_text(game.rules, line.move),
        "text": notation.write(game.rules, game.position, line.move),
        "visits": line.visits,
        "prior": round(line.prior, 6),
        "q": round(line.q, 6) if line.is_known else None,
        "cp": line.cp if line.is_known else None,
        "mate": line.mate_in,
        "wdl": [round(p, 4) for p in line.wdl] if line.wdl else None,
        "pv": [uci_text(game.rules, move) for move in line.pv],
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
    from variant_ai.core.system.files import write_whole

    most = max((line.visits for line in report.lines), default=0)
    arrows = [
        Arrow(line.move, line.visits / max(most, 1), score_text(line))
        for line in report.lines[:count]
    ]
    picture = board_svg(
        spec,
        game.position,
        last_move=game.moves[-1] if game.moves else None,
        arrows=arrows,
        flipped=flipped,
        size=640,
    )
    if svg is not None:
        write_whole(svg, picture)
        note(f"drawn: {svg}")
    if png is not None:
        write_whole(png, png_bytes(picture))
        note(f"drawn: {png}")
