"""`variant-ai evaluate`: measure how well nets predict the moves and results of stored games."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import note, print_json, print_table, progress
from variant_ai.cli.common.ending import fail
from variant_ai.cli.common.options import (
    COUNT,
    FILE,
    FOLDER,
    PATH,
    examples,
    json_option,
    seed_option,
    variant_option,
)
from variant_ai.cli.common.search_options import net_and_spec
from variant_ai.cli.common.training_options import device_option, let_threads_sleep
from variant_ai.cli.train.mate_options import mates_option, read_or_find_mates
from variant_ai.core.errors import DataError
from variant_ai.core.system.files import short_names
from variant_ai.core.system.text_tables import counted
from variant_ai.core.train.measure.metric_tables import (
    BASELINE,
    CALIBRATION,
    TITLES,
    UNSEEN,
    WDL,
    difference,
    mate_rows,
    metric_rows,
    percent,
    wdl_rows,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from variant_ai.core.data.game_record import Labels
    from variant_ai.core.data.sample.sampler import Sampler
    from variant_ai.core.data.store.game_store import Store
    from variant_ai.core.encoding import Encoder
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.spec.schema import VariantSpec
    from variant_ai.core.train.measure.evaluation import Counts, NetComparison, NetEvaluation
    from variant_ai.core.train.measure.metrics import Metrics
    from variant_ai.core.train.measure.prediction import Model
    from variant_ai.core.train.run.training_settings import DataConfig, TrainConfig


def policy_labels(context: click.Context, option: click.Parameter, word: str | None) -> str | None:
    """Callback of `--labels`: a store keeps policy targets as visits, so both are one label."""
    return "visits" if word == "targets" else word


@click.command(
    epilog=examples(
        "variant-ai evaluate runs/mine games.store",
        "# two nets on the same positions, of one year",
        "variant-ai evaluate a.onnx games.store --model b.onnx --split year:2008",
        "# the run's own validation positions",
        "variant-ai evaluate runs/mine",
        "# with a mate-in-one set, and pictures of calibration, plies and ratings",
        "variant-ai evaluate a.onnx games.store --model b.onnx --mates 1000 --figures pictures",
    )
)
@click.argument("model", type=PATH)
@click.argument("store", type=FILE, required=False)
@click.option(
    "--model",
    "more",
    multiple=True,
    type=PATH,
    metavar="MODEL",
    help="Another net to measure on the same positions; may be repeated.",
)
@variant_option(required=False, help="Reject nets of another variant or spec.")
@click.option(
    "--split",
    metavar="BY[:SHARE[:TEST]]",
    help="Measure on one side of a split of the store, split as by `train` (--seed is its "
    "--split-seed); on all games by default.",
)
@click.option(
    "--side",
    type=click.Choice(["train", "validation", "test"]),
    help="Side of the split to measure on.  [default: validation]",
)
@click.option(
    "--trained-on",
    type=PATH,
    metavar="RUN|STORE",
    help="Training games whose moves the baseline counts; by default those of the net's run.",
)
@click.option(
    "--limit",
    type=COUNT,
    help="Greatest number of positions to measure: a random sample, the same for every net.",
)
@click.option(
    "--labels",
    type=click.Choice(["move", "visits", "targets"]),
    callback=policy_labels,
    help="Measure against the moves played, or against the visits of a search if there are any; by "
    "default a run on its own positions by the labels it was trained with, otherwise against the moves.",
)
@mates_option
@click.option(
    "--figures",
    type=FOLDER,
    metavar="FOLDER",
    help="Also draw calibration, and accuracy by ply and by rating, as PNG.",
)
@click.option(
    "--batch",
    type=COUNT,
    default=256,
    help="Positions computed at a time.",
)
@seed_option
@device_option
@json_option
def command(
    model: Path,
    more: tuple[Path, ...],
    variant: str | None,
    figures: Path | None,
    device: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Measure nets on the games of a store: policy, value, by ply and rating, and the baseline.

    MODEL is an ONNX file, a run directory or a checkpoint. The baseline plays, among the legal
    moves, the one most frequent in training. Several nets are measured on the same positions, and
    each is compared with the first. Intervals are 95 % confidence intervals, in which games, not
    positions, are independent.
    """
    let_threads_sleep()
    from variant_ai.core.train.loop.devices import choose_device
    from variant_ai.core.train.measure.prediction import open_model
    from variant_ai.plugins import registry

    request = _Request(**options)
    if request.side is not None and request.split is None:
        raise click.UsageError("--side needs --split")
    model, spec = net_and_spec(model, variant)
    more = tuple(registry().net(spec, path) for path in more)
    where = choose_device(device)
    paths = dict.fromkeys((model, *more))
    models = [open_model(path, spec, where, report=note) for path in paths]
    found = _evaluate(models, spec, request)
    drawn = _draw(models, found, figures) if figures is not None else []
    if as_json:
        output = found.as_dict()
        for one in models:
            output["nets"][str(one.path)]["title"] = one.title
        print_json(output | ({"pictures": drawn} if figures is not None else {}))
        return
    _print(models, found)
    if figures is not None:
        click.echo(f"\n{len(drawn)} pictures in {figures}: {', '.join(p.stem for p in drawn)}")


