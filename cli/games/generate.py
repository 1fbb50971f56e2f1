"""`variant-ai generate`: games of a program or a net against itself, into a game store."""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import note, print_facts, print_json, progress
from variant_ai.cli.common.ending import fail
from variant_ai.cli.common.model_options import ModelCommand
from variant_ai.cli.common.options import (
    EXISTING_FILE,
    cluster_pools,
    examples,
    json_option,
    load_variant,
    output_option,
    ray_option,
    reject_given,
    variant_option,
)
from variant_ai.cli.common.search_options import name_values
from variant_ai.cli.common.store_options import writing_mode
from variant_ai.core.errors import DataError, EngineError
from variant_ai.core.system.text_tables import counted

if TYPE_CHECKING:
    from variant_ai.core.arena.games.generated_games import GeneratedGames, GenerationReport
    from variant_ai.core.arena.games.generation import GameGenerator, GenerationSettings
    from variant_ai.core.arena.games.openings import Opening
    from variant_ai.core.arena.players.player_spec import PlayerSpec
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.spec.schema import VariantSpec


@click.command(
    cls=ModelCommand,
    model="variant_ai.core.arena.games.generation:GenerationSettings",
    options={
        "--engine CMD": "engine",
        "--games": "games",
        "--nodes": "nodes",
        "--node-jitter": "node_jitter",
        "--seed": "seed",
        "--random-plies MIN MAX": "random_plies",
        "--random-share": "random_share",
        "--opening-plies": "opening_plies",
        "--max-plies": "max_plies",
        "--resign MOVES:CP[:both]": "resign",
        "--drop-blunders CP": "drop_blunders",
        "--cut-blunders CP": "cut_blunders",
        "--visits MOVES": "kept_visits",
        "--hash MB": "hash_mb",
        "--workers": "workers",
        "--timeout": "timeout",
        "--append": "append",
        "--replace": "replace",
    },
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
        "variant-ai generate -V FILE --engine 'net:-;evaluator=material' --nodes 400 \\",
        "    --random-share 0.2 -o g.store",
        "# a net with root noise and sampled moves; train on the visits of its searches",
        "variant-ai generate -V NAME --nodes 400 -o g.store --engine \\",
        "    'net:model.onnx;search.noise_epsilon=0.25;search.temperature_moves=15'",
        "variant-ai train -V NAME --data g.store --labels visits --from runs/mine",
    ),
)
@variant_option()
@output_option("Game store to write.", metavar="STORE")
@click.option(
    "--openings",
    type=EXISTING_FILE,
    metavar="FILE",
    help="Openings, used in turn: positions of an .epd or .fen file, lines sampled from a Polyglot "
    "book (.bin), or the first plies of the games of any other file (PGN). The file may be "
    "compressed (.gz, .xz, .zst).",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="Other option of a program; may be given several times.",
)
@ray_option("Play the games")
@json_option
def command(
    variant: str,
    output: Path,
    openings: Path | None,
    options: tuple[str, ...],
    cluster: str | None,
    as_json: bool,
    given: dict[str, Any],
) -> None:
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
    from variant_ai.core.arena.games.generation import GenerationSettings
    from variant_ai.core.arena.games.openings import Opening
    from variant_ai.core.data.store.game_store import Store
    from variant_ai.core.system.checked_models import checked
    from variant_ai.plugins import registry

    given |= {"openings": openings, "options": name_values(options, "--option")}
    if openings is None:
        reject_given(["opening_plies"], "needs --openings")
    settings = checked(GenerationSettings, given, "generate")
    _check(settings)
    mode = writing_mode(settings.append, settings.replace)
    spec = load_variant(variant)
    rules = registry().rules(spec)
    starts: tuple[Opening, ...] = (Opening(),)
    if openings is not None:
        starts = file_openings(openings, settings.opening_plies, rules, seed=settings.seed)
    generator, player = _generator(settings, rules, starts)
    name = generator.check_player()
    if cluster is not None:
        generator = _on_cluster(cluster, generator, name, starts)
    if mode == "new" and output.exists() and not journal_path(output).exists():
        raise DataError(
            f"{output} already exists; use --replace to overwrite it, or --append to add games"
        )
    if mode == "append" and output.exists():
        Store(output, spec)  # raises before the first game if it is of another variant
    output.parent.mkdir(parents=True, exist_ok=True)
    sources = [
        f"self-play of {name}, {counted(settings.nodes, 'node')} a move, seed {settings.seed}"
    ]
    if mode == "new":
        require_own_store(output, spec, sources)
    decisive = settings.decisive(name, player, starts)
    with GeneratedGames(output, spec.variant, decisive) as journal:
        if mode == "append" and not journal.resumed and _has_run(output, sources):
            note(
                f"{output} already holds games of the same player and seed ({sources[0]}), and repeated games "
                "are dropped: give another --seed for new ones"
            )
        if journal.resumed:
            note(f"continuing after {counted(journal.resumed, 'game')} of {journal.path}")
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
    if report.rule_faults:
        _advise_on_rules(name, spec, report)
    if report.interrupted:
        note(f"{report.games} of {counted(settings.games, 'game')}; the same command continues")
        raise KeyboardInterrupt
    if report.failure:
        fail(report.failure)


