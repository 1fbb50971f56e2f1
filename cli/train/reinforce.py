"""`variant-ai reinforce`: train a net from nothing, by games against itself."""

from __future__ import annotations

import json
import shlex
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import note, print_facts, print_json, print_table, progress
from variant_ai.cli.common.ending import EXIT_INTERRUPTED
from variant_ai.cli.common.model_options import ModelCommand
from variant_ai.cli.common.options import (
    FILE,
    FOLDER,
    examples,
    json_option,
    load_variant,
    ray_option,
    registered_rules,
    reject_given,
    variant_option,
)
from variant_ai.cli.common.training_options import let_threads_sleep
from variant_ai.core.errors import DataError, SettingError
from variant_ai.core.system.text_tables import counted
from variant_ai.core.train.measure.metric_tables import TITLES

if TYPE_CHECKING:
    from collections.abc import Callable

    from variant_ai.core.arena.games.openings import Opening
    from variant_ai.core.reinforce.games.game_supply import GameSupply
    from variant_ai.core.reinforce.reinforce_folder import ReinforceFolder
    from variant_ai.core.reinforce.reinforce_settings import ReinforceSettings
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.spec.schema import VariantSpec
    from variant_ai.core.train.run.initial_weights import Start

SHOWN_ROWS = 20
"""Generations that --status shows."""
SILENCE = 60.0
"""Seconds after which a log gets a line on the games of a generation."""


