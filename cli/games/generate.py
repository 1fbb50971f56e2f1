"""`variant-ai generate`: games of a UCI engine or a net with itself, into a game store."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
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
    from variant_ai.core.arena.games.blunder_filter import BlunderRule
    from variant_ai.core.arena.games.both_sides import SelfPlayer
    from variant_ai.core.arena.games.generation import Ended, GameGenerator
    from variant_ai.core.arena.games.generation_journal import GeneratedGames
    from variant_ai.core.data.store.store_writer import Mode
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.spec.schema import VariantSpec


@click.command(
    epilog=examples(
        "variant-ai generate -V NAME --nodes 100 --games 100 -o g.store",
        "variant-ai generate --engine fairy-stockfish -V NAME --nodes 500 --games 100 -o g.store",
        "# openings from a file, two engines at a time, behind the games that are there",
        "variant-ai generate --engine ./my-engine -V NAME --openings lines.epd --workers 2 \\",
        "    --append -o g.store",
        "# lost games are ended, and games in which a move lost more than four pawns are dropped",
        "variant-ai generate --engine fairy-stockfish -V NAME --resign 4:900 --drop-blunders 400 \\",
        "    -o g.store",
        "# first games of a variant that no engine knows: the search without a net",
        "variant-ai generate -V FILE --engine 'net:-;evaluator=uniform' --nodes 400 \\",
        "    --random-share 0.2 -o g.store",
        "# a net with itself, noise at the root and drawn moves: its visits are kept to learn from",
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
    help="UCI engine: a program with its arguments, looked for in PATH and /usr/games; or a net as "
    "`match` names it, net:FILE[;search.NAME=VALUE...], or without one net:-;evaluator=uniform.",
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
    help="Finished games wanted.",
)
@click.option(
    "--nodes", type=click.IntRange(min=1), default=500, show_default=True, help="Nodes per move."
)
@click.option(
    "--node-jitter",
    type=FiniteRange(0, 1, max_open=True),
    default=0.0,
    show_default=True,
    help="Share by which the nodes of each move vary; 0.1 is ± 10 %.",
)
@seed_option()
@click.option(
    "--random-plies",
    type=(click.IntRange(min=0), click.IntRange(min=0)),
    default=(2, 8),
    show_default=True,
    metavar="LEAST MOST",
    help="Each game starts with this many plies drawn among the legal moves.",
)
@click.option(
    "--random-share",
    type=FiniteRange(0, 1),
    default=0.0,
    show_default=True,
    help="Share of the later plies that are drawn among the legal moves too.",
)
@click.option(
    "--openings",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="What games start with, in turn: positions from an .epd or .fen file, lines drawn by weight "
    "from a Polyglot book (.bin), or the first plies of the games of any other file (PGN); packed or "
    "not (.gz, .xz, .zst).",
)
@click.option(
    "--opening-plies",
    type=click.IntRange(min=1),
    default=12,
    show_default=True,
    help="Plies taken of each game in --openings, and most plies of each line of a book.",
)
@click.option(
    "--max-plies",
    type=click.IntRange(min=1),
    default=400,
    show_default=True,
    help="A game as long as this is a draw.",
)
@click.option(
    "--resign",
    metavar="MOVES:CP[:both]",
    help="Ends a game as lost for who scored -CP or less in so many own moves in a row (4:900); "
    "`both`: and the other side +CP or more.",
)
@click.option(
    "--drop-blunders",
    "drop_blunders",
    type=click.IntRange(1, 2000),
    metavar="CP",
    help="Drops games in which a move lost more than CP: the sum of its score and of the answer's, "
    "each within ±1000. The search's own noise reaches 100 to 200 at a few hundred nodes.",
)
@click.option(
    "--cut-blunders",
    "cut_blunders",
    type=click.IntRange(1, 2000),
    metavar="CP",
    help="Keeps such games from the position after the last such move on, and drops those of which "
    "too little is left.",
)
@click.option(
    "--visits",
    "kept_moves",
    type=click.IntRange(min=0),
    metavar="MOVES",
    help="Of a net, how many moves of each search are kept with their visits, the most visited ones; "
    "32 by default, 0 keeps none.",
)
@click.option(
    "--hash",
    "hash_mb",
    type=click.IntRange(min=1),
    metavar="MB",
    help="Memory of each program, 16 by default.",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="Further option of a program; may be given several times.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Engines that play at the same time; the games are the same with any number.",
)
@click.option(
    "--timeout",
    type=FiniteRange(min=0, min_open=True),
    default=30.0,
    show_default=True,
    help="Seconds for one move; a program that needs longer is restarted and its game dropped.",
)
@click.option("--append", is_flag=True, help="Add to a store that exists.")
@click.option("--replace", is_flag=True, help="Replace a store that exists.")
@json_option
def command(
    engine: str,
    variant: str,
    output: Path,
    games: int,
    nodes: int,
    node_jitter: float,
    seed: int,
    random_plies: tuple[int, int],
    random_share: float,
    openings: Path | None,
    opening_plies: int,
    max_plies: int,
    resign: str | None,
    drop_blunders: int | None,
    cut_blunders: int | None,
    kept_moves: int | None,
    hash_mb: int | None,
    options: tuple[str, ...],
    workers: int,
    timeout: float,
    append: bool,
    replace: bool,
    as_json: bool,
) -> None:
    """Let a UCI engine or a net play itself into a game store.

    Openings are sampled by the seed, and the spec's rules end the games. The store keeps scores and,
    of a net, the visits of each position's moves (`train --labels visits`). An engine that dies,
    hangs or plays an illegal move is restarted and its game dropped, as is a game that was played
    before; both are counted by reason. Every finished game is kept in STORE.journal at once. After
    Ctrl-C, which puts the finished games into the store, or a kill, the same command goes on.
    """
    if random_plies[0] > random_plies[1]:
        raise click.BadParameter("the least is more than the most", param_hint="--random-plies")
    if append and replace:
        raise click.UsageError("--append and --replace exclude each other")
    if drop_blunders and cut_blunders:
        raise click.UsageError("--drop-blunders and --cut-blunders exclude each other")
    from variant_ai.cli.common.player_options import file_openings
    from variant_ai.core.arena.games.generation import GameGenerator, GenerateSettings
    from variant_ai.core.arena.games.generation_journal import GeneratedGames, journal_path
    from variant_ai.core.arena.match.match_settings import resign_rule
    from variant_ai.core.data.store.game_store import Store
    from variant_ai.plugins import registry

    spec = load_variant(variant)
    rules = registry().rules(spec)
    settings = GenerateSettings(
        games=games,
        nodes=nodes,
        node_jitter=node_jitter,
        seed=seed,
        random_plies=random_plies,
        random_share=random_share,
        max_plies=max_plies,
        resign=resign_rule(resign) if resign else None,
        blunder=_blunder_rule(drop_blunders, cut_blunders),
        move_timeout=timeout,
        workers=workers,
    )
    if openings is not None:
        read = file_openings(openings, opening_plies, rules, seed=seed)
        settings = dataclasses.replace(settings, openings=read)
    player = (
        _net(engine, rules, kept_moves, hash_mb, options)
        if engine.startswith(NET)
        else _program(engine, rules, kept_moves, hash_mb, options)
    )
    generator = GameGenerator(rules, player.make, settings)
    name = generator.check_engine()
    mode: Mode = "append" if append else "replace" if replace else "new"
    if mode == "new" and output.exists() and not journal_path(output).exists():
        raise DataError(f"{output} exists already; it may be replaced or appended to")
    if append and output.exists():
        Store(output, spec)  # of another variant: told now, not after the games
    deciding = {
        field.name: getattr(settings, field.name)
        for field in dataclasses.fields(settings)
        if field.name not in ("games", "workers", "openings", "move_timeout", "resign", "blunder")
    }
    deciding |= {
        "random_plies": list(random_plies),
        "engine": name,
        **player.deciding,
        "openings": hashlib.blake2b(repr(settings.openings).encode(), digest_size=8).hexdigest(),
        "append": append,
    }
    for rule, said in (("resign", settings.resign), ("blunder", settings.blunder)):
        if said is not None:
            deciding[rule] = dataclasses.asdict(said)
    output.parent.mkdir(parents=True, exist_ok=True)
    sources = [f"self-play of {name}, {nodes} nodes a move, seed {seed}"]
    if mode == "new":
        _require_own(output, spec, sources)
    with GeneratedGames(output, spec.variant, deciding) as journal:
        if journal.resumed:
            note(f"going on after {journal.resumed} games of {journal.path}")
        report = _Report()
        _play(generator, journal, games, report)
        if mode == "new" and output.exists():
            _require_own(output, spec, sources)
            mode = "replace"
        _write(journal, games, output, spec, mode, sources, report)
        ended_early = report.interrupted or report.failure
        if not (ended_early and journal.has_games()):
            journal.remove()
    _print(report, output, as_json)
    if report.interrupted:
        raise KeyboardInterrupt
    if report.failure:
        fail(report.failure)


def _require_own(output: Path, spec: VariantSpec, sources: list[str]) -> None:
    """Raises DataError where the store holds other games than an interrupted run of this command put
    there: they would be replaced."""
    from variant_ai.core.data.store.game_store import Store

    if output.exists():
        runs = Store(output, spec).info.runs
        if [list(run.sources) for run in runs] != [sources]:
            raise DataError(
                f"{output} holds games of other commands too, which would be replaced; move it away, "
                "and the same command goes on"
            )


NET = "net:"


@dataclass(frozen=True)
class _Player:
    """Who plays: how to make one, and what decides its games."""

    make: Callable[[], SelfPlayer]
    deciding: dict[str, Any]


def _program(
    text: str, rules: Rules, kept_moves: int | None, hash_mb: int | None, options: tuple[str, ...]
) -> _Player:
    from variant_ai.core.arena.games.both_sides import UciSelfPlayer
    from variant_ai.core.arena.programs.uci_client import UciClient, engine_command

    if kept_moves is not None:
        raise click.BadParameter(
            "only a net (--engine net:FILE) tells how often it visited a move, UCI does not",
            param_hint="--visits",
        )
    wanted, memory = _named(options), 16 if hash_mb is None else hash_mb
    words, variant = engine_command(text), rules.spec.fairy or rules.spec.variant
    soft = {"Threads": "1", "Hash": str(memory)}

    def made() -> SelfPlayer:
        return UciSelfPlayer(UciClient(words, options=wanted, soft_options=soft), variant)

    return _Player(made, {"command": words, "options": wanted, "hash": memory})


def _net(
    text: str, rules: Rules, kept_moves: int | None, hash_mb: int | None, options: tuple[str, ...]
) -> _Player:
    from variant_ai.cli.common.player_options import NO_NET, make_search, net_digest
    from variant_ai.core.arena.games.both_sides import KEPT_MOVES, NetSelfPlayer
    from variant_ai.core.arena.players.player_spec import parse_player
    from variant_ai.plugins import registry

    if options or hash_mb is not None:
        raise click.UsageError(
            "--option and --hash are for programs; settings of a net follow it: "
            "net:FILE;search.memory_mb=256"
        )
    said = parse_player(text)
    if said.allowance().given:
        raise click.BadParameter("a net is told its nodes by --nodes", param_hint="--engine")
    # The same seed is to give the same games, unless somebody wants it otherwise.
    file = registry().net(rules.spec, Path(said.net))
    spec = said.model_copy(
        update={"net": str(file), "search": {"deterministic": True, **said.search}}
    )
    kept = KEPT_MOVES if kept_moves is None else kept_moves
    if spec.net != NO_NET and not file.is_file():
        raise click.BadParameter(f"there is no net {spec.net}", param_hint="--engine")

    def made() -> SelfPlayer:
        return NetSelfPlayer(lambda: make_search(spec, rules), spec.label, kept)

    return _Player(made, {"command": [text], "net": net_digest(file), "visits": kept})


@dataclass
class _Report:
    games: int = 0
    plies: int = 0
    results: Counter[str] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    """By reason."""
    cut: int = 0
    """Games without what came before a blunder."""
    failure: str = ""
    """Why the engine was given up."""
    interrupted: bool = False

    def count(self, game: Ended) -> None:
        from variant_ai.core.arena.games.blunder_filter import CUT_TAG
        from variant_ai.core.arena.games.generation import Dropped

        if isinstance(game, Dropped):
            self.dropped[game.reason] += 1
            return
        self.games += 1
        self.plies += game.plies
        self.results[game.result] += 1
        self.endings[game.termination] += 1
        self.cut += CUT_TAG in game.tags


def _play(generator: GameGenerator, journal: GeneratedGames, wanted: int, report: _Report) -> None:
    """Play until enough games are in the journal, the engine is given up, or Ctrl-C; which of the
    two last is told in the report."""
    from variant_ai.core.arena.games.generation import STOPPED, Dropped, is_settled, number_of

    done = {number_of(game): game for game in journal.games()}
    finished = dropped = 0
    with progress() as bar, contextlib.closing(generator.games(done, journal.add)) as games:
        task = bar.add_task("games", total=wanted)
        try:
            for game in games:
                if isinstance(game, Dropped):
                    dropped += 1
                    if not is_settled(game) and game.reason != STOPPED:
                        report.count(game)  # the journal does not tell of it
                else:
                    finished += 1
                bar.update(task, completed=finished, note=f"{dropped} dropped")
        except KeyboardInterrupt:
            report.interrupted = True
        except EngineError as error:
            report.failure = str(error)


def _write(
    journal: GeneratedGames,
    wanted: int,
    output: Path,
    spec: VariantSpec,
    mode: Mode,
    sources: list[str],
    report: _Report,
) -> None:
    """Put the wanted games into the store, counting them; without a game nothing is written. Games
    that it has, from an interrupted run or another command with the same seed, stay single."""
    from variant_ai.core.arena.games.generation import DUPLICATE, Dropped, number_of
    from variant_ai.core.data.store.store_writer import StoreWriter

    if not journal.has_games():
        for game in journal.games():
            report.count(game)
        return
    append = mode == "append"
    with StoreWriter(output, spec, mode=mode, sources=sources, drop_duplicates=append) as writer:
        for game in journal.unlike(wanted):
            is_new = isinstance(game, Dropped) or writer.add(game)
            report.count(game if is_new else Dropped(number_of(game), DUPLICATE))
        writer.close(dropped=report.dropped)


def _print(report: _Report, output: Path, as_json: bool) -> None:
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


def _blunder_rule(drop: int | None, cut: int | None) -> BlunderRule | None:
    from variant_ai.core.arena.games.blunder_filter import BlunderRule

    if cut is not None:
        return BlunderRule(cut, "cut")
    return None if drop is None else BlunderRule(drop)


def _counted(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counter.most_common())


def _named(options: tuple[str, ...]) -> dict[str, str]:
    """`NAME=VALUE` texts as a mapping."""
    named: dict[str, str] = {}
    for text in options:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--option")
        named[name.strip()] = value.strip()
    return named
