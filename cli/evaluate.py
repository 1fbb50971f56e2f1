"""`variant-ai evaluate`: how well nets predict the moves and results of stored games."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common import (
    examples,
    fail,
    json_option,
    load_variant,
    note,
    print_json,
    print_table,
    progress,
    seed_option,
    variant_option,
)
from variant_ai.cli.networks import all_builders, calm_threads, device_option

if TYPE_CHECKING:
    from variant_ai.core.train.evaluation import Evaluation
    from variant_ai.core.train.models import Model
    from variant_ai.specs.schema import VariantSpec


@click.command(
    epilog=examples(
        "variant-ai evaluate runs/mine games.store",
        "# two nets on the same positions, of one year",
        "variant-ai evaluate a.onnx games.store --model b.onnx --split year:2008",
        "# the run's own validation positions",
        "variant-ai evaluate runs/mine",
    )
)
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("store", type=click.Path(path_type=Path, dir_okay=False), required=False)
@click.option(
    "--model",
    "more",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="MODEL",
    help="Another net to measure on the same positions; may be given again.",
)
@variant_option(required=False, help="Refuse nets of another variant or spec.")
@click.option(
    "--split",
    metavar="BY[:SHARE[:TEST]]",
    help="Measure on one side of a split of the store, as `train` splits; on all games by default.",
)
@click.option(
    "--side",
    type=click.Choice(["train", "validation", "test"]),
    default="validation",
    show_default=True,
    help="Which side of the split.",
)
@click.option(
    "--trained-on",
    type=click.Path(path_type=Path),
    metavar="RUN|STORE",
    help="Whose moves the baseline counts; by default those of the net's run directory.",
)
@click.option(
    "--limit", type=click.IntRange(min=1), help="At most so many positions, spread evenly."
)
@click.option(
    "--batch",
    type=click.IntRange(min=1),
    default=256,
    show_default=True,
    help="Positions computed at a time.",
)
@seed_option()
@device_option
@json_option
def command(
    model: Path,
    store: Path | None,
    more: tuple[Path, ...],
    variant: str | None,
    split: str | None,
    side: str,
    trained_on: Path | None,
    limit: int | None,
    batch: int,
    seed: int,
    device: str,
    as_json: bool,
) -> None:
    """Measure nets on the games of a store: policy, value, by ply, and the baseline.

    MODEL is an ONNX file, a run directory or a checkpoint. The baseline plays, among the legal
    moves, the one most frequent in training.
    """
    calm_threads()
    from variant_ai.core.train.device import choose_device
    from variant_ai.core.train.models import model_variant, open_model

    spec = load_variant(variant or model_variant(model))
    where = choose_device(device)
    builders = all_builders()
    models = [open_model(path, spec, where, builders=builders) for path in (model, *more)]
    evaluations = _evaluate(models, spec, store, split, side, trained_on, limit, batch, seed)
    if as_json:
        print_json(_joined(models, evaluations))
        return
    _print(models, evaluations)


def _evaluate(
    models: list[Model],
    spec: VariantSpec,
    store: Path | None,
    split: str | None,
    side: str,
    trained_on: Path | None,
    limit: int | None,
    batch: int,
    seed: int,
) -> list[Evaluation]:
    """One evaluation for each policy head there is: the same positions, numbered by that head."""
    from variant_ai.core.encoding import Encoder
    from variant_ai.core.train.evaluation import evaluate
    from variant_ai.plugins import registry

    rules = registry().rules(spec)
    evaluations = []
    for head in sorted({model.head for model in models}, reverse=True):
        encoder = Encoder(spec, head)
        chosen = {str(model.path): model for model in models if model.head == head}
        source, seen = _source(models[0], spec, encoder, rules, store, split, side, batch, seed)
        counts = _counts(list(chosen.values()), spec, encoder, rules, trained_on)
        total = source.positions if limit is None else min(limit, source.positions)
        with progress() as bar:
            advance = partial(bar.advance, bar.add_task("positions", total=total))
            evaluations.append(
                evaluate(
                    {name: model.predictor for name, model in chosen.items()},
                    source,
                    encoder,
                    rules=rules,
                    counts=counts,
                    seen=None if limit is not None else seen,
                    limit=limit,
                    value_weight=spec.training.value_weight,
                    advance=advance,
                )
            )
    return evaluations


def _source(
    first: Model,
    spec: VariantSpec,
    encoder: Any,
    rules: Any,
    store: Path | None,
    split: str | None,
    side: str,
    batch: int,
    seed: int,
) -> tuple[Any, Any]:
    """The positions to measure on, and which of them were seen in the training, where known."""
    from variant_ai.core.data.sampler import Sampler
    from variant_ai.core.data.split import split_games
    from variant_ai.core.data.store import Store
    from variant_ai.core.train.plan import parse_split, seen_positions
    from variant_ai.core.train.session import open_run

    if store is None:
        if first.run is None:
            raise click.UsageError("name a store of games to measure on")
        if split is not None:
            raise click.UsageError("--split needs a store; the run's own split is used without one")
        prepared = open_run(first.run, spec, rules)
        if prepared.validation is None:
            fail(f"{first.run} held no games back; name a store to measure on")
        sampler = Sampler(
            [Store(p, spec) for p in _stores(prepared)],
            encoder,
            batch=batch,
            games=prepared.validation_games,
            rules=rules,
        )
        return sampler, prepared.seen
    opened = Store(store, spec)
    plan = None if split is None else parse_split(split, seed)
    if plan is None:
        return Sampler(opened, encoder, batch=batch, rules=rules), None
    sides = split_games(opened, plan)
    games = getattr(sides, side)
    if not len(games):
        fail(f"the split {split} of {store} puts no game on the side {side}")
    seen = None if side == "train" else seen_positions(opened, sides.train, games)
    return Sampler(opened, encoder, batch=batch, games=games, rules=rules), seen


def _stores(prepared: Any) -> tuple[str, ...]:
    data = prepared.config.data
    chosen: tuple[str, ...] = data.validation_stores or data.stores
    return chosen


def _counts(
    models: list[Model], spec: VariantSpec, encoder: Any, rules: Any, trained_on: Path | None
) -> Any:
    """How often each action was trained, or None where nobody knows."""
    from variant_ai.core.data.sampler import Sampler
    from variant_ai.core.data.store import Store
    from variant_ai.core.train.baseline import action_counts, load_counts

    if trained_on is not None and trained_on.is_file():
        return action_counts(
            Sampler(Store(trained_on, spec), encoder, batch=1024, rules=rules), encoder.actions
        )
    folders = [trained_on] if trained_on is not None else [model.run for model in models]
    for folder in folders:
        if folder is not None:
            counts = load_counts(folder, encoder.actions)
            if counts is not None:
                return counts
    if trained_on is not None:
        fail(f"{trained_on} is neither a store nor a run directory with counted moves")
    note("No baseline: the training's moves are not known (--trained-on RUN|STORE).")
    return None


def _joined(models: list[Model], evaluations: list[Evaluation]) -> dict[str, Any]:
    said = evaluations[0].as_dict()
    for evaluation in evaluations[1:]:
        said["nets"] |= evaluation.as_dict()["nets"]
    for model in models:
        said["nets"][str(model.path)]["title"] = model.title
    return said


def _print(models: list[Model], evaluations: list[Evaluation]) -> None:
    from variant_ai.core.train.report import metric_rows, percent

    nets = {name: net for e in evaluations for name, net in e.nets.items()}
    names = [str(model.path) for model in models]
    click.echo(f"{evaluations[0].positions:,} positions")
    for model in models:
        click.echo(f"{model.path}: {model.title}")
    click.echo()
    columns = [dict(metric_rows(nets[name].as_dict())) for name in names]
    rows: list[list[object]] = [
        [title, *(column.get(title, "-") for column in columns)] for title in columns[0]
    ]
    for evaluation in evaluations:
        if evaluation.unseen_share is not None:
            title = f"policy accuracy, unseen moves ({percent(evaluation.unseen_share)})"
            unseen = [nets[name].unseen for name in names]
            rows.append([title, *(percent(m.policy_accuracy) if m else "-" for m in unseen)])
            break
    heads = _short([model.path for model in models])
    print_table(["metric", *heads], rows, right=heads)
    known = [e.baseline_accuracy for e in evaluations if e.baseline_accuracy is not None]
    if known:
        click.echo(f"\nbaseline, most frequent legal move: {percent(known[0])}")
    if evaluations[0].legal_moves is not None:
        click.echo(f"legal moves a position: {evaluations[0].legal_moves:.1f}")
    click.echo()
    classes = nets[names[0]].by_ply
    print_table(
        ["policy accuracy at plies", "positions", *heads],
        [
            [
                title,
                f"{classes[title].positions:,}",
                *(percent(nets[name].by_ply[title].policy_accuracy) for name in names),
            ]
            for title in classes
        ],
        right=["positions", *heads],
    )


def _short(paths: list[Path]) -> list[str]:
    """The last part of each path, or as many as it takes to tell them apart."""
    for parts in range(1, max(len(path.parts) for path in paths)):
        names = ["/".join(path.parts[-parts:]) for path in paths]
        if len(set(names)) == len(set(paths)):
            return names
    return [str(path) for path in paths]
