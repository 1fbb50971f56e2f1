"""`variant-ai generate`: games of a program or a net against itself, into a game store."""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import (
    FiniteRange,
    examples,
    fail,
    json_option,
    load_variant,
    note,
    print_facts,
    print_json,
    progress,
    seed_option,
    variant_option,
)
from variant_ai.core.errors import DataError, EngineError

if TYPE_CHECKING:
    from variant_ai.core.arena.games.generated_games import GeneratedGames, GenerationReport
    from variant_ai.core.arena.games.generation import GameGenerator, GenerationSettings
    from variant_ai.core.arena.players.player import Player
    from variant_ai.core.data.store.store_writer import Mode
    from variant_ai.core.rules.interface import Rules


def _name_values(texts: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Parse NAME=VALUE texts."""
    found = []
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--option")
        found.append((name, value))
    return tuple(found)


@click.command(
    epilog=examples(
        "variant-ai generate -V NAME --nodes 100 --games 100 -o g.store",
        "variant-ai generate --engine fairy-stockfish -V NAME --nodes 500 --games 100 -o g.store",
        "# openings from a file, two games at a time, added to a store that exists",
        "variant-ai generate --engine ./my-engine -V NAME --openings lines.epd --workers 2 \\",
        "    --append -o g.store",
        "# end lost games early, and drop games in which a move loses more than four pawns",
        "variant-ai generate --engine fairy-stockfish -V NAME --resign 4:900 --drop-blunders 400 \\",
        "    -o g.store",
        "# first games of a variant without engines: search without a net",
        "variant-ai generate -V FILE --engine 'net:-;evaluator=uniform' --nodes 400 \\",
        "    --random-share 0.2 -o g.store",
        "# a net with root noise and sampled moves; train on the visits of its searches",
        "variant-ai generate -V NAME --nodes 400 -o g.store --engine \\",
        "    'net:model.onnx;search.noise_epsilon=0.25;search.temperature=0.8'",
        "variant-ai train -V NAME --data g.store --labels visits --from runs/mine",
    )
)
@click.option(
    "--engine",
    default="net:packaged",
    show_default=True,
    metavar="CMD",
    help="UCI engine: a program with its arguments, searched in PATH and /usr/games; or a net as in "
    "`match`, net:FILE[;search.NAME=VALUE...]; or search without a net, net:-;evaluator=uniform.",
)
@variant_option()
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="STORE",
    help="Game store to write.",
)
@click.option(
    "--games",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Number of games to finish.",
)
@click.option(
    "--nodes", type=click.IntRange(min=1), default=500, show_default=True, help="Nodes per move."
)
@click.option(
    "--node-jitter",
    type=FiniteRange(0, 1, max_open=True),
    default=0.0,
    show_default=True,
    help="Share by which the nodes of each move vary; 0.1 means ± 10 %.",
)
@seed_option()
@click.option(
    "--random-plies",
    type=(click.IntRange(min=0), click.IntRange(min=0)),
    default=(2, 8),
    show_default=True,
    metavar="MIN MAX",
    help="Minimum and maximum number of random plies at the start of each game.",
)
@click.option(
    "--random-share",
    type=FiniteRange(0, 1),
    default=0.0,
    show_default=True,
    help="Share of later plies that are random, too.",
)
@click.option(
    "--openings",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Openings, used in turn: positions of an .epd or .fen file, lines sampled from a Polyglot "
    "book (.bin), or the first plies of the games of any other file (PGN). The file may be "
    "compressed (.gz, .xz, .zst).",
)
@click.option(
    "--opening-plies",
    type=click.IntRange(min=1),
    default=12,
    show_default=True,
    help="Plies taken from each game of --openings, maximum for a line of a book.",
)
@click.option(
    "--max-plies",
    type=click.IntRange(min=1),
    default=400,
    show_default=True,
    help="A game of this length is a draw.",
)
@click.option(
    "--resign",
    metavar="MOVES:CP[:both]",
    help="End a game as lost for a player that scored -CP or less in that many own moves in a row "
    "(4:900); `both`: if the other side scored +CP or more, too.",
)
@click.option(
    "--drop-blunders",
    "drop_blunders",
    type=click.IntRange(1, 2000),
    metavar="CP",
    help="Drop games in which a move loses more than CP, the sum of its score and the reply's, each "
    "within ±1000. The noise of a search is 100 to 200 at a few hundred nodes.",
)
@click.option(
    "--cut-blunders",
    "cut_blunders",
    type=click.IntRange(1, 2000),
    metavar="CP",
    help="Keep such games from the position after the last such move on, and drop those that become "
    "too short.",
)
@click.option(
    "--visits",
    "kept_visits",
    type=click.IntRange(min=0),
    metavar="MOVES",
    help="For a net: number of moves of each search, most visited first, that are stored with their "
    "visits.  [default: 32]",
)
@click.option(
    "--hash",
    "hash_mb",
    type=click.IntRange(min=1),
    metavar="MB",
    help="Memory of each program.  [default: 16]",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    callback=lambda _context, _option, texts: _name_values(texts),
    help="Other option of a program; may be given several times.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Games at the same time; their number does not change the games.",
)
@click.option(
    "--timeout",
    type=FiniteRange(min=0, min_open=True),
    default=30.0,
    show_default=True,
    help="Seconds for one move; a program that takes longer is restarted and its game dropped.",
)
@click.option("--append", is_flag=True, help="Add to a store that exists.")
@click.option("--replace", is_flag=True, help="Replace a store that exists.")
@json_option
def command(variant: str, output: Path, as_json: bool, **given: Any) -> None:
    """Let a program or a net play itself into a game store.

    Openings depend on the seed, and the variant's rules end the games. The store holds scores and,
    for a net, the visits of each position's moves (`train --labels visits`). An engine that dies,
    hangs or plays an illegal move is restarted and its game dropped, as is a game that repeats an
    earlier one; both are counted by reason. Every finished game is saved in STORE.journal at once.
    Ctrl-C puts the finished games into the store; after it or a kill, the same command continues.
    """
    from variant_ai.cli.common.player_options import file_openings
    from variant_ai.core.arena.games.generated_games import (
        GeneratedGames,
        GenerationReport,
        journal_path,
        require_own_store,
    )
    from variant_ai.core.arena.games.generation import GameGenerator, GenerationSettings
    from variant_ai.core.arena.games.openings import Opening
    from variant_ai.core.data.store.game_store import Store
    from variant_ai.plugins import registry

    settings = GenerationSettings(**given)
    _check(settings)
    spec = load_variant(variant)
    rules = registry().rules(spec)
    openings: tuple[Opening, ...] = (Opening(),)
    if settings.openings is not None:
        openings = file_openings(
            settings.openings, settings.opening_plies, rules, seed=settings.seed
        )
    make_player, decisive = _player(settings, rules)
    generator = GameGenerator(settings, rules, make_player, openings)
    name = generator.check_player()
    mode: Mode = "append" if settings.append else "replace" if settings.replace else "new"
    if mode == "new" and output.exists() and not journal_path(output).exists():
        raise DataError(f"{output} exists already; use --append or --replace")
    if mode == "append" and output.exists():
        Store(output, spec)  # raises before the first game if it is of another variant
    output.parent.mkdir(parents=True, exist_ok=True)
    sources = [f"self-play of {name}, {settings.nodes} nodes a move, seed {settings.seed}"]
    if mode == "new":
        require_own_store(output, spec, sources)
    decisive = settings.decisive(name, decisive, openings)
    with GeneratedGames(output, spec.variant, decisive) as journal:
        if journal.resumed:
            note(f"continuing after {journal.resumed} games of {journal.path}")
        report = GenerationReport()
        _play(generator, journal, settings.games, report)
        if mode == "new" and output.exists():
            require_own_store(output, spec, sources)
            mode = "replace"
        journal.write(output, spec, report, games=settings.games, mode=mode, sources=sources)
        ended_early = report.interrupted or report.failure
        if not (ended_early and journal.has_games):
            journal.remove()
    _print(report, output, as_json)
    if report.interrupted:
        raise KeyboardInterrupt
    if report.failure:
        fail(report.failure)


def _check(settings: GenerationSettings) -> None:
    if settings.random_plies[0] > settings.random_plies[1]:
        raise click.BadParameter(
            "the minimum is greater than the maximum", param_hint="--random-plies"
        )
    if settings.append and settings.replace:
        raise click.UsageError("--append and --replace exclude each other")
    if settings.drop_blunders and settings.cut_blunders:
        raise click.UsageError("--drop-blunders and --cut-blunders exclude each other")


KEPT_VISITS = 32
"""Moves stored of each search: with 800 visits and noise, they have 99 % of the visits."""
NET = "net:"


def _player(
    settings: GenerationSettings, rules: Rules
) -> tuple[Callable[[], Player], dict[str, Any]]:
    """Maker of players, and those of their settings that decide the games."""
    from variant_ai.cli.common.player_options import NO_NET, make_player, net_digest
    from variant_ai.core.arena.players.player_spec import PlayerSpec, parse_player
    from variant_ai.core.arena.programs.engine_process import engine_command
    from variant_ai.core.arena.programs.program_player import UciPlayer
    from variant_ai.plugins import registry

    if not settings.engine.startswith(NET):
        if settings.kept_visits is not None:
            raise click.BadParameter(
                "only a net (--engine net:FILE) reports visits, UCI does not", param_hint="--visits"
            )
        options, memory = dict(settings.options), settings.hash_mb or 16
        program = PlayerSpec(command=settings.engine, options=dict(settings.options))
        soft = {"Threads": "1", "Hash": str(memory)}

        def make_program() -> Player:
            player = make_player(program, rules, soft_options=soft)
            assert isinstance(player, UciPlayer)
            player.resets_threads = True
            return player

        command = engine_command(settings.engine)
        return make_program, {"command": command, "options": options, "hash": memory}
    if settings.options or settings.hash_mb is not None:
        raise click.UsageError(
            "--option and --hash are for programs; settings of a net are part of --engine: "
            "net:FILE;search.memory_mb=256"
        )
    spec = parse_player(settings.engine)
    if spec.allowance().given:
        raise click.BadParameter("give the nodes of a net with --nodes", param_hint="--engine")
    file = registry().net(rules.spec, Path(spec.net))
    if str(file) != NO_NET and not file.is_file():
        raise click.BadParameter(f"there is no net {file}", param_hint="--engine")
    # By default the search is deterministic, so that one seed gives one set of games.
    search = {"deterministic": True, **spec.search}
    net = spec.model_copy(update={"net": str(file), "search": search})
    kept = KEPT_VISITS if settings.kept_visits is None else settings.kept_visits
    return functools.partial(make_player, net, rules, kept_visits=kept), {
        "command": [settings.engine],
        "net": net_digest(file),
        "visits": kept,
    }


def _play(
    generator: GameGenerator, journal: GeneratedGames, wanted: int, report: GenerationReport
) -> None:
    """Play until the journal has enough games, the engine fails, or Ctrl-C; the report says
    which."""
    from variant_ai.core.arena.games.generated_games import (
        STOPPED,
        Dropped,
        game_number,
        is_settled,
    )

    done = {game_number(game): game for game in journal.games()}
    finished = dropped = 0
    with progress() as bar, contextlib.closing(generator.games(done, journal.add)) as games:
        task = bar.add_task("games", total=wanted)
        try:
            for game in games:
                if isinstance(game, Dropped):
                    dropped += 1
                    if not is_settled(game) and game.reason != STOPPED:
                        report.count(game)  # it is not in the journal
                else:
                    finished += 1
                bar.update(task, completed=finished, note=f"{dropped} dropped")
        except KeyboardInterrupt:
            report.interrupted = True
        except EngineError as error:
            report.failure = str(error)


def _print(report: GenerationReport, output: Path, as_json: bool) -> None:
    if as_json:
        print_json({"store": output if report.games else None, **vars(report)})
        return
    for reason, count in report.dropped.most_common():
        note(f"dropped {count}: {reason}")
    if not report.games:
        note("no new game was finished; nothing was written")
        return
    print_facts(
        [
            ("store", output),
            ("games", report.games),
            ("plies", report.plies),
            ("results", _counted(report.results)),
            ("endings", _counted(report.endings)),
            ("dropped", report.dropped.total()),
            *([("cut", report.cut)] if report.cut else []),
        ]
    )


def _counted(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counter.most_common())