@click.command(
    cls=ModelCommand,
    model="variant_ai.core.reinforce.reinforce_settings:ReinforceSettings",
    options={
        "--minutes": "minutes",
        "--generations": "generations",
        "--from random|packaged|RUN|ONNX": "start",
        "--seed": "seed",
        "--games": "games_at_once",
        "--positions": "positions",
        "--search": "search.kind",
        "--nodes": "search.nodes",
        "--net": "learning.net",
        "--lr": "learning.lr",
        "--evaluator NAME": "evaluator",
        "--precision": "precision",
        "--device": "device",
        "--threads": "threads",
        "--players": "cluster.players",
    },
    epilog=examples(
        "# a variant from nothing, for half an hour of CPU time",
        "variant-ai reinforce -V NAME --minutes 30",
        "# the same command continues after Ctrl-C or a kill; after the end, give more minutes",
        "variant-ai reinforce -V NAME --minutes 60",
        "# settings from a file, single ones from options",
        "variant-ai reinforce -V NAME --settings mine.yaml --set search.nodes=32 \\",
        "    --set learning.size.blocks=4 --run runs/mine",
        "# from the net that comes with the variant",
        "variant-ai reinforce -V NAME --from packaged --minutes 60",
        "variant-ai reinforce --status runs/mine",
        "variant-ai play -V NAME --model runs/mine",
    ),
)
@variant_option(
    required=False,
    help="Variant: a name, or the path of a YAML spec; not needed to continue a run.",
)
@click.option(
    "--settings",
    "settings_file",
    type=FILE,
    metavar="FILE",
    help="YAML file with settings; options override it.",
)
@click.option(
    "--set",
    "words",
    multiple=True,
    metavar="WORD=VALUE",
    help="Any setting by its name, e.g. search.nodes=32. Can be repeated.",
)
@click.option(
    "--run",
    "folder",
    type=FOLDER,
    metavar="DIR",
    help="Folder of the run, a new one or one to continue.  [default: runs/reinforce-VARIANT]",
)
@ray_option("Play the games")
@click.option(
    "--status",
    type=FOLDER,
    metavar="DIR",
    help="Show how a run stands, and do nothing else.",
)
@json_option
@click.pass_context
def command(
    context: click.Context,
    variant: str | None,
    settings_file: Path | None,
    words: tuple[str, ...],
    folder: Path | None,
    cluster: str | None,
    status: Path | None,
    as_json: bool,
    given: dict[str, Any],
) -> None:
    """Train a net by games against itself: games, training, matches, and again.

    Everything is kept in the run's folder. Ctrl-C or a kill loses the games in hand; the same command
    goes on. Without --minutes (of CPU time) or --generations it runs until Ctrl-C.
    """
    from variant_ai.core.reinforce.reinforce_folder import ReinforceFolder

    if status is not None:
        _show_status(ReinforceFolder(status), as_json)
        return
    if cluster is None:
        reject_given(["cluster.players"], "needs --ray")
    let_threads_sleep()
    from variant_ai.core.reinforce.reinforce_settings import START_RANDOM
    from variant_ai.core.reinforce.reinforcement import Reinforcement, Watcher
    from variant_ai.core.train.run.run_folder import REPORT
    from variant_ai.plugins import registry

    asked = _asked(variant, settings_file, words, given)
    if folder is None:
        if "variant" not in asked:
            raise click.UsageError("name a variant with -V, or a run to go on with by --run")
        folder = Path("runs") / f"reinforce-{load_variant(str(asked['variant'])).variant}"
    run = ReinforceFolder(folder)
    settings = _resolved(run, asked)
    spec = load_variant(settings.variant)
    start = None
    if settings.start != START_RANDOM:
        start = _start_of(spec, settings.start, folder)
        spec = start.info.own_spec(spec)
    with progress(quiet=as_json) as bar:
        task = bar.add_task("starting", total=None)
        noted = time.monotonic()

        def log(generation: int, text: str) -> None:
            """Write a line now and then to a log, where nobody sees the bar."""
            nonlocal noted
            if not bar.console.is_terminal and time.monotonic() - noted > SILENCE:
                noted = time.monotonic()
                note(f"generation {generation}: {text}")

        def playing(generation: int, positions: int, wanted: int) -> None:
            bar.update(
                task, description=f"generation {generation}", completed=positions, total=wanted
            )
            log(generation, f"{positions:,} of {counted(wanted, 'position')}")

        def waiting(generation: int, evaluations: int) -> None:
            log(generation, f"{counted(evaluations, 'evaluation')} so far")

        watcher = Watcher(
            generation=lambda row: (
                bar.console.print(summary_line(row, settings), markup=False)
                if not as_json
                else click.echo(json.dumps(row))  # a line each, as in generations.jsonl
            ),
            playing=playing,
            waiting=waiting,
            step=lambda text: bar.update(task, description=text),
            warn=note,
        )
        rules = registry().rules(spec)
        openings = _openings(settings, rules)
        reinforcement = Reinforcement(
            settings,
            spec,
            folder,
            start=start,
            rules=rules,
            watcher=watcher,
            supply=None if cluster is None else _cluster_games(cluster, settings, spec, openings),
            openings=openings,
        )
        note(f"{run.path}: {spec.variant}, {counted(settings.positions, 'position')} a generation")
        before = run.state().generation
        try:
            whole = reinforcement.run()
        except KeyboardInterrupt:  # the second Ctrl-C
            whole = False
    if run.newest_net.is_file():
        note(f"The newest net: {run.newest_net}")
    if (page := run.path / REPORT).is_file():
        note(f"The report: {page}")
    if whole:
        idle = run.state().generation == before
        note(f"{'Nothing to do' if idle else 'Done'}: {reinforcement.used_up}")
    else:
        note(f"Stopped. Go on with: variant-ai reinforce --run {shlex.quote(str(folder))}")
        context.exit(EXIT_INTERRUPTED)


def _start_of(spec: VariantSpec, start: str, folder: Path) -> Start:
    """The net that the run in a folder starts from; the newest undamaged one of its own, which is as good,
    if it has begun. Raises DataError if there is none."""
    from variant_ai.core.train.run.checkpoint import list_checkpoints
    from variant_ai.core.train.run.initial_weights import find_start
    from variant_ai.core.train.run.run_folder import CHECKPOINTS
    from variant_ai.plugins import registry

    found, named = None, folder
    for checkpoint in reversed(list_checkpoints(folder / CHECKPOINTS)):
        with suppress(DataError):  # the trainer goes back to an older one, too
            found = find_start(checkpoint.path)
            break
    if found is None:
        named = registry().net(spec, Path(start))
        if not named.exists():
            raise DataError(
                f"start: {named} does not exist; accepted are `packaged`, `random`, the folder of a run "
                "or of a checkpoint, and an ONNX file"
            )
        found = find_start(named)
    # Errors name the user's path, not a checkpoint inside it.
    return replace(found, info=replace(found.info, source=str(named)))


