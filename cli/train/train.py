"""`variant-ai train`: train a network on stored games.

`--net` and most other options are declared as fields in `core/train/run/training_settings.py`;
`training_command` makes options of them and adds `--data`, the sizes and the heads.
"""

from __future__ import annotations

import shlex
import sys
import time
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import (
    note,
    print_facts,
    print_json,
    print_table,
    program,
    progress,
)
from variant_ai.cli.common.ending import EXIT_INTERRUPTED
from variant_ai.cli.common.options import FOLDER, examples, json_option, load_variant, reject_given
from variant_ai.cli.common.training_options import (
    let_threads_sleep,
    make_request,
    note_sample,
    training_command,
    weighted_stores,
)
from variant_ai.core.errors import DataError, VariantAIError
from variant_ai.core.system.interrupts import was_interrupted
from variant_ai.core.system.text_tables import counted
from variant_ai.core.train.measure.metric_tables import SHARES, TITLES, result_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from variant_ai.core.spec.schema import VariantSpec
    from variant_ai.core.train.loop.devices import Workers
    from variant_ai.core.train.run.training_data import Prepared
    from variant_ai.core.train.run.training_run import RunReport
    from variant_ai.core.train.run.training_settings import TrainConfig

SAMPLE_MINUTES = 3.0
SAMPLE_EPOCHS = 8.0
KEPT_ON_RESUME = (
    *("resume", "variant", "report", "as_json"),
    *("stores", "validation_stores", "device", "threads"),
)
"""Options that can be used with --resume; all others come from the run."""


@training_command(
    epilog=examples(
        "# a first net from the variant's sample games, in a few minutes",
        "variant-ai train -V NAME",
        "variant-ai train -V NAME --data games.store --minutes 30 --blocks 5 --channels 64",
        "variant-ai train -V NAME --data games.store --split year:2008:2009- --net risev2-mobile",
        "# two stores, seven positions of one to three of the other",
        "variant-ai train -V NAME --data a.store:0.7 --data b.store:0.3",
        "# continue the net that comes with the variant, on other games; or your own net, with its",
        "# stem and first four blocks frozen",
        "variant-ai train -V NAME --data games.store --from packaged",
        "variant-ai train -V NAME --data games.store --from runs/mine --freeze 5",
        "# learn from the visits of a net's self-play, and from the moves of other games",
        "variant-ai train -V NAME --data self.store --data games.store --labels visits",
        "# two processes (or GPUs) together",
        "torchrun --nproc-per-node 2 -m variant_ai.cli.main -- train -V NAME --data games.store",
        "# resume a training that was stopped or killed",
        "variant-ai train --resume runs/mine",
    ),
)
@click.option(
    "--run",
    "folder",
    type=FOLDER,
    metavar="DIR",
    help="Run directory to create; runs/VARIANT-NET-TIME by default.",
)
@click.option(
    "--resume",
    type=FOLDER,
    metavar="DIR",
    help="Resume the training of this run directory with its configuration. If its stores were moved, "
    "give their new paths with --data and --validation; --device and --threads may be changed.",
)
@click.option(
    "--report/--no-report",
    default=True,
    help="Write an HTML report with pictures at the end (`variant-ai report` writes it later).",
)
@json_option
@click.pass_context
def command(
    context: click.Context,
    /,
    resume: Path | None,
    folder: Path | None,
    report: bool,
    as_json: bool,
    given: dict[str, Any],
    variant: str | None,
    stores: tuple[str, ...],
    **options: Any,
) -> None:
    """Train a network on stored games, and write an ONNX file, metrics and learning curves.

    Everything is kept in the run directory. Ctrl-C saves a checkpoint; a run that was stopped or
    killed continues with --resume and ends with the same net; one that is finished prints its
    results again.
    """
    started = time.perf_counter()
    let_threads_sleep()
    from variant_ai.core.train.loop.devices import open_workers
    from variant_ai.core.train.run.plan import prepare
    from variant_ai.core.train.run.run_folder import require_empty, run_config
    from variant_ai.core.train.run.training_run import open_run, run_training
    from variant_ai.core.train.run.training_settings import run_spec
    from variant_ai.plugins import registry

    with open_workers() as workers:
        if resume is not None:
            others = {param.name or "" for param in context.command.params} - set(KEPT_ON_RESUME)
            reason = "a training continues with its own configuration"
            reject_given(others, f"cannot be used with --resume: {reason}")
            _reject_self_play(resume)
            spec = load_variant(variant) if variant else None
            new_paths = stores or options["validation_stores"]
            if not new_paths and (done := _finished(resume, spec)) is not None:
                if workers.first:
                    _print_finished(done, variant, report=report, as_json=as_json)
                return
            target = resume
            rules = registry().rules(run_spec(run_config(resume)))
            moved, weights = weighted_stores(stores)
            prepared = open_run(
                resume, spec, rules, workers, moved, options["validation_stores"],
                device=given.get("device"), threads=given.get("threads"),
            )  # fmt: skip
            if weights and weights != prepared.config.data.weights:
                raise click.UsageError(
                    "--resume keeps the weights of the stores; remove them from --data"
                )
        else:
            if folder is not None:
                require_empty(folder)
            sample = {"minutes": SAMPLE_MINUTES, "epochs": SAMPLE_EPOCHS}
            if workers.world > 1 or {"steps", "minutes", "epochs"} & set(given):
                sample = {}
            request, rules = make_request(
                {**given, "started": started},
                variant=variant,
                stores=stores,
                sample=sample,
                **options,
            )
            prepared = prepare(request, rules=rules, workers=workers, report=note)
            if workers.first:
                note_sample(stores, prepared.config.variant)
            target = workers.broadcast_object(folder or _default_folder(prepared.config))
        if workers.first:
            _announce(prepared, workers)
        with (
            _saved_steps_reported(target, prepared.config.steps, quiet=not workers.first),
            _Progress(prepared.config, quiet=not workers.first).shown() as watching,
        ):
            done = run_training(
                prepared,
                target,
                rules,
                resume=resume is not None,
                observer=watching,
                report=watching.report,
                workers=workers,
                html=report,
            )
    if workers.first:
        _print_result(done, variant, as_json=as_json)
    if done.stopped:
        steps = done.results["steps"]
        if workers.first:
            note(
                f"Stopped after {counted(steps, 'step')}. Resume with: variant-ai train --resume {target}"
            )
        context.exit(EXIT_INTERRUPTED)