@dataclass(frozen=True)
class _Request:
    """The options that choose positions, labels and baseline."""

    store: Path | None
    split: str | None
    side: str | None
    trained_on: Path | None
    limit: int | None
    labels: Labels | None
    mates: str | None
    batch: int
    seed: int


def _evaluate(models: list[Model], spec: VariantSpec, request: _Request) -> NetComparison:
    """Measure all nets on the same positions, each with the actions of its own policy head."""
    from variant_ai.core.encoding import Encoder
    from variant_ai.core.spec.plane_layout import input_planes
    from variant_ai.core.train.measure.evaluation import Measured, evaluate, position_origins
    from variant_ai.core.train.measure.mate_set import measure_mates
    from variant_ai.plugins import registry

    shown = _spec_of_all(models)
    rules = registry().rules(shown)
    # Every action of the map that a move can have has a flat label, so it can be translated.
    heads = {model.head for model in models}
    labels = {model.spec.encoder.labels for model in models}
    encoder = Encoder(shown, "map" if "map" in heads or len(labels) > 1 else "flat")
    encoders = {str(model.path): Encoder(model.spec, model.head) for model in models}
    nets = {}
    for model in models:
        own = encoders[str(model.path)]
        other_planes = (
            input_planes(model.spec) != input_planes(shown)
            or model.spec.encoder.input != shown.encoder.input
        )
        nets[str(model.path)] = Measured(
            model.predictor,
            actions=own.action_table if model.head != encoder.head else None,
            encoder=own if other_planes else None,
        )
    source, seen, stores, games = _source(models[0], spec, encoder, rules, request)
    _print_trained(models, stores, games)
    if source.labels == "visits" and not source.searched:
        fail("none of these positions has visits of a search; use --labels move")
    limit = request.limit
    total = source.positions if limit is None else min(limit, source.positions)
    counts = _counts(models, spec, encoder, rules, request.trained_on)
    with progress() as bar:
        found = evaluate(
            nets,
            source,
            encoder,
            rules=rules,
            counts=counts,
            seen=seen,
            origins=position_origins(source, stores, limit=limit),
            limit=limit,
            value_weight=_value_weight(models, spec),
            advance=partial(bar.advance, bar.add_task("positions", total=total)),
        )
    if request.mates is not None:
        chosen = read_or_find_mates(request.mates, rules, source)
        for model in models:
            found.nets[str(model.path)].mates = measure_mates(
                model.predictor, chosen, rules, encoders[str(model.path)], batch=request.batch
            )
    return found


def _spec_of_all(models: list[Model]) -> VariantSpec:
    """The spec of a net whose positions have all that the others are shown."""
    from variant_ai.core.spec.plane_layout import input_planes, last_moves_shown, policy_planes

    def demands(spec: VariantSpec) -> tuple[int, int]:
        repetitions = any(plane.item == "repetitions" for plane in input_planes(spec))
        return last_moves_shown(spec), int(repetitions)

    specs = [model.spec for model in models]
    shown = max(specs, key=demands)
    for model in models:
        if policy_planes(model.spec) != policy_planes(shown):  # including the order
            fail(f"{model.path} has another policy than the other nets; measure it separately")
        if any(own > there for own, there in zip(demands(model.spec), demands(shown), strict=True)):
            fail(
                f"{model.path} has planes that the other nets do not have, and they have planes that it does not have; "
                "measure it separately"
            )
    return shown


