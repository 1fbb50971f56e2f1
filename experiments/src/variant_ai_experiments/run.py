"""`variant-ai experiment run`: the arms of an experiment, one after the other, and their table."""

from __future__ import annotations

import contextlib
import itertools
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import (
    EXIT_INTERRUPTED,
    CommandError,
    examples,
    fail,
    json_option,
    load_variant,
    note,
    print_json,
    print_table,
)
from variant_ai_experiments.measure import RESULTS, measure
from variant_ai_experiments.report import REPORT, write_report

if TYPE_CHECKING:
    from variant_ai_experiments.comparison import ArmRuns
    from variant_ai_experiments.experiment_file import Experiment

OWN = ("run", "resume", "json", "seed", "time", "help")
"""Options of commands that an experiment says in other words."""
CONFIG = "config.json"
RECORD = "experiment.json"


@click.command(
    epilog=examples(
        "variant-ai experiment run experiments/normalisation.yaml",
        "# the commands that would be run",
        "variant-ai experiment run experiments/normalisation.yaml --dry-run",
        "# stores of the experiment that lie elsewhere",
        "variant-ai experiment run experiments/heads.yaml --store masters=games/masters.store",
    )
)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--scale",
    type=click.Choice(["small", "full"]),
    default="small",
    show_default=True,
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
    help="Where a store of the experiment lies; stores/NAME.store beside the file by default.",
)
@click.option(
    "--sample",
    is_flag=True,
    help="Try it on the games that come with the variant, in the place of its stores.",
)
@click.option("--arm", "arms", multiple=True, metavar="ARM", help="Run this arm only, or these.")
@click.option("--device", metavar="NAME", help="Device of all trainings (`variant-ai train`).")
@click.option("--publish", is_flag=True, help="Put the report and its picture beside the file.")
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

    An arm is a `variant-ai train` with a few options of its own. A finished arm is not run again,
    one that was stopped goes on: the same command finishes what Ctrl-C or a kill broke off.
    """
    from variant_ai.core.errors import SettingError, UnknownNameError
    from variant_ai_experiments.experiment_file import is_match, load_experiment

    if is_match(file):
        if sample or stores or arms or device or publish:
            raise click.UsageError(f"{file} is a match: it takes --scale, --output and --json")
        target = folder or Path("runs") / "experiments" / f"{file.stem}-{scale}"
        small = scale == "small"
        if dry_run:
            words = ["match", "--config", str(file), "-o", str(target), *["--small"] * small]
            click.echo(shlex.join(("variant-ai", *words)))
            return
        from variant_ai.cli.match.match import command as match

        context.invoke(match, config=file, output=target, small=small, as_json=as_json)
        return
    experiment = load_experiment(file, _check_options)
    if scale not in experiment.scales:
        raise UnknownNameError(f"scale of {file}", scale, experiment.scales)
    for arm in arms:
        if arm not in experiment.arms:
            raise UnknownNameError(f"arm of {file}", arm, experiment.arms)
    if sample:
        if publish or stores:
            raise click.UsageError("--sample goes with neither --publish nor --store")
        try:
            experiment = experiment.on_sample()
        except SettingError as error:
            fail(f"{file}: {error}")
    named = f"{file.stem}-{scale}-sample" if sample else f"{file.stem}-{scale}"
    target = folder or Path("runs") / "experiments" / named
    places = _places(experiment, file, stores)
    planned = _plan(experiment, file, scale, places, target, device)
    if dry_run:
        for arm in arms or planned:
            click.echo(f"# {arm}")
            for _, words in planned[arm]:
                click.echo(shlex.join(("variant-ai", *words)))
        return
    _require_stores(experiment, scale, places)
    target.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        lock = stack.enter_context(_locked(target))
        _keep_plan(target, planned)
        done = []
        for arm, runs in planned.items():
            chosen = not arms or arm in arms
            if experiment.command == "nets":
                done.append(_time_net(arm, runs, lock, run_missing=chosen))
                continue
            made, stopped = _run_arm(arm, runs, lock, run_missing=chosen)
            done.append(made)
            if stopped:
                note(f"Stopped. The same command goes on in {target}.")
                context.exit(EXIT_INTERRUPTED)
        unmeasured = ""
        try:
            done = measure(experiment, scale, done, places, target, lock)
        except CommandError as error:  # the trainings are there to be told of
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


# --- what is to be done --------------------------------------------------------------------------


def _command(name: str) -> click.Command:
    from variant_ai.cli.train import nets, train

    return {"train": train.command, "nets": nets.command}[name]


def _parameters(command: str) -> dict[str, click.Parameter]:
    """Options of a command by their long names without dashes, and its arguments by theirs."""
    found = {
        option.removeprefix("--"): parameter
        for parameter in _command(command).params
        for option in parameter.opts
        if option.startswith("--") or isinstance(parameter, click.Argument)
    }
    return {name: parameter for name, parameter in found.items() if name not in OWN}


def _check_options(command: str, options: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a command would say against the options of an arm: option and message."""
    from variant_ai.core.errors import unknown

    known = _parameters(command)
    wrong = [
        (name, unknown(f"option of variant-ai {command}", name, sorted(known)))
        for name in options
        if name not in known
    ]
    for name, value in options.items():
        if name in known:
            try:
                _command(command).make_context(command, _words({name: value}, known))
            except click.ClickException as error:
                wrong.append((name, error.format_message()))
    return wrong