def _reject_self_play(folder: Path) -> None:
    """Raise DataError for a run of self-play: it learns other values, and its net and report would be
    overwritten."""
    from variant_ai.core.reinforce.reinforce_folder import ReinforceFolder

    if ReinforceFolder(folder).exists():
        named = shlex.quote(str(folder))
        raise DataError(
            f"{folder} is a run of self-play; go on with {program()} reinforce --run {named}, or train its "
            f"net on other games with --from {named}"
        )


def _finished(folder: Path, spec: VariantSpec | None) -> RunReport | None:
    """The result of a finished run, which must be of the spec if one is given."""
    from variant_ai.core.train.run.run_folder import run_config
    from variant_ai.core.train.run.training_run import finished_run
    from variant_ai.core.train.run.training_settings import model_info

    done = finished_run(folder)
    if done is not None and spec is not None:
        model_info(run_config(folder), folder).require(spec)
    return done


@contextmanager
def _saved_steps_reported(folder: Path, steps: int, *, quiet: bool) -> Iterator[None]:
    """If Ctrl-C ends the measurements after the last step, print that all steps are saved, and which
    command does the rest."""
    from variant_ai.core.train.run.checkpoint import checkpoint_name
    from variant_ai.core.train.run.run_folder import CHECKPOINTS
    from variant_ai.core.train.run.training_run import finished_run

    try:
        yield
    except BaseException as error:
        # an interrupt inside compiled code may appear as any error
        interrupted = isinstance(error, KeyboardInterrupt) or was_interrupted()
        if interrupted and not quiet and (folder / CHECKPOINTS / checkpoint_name(steps)).is_dir():
            if finished_run(folder) is None:
                left = f"{program()} train --resume {folder} writes the net and the report"
            else:
                left = f"{program()} report {folder} writes the report"
            note(f"All {counted(steps, 'step')} are saved; {left}.")
        raise