def _source(
    first: Model,
    spec: VariantSpec,
    encoder: Encoder,
    rules: Rules,
    request: _Request,
) -> tuple[Sampler, NDArray[np.bool_] | None, list[Store], Sequence[NDArray[np.int64]]]:
    """The positions to measure on, which of them occurred in training (if known), and the stores and
    games they come from."""
    import numpy as np

    from variant_ai.core.data.sample.sampler import Sampler
    from variant_ai.core.data.sample.split import split_games
    from variant_ai.core.data.store.game_store import Store
    from variant_ai.core.train.run.training_data import parse_split, seen_positions
    from variant_ai.core.train.run.training_run import open_run

    options: dict[str, Any] = {"batch": request.batch, "seed": request.seed, "rules": rules}
    if request.store is None:
        if first.run is None:
            raise click.UsageError("name a store of games to measure on")
        if request.split is not None:
            raise click.UsageError(
                "--split needs a store; without one, the run's own split is used"
            )
        prepared = open_run(first.run, first.spec, rules)
        if prepared.validation is None:
            fail(f"{first.run} has no validation games; name a store to measure on")
        stores = prepared.validation_stores()
        held = prepared.validation_games
        options["labels"] = request.labels or prepared.config.data.labels
        return Sampler(stores, encoder, games=held, **options), prepared.seen, stores, held
    options["labels"] = request.labels or "move"
    store = Store(request.store, spec)
    plan = None if request.split is None else parse_split(request.split, request.seed)
    if plan is None:
        return Sampler(store, encoder, **options), None, [store], [np.arange(len(store))]
    sides = split_games(store, plan)
    side = request.side or "validation"
    games = getattr(sides, side)
    if not len(games):
        fail(f"the split {request.split} of {request.store} has no games on the side {side}")
    source = Sampler(store, encoder, games=games, **options)
    seen = None if side == "train" else seen_positions(store, sides.train, source)
    return source, seen, [store], [games]


def _value_weight(models: list[Model], spec: VariantSpec) -> float:
    """α of the combined loss: from the first net whose training is known, or else from the spec."""
    known = (config for model in models if (config := _training_of(model)) is not None)
    return next((config.value_weight for config in known), spec.training.value_weight)


def _training_of(model: Model) -> TrainConfig | None:
    """The configuration of a net's training, if it lies in a run directory."""
    from variant_ai.core.train.run.run_folder import run_config

    try:
        return None if model.run is None else run_config(model.run)
    except DataError:  # another program's config.json
        return None


def _data_of(model: Model) -> DataConfig | None:
    """The data that a net was trained on, from its run directory or, if it has none, its file."""
    from variant_ai.core.inference.model_file import ONNX_SUFFIX, read_model_file
    from variant_ai.core.train.run.training_data import data_of_file

    config = _training_of(model)
    if config is not None:
        return config.data
    if model.path.suffix != ONNX_SUFFIX:
        return None
    return data_of_file(read_model_file(model.path).metadata)


def _print_trained(
    models: list[Model], stores: list[Store], games: Sequence[NDArray[np.int64]]
) -> None:
    """Print a note for each net that was trained on these games: its results are too good."""
    from variant_ai.core.reinforce.reinforce_folder import run_of_net
    from variant_ai.core.reinforce.window_training import count_learnt
    from variant_ai.core.train.run.training_data import count_trained

    total = sum(map(len, games))
    for model in models:
        count = 0
        if (found := run_of_net(model.path)) is not None:
            count = count_learnt(*found, stores, games)
        elif (data := _data_of(model)) is not None:
            count = count_trained(data, stores, games)
        if count:
            note(f"{model.path} was trained on {count:,} of these {counted(total, 'game')}.")