def _words(options: Mapping[str, Any], known: Mapping[str, click.Parameter]) -> list[str]:
    """Options as the words of a command line."""
    words: list[str] = []
    for name, value in options.items():
        parameter = known[name]
        if isinstance(parameter, click.Option) and parameter.is_flag:
            # --report/--no-report has a word for `false`; what has none is off unless it is said
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


def _places(experiment: Experiment, file: Path, given: Sequence[str]) -> dict[str, Path]:
    """Where each store lies, there or not."""
    from variant_ai.core.errors import UnknownNameError
    from variant_ai.plugins import registry
    from variant_ai_experiments.experiment_file import SAMPLE

    places = {name: file.parent / "stores" / f"{name}.store" for name in experiment.stores}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or not path:
            raise click.UsageError(f"--store {text}: accepted is NAME=STORE")
        if name not in places:
            raise UnknownNameError("store of the experiment", name, places)
        places[name] = Path(path)
    entry = registry().entry_of(registry().variant(experiment.variant))
    if entry is not None and entry.sample is not None:
        places[SAMPLE] = entry.sample
    return places


def _require_stores(experiment: Experiment, scale: str, places: Mapping[str, Path]) -> None:
    """Ends the command where a store is missing, and says how it is made."""
    from variant_ai_experiments.experiment_file import SAMPLE, stores_of

    used: dict[str, None] = {}
    options = [experiment.arm_options(scale, arm) for arm in experiment.arms]
    for said in options:
        used |= dict.fromkeys(name for _, name in stores_of(said))
    used |= dict.fromkeys(experiment.measure.values())
    mates = experiment.scales[scale].mates  # type: ignore[index]
    used |= dict.fromkeys([mates] if mates else [])
    missing = []
    for name in used:
        if name not in places:
            fail(f"{experiment.variant} comes without games of its own, which this scale needs")
        if not places[name].is_file():
            missing.append(name)
    if not missing:
        return
    lines = [_remedy(experiment, name, places[name]) for name in missing]
    differ = len({tuple(stores_of(said)) for said in options}) > 1
    sample = "" if differ or SAMPLE not in places else "; or try the variant's games: --sample"
    fail(f"{'; '.join(lines)}; or name a store: --store {missing[0]}=STORE{sample}")


def _remedy(experiment: Experiment, name: str, place: Path) -> str:
    """Where a store should lie, how it is made, and where the files for that are fetched."""
    from variant_ai_experiments.experiment_file import STORE

    store = experiment.stores[name]
    made = store.make.replace(STORE, shlex.quote(str(place)))
    files = f" (from {store.source})" if store.source else ""
    return f"the store {name!r} is not at {place}; make it by `{made}`{files}"


Planned = list[tuple[Path, list[str]]]
"""Run directories of an arm and the words after `variant-ai` that make each."""


def _plan(
    experiment: Experiment,
    file: Path,
    scale: str,
    places: Mapping[str, Path],
    target: Path,
    device: str | None,
) -> dict[str, Planned]:
    """The runs of each arm."""
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
                    f"{places.get(name, name)}{colon}{weight}" for name, colon, weight in named
                ]
        if device is not None and "device" in known:
            options["device"] = device
        variant = str(options.pop(VARIANT, experiment.variant))
        if (file.parent / variant).is_file():
            variant = str(file.parent / variant)
        load_variant(variant)  # a name or a file that is none is told before anything is run
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


