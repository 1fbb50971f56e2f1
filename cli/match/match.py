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
        "# two settings of a network, at most 400 games, until one is shown to be better",
        "variant-ai match 'net:a.onnx;name=new' 'net:b.onnx;name=old' -V NAME --nodes 800 \\",
        "    --games 400 --sprt 0 20 --openings lines.pgn --concurrency 2 -o m2",
        "# a table of the papers; the same command goes on where it was stopped",
        "variant-ai match --config experiments/table-13.yaml -o runs/table-13",
    )
)
@click.argument("players", nargs=-1, metavar="[PLAYER]...")
@variant_option(required=False)
@click.option(
    "--config",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="YAML file with the settings of the match; what is given here goes before it.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    metavar="FOLDER",
    help="Folder of the games and tables; a match that was stopped goes on there.",
)
@click.option("--games", type=click.IntRange(min=1), help="Games of each pair of players. [2]")
@click.option("--clock", metavar="TEXT", help="[MOVES/]BASE[+INCREMENT] in seconds, or 15:00+5.")
@click.option("--movetime", type=FiniteRange(min=0, min_open=True), help="Seconds for each move.")
@click.option("--nodes", type=click.IntRange(min=1), help="Nodes or simulations for each move.")
@click.option("--depth", type=click.IntRange(min=1), help="Plies of each search.")
@click.option(
    "--gauntlet",
    "seeds",
    type=click.IntRange(min=1),
    metavar="N",
    help="The first N players meet all others; without it everybody meets everybody.",
)
@click.option(
    "--openings",
    metavar="FILE",
    help="What games start with: positions (.epd, .fen), lines drawn by weight from a Polyglot book "
    "(.bin), or lines of games (PGN, move lists), packed or not (.gz, .xz, .zst); each is played with "
    "both colours.",
)
@click.option("--opening-plies", type=click.IntRange(min=1), help="Plies of each line. [16]")
@click.option("--from-store", metavar="STORE", help="Start from positions of a game store.")
@click.option(
    "--opening-count",
    type=click.IntRange(min=1),
    help="Take so many openings; of a store 100 where it is not said.",
)
@click.option("--random-order", is_flag=True, help="Take the openings in random order.")
@click.option("--concurrency", type=click.IntRange(min=1), help="Games at a time. [1]")
@click.option(
    "--margin", type=FiniteRange(min=0), help="Seconds a move may be over its time. [0.05]"
)
@click.option(
    "--think",
    type=FiniteRange(min=0, min_open=True),
    help="Seconds for a move without a time limit, then the player counts as hung. [60]",
)
@click.option(
    "--ponder",
    is_flag=True,
    default=None,
    help="Programs think on while the other side does; nets do not.",
)
@click.option("--max-plies", type=click.IntRange(min=1), help="A longer game is a draw. [600]")
@click.option("--resign", metavar="MOVES:CP[:both]", help="Adjudicate lost games: 3:600.")
@click.option("--draw", metavar="FROM:MOVES:CP", help="Adjudicate drawn games: 40:8:10.")
@click.option(
    "--sprt",
    type=(float, float),
    metavar="ELO0 ELO1",
    help="Stop when one hypothesis is accepted (errors 0.05).",
)
@click.option(
    "--small", is_flag=True, help="With --config: the settings that the file has for a small run."
)
@click.option("--title", help="Name of the match.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of everything random. [0]")
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
    random, or a YAML file; further words follow after semicolons: name=, clock=, movetime=, nodes=,
    depth=, option.NAME=, search.NAME=, variant=, ranks=0|1, letters=own|also, restart=true,
    ponder=true.

    Who crashes, hangs, plays an illegal move, oversteps its time, or claims an end or a mate in one
    that is none loses the game, and the match goes on. Every finished game is safe on disk before
    the next one begins; the same command goes on after any interruption. FOLDER has games.jsonl,
    games.pgn and the table as text, CSV and HTML.
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
    with _saying_needs(settings.needs):
        for source in filter(None, (settings.openings.file, settings.openings.store)):
            if not beside(source, folder).exists():
                places = f"neither here nor in {folder}" if folder else "not here"
                raise DataError(f"the openings {source} are {places}")
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
        note(f"{len(state.entries)} of {state.wanted} games; the same command goes on")
        raise KeyboardInterrupt