def _default_folder(config: TrainConfig) -> Path:
    """A new folder: several trainings may begin in the same second."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    name = f"{config.variant}-{config.net.title.replace(' ', '-')}-{stamp}"
    paths = (Path("runs") / f"{name}{end}" for end in chain([""], map("-{}".format, count(2))))
    return next(path for path in paths if not path.exists())


def _announce(prepared: Prepared, workers: Workers) -> None:
    import numpy as np

    from variant_ai.core.data.sample.value_labels import FLAT_SCALE, ValueLabels, value_of_scores

    config = prepared.config
    data = config.data
    epochs = config.steps * config.batch / prepared.train.samples_per_epoch
    held = (
        f"{counted(data.validation_games, 'game')} held back"
        if data.validation_games
        else "none held back"
    )
    note(
        f"{config.variant}: {counted(data.train_games, 'game')}, {counted(data.train_positions, 'position')}; {held}"
    )
    if data.labels == "visits":
        note(f"Labels: visits of a search in {data.searched_positions:,} of the positions")
    if data.value_labels != "result":
        values = ValueLabels.parse(data.value_labels)
        note(
            f"Value labels: {values.description}, known in "
            f"{data.valued_positions:,} of the positions"
        )
        if values.scale is not None and values.scale > FLAT_SCALE:
            value = value_of_scores(np.array([500.0], np.float32), values.scale).item()
            note(
                f"A score of 500 centipawns becomes a value of only {value:.2f}, as where most games are "
                "drawn. That hardly tells a won position from a level one: name a scale, as in "
                "--value-labels score:380:0.8"
            )
    rate = f" ({config.planned_rate:,.0f} positions/s measured)" if config.planned_rate else ""
    note(
        f"{config.net.title}: {counted(config.steps, 'step')} of {config.batch} on {config.device} in "
        f"{config.precision}, {epochs:.2f} epochs{rate}"
    )
    if workers.world > 1 or config.micro_batches > 1:
        note(
            f"Each step in {config.micro_batches} parts of "
            f"{counted(config.batch // config.micro_batches, 'position')}, by "
            f"{counted(workers.world, 'process')}"
        )
    if config.start_from:
        frozen = f", its first {counted(config.freeze, 'layer')} frozen" if config.freeze else ""
        note(f"Starting from {config.start_from}{frozen}")


class _Progress:
    """Progress of a training: a bar on a terminal, and a line per validation."""

    def __init__(self, config: TrainConfig, *, quiet: bool = False) -> None:
        self.config = config
        self.quiet = quiet
        self._train: dict[str, Any] = {}
        self._bar: Any = None

    @contextmanager
    def shown(self) -> Iterator[_Progress]:
        with progress(quiet=self.quiet) as bar:
            self._bar = bar
            self._task = bar.add_task("steps", total=self.config.steps)
            yield self

    def stepped(self, step: int) -> None:
        self._bar.update(self._task, completed=step)

    def validating(self, step: int) -> None:
        self._bar.update(self._task, note="validating")

    def recorded(self, kind: str, step: int, numbers: dict[str, Any]) -> None:
        if kind == "train":
            self._train = numbers
            self._bar.update(
                self._task,
                note=f"{_shown(numbers, 'policy_loss', 'policy_accuracy')}, "
                f"{numbers['rate']:,.0f} positions/s",
            )
            return
        if kind == "recovery":
            text = (
                f"step {numbers['failed_step']:,}: the loss cannot be right; returning to step "
                f"{step:,} with {numbers['lr_scale']:g} of the learning rate"
            )
        else:
            text = f"step {step:,} of {self.config.steps:,}"
            if self._train:
                text += f"; training: {_shown(self._train, 'policy_loss', 'policy_accuracy')}"
            names = ("policy_loss", "policy_accuracy", "value_accuracy_sign")
            text += f"; validation: {_shown(numbers, *names)}"
            if self._train:
                text += f"; {self._train['rate']:,.0f} positions/s"
        self.report(text)

    def report(self, text: str) -> None:
        if sys.stderr.isatty():
            with suppress(OSError):  # as `note`
                self._bar.console.print(text, markup=False)
        else:
            note(text)


def _shown(numbers: dict[str, Any], *names: str) -> str:
    """Titles and values of these metrics, in one line."""
    parts = []
    for name in names:
        value = numbers.get(name)
        if value is None:
            text = "-"
        else:
            text = f"{100 * value:.1f} %" if name in SHARES else f"{value:.3f}"
        parts.append(f"{TITLES[name]} {text}")
    return ", ".join(parts)


def _print_finished(done: RunReport, variant: str | None, *, report: bool, as_json: bool) -> None:
    """Print the result of a run that has nothing left to do."""
    from variant_ai.core.train.run.run_folder import REPORT

    left = ""
    if report and not (done.folder / REPORT).is_file():
        left = f"; {program()} report {done.folder} writes the report"
    note(f"{done.folder} is finished{left}")
    _print_result(done, variant, as_json=as_json)


def _print_result(done: RunReport, variant: str | None, *, as_json: bool) -> None:
    """Print the result of a run, and what to do with it. `variant`: the name given by the user."""
    from variant_ai.core.train.run.run_folder import CARD, CURVES, MODEL, REPORT

    if as_json:
        print_json({"run": str(done.folder), **done.results})
        return
    rows = result_rows(done.results)
    if rows:
        print_table(["metric", "training", "validation"], rows, right=["training", "validation"])
    facts: list[tuple[str, object]] = [
        ("steps", f"{done.results['steps']:,}"),
        ("minutes", f"{done.results['seconds'] / 60:.1f}"),
    ]
    for title, name in (("net", MODEL), ("curves", CURVES), ("card", CARD), ("report", REPORT)):
        if (done.folder / name).is_file():
            facts.append((title, done.folder / name))
    click.echo()
    print_facts(facts)
    if not done.stopped:
        _print_next(variant or done.results["variant"], done.folder)


def _print_next(variant: str, folder: Path) -> None:
    """Print commands to try with the net of a finished run."""
    from variant_ai.core.spec.catalogue import PACKAGED
    from variant_ai.core.train.run.run_folder import MODEL
    from variant_ai.plugins import registry

    if not (folder / MODEL).is_file():
        return
    call, of, run = program(), f"-V {shlex.quote(variant)}", f"-m {shlex.quote(str(folder))}"
    next_steps = [
        ("play against it", f"{call} play {of} {run}"),
        ("see what it thinks", f"{call} analyse startpos {of} {run}"),
    ]
    try:
        registry().net(load_variant(variant), Path(PACKAGED))
    except VariantAIError:
        pass
    else:
        next_steps.append((f"play the net that comes with {variant}", f"{call} play {of}"))
    click.echo()
    print_facts(next_steps, title="Next:")
