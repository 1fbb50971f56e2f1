"""`variant-ai match`: games between engines and nets, a table, a PGN file."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import (
    FiniteRange,
    console,
    examples,
    json_option,
    note,
    print_json,
    variant_option,
)
from variant_ai.core.system.interrupts import stop_on_signal

if TYPE_CHECKING:
    from variant_ai.core.arena.match.match_record import GameEntry
    from variant_ai.core.arena.match.match_settings import MatchSettings
    from variant_ai.core.arena.match.tournament import MatchState, Tournament


@click.command(
    epilog=examples(
        "variant-ai match fairy-stockfish 'xboard:sjeng;depth=4' -V NAME --clock 60+0.25 -o m1",
        "# two nets, at most 400 games, until one is shown to be better",
        "variant-ai match 'net:a.onnx;name=new' 'net:b.onnx;name=old' -V NAME --nodes 800 \\",
        "    --games 400 --sprt 0 20 --openings lines.pgn --concurrency 2 -o m2",
        "# a table of a paper; the same command resumes an interrupted match",
        "variant-ai match --config experiments/table-13.yaml -o runs/table-13",
    )
)
@click.argument("players", nargs=-1, metavar="[PLAYER]...")
@variant_option(required=False)
@click.option(
    "--config",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="YAML file with the settings of the match; command-line options override it.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    metavar="FOLDER",
    help="Folder of games and tables; a match that was interrupted resumes there.",
)
@click.option(
    "--games", type=click.IntRange(min=1), help="Games of each pair of players.  [default: 2]"
)
@click.option("--clock", metavar="TEXT", help="[MOVES/]BASE[+INCREMENT], in seconds or as 15:00+5.")
@click.option("--movetime", type=FiniteRange(min=0, min_open=True), help="Seconds for each move.")
@click.option("--nodes", type=click.IntRange(min=1), help="Nodes or simulations for each move.")
@click.option("--depth", type=click.IntRange(min=1), help="Depth of each search in plies.")
@click.option(
    "--gauntlet",
    "seeds",
    type=click.IntRange(min=1),
    metavar="N",
    help="The first N players meet all others; by default all players meet each other.",
)
@click.option(
    "--openings",
    metavar="FILE",
    help="Openings: positions (.epd, .fen), lines sampled from a Polyglot book (.bin), or lines of "
    "games (PGN, move lists). The file may be compressed (.gz, .xz, .zst). Each opening is played "
    "with both colours.",
)
@click.option(
    "--opening-plies", type=click.IntRange(min=1), help="Plies of each line.  [default: 16]"
)
@click.option(
    "--from-store", metavar="STORE", help="Sample openings from the positions of a game store."
)
@click.option(
    "--opening-count",
    type=click.IntRange(min=1),
    help="Number of openings; by default all, or 100 of a store.",
)
@click.option("--random-order", is_flag=True, help="Use the openings in random order.")
@click.option(
    "--concurrency", type=click.IntRange(min=1), help="Games at the same time.  [default: 1]"
)
@click.option(
    "--margin", type=FiniteRange(min=0), help="Tolerated overtime in seconds.  [default: 0.05]"
)
@click.option(
    "--think",
    type=FiniteRange(min=0, min_open=True),
    help="Seconds for a move without a time limit, after which a player is told to stop.  [default: 60]",
)
@click.option(
    "--ponder",
    is_flag=True,
    default=None,
    help="Programs think during the other side's turn; nets do not.",
)
@click.option(
    "--max-plies",
    type=click.IntRange(min=1),
    help="A game of this length is a draw.  [default: 600]",
)
@click.option("--resign", metavar="MOVES:CP[:both]", help="Adjudicate lost games, such as 3:600.")
@click.option("--draw", metavar="FROM:MOVES:CP", help="Adjudicate drawn games, such as 40:8:10.")
@click.option(
    "--sprt",
    type=(float, float),
    metavar="ELO0 ELO1",
    help="Stop when one hypothesis is accepted (errors 0.05).",
)
@click.option(
    "--small", is_flag=True, help="With --config: use the file's settings for a small run."
)
@click.option("--title", help="Name of the match.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of everything random.  [default: 0]")
@json_option
def command(
    players: tuple[str, ...],
    variant: str | None,
    config: Path | None,
    output: Path,
    as_json: bool,
    small: bool,
    **given: Any,
) -> None:
    """Let engines and nets play matches, judged by the rules of the variant.

    A player is a command (UCI), PROTOCOL:COMMAND with uci, ucci, cyclone or xboard, net:FILE.onnx,
    random, or a YAML file. Settings follow after semicolons: name=, clock=, movetime=, nodes=,
    depth=, option.NAME=, search.NAME=, variant=, ranks=0|1, letters=own|also, restart=true,
    ponder=true.

    A player that crashes, hangs, plays an illegal move, exceeds its time, or wrongly claims the end
    of the game or a mate in one loses the game, and the match continues. Every finished game is on
    disk before the next one begins, so the same command resumes after any interruption. FOLDER has
    games.jsonl, games.pgn and the table as text, CSV and HTML.
    """
    settings = _settings(players, variant, config, given, small=small)

    from variant_ai.cli.common.notation_options import load_notation
    from variant_ai.cli.common.player_options import beside, load_openings, make_player
    from variant_ai.core.arena.match.tournament import Tournament
    from variant_ai.core.arena.tables.crosstable import text
    from variant_ai.core.errors import DataError
    from variant_ai.plugins import registry

    spec = registry().variant(settings.variant)
    rules = registry().rules(spec)
    folder = config.parent if config else None
    specs = [
        player.model_copy(
            update={
                "net": str(beside(player.net, folder)) if player.net else "",
                "ponder": player.ponder or settings.ponder,
            }
        )
        for player in settings.players
    ]
    with _naming_needs(settings.needs):
        for source in filter(None, (settings.openings.file, settings.openings.store)):
            if not beside(source, folder).exists():
                also = f" and not in {folder}" if folder else ""
                raise DataError(f"there is no file of openings {source}{also}")
        openings = load_openings(settings.openings, rules, settings.seed, folder=folder)
    tournament = Tournament(
        settings,
        rules,
        lambda index: make_player(specs[index], rules, settings.seed),
        openings,
        output,
        load_notation(spec, "san" if spec.hands or spec.castling else "uci"),
    )
    state = _run(tournament, settings)
    if as_json:
        _print_json(state, settings)
    else:
        click.echo(text(state.table(settings.title)), nl=False)
        if state.entries:
            click.echo(f"ends: {state.endings}")
        if state.sprt is not None:
            click.echo(state.sprt.text)
    if state.warning:
        note(state.warning)
    if state.stopped:
        note(f"{len(state.entries)} of {state.scheduled} games; run the same command to resume")
        raise KeyboardInterrupt


def _installed(players: Any) -> Any:
    """Leave out optional players whose program is missing, and report them."""
    from variant_ai.core.arena.programs.engine_process import engine_command
    from variant_ai.core.errors import EngineError

    if not isinstance(players, list):
        return players
    kept = []
    for player in players:
        command = player.get("command") if isinstance(player, dict) else None
        if command and player.get("optional"):
            try:
                engine_command(str(command))
            except EngineError as error:
                note(f"left out: {player.get('name', command)} ({error})")
                continue
        kept.append(player)
    return kept


@contextlib.contextmanager
def _naming_needs(needs: str) -> Iterator[None]:
    """Add the `needs` of the match's file to errors about missing files and programs."""
    from variant_ai.core.errors import DataError, EngineError

    try:
        yield
    except (DataError, EngineError) as error:
        if not needs:
            raise
        raise type(error)(f"{error}; this match needs {needs}") from error