def _check(settings: GenerationSettings) -> None:
    if settings.random_plies[0] > settings.random_plies[1]:
        raise click.BadParameter(
            "the minimum is greater than the maximum", param_hint="--random-plies"
        )
    if settings.drop_blunders and settings.cut_blunders:
        raise click.UsageError("--drop-blunders and --cut-blunders exclude each other")


def _generator(
    settings: GenerationSettings,
    rules: Rules,
    starts: Sequence[Opening],
    sent: _SentNet | None = None,
) -> tuple[GameGenerator, dict[str, Any]]:
    """Generator of the games, and the settings of its player that decide them."""
    from variant_ai.core.arena.players.player_spec import parse_player

    player = parse_player(settings.engine)
    if player.random:
        raise click.BadParameter("a program or a net is expected", param_hint="--engine")
    if player.allowance().given:
        raise click.BadParameter("give the nodes of a player with --nodes", param_hint="--engine")
    if player.net:
        return _net_generator(settings, player, rules, starts, sent)
    return _program_generator(settings, player, rules, starts)


def _program_generator(
    settings: GenerationSettings, program: PlayerSpec, rules: Rules, starts: Sequence[Opening]
) -> tuple[GameGenerator, dict[str, Any]]:
    from variant_ai.cli.common.player_options import steady_player
    from variant_ai.core.arena.games.game_generators import PlayerGames
    from variant_ai.core.arena.programs.engine_process import engine_command

    if settings.kept_visits is not None:
        raise click.BadParameter(
            "only a net (--engine net:FILE) reports visits, UCI does not", param_hint="--visits"
        )
    options, memory = {**program.option_texts, **settings.options}, settings.hash_mb or 16
    decisive = {"command": engine_command(program.command), "options": options, "hash": memory}
    if others := program.model_dump(
        mode="json", exclude_defaults=True, exclude={"command", "options", "name", "timeout"}
    ):
        decisive["player"] = others
    program = program.model_copy(update={"options": options})
    make = functools.partial(steady_player, program, rules, hash_mb=memory)
    return PlayerGames(settings, rules, make, starts), decisive


def _net_generator(
    settings: GenerationSettings,
    spec: PlayerSpec,
    rules: Rules,
    starts: Sequence[Opening],
    sent: _SentNet | None,
) -> tuple[GameGenerator, dict[str, Any]]:
    """Games at once with shared batches; one for each worker, with the ordinary search, if only that
    can play them."""
    from variant_ai.cli.common.player_options import (
        KEPT_VISITS,
        NO_NET,
        load_net,
        make_player,
        net_digest,
        search_params,
    )
    from variant_ai.core.arena.games.game_generators import NetGames, PlayerGames
    from variant_ai.core.rules.kernel.kernel_rules import is_compiled
    from variant_ai.plugins import registry

    if settings.options or settings.hash_mb is not None:
        raise click.UsageError(
            "--option and --hash are for programs; settings of a net are part of --engine: "
            "net:FILE;search.memory_mb=256"
        )
    if sent is not None:
        # A process of a cluster: one of many on its machine.
        unpacked = sent.unpacked()
        spec = spec.model_copy(
            update={"net": unpacked, "name": sent.player, "threads": spec.threads or 1}
        )
    file = registry().net(rules.spec, Path(spec.net))
    if str(file) != NO_NET and not net_digest(file):
        raise click.BadParameter(f"there is no net {file}", param_hint="--engine")
    kept = KEPT_VISITS if settings.kept_visits is None else settings.kept_visits
    decisive = {"command": [settings.engine], "net": net_digest(file), "visits": kept}
    # By default the search is deterministic, so that one seed gives one set of games.
    search = {"deterministic": True, **spec.search}
    net = spec.model_copy(update={"net": str(file), "search": search})
    params = search_params(net, rules)
    plain = params.algorithm == "graph" and not params.use_raw_network
    if plain and is_compiled(rules) and not search.get("reuse_tree", False):
        load = functools.partial(load_net, net, rules)
        games = NetGames(settings, rules, load, params, net.label, starts, kept_visits=kept)
        return games, decisive
    make = functools.partial(make_player, net, rules, kept_visits=kept)
    return PlayerGames(settings, rules, make, starts), decisive


