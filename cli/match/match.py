"""`variant-ai match`: games between engines and nets, a table, a PGN file."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import console, note, print_json
from variant_ai.cli.common.model_options import ModelCommand
from variant_ai.cli.common.options import (
    COUNT,
    EXISTING_FILE,
    FOLDER,
    examples,
    json_option,
    output_option,
    variant_option,
)
from variant_ai.core.errors import DataError, EngineError
from variant_ai.core.system.interrupts import stop_on_signal
from variant_ai.core.system.text_tables import counted

if TYPE_CHECKING:
    from variant_ai.core.arena.match.match_record import GameEntry
    from variant_ai.core.arena.match.match_settings import MatchSettings
    from variant_ai.core.arena.match.tournament import MatchState, Tournament


@click.command(
    cls=ModelCommand,
    model="variant_ai.core.arena.match.match_settings:MatchSettings",
    options={
        "--games": "games",
        "--clock": "clock",
        "--movetime": "movetime",
        "--nodes": "nodes",
        "--depth": "depth",
        "--openings FILE": "openings.file",
        "--opening-plies": "openings.plies",
        "--from-store STORE": "openings.store",
        "--opening-count": "openings.count",
        "--concurrency": "concurrency",
        "--margin": "margin",
        "--think": "think",
        "--ponder": "ponder",
        "--max-plies": "max_plies",
        "--resign MOVES:CP[:both]": "resign",
        "--draw FROM:MOVES:CP": "draw",
        "--title": "title",
        "--seed": "seed",
    },
    epilog=examples(
        "variant-ai match fairy-stockfish 'xboard:sjeng;depth=4' -V NAME --clock 60+0.25 -o m1",
        "# two settings of a network, at most 400 games, until one is shown to be better",
        "variant-ai match 'net:a.onnx;name=new' 'net:b.onnx;name=old' -V NAME --nodes 800 \\",
        "    --games 400 --sprt 0 20 --openings lines.pgn --concurrency 2 -o m2",
        "# a table of the papers; the same command resumes an interrupted match",
        "variant-ai match --config experiments/table-13.yaml -o runs/table-13",
    ),
)
@click.argument("players", nargs=-1, metavar="[PLAYER]...")
@variant_option(required=False)
@click.option(
    "--config",
    type=EXISTING_FILE,
    help="YAML file with the settings of the match; other options override the file.",
)
@output_option(
    "Folder of the games and tables; an interrupted match in it is resumed.",
    type=FOLDER,
    metavar="FOLDER",
)
@click.option(
    "--small",
    is_flag=True,
    help="With --config: use the settings of the file for a small run.",
)
@click.option(
    "--gauntlet",
    type=COUNT,
    metavar="N",
    help="The first N players meet all others; by default all players meet each other.",
)
@click.option("--random-order", is_flag=True, help="Use the openings in random order.")
@click.option(
    "--sprt",
    type=(float, float),
    metavar="ELO0 ELO1",
    help="Stop when a sequential test accepts one hypothesis (error probabilities 0.05).",
)
@json_option
def command(
    players: tuple[str, ...],
    variant: str | None,
    config: Path | None,
    output: Path,
    as_json: bool,
    small: bool,
    gauntlet: int | None,
    random_order: bool,
    sprt: tuple[float, float] | None,
    given: dict[str, Any],
) -> None:
    """Let engines and nets play matches, judged by the rules of the variant.

    A player is a command (UCI), PROTOCOL:COMMAND with uci, ucci, cyclone or xboard, a net (FILE.onnx,
    net:RUN, or packaged), random, or a YAML file; more settings follow after semicolons: name=, clock=, movetime=, nodes=,
    depth=, threads=, evaluator=NAME[@PRECISION], settings=, search.NAME=, option.NAME=, variant=,
    ranks=0|1, letters=own|also, restart=true, ponder=true, optional=true, timeout=.
    If --config is a gauntlet, the players given here replace its first ones and play its opponents.

    A player that crashes, hangs, plays an illegal move, exceeds its time, or falsely claims the end
    of the game or a mate in one loses the game, and the match continues. Every finished game is
    stored before the next one begins; the same command resumes an interrupted match. FOLDER has
    games.jsonl, games.pgn and the table as text, CSV and HTML.
    """
    if gauntlet is not None:
        given |= {"kind": "gauntlet", "seeds": gauntlet, "pairs": []}
    if random_order:
        given.setdefault("openings", {})["order"] = "random"
    if sprt is not None:
        given["sprt"] = sprt
    settings = _settings(players, variant, config, given, small=small)

    from variant_ai.cli.common.player_options import beside, load_openings, make_player
    from variant_ai.core.arena.match.tournament import Tournament
    from variant_ai.core.arena.tables.crosstable import text
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
    with _with_needs(settings.needs):
        for source in filter(None, (settings.openings.file, settings.openings.store)):
            if not beside(source, folder).exists():
                also = f", nor in {folder}" if folder else ""
                raise DataError(f"no such file of openings: {source}{also}")
        openings = load_openings(
            settings.openings, rules, settings.seed, folder=folder, max_plies=settings.max_plies
        )
    tournament = Tournament(
        settings,
        rules,
        lambda index: make_player(specs[index], rules, settings.seed),
        openings,
        output,
        registry().notation(spec, "san" if spec.hands or spec.castling else "uci"),
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
        note(
            f"{len(state.entries)} of {counted(state.scheduled, 'game')}; the same command resumes the match"
        )
        raise KeyboardInterrupt


def _installed(players: Any, where: str) -> Any:
    """Return the players without optional ones whose program is missing, and print these. where: origin of
    the players, for error messages."""
    from variant_ai.core.arena.players.player_spec import PlayerSpec, player_of
    from variant_ai.core.arena.programs.engine_process import engine_command

    if not isinstance(players, list):
        return players
    kept = []
    for number, given in enumerate(players, start=1):
        is_parsed = isinstance(given, PlayerSpec)
        player = given if is_parsed else player_of(given, f"{where}, player {number}")
        if player.optional and player.command:
            try:
                engine_command(player.command)
            except EngineError as error:
                note(f"left out: {player.label} ({error})")
                continue
        kept.append(player)
    return kept


@contextlib.contextmanager
def _with_needs(needs: str) -> Iterator[None]:
    """Add the `needs` of the match's file to an error about something missing."""
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
    """Return the settings of the file, overridden by those of the command line."""
    from variant_ai.cli.common.player_options import require_player
    from variant_ai.core.arena.match.match_settings import (
        LIMITS,
        read_match,
        settings_of,
        small_scale,
    )
    from variant_ai.core.arena.players.player_spec import parse_player

    settings: dict[str, Any] = {}
    if config is not None:
        read = read_match(config)
        settings.update(small_scale(read, str(config)) if small else read)
    elif small:
        raise click.UsageError("--small needs --config")
    if players:
        chosen = [parse_player(text) for text in players]
        listed, seeds = settings.get("players"), settings.get("seeds", 1)
        is_gauntlet = settings.get("kind") == "gauntlet" and "kind" not in given
        if is_gauntlet and isinstance(listed, list) and isinstance(seeds, int):
            settings |= {"players": [*chosen, *listed[seeds:]], "seeds": len(chosen)}
        else:
            settings["players"] = chosen
    if variant is not None:
        settings["variant"] = variant
    if "variant" not in settings:
        raise click.UsageError("Missing option '-V' / '--variant'.")
    if "players" not in settings:
        raise click.UsageError("Missing argument 'PLAYER...'; or give --config.")
    openings = settings.get("openings") or {}
    changed = given.pop("openings", {})
    if "file" in changed or "store" in changed:
        openings = {k: v for k, v in openings.items() if k not in ("file", "lines", "store")}
    if openings or changed:
        settings["openings"] = openings | changed
    if any(name in given for name in LIMITS):
        settings = {name: value for name, value in settings.items() if name not in LIMITS}
    settings |= given
    folder = config.parent if config else None
    where = str(config) if config else "match"
    settings["players"] = _installed(settings["players"], where)
    with _with_needs(str(settings.get("needs", ""))):
        return settings_of(settings, where, lambda player: require_player(player, folder))


def _run(tournament: Tournament, settings: MatchSettings) -> MatchState:
    """Play. The first Ctrl-C stops the match and keeps all finished games."""
    with stop_on_signal() as interrupt:
        interrupt.stops.append(tournament.stop)
        if not sys.stderr.isatty():
            return tournament.run(_print_game)
        from rich.live import Live

        from variant_ai.core.arena.tables.crosstable import text

        with Live(console=console(stderr=True), refresh_per_second=2) as live:

            def show(state: MatchState, entry: GameEntry) -> None:
                _print_game(state, entry)
                table = text(state.table(settings.title))
                live.update(f"{table}{state.sprt.text if state.sprt else ''}")

            return tournament.run(show)


def _print_game(state: MatchState, entry: GameEntry) -> None:
    game = f"game {len(state.entries)}/{state.scheduled}: {entry.first} - {entry.second}"
    note(f"{game} {entry.result} {entry.reason}, {counted(len(entry.moves), 'ply')}")


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
