"""`variant-ai train`: from stored games to a network."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from variant_ai.cli.common import (
    EXIT_INTERRUPTED,
    examples,
    fail,
    json_option,
    load_variant,
    note,
    print_facts,
    print_json,
    print_table,
    progress,
    seed_option,
    variant_option,
)
from variant_ai.cli.networks import (
    all_builders,
    calm_threads,
    device_option,
    net_size,
    size_options,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from variant_ai.core.train.config import TrainConfig
    from variant_ai.core.train.plan import Prepared, TrainRequest
    from variant_ai.core.train.session import RunReport

SAMPLE_MINUTES = 3.0
SAMPLE_EPOCHS = 8.0
SAMPLE_NET, SAMPLE_SIZE, SAMPLE_BATCH = "alphazero-8v-map", {"blocks": 4, "channels": 48}, 128
"""For a few minutes on a CPU: plain convolutions do two or three times the operations of depthwise
ones in the same time there, and small batches give more steps."""
KEPT_ON_RESUME = ("resume", "variant", "as_json")
"""Options that go with --resume; the rest is the run's own."""


@click.command(
    epilog=examples(
        "# a first net from the games that come with the variant, in a few minutes",
        "variant-ai train -V NAME",
        "variant-ai train -V NAME --data games.store --minutes 30 --blocks 5 --channels 64",
        "variant-ai train -V NAME --data games.store --split year:2008:2009- --net risev2-mobile",
        "# go on with a training that was stopped or killed",
        "variant-ai train --resume runs/mine",
    )
)
@variant_option(required=False)
@click.option(
    "--data",
    "stores",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="STORE",
    help="Store of games to train on; may be given again. The variant's sample by default.",
)
@click.option(
    "--validation",
    "validation_stores",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="STORE",
    help="Store to validate on, instead of a part of --data.",
)
@click.option(
    "--split",
    metavar="BY[:SHARE[:TEST]]",
    help="What to validate on: group:0.05 (the default: 5 % of the games, a group of games on one "
    "side), game:0.1, year:2008, source:club*, none. A third part is left out altogether: "
    "year:2008:2009-.",
)
@click.option("--mirror", is_flag=True, help="Also train on every position mirrored left-right.")
@click.option("--net", metavar="NAME", help="Network (`variant-ai nets`).")
@size_options
@click.option("--head", metavar="map|flat", help="Policy head; the net's first by default.")
@click.option("--epochs", type=click.FloatRange(0, min_open=True), help="Passes over the data.")
@click.option("--steps", type=click.IntRange(min=1), help="Steps of the optimiser.")
@click.option(
    "--minutes",
    type=click.FloatRange(0, min_open=True),
    help="Plan as many steps as this time allows for the whole command, by measuring this machine. "
    "Together with --epochs or --steps, the least counts.",
)
@click.option("--batch", type=click.IntRange(min=2), help="Positions a step.")
@click.option(
    "--lr",
    "lr_max",
    type=click.FloatRange(0, min_open=True),
    help="Greatest learning rate; by default the spec's, scaled to the batch.",
)
@click.option("--lr-min", type=click.FloatRange(0), help="Least learning rate.")
@click.option(
    "--momentum",
    type=(click.FloatRange(0, 1), click.FloatRange(0, 1)),
    metavar="LEAST GREATEST",
    help="Momentum at the greatest and at the least learning rate.",
)
@click.option(
    "--warmup",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="Share of the steps in which the learning rate climbs.",
)
@click.option("--weight-decay", type=click.FloatRange(0), help="Weight decay.")
@click.option("--value-weight", type=click.FloatRange(0), help="Weight α of the value loss.")
@click.option(
    "--clip", type=click.FloatRange(0, min_open=True), help="Greatest norm of a gradient."
)
@device_option
@click.option(
    "--precision",
    default="auto",
    show_default=True,
    metavar="auto|fp32|bf16",
    help="Number format of the tower; auto takes bf16 where the hardware multiplies it.",
)
@click.option("--threads", type=click.IntRange(min=1), help="Threads on the CPU.")
@seed_option()
@click.option(
    "--run",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Run directory to make; runs/VARIANT-NET-TIME by default.",
)
@click.option(
    "--resume",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Go on with the training of this run directory, as it was configured.",
)
@json_option
@click.pass_context
def command(
    context: click.Context,
    /,
    resume: Path | None,
    folder: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Train a network on stored games, and end with an ONNX file, metrics and a picture.

    Everything is kept in the run directory. Ctrl-C saves a checkpoint; a run that was stopped or
    killed goes on with --resume and ends with the same net.
    """
    started = time.perf_counter()
    calm_threads()
    from variant_ai.core.train.session import open_run, run_spec, run_training
    from variant_ai.plugins import registry

    builders = all_builders()
    if resume is not None:
        _refuse_options(context)
        variant = options["variant"]
        prepared = open_run(resume, load_variant(variant) if variant else None)
        target = resume
        rules = registry().rules(run_spec(prepared.config))
    else:
        request, rules = _request({**options, "started": started})
        prepared = _prepare(request, rules, builders)
        target = folder or _default_folder(prepared.config)
    _announce(prepared, target)
    with _Progress(prepared.config).shown() as watching:
        report = run_training(
            prepared,
            target,
            rules,
            resume=resume is not None,
            observer=watching,
            builders=builders,
            say=watching.say,
        )
    if as_json:
        print_json({"run": str(report.folder), **report.results})
    else:
        _print(report)
    if report.stopped:
        done = report.results["steps"]
        note(f"Stopped after {done:,} steps. Go on with: variant-ai train --resume {target}")
        context.exit(EXIT_INTERRUPTED)


def _refuse_options(context: click.Context) -> None:
    """With --resume nothing else is to be decided."""
    for name in context.params:
        given = context.get_parameter_source(name) == ParameterSource.COMMANDLINE
        if given and name not in KEPT_ON_RESUME:
            option = next(p.opts[0] for p in context.command.params if p.name == name)
            raise click.UsageError(
                f"{option} cannot be given with --resume: a training goes on as it was configured"
            )


def _request(options: dict[str, Any]) -> tuple[TrainRequest, Any]:
    from variant_ai.core.train.plan import TrainRequest
    from variant_ai.plugins import registry

    name = options.pop("variant")
    if name is None:
        raise click.UsageError("name the variant: -V NAME (`variant-ai variants` lists them)")
    spec = load_variant(name)
    size = net_size(options.pop("blocks"), options.pop("channels"), options.pop("sizes"))
    stores = options.pop("stores")
    validation = options.pop("validation_stores")
    if not stores:
        entry = registry().entry_of(spec)
        if entry is None or entry.sample is None:
            fail(f"{spec.variant} comes without games of its own; name a store with --data")
        stores = (entry.sample,)
        note(f"No --data: training on the games that come with {spec.variant}.")
        if options["steps"] is None and options["minutes"] is None:
            options["minutes"] = SAMPLE_MINUTES
            options["epochs"] = options["epochs"] or SAMPLE_EPOCHS
        if options["net"] is None and options["head"] is None:
            options["net"], size = SAMPLE_NET, {**SAMPLE_SIZE, **size}
            options["batch"] = options["batch"] or SAMPLE_BATCH
    request = TrainRequest(
        spec=spec, stores=stores, validation_stores=validation, size=size, **options
    )
    return request, registry().rules(spec)


def _prepare(request: TrainRequest, rules: Any, builders: Any) -> Prepared:
    from variant_ai.core.train.plan import prepare

    if request.minutes is not None:
        note(f"Measuring this machine, to plan {request.minutes:g} minutes ...")
    return prepare(request, rules=rules, builders=builders)


def _default_folder(config: TrainConfig) -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    return Path("runs") / f"{config.variant}-{config.net.title.replace(' ', '-')}-{stamp}"


def _announce(prepared: Prepared, folder: Path) -> None:
    config = prepared.config
    data = config.data
    epochs = config.steps * config.batch / prepared.train.samples_per_epoch
    held = f"{data.validation_games:,} games held back" if data.validation_games else "all of them"
    note(
        f"{config.variant}: {data.train_games:,} games, {data.train_positions:,} positions; {held}"
    )
    rate = f" ({config.planned_rate:,.0f} positions/s measured)" if config.planned_rate else ""
    note(
        f"{config.net.title}: {config.steps:,} steps of {config.batch} on {config.device} in "
        f"{config.precision}, {epochs:.2f} epochs{rate}"
    )
    note(f"Run directory: {folder}")


class _Progress:
    """Shows a training: a bar on a terminal, a line per validation anywhere."""

    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self._train: dict[str, Any] = {}
        self._bar: Any = None

    @contextmanager
    def shown(self) -> Iterator[_Progress]:
        with progress() as bar:
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
                note=f"loss {_loss(numbers)}, accuracy {_share(numbers)}, "
                f"{numbers['rate']:,.0f} positions/s",
            )
            return
        if kind == "recovery":
            text = (
                f"step {numbers['failed_step']:,}: the loss is not a number; back to step "
                f"{step:,} with {numbers['lr_scale']:g} of the learning rate"
            )
        else:
            text = f"step {step:,} of {self.config.steps:,}"
            if self._train:
                text += f": training loss {_loss(self._train)}, accuracy {_share(self._train)}"
            text += f"; validation loss {_loss(numbers)}, accuracy {_share(numbers)}, "
            text += f"value sign {_share(numbers, 'value_accuracy_sign')}"
            if self._train:
                text += f"; {self._train['rate']:,.0f} positions/s"
        self.say(text)

    def say(self, text: str) -> None:
        if sys.stderr.isatty():
            self._bar.console.print(text, markup=False)
        else:
            note(text)


def _loss(numbers: dict[str, Any]) -> str:
    value = numbers.get("policy_loss")
    return "-" if value is None else f"{value:.3f}"


def _share(numbers: dict[str, Any], name: str = "policy_accuracy") -> str:
    value = numbers.get(name)
    return "-" if value is None else f"{100 * value:.1f} %"


def _print(report: RunReport) -> None:
    from variant_ai.core.train.report import result_rows
    from variant_ai.core.train.session import CARD, CURVES, MODEL

    rows = result_rows(report.results)
    if rows:
        print_table(["metric", "training", "validation"], rows, right=["training", "validation"])
    facts: list[tuple[str, object]] = [
        ("steps", f"{report.results['steps']:,}"),
        ("minutes", f"{report.results['seconds'] / 60:.1f}"),
    ]
    for title, name in (("net", MODEL), ("curves", CURVES), ("card", CARD)):
        if (report.folder / name).is_file():
            facts.append((title, report.folder / name))
    click.echo()
    print_facts(facts)
