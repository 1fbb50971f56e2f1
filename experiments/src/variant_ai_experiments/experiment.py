"""`variant-ai experiment`: the experiments of the papers, and comparisons written down in files."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import note, print_json, print_table
from variant_ai.cli.common.ending import EXIT_INTERRUPTED, CommandError, fail
from variant_ai.cli.common.options import examples, json_option, load_variant
from variant_ai_experiments.arm_runs import (
    Planned,
    keep_plan,
    locked,
    measure,
    run_arm,
    time_net,
)
from variant_ai_experiments.comparison import REPORT, write_report
from variant_ai_experiments.move_curve import command as n_e6

if TYPE_CHECKING:
    from variant_ai_experiments.experiment_file import Experiment

SET_BY_EXPERIMENT = ("run", "resume", "json", "seed", "time", "help")
"""Options of commands that arms cannot have, because the experiment sets them."""


@click.group(
    epilog=examples(
        "variant-ai experiment run experiments/normalisation.yaml",
        "variant-ai experiment n-e6 -V NAME --model net.onnx -o n-e6.png",
    )
)
def command() -> None:
    """Repeat an experiment of the papers, or run one of your own."""


command.add_command(n_e6, "n-e6")


@command.command(
    "run",
    epilog=examples(
        "variant-ai experiment run experiments/normalisation.yaml",
        "# print the commands only",
        "variant-ai experiment run experiments/normalisation.yaml --dry-run",
        "# with the path of a store",
        "variant-ai experiment run experiments/policy-heads.yaml --store masters=games/masters.store",
    ),
)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--scale",
    type=click.Choice(["small", "full"]),
    default="small",
    help="small: minutes on two cores; full: as published, for a GPU.",
)
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder of the runs and the report; runs/experiments/NAME-SCALE by default.",
)
@click.option(
    "--store",
    "stores",
    multiple=True,
    metavar="NAME=STORE",
    help="Path of a store of the experiment; stores/NAME.store beside the file by default.",
)
@click.option(
    "--sample",
    is_flag=True,
    help="Try it on the games that come with the variant, instead of its stores, without `measure:` and `mates:`.",
)
@click.option(
    "--arm", "arms", multiple=True, metavar="ARM", help="Run only this arm; can be repeated."
)
@click.option("--device", metavar="NAME", help="Device of all trainings (`variant-ai train`).")
@click.option(
    "--publish", is_flag=True, help="Also write report and pictures to results/ beside the file."
)
@click.option("--dry-run", is_flag=True, help="Print the commands and run nothing.")
@json_option
@click.pass_context
def run(
    context: click.Context,
    /,
    file: Path,
    scale: str,
    folder: Path | None,
    stores: tuple[str, ...],
    sample: bool,
    arms: tuple[str, ...],
    device: str | None,
    publish: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Run the arms of an experiment and compare them, or play a match.

    An arm is a `variant-ai train` with a few options of its own. A finished arm is not run again.
    After Ctrl-C or a kill, the same command continues.
    """
    from variant_ai.core.errors import SettingError, UnknownNameError
    from variant_ai_experiments.experiment_file import is_match, load_experiment

    if is_match(file):
        if sample or stores or arms or device or publish:
            raise click.UsageError(
                f"{file} is a match: it takes --scale, --output, --dry-run and --json"
            )
        target = folder or Path("runs") / "experiments" / f"{file.stem}-{scale}"
        small = scale == "small"
        if dry_run:
            words = ["match", "--config", str(file), "-o", str(target), *["--small"] * small]
            click.echo(shlex.join(("variant-ai", *words)))
            return
        from variant_ai.cli.match.match import command as match

        words = [
            "--config",
            str(file),
            "-o",
            str(target),
            *["--small"] * small,
            *["--json"] * as_json,
        ]
        context.exit(match.main(words, parent=context, standalone_mode=False) or 0)
    experiment = load_experiment(file, _check_options)
    if scale not in experiment.scales:
        raise UnknownNameError(f"scale of {file}", scale, experiment.scales)
    for arm in arms:
        if arm not in experiment.arms:
            raise UnknownNameError(f"arm of {file}", arm, experiment.arms)
    if sample:
        if publish or stores:
            raise click.UsageError("--sample cannot be combined with --publish or --store")
        try:
            if experiment.measure or any(size.mates for size in experiment.scales.values()):
                note("--sample: `measure:` and `mates:` are left out, which need the stores")
            experiment = experiment.on_sample()
        except SettingError as error:
            fail(f"{file}: {error}")
    named = f"{file.stem}-{scale}-sample" if sample else f"{file.stem}-{scale}"
    target = folder or Path("runs") / "experiments" / named
    paths = _store_paths(experiment, file, stores)
    planned = _plan(experiment, file, scale, paths, target, device)
    if dry_run:
        for arm in arms or planned:
            click.echo(f"# {arm}")
            for _, words in planned[arm]:
                click.echo(shlex.join(("variant-ai", *words)))
        return
    _require_stores(experiment, scale, paths)
    target.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        lock = stack.enter_context(locked(target))
        keep_plan(target, planned)
        done = []
        for arm, runs in planned.items():
            chosen = not arms or arm in arms
            if experiment.command == "nets":
                done.append(time_net(arm, runs, lock, run_missing=chosen))
                continue
            arm_runs, stopped = run_arm(arm, runs, lock, run_missing=chosen)
            done.append(arm_runs)
            if stopped:
                note(f"Stopped. The same command continues in {target}.")
                context.exit(EXIT_INTERRUPTED)
        unmeasured = ""
        try:
            done = measure(experiment, scale, done, paths, target, lock)
        except CommandError as error:  # the trainings are reported without it
            unmeasured = error.message
    table = write_report(
        experiment, file, scale, done, target, publish=publish and not unmeasured, sample=sample
    )
    if as_json:
        rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        print_json({"folder": target, "scale": scale, "rows": rows})
    else:
        print_table(table.columns, table.rows, right=table.columns[1:])
        click.echo(f"\nreport  {target / REPORT}")
    failures = [f"{arm.arm}: {failure}" for arm in done for failure in arm.failures]
    if failures:
        fail(f"{len(failures)} of the runs failed ({failures[0]})")
    if unmeasured:
        fail(f"the nets were not measured: {unmeasured}")