def _openings(settings: ReinforceSettings, rules: Rules) -> tuple[Opening, ...]:
    """Openings of the games; empty without a file of them. Raises SettingError."""
    variety = settings.variety
    if variety.openings is None:
        return ()
    from variant_ai.cli.common.player_options import load_openings
    from variant_ai.core.arena.match.match_settings import OpeningSettings

    chosen = OpeningSettings(file=variety.openings, plies=variety.opening_plies)
    try:
        return load_openings(chosen, rules, settings.seed, max_plies=variety.max_plies)
    except DataError as error:
        raise SettingError(f"variety.openings: {error}") from None


def _cluster_games(
    address: str,
    settings: ReinforceSettings,
    spec: VariantSpec,
    openings: tuple[Opening, ...],
) -> Callable[[set[int]], GameSupply]:
    """Return what makes the supply of games of a cluster. Raises VariantAIError if there is none."""
    from variant_ai.core.reinforce.games.cluster_games import ClusterGames, PlayerSetup
    from variant_ai.core.system.ray_cluster import connect

    ray = connect(address)
    # The learner's device and processors are not those of the players.
    threads = max(1, round(settings.cluster.player_cpus))
    device = "cuda" if settings.cluster.player_gpus else "cpu"
    setup = PlayerSetup(
        spec.model_dump_json(by_alias=True, exclude_defaults=True),
        settings.model_copy(update={"threads": threads, "device": device}),
        openings=openings,
        make_rules=registered_rules,
    )
    return lambda done: ClusterGames(ray, setup, done, spec.variant, report=note)


def _asked(
    variant: str | None,
    settings_file: Path | None,
    words: tuple[str, ...],
    given: dict[str, Any],
) -> dict[str, Any]:
    """Words that the user gave: the file's, overridden by options."""
    from variant_ai.core.reinforce.settings_file import flattened, parse_word, read_words, set_word

    asked = {} if settings_file is None else read_words(settings_file)
    for name, value in [*flattened(given).items(), *map(parse_word, words)]:
        set_word(asked, name, value)
    if variant is not None:
        asked["variant"] = variant
    return _absolute(asked)


def _absolute(asked: dict[str, Any]) -> dict[str, Any]:
    """The same with absolute paths, so that a run goes on from any folder."""
    from variant_ai.core.reinforce.reinforce_settings import START_RANDOM
    from variant_ai.core.spec.catalogue import PACKAGED, home_path
    from variant_ai.plugins import registry

    found = dict(asked)
    variant, start, mixture = asked.get("variant"), asked.get("start"), asked.get("mixture")
    variety = asked.get("variety")
    if isinstance(variety, dict) and isinstance(variety.get("openings"), str):
        file = str(home_path(variety["openings"]).resolve())
        found["variety"] = variety | {"openings": file}
    if isinstance(variant, str) and variant not in registry().variants:
        found["variant"] = str(registry().path(variant).resolve())
    if isinstance(start, str) and start not in (START_RANDOM, PACKAGED):
        found["start"] = str(home_path(start).resolve())
    if isinstance(mixture, list):
        found["mixture"] = [
            part | {"store": str(home_path(part["store"]).resolve())}
            if isinstance(part, dict) and isinstance(part.get("store"), str)
            else part
            for part in mixture
        ]
    return found