def _installed(players: Any) -> Any:
    """Players without optional ones whose program is missing, which is reported."""
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
def _saying_needs(needs: str) -> Iterator[None]:
    """Add the `needs` of the match's file to an error about something missing."""
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
    """Settings of the file; those of the command line override them."""
    from variant_ai.cli.common.player_options import require_player
    from variant_ai.core.arena.match.match_settings import LIMITS, settings_of, small_scale
    from variant_ai.core.arena.players.player_spec import parse_player, read_yaml
    from variant_ai.core.errors import SettingError

    said: dict[str, Any] = {}
    if config is not None:
        read = read_yaml(config)
        if not isinstance(read, dict):
            raise SettingError(f"{config}: a mapping of settings is expected")
        said.update(small_scale(read, str(config)) if small else read)
    elif small:
        raise click.UsageError("--small goes with --config")
    if players:
        said["players"] = [parse_player(text) for text in players]
    if variant is not None:
        said["variant"] = variant
    if "variant" not in said:
        raise click.UsageError("Missing option '-V' / '--variant'.")
    if "players" not in said:
        raise click.UsageError("Missing argument 'PLAYER...'; or give --config.")
    seeds = given.pop("seeds")
    if seeds is not None:
        said.update(kind="gauntlet", seeds=seeds)
    openings = dict(said.get("openings") or {})
    sources = {"file": given.pop("openings"), "store": given.pop("from_store")}
    if any(sources.values()):
        openings = {k: v for k, v in openings.items() if k not in ("file", "lines", "store")}
    sources |= {"plies": given.pop("opening_plies"), "count": given.pop("opening_count")}
    openings |= {name: value for name, value in sources.items() if value is not None}
    if given.pop("random_order"):
        openings["order"] = "random"
    if openings:
        said["openings"] = openings
    limits = {name: given.pop(name) for name in LIMITS}
    if any(value is not None for value in limits.values()):
        said = {name: value for name, value in said.items() if name not in limits}
        said |= {name: value for name, value in limits.items() if value is not None}
    said |= {name: value for name, value in given.items() if value is not None}
    folder = config.parent if config else None
    said["players"] = _installed(said["players"])
    with _saying_needs(str(said.get("needs", ""))):
        return settings_of(
            said,
            str(config) if config else "match",
            lambda player: require_player(player, folder),
        )


def _run(tournament: Tournament, settings: MatchSettings) -> MatchState:
    """Play; Ctrl-C stops with all finished games kept."""
    # The first Ctrl-C ends the match in good order, whatever thread is waiting for whom.
    with stop_on_signal() as interrupt:
        interrupt.stops.append(tournament.stop)
        if not sys.stderr.isatty():
            return tournament.run(_tell)
        from rich.live import Live

        from variant_ai.core.arena.tables.crosstable import text

        with Live(console=console(stderr=True), refresh_per_second=2) as live:

            def show(state: MatchState, entry: GameEntry) -> None:
                _tell(state, entry)
                said = text(state.table(settings.title))
                live.update(f"{said}{state.sprt.text if state.sprt else ''}")

            return tournament.run(show)


def _tell(state: MatchState, entry: GameEntry) -> None:
    said = f"game {len(state.entries)}/{state.wanted}: {entry.first} - {entry.second} "
    note(f"{said}{entry.result} {entry.reason}, {len(entry.moves)} plies")


def _print_json(state: MatchState, settings: MatchSettings) -> None:
    from collections import Counter

    from variant_ai.core.arena.tables.crosstable import as_json

    sprt = state.sprt
    print_json(
        {
            **as_json(state.table(settings.title)),
            "wanted": state.wanted,
            "complete": not state.stopped,
            "reasons": dict(Counter(entry.reason for entry in state.entries).most_common()),
            "sprt": None if sprt is None else vars(sprt),
        }
    )