@dataclass(frozen=True)
class _SentNet:
    """A net that is sent to the processes of a cluster."""

    player: str
    """Name of the player in records."""
    named: str
    """The name that the user gave."""
    content: bytes | None
    """Of an ONNX file; None: each machine has what was named."""

    def unpacked(self) -> str:
        """Write the net to a file, which is deleted when the process ends, and return its path."""
        if self.content is None:
            return self.named
        from variant_ai.core.system.folders import temporary_folder

        path = temporary_folder("variant-ai-net-") / "model.onnx"
        path.write_bytes(self.content)
        return str(path)


def _on_cluster(
    address: str, generator: GameGenerator, name: str, starts: Sequence[Opening]
) -> GameGenerator:
    """Return a generator of the same games on the machines of a cluster."""
    from variant_ai.core.arena.games.game_generators import PooledGames
    from variant_ai.core.arena.players.player_spec import parse_player
    from variant_ai.plugins import registry

    settings, spec = generator.settings, generator.rules.spec
    named = parse_player(settings.engine).net
    sent = None
    if named:
        file = registry().net(spec, Path(named))
        onnx = file / "model.onnx" if file.is_dir() else file
        content = onnx.read_bytes() if onnx.suffix == ".onnx" and onnx.is_file() else None
        sent = _SentNet(name, named, content)
    # The games at once of a net share the batches of one process.
    processes, make_pool = cluster_pools(address, None if named else settings.workers)
    text = spec.model_dump_json(by_alias=True, exclude_defaults=True)
    make = functools.partial(_generator_there, settings, text, tuple(starts), sent)
    return PooledGames(generator, make, make_pool, processes)


def _generator_there(
    settings: GenerationSettings, spec: str, starts: tuple[Opening, ...], sent: _SentNet | None
) -> GameGenerator:
    """Make the generator of a process on another machine, which may not have the spec's file."""
    from variant_ai.cli.common.options import registered_rules
    from variant_ai.core.spec.schema import VariantSpec

    one_game = settings if sent else settings.model_copy(update={"workers": 1})
    rules = registered_rules(VariantSpec.model_validate_json(spec))
    return _generator(one_game, rules, starts, sent)[0]


def _play(
    generator: GameGenerator, journal: GeneratedGames, wanted: int, report: GenerationReport
) -> None:
    """Play until the journal has enough games, the engine fails, or Ctrl-C; the report says
    which."""
    from variant_ai.core.arena.games.generated_games import (
        STOPPED,
        Dropped,
        is_settled,
    )

    finished = dropped = 0
    with progress() as bar, contextlib.closing(generator.games(journal.done, journal.add)) as games:
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


def _has_run(store: Path, sources: list[str]) -> bool:
    """Return True if a store exists and has a run of these sources."""
    from variant_ai.core.data.store.game_store import Store

    return store.exists() and any(list(run.sources) == sources for run in Store(store).info.runs)


def _print(report: GenerationReport, output: Path, as_json: bool) -> None:
    from variant_ai.core.arena.games.generated_games import DUPLICATE

    if as_json:
        print_json({"store": output if report.games else None, **vars(report)})
        return
    for reason, count in report.dropped.most_common():
        note(f"dropped {count}: {reason}")
    if not report.games:
        repeated = set(report.dropped) == {DUPLICATE}
        why = ": all repeat earlier ones; give another --seed" if repeated else ""
        note(f"no new game was finished{why}; nothing was written")
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


def _advise_on_rules(name: str, spec: VariantSpec, report: GenerationReport) -> None:
    from variant_ai.core.arena.players.player_spec import (
        PlayerSpec,
        advice_on_rules,
        program_variant,
    )

    # PlayerSpec: a program of this command has no name of its own for the variant.
    note(advice_on_rules(name, program_variant(PlayerSpec(), spec), spec, report.rule_faults))


def _counted(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counter.most_common())