def _settings(
    players: tuple[str, ...],
    variant: str | None,
    config: Path | None,
    given: dict[str, Any],
    *,
    small: bool,
) -> MatchSettings:
    """Merge the file's settings and the command line's, which override them."""
    from variant_ai.cli.common.player_options import require_player
    from variant_ai.core.arena.match.match_settings import LIMITS, settings_of, small_scale
    from variant_ai.core.arena.players.player_spec import parse_player, read_yaml
    from variant_ai.core.errors import SettingError

    merged: dict[str, Any] = {}
    if config is not None:
        read = read_yaml(config)
        if not isinstance(read, dict):
            raise SettingError(f"{config}: expected a mapping of settings")
        merged.update(small_scale(read, str(config)) if small else read)
    elif small:
        raise click.UsageError("--small needs --config")
    if players:
        merged["players"] = [parse_player(text) for text in players]
    if variant is not None:
        merged["variant"] = variant
    if "variant" not in merged:
        raise click.UsageError("Missing option '-V' / '--variant'.")
    if "players" not in merged:
        raise click.UsageError("Missing argument 'PLAYER...' (or give --config).")
    seeds = given.pop("seeds")
    if seeds is not None:
        merged.update(kind="gauntlet", seeds=seeds)
    openings = dict(merged.get("openings") or {})
    sources = {"file": given.pop("openings"), "store": given.pop("from_store")}
    if any(sources.values()):
        openings = {k: v for k, v in openings.items() if k not in ("file", "lines", "store")}
    sources |= {"plies": given.pop("opening_plies"), "count": given.pop("opening_count")}
    openings |= {name: value for name, value in sources.items() if value is not None}
    if given.pop("random_order"):
        openings["order"] = "random"
    if openings:
        merged["openings"] = openings
    limits = {name: given.pop(name) for name in LIMITS}
    if any(value is not None for value in limits.values()):
        merged = {name: value for name, value in merged.items() if name not in limits}
        merged |= {name: value for name, value in limits.items() if value is not None}
    merged |= {name: value for name, value in given.items() if value is not None}
    folder = config.parent if config else None
    merged["players"] = _installed(merged["players"])
    with _naming_needs(str(merged.get("needs", ""))):
        return settings_of(
            merged,
            str(config) if config else "match",
            lambda player: require_player(player, folder),
        )


def _run(tournament: Tournament, settings: MatchSettings) -> MatchState:
    """Play the match; the first Ctrl-C stops it in an orderly way, with all finished games kept."""
    with stop_on_signal() as interrupt:
        interrupt.stops.append(tournament.stop)
        if not sys.stderr.isatty():
            return tournament.run(_report)
        from rich.live import Live

        from variant_ai.core.arena.tables.crosstable import text

        with Live(console=console(stderr=True), refresh_per_second=2) as live:

            def show(state: MatchState, entry: GameEntry) -> None:
                _report(state, entry)
                sprt = state.sprt.text if state.sprt else ""
                live.update(f"{text(state.table(settings.title))}{sprt}")

            return tournament.run(show)


def _report(state: MatchState, entry: GameEntry) -> None:
    note(
        f"game {len(state.entries)}/{state.scheduled}: {entry.first} - {entry.second} {entry.result} "
        f"{entry.reason}, {len(entry.moves)} plies"
    )


def _print_json(state: MatchState, settings: MatchSettings) -> None:
    from collections import Counter

    from variant_ai.core.arena.tables.crosstable import as_json

    sprt = state.sprt
    print_json(
        {
            **as_json(state.table(settings.title)),
            "wanted": state.scheduled,
            "complete": not state.stopped,
            "reasons": dict(Counter(entry.reason for entry in state.entries).most_common()),
            "sprt": None if sprt is None else vars(sprt),
        }
    )