def _counts(
    models: list[Model],
    spec: VariantSpec,
    encoder: Encoder,
    rules: Rules,
    trained_on: Path | None,
) -> Counts | None:
    """Number of times each action was trained, None if unknown."""
    from variant_ai.core.data.sample.sampler import Sampler
    from variant_ai.core.data.store.game_store import Store
    from variant_ai.core.train.measure.evaluation import action_counts
    from variant_ai.core.train.run.run_folder import load_counts

    if trained_on is not None and trained_on.is_file():
        return action_counts(
            Sampler(Store(trained_on, spec), encoder, batch=1024, rules=rules), encoder.actions
        )
    folders = (
        [trained_on]
        if trained_on is not None
        else [model.run for model in models if model.head == encoder.head]
    )
    for folder in folders:
        if folder is not None:
            counts = load_counts(folder, encoder.actions)
            if counts is not None:
                return counts
    if trained_on is not None:
        fail(f"{trained_on} is neither a store nor a run directory with baseline.npy")
    note("No baseline: the moves of the training are not known (--trained-on RUN|STORE).")
    return None


def _draw(models: list[Model], found: NetComparison, folder: Path) -> list[Path]:
    from variant_ai.core.train.pictures import write_pictures
    from variant_ai.core.train.pictures.quality_pictures import quality_pictures

    heads = short_names([model.path for model in models])
    nets = {
        head: found.nets[str(model.path)].as_dict()
        for head, model in zip(heads, models, strict=True)
    }
    return write_pictures(quality_pictures(nets), folder)


def _print(models: list[Model], found: NetComparison) -> None:
    nets = [found.nets[str(model.path)] for model in models]
    games = "" if found.games is None else f" of {counted(found.games, 'game')}"
    click.echo(f"{counted(found.positions, 'position')}{games}")
    for model in models:
        click.echo(f"{model.path}: {model.title}")
    click.echo()
    columns = [dict(metric_rows(net.as_dict())) for net in nets]
    rows: list[list[object]] = [
        [title, *(column.get(title, "-") for column in columns)] for title in columns[0]
    ]
    if found.unseen_share is not None:
        title = f"{UNSEEN} ({percent(found.unseen_share)})"
        rows.append(
            [title, *(percent(n.unseen.policy_accuracy) if n.unseen else "-" for n in nets)]
        )
    rows.append([CALIBRATION, *(f"{net.calibration.expected_error:.4f}" for net in nets)])
    quality = [{} if net.wdl is None else dict(wdl_rows(vars(net.wdl))) for net in nets]
    if any(quality):
        rows += [[title, *(one.get(title, "-") for one in quality)] for title in WDL.values()]
    heads = short_names([model.path for model in models])
    print_table(["metric", *heads], rows, right=heads)
    if found.baseline_accuracy is not None:
        click.echo(f"\n{BASELINE}: {percent(found.baseline_accuracy)}")
    if found.legal_moves is not None:
        click.echo(f"legal moves a position: {found.legal_moves:.1f}")
    _print_mates(nets, heads)
    _print_differences(nets, heads)
    _print_classes("policy accuracy at plies", [net.by_ply for net in nets], heads)
    if len(nets[0].by_rating) > 1:
        _print_classes("policy accuracy by rating", [net.by_rating for net in nets], heads)


def _print_mates(nets: list[NetEvaluation], heads: list[str]) -> None:
    columns = [mate_rows(vars(net.mates)) for net in nets if net.mates]
    if columns:
        click.echo()
        rows = [[row[0][0], *(cell for _, cell in row)] for row in zip(*columns, strict=True)]
        print_table(["mate in one", *heads], rows, right=heads)


def _print_differences(nets: list[NetEvaluation], heads: list[str]) -> None:
    """Print each net minus the first, with intervals; `*` marks intervals without zero."""
    if len(nets) < 2:
        return
    click.echo()
    rows = [
        [
            TITLES[name],
            *(
                difference(name, net.differences[name]) + (" *" if found.certain else "  ")
                for net in nets[1:]
                for found in [net.differences[name]]
            ),
        ]
        for name in nets[1].differences
    ]
    print_table([f"minus {heads[0]}", *heads[1:]], rows, right=heads[1:])
    click.echo("95 % intervals over games; * if zero is outside.")


def _print_classes(title: str, classes: list[dict[str, Metrics]], heads: list[str]) -> None:
    click.echo()
    print_table(
        [title, "positions", *heads],
        [
            [
                name,
                f"{metrics.positions:,}",
                *(percent(of_net[name].policy_accuracy) for of_net in classes),
            ]
            for name, metrics in classes[0].items()
        ],
        right=["positions", *heads],
    )