def _keep_plan(target: Path, planned: Mapping[str, Planned]) -> None:
    """Writes down how each run is made. Ends the command where one was made in another way."""
    from variant_ai.core.system.files import write_whole

    path = target / RECORD
    now = {folder.name: words for runs in planned.values() for folder, words in runs}
    try:
        before = json.loads(path.read_text(encoding="utf-8"))["runs"]
    except (OSError, ValueError, KeyError):
        before = {}
    for name, words in now.items():
        if name in before and before[name] != words and (target / name).exists():
            fail(
                f"{target / name} was made with other options (variant-ai "
                f"{shlex.join(before[name])}); delete it, or run into another folder with -o"
            )
    write_whole(path, json.dumps({"runs": {**before, **now}}, indent=2, ensure_ascii=False))


@contextlib.contextmanager
def _locked(target: Path) -> Any:
    """Holds the folder alone; the open file that holds it, which arms inherit."""
    from variant_ai.core.data.store.blocks import write_lock

    with (target / ".lock").open("a+b") as file, write_lock(file, target):
        yield file


# --- doing it ------------------------------------------------------------------------------------


def _run_arm(arm: str, runs: Planned, lock: Any, *, run_missing: bool) -> tuple[ArmRuns, bool]:
    """Runs what is missing of an arm; and whether it was stopped."""
    from variant_ai_experiments.child import run_child
    from variant_ai_experiments.comparison import ArmRuns

    finished: list[Path] = []
    failures: list[str] = []
    for folder, words in runs:
        if not _is_finished(folder):
            if not run_missing:
                continue
            note(f"{arm}: {folder.name}")
            if (before := _start_of(words, folder.parent)) and not _is_finished(before):
                failures.append(f"{before.name}, from whose net it goes on, is not finished")
                continue
            given = ["train", "--resume", str(folder)] if _has_begun(folder) else words
            status, last = run_child(given, f"  {folder.name}", lock)
            if status == EXIT_INTERRUPTED:
                return ArmRuns(arm, tuple(finished), ()), True
            if status != 0:
                failures.append(last or f"exit status {status}")
                continue
        finished.append(folder)
    commands = tuple(shlex.join(("variant-ai", *words)) for _, words in runs)
    return ArmRuns(arm, tuple(finished), commands, tuple(failures)), False


def _start_of(words: Sequence[str], target: Path) -> Path | None:
    """The run of this experiment that a run goes on from."""
    from variant_ai_experiments.experiment_file import START

    for option, value in itertools.pairwise(words):
        if option == f"--{START}" and Path(value).parent == target:
            return Path(value)
    return None


def _time_net(arm: str, runs: Planned, lock: Any, *, run_missing: bool) -> ArmRuns:
    """Measures a net, unless that was done."""
    from variant_ai.core.system.files import write_whole
    from variant_ai.core.train.run.environment import describe_environment
    from variant_ai_experiments.child import child_json
    from variant_ai_experiments.comparison import ArmRuns

    ((folder, words),) = runs
    results = folder / RESULTS
    if not results.is_file():
        if not run_missing:
            return ArmRuns(arm, (), ())
        note(f"{arm}: {folder.name}")
        try:
            (said,) = child_json([*words, "--json"], lock)
        except CommandError as error:
            return ArmRuns(arm, (), (), (error.message,))
        folder.mkdir(exist_ok=True)
        write_whole(folder / "environment.json", json.dumps(describe_environment()))
        write_whole(results, json.dumps(said))
    return ArmRuns(arm, (folder,), (shlex.join(("variant-ai", *words)),))


def _is_finished(folder: Path) -> bool:
    """Whether a run went to its last step and was measured: results are written at its end, or
    where it was stopped."""
    try:
        steps = [json.loads((folder / name).read_text())["steps"] for name in (CONFIG, RESULTS)]
    except (OSError, ValueError, KeyError):
        return False
    return bool(steps[0] == steps[1])


def _has_begun(folder: Path) -> bool:
    """Whether a run can be resumed; one that was killed before it could begins again."""
    if (folder / CONFIG).is_file():
        return True
    with contextlib.suppress(OSError):  # what is not a run's own stays, and `train` refuses it
        (folder / f"{CONFIG}.part").unlink(missing_ok=True)
        folder.rmdir()
    return False