def _resolved(run: ReinforceFolder, asked: dict[str, Any]) -> ReinforceSettings:
    """Settings of a run: those of its folder with the changes that are allowed, or new ones."""
    from variant_ai.core.reinforce.settings_file import changed, new_settings

    if run.exists():
        settings = run.settings()
        own, wanted = settings.variant, asked.get("variant", settings.variant)
        if wanted != own and load_variant(wanted).variant != (name := load_variant(own).variant):
            raise DataError(f"{run.path} is a run of {name}; name another folder with --run")
        return changed(settings, asked, str(run.path))
    if "variant" not in asked:
        raise click.UsageError(f"{run.path} is not a run; name a variant with -V to begin one")
    return new_settings(asked)


def summary_line(row: dict[str, Any], settings: ReinforceSettings) -> str:
    """One line about a generation."""
    spent = row["playing_seconds"]
    parts = [
        f"generation {row['generation']}: {counted(row['games'], 'game')}, "
        f"{counted(row['positions'], 'position')}"
        + (f" ({row['positions'] / spent:,.0f}/s)" if spent > 0.01 else ""),
    ]
    if train := row.get("train"):
        parts.append(
            f"loss policy {_loss(train['policy_loss'])} value {_loss(train['value_loss'])} "
            f"(always 0: {row['zero_value_loss']:.3f})"
        )
    ends = ", ".join(f"{name} {count}" for name, count in list(row["ends"].items())[:3])
    parts.append(f"{row['plies']:.0f} plies, draws {100 * row['draws']:.0f} %, {ends}")
    if "elo" in row:
        parts.append(f"Elo {row['elo']:+.0f} ± {row['elo_error']:.0f}")
    used = f"{row['cpu_minutes']:.1f}"
    if settings.minutes is not None:
        used += f" of {settings.minutes:g}"
    parts.append(f"{used} CPU min")
    return "; ".join(parts)


def _loss(mean: float | None) -> str:
    """A mean loss; `-` if no sample had that label."""
    return "-" if mean is None else f"{mean:.3f}"


def _show_status(run: ReinforceFolder, as_json: bool) -> None:
    from variant_ai.core.reinforce.budget import used_up

    settings, state, rows = run.settings(), run.state(), run.rows()
    holder, in_hand = run.holder(), run.games_in_hand(state.generation + 1)
    if as_json:
        print_json(
            {
                "settings": settings.model_dump(),
                "state": state.model_dump(),
                "running": holder or None,
                "games_in_hand": in_hand,
                "rows": rows,
            }
        )
        return
    spent = used_up(settings, state.generation, state.cpu_seconds)
    wanted, minutes = settings.generations, settings.minutes
    last: dict[str, Any] = next((row for row in reversed(rows) if "elo" in row), {})
    elo = "not measured yet"
    if last:
        elo = f"{last['elo']:+.0f} ± {last['elo_error']:.0f} (generation {last['generation']})"
    print_facts(
        [
            ("variant", settings.variant),
            ("now", f"run by {holder}" if holder else spent or "not running"),
            ("generations", f"{state.generation}{f' of {wanted}' if wanted else ''}"),
            ("games", f"{state.games:,}{f', and {in_hand:,} in hand' if in_hand else ''}"),
            ("positions", f"{state.positions:,}"),
            ("steps", f"{state.steps:,}"),
            (
                "CPU time",
                f"{state.cpu_seconds / 60:.1f}{f' of {minutes:g}' if minutes else ''} min",
            ),
            ("Elo over the start", elo),
            ("newest net", run.newest_net),
        ],
        title=str(run.path),
    )
    shown = rows[-SHOWN_ROWS:]
    print_table(
        [
            "generation",
            "games",
            "plies",
            "draws",
            TITLES["policy_loss"],
            TITLES["value_loss"],
            "Elo",
        ],
        [
            [
                row["generation"],
                row["games"],
                f"{row['plies']:.1f}",
                f"{100 * row['draws']:.0f} %",
                *(
                    _loss(row["train"][name]) if "train" in row else "-"
                    for name in ("policy_loss", "value_loss")
                ),
                f"{row['elo']:+.0f} ± {row['elo_error']:.0f}" if "elo" in row else "-",
            ]
            for row in shown
        ],
    )