# --- options of the arms ---------------------------------------------------------------------------


def _command(name: str) -> click.Command:
    from variant_ai.cli.train import nets, train

    return {"train": train.command, "nets": nets.list_nets}[name]


def _parameters(command: str) -> dict[str, click.Parameter]:
    """Return a command's options by their long names without dashes, and its arguments by name."""
    known = _command(command)
    found = {
        option.removeprefix("--"): parameter
        for parameter in known.get_params(click.Context(known))
        for option in parameter.opts
        if option.startswith("--") or isinstance(parameter, click.Argument)
    }
    return {name: parameter for name, parameter in found.items() if name not in SET_BY_EXPERIMENT}


def _check_options(command: str, options: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what is wrong with the options of an arm: option and message."""
    from variant_ai.core.errors import unknown

    known = _parameters(command)
    wrong = [
        (name, unknown(f"option of variant-ai {command}", name, sorted(known)))
        for name in options
        if name not in known
    ]
    for name, value in options.items():
        if name in known:
            parameter = known[name]
            is_flag = isinstance(parameter, click.Option) and parameter.is_flag
            if is_flag and not isinstance(value, bool):
                wrong.append((name, f"given {value!r}; accepted: true, false"))
                continue
            try:
                _command(command).make_context(command, _words({name: value}, known))
            except click.ClickException as error:
                wrong.append((name, error.format_message()))
    return wrong


def _words(options: Mapping[str, Any], known: Mapping[str, click.Parameter]) -> list[str]:
    """Return options as words of a command line."""
    words: list[str] = []
    for name, value in options.items():
        parameter = known[name]
        if isinstance(parameter, click.Option) and parameter.is_flag:
            # --report/--no-report has a word for `false`; other flags are off by default
            words += [f"--{name}"] if value is True else parameter.secondary_opts[:1]
            continue
        listed = _listed(value)
        if isinstance(parameter, click.Argument):
            words += map(str, listed)
        elif parameter.multiple:
            for one in listed:
                words += [f"--{name}", str(one)]
        else:
            words += [f"--{name}", *map(str, listed)]
    return words


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


# --- stores --------------------------------------------------------------------------------------


def _store_paths(experiment: Experiment, file: Path, given: Sequence[str]) -> dict[str, Path]:
    """Return the path of each store, which may be missing."""
    from variant_ai.core.errors import UnknownNameError
    from variant_ai.plugins import registry
    from variant_ai_experiments.experiment_file import SAMPLE

    paths = {name: file.parent / "stores" / f"{name}.store" for name in experiment.stores}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or not path:
            raise click.UsageError(f"--store {text}: accepted is NAME=STORE")
        if name not in paths:
            raise UnknownNameError("store of the experiment", name, paths)
        paths[name] = Path(path)
    entry = registry().entry_of(registry().variant(experiment.variant))
    if entry is not None and entry.sample is not None:
        paths[SAMPLE] = entry.sample
    return paths


def _require_stores(experiment: Experiment, scale: str, paths: Mapping[str, Path]) -> None:
    """End the program if a store is missing, and print how to make it."""
    from variant_ai_experiments.experiment_file import SAMPLE, stores_of

    used: dict[str, None] = {}
    options = [experiment.arm_options(scale, arm) for arm in experiment.arms]
    for own in options:
        used |= dict.fromkeys(name for _, name in stores_of(own))
    used |= dict.fromkeys(experiment.measure.values())
    mates = experiment.scales[scale].mates  # type: ignore[index]
    used |= dict.fromkeys([mates] if mates else [])
    missing = []
    for name in used:
        if name not in paths:
            fail(f"this scale needs the games of {experiment.variant}, which comes without any")
        if not paths[name].is_file():
            missing.append(name)
    if not missing:
        return
    lines = [_remedy(experiment, name, paths[name]) for name in missing]
    differ = len({tuple(stores_of(own)) for own in options}) > 1
    sample = "" if differ or SAMPLE not in paths else "; or try the variant's games: --sample"
    fail(f"{'; '.join(lines)}; or name a store: --store {missing[0]}=STORE{sample}")


def _remedy(experiment: Experiment, name: str, path: Path) -> str:
    """Describe where a store should be, how it is made, and the source of the files for that."""
    from variant_ai_experiments.experiment_file import STORE

    store = experiment.stores[name]
    made = store.make.replace(STORE, shlex.quote(str(path)))
    files = f" (from {store.source})" if store.source else ""
    return f"the store {name!r} is not at {path}; make it by `{made}`{files}"


# --- the plan ------------------------------------------------------------------------------------


def _plan(
    experiment: Experiment,
    file: Path,
    scale: str,
    paths: Mapping[str, Path],
    target: Path,
    device: str | None,
) -> dict[str, Planned]:
    """Return the runs of each arm."""
    from variant_ai_experiments.experiment_file import START, STORE_OPTIONS, VARIANT, arm_folder

    known = _parameters(experiment.command)
    seeds = experiment.scales[scale].seeds  # type: ignore[index]
    planned: dict[str, Planned] = {}
    for arm in experiment.arms:
        options = experiment.arm_options(scale, arm)
        for option in STORE_OPTIONS:
            if option in options:
                value = options[option]
                named = (str(one).partition(":") for one in _listed(value))
                options[option] = [
                    f"{paths.get(name, name)}{colon}{weight}" for name, colon, weight in named
                ]
        if device is not None and "device" in known:
            options["device"] = device
        variant = str(options.pop(VARIANT, experiment.variant))
        if (file.parent / variant).is_file():
            variant = str(file.parent / variant)
        load_variant(variant)  # an unknown name or a bad file is reported before anything is run
        words = [experiment.command, "-V", variant]
        if experiment.command == "nets":
            timed = [*words, *_words(options, known), "--time"]
            planned[arm] = [(target / arm_folder(arm), timed)]
            continue
        planned[arm] = []
        for seed in range(seeds):
            numbered = seed if seeds > 1 else None
            if START in options:
                before = experiment.arm_options(scale, arm)[START]
                options[START] = str(target / arm_folder(before, numbered))
            folder = target / arm_folder(arm, numbered)
            own = ["--seed", str(seed), "--run", str(folder)]
            planned[arm].append((folder, [*words, *_words(options, known), *own]))
    return planned
