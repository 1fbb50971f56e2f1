"""A whole run: training, measuring, and everything that a run directory holds at its end.

run/
  config.json        the resolved configuration          checkpoints/   the newest ones
  environment.json   versions and machine                tensorboard/   events
  metrics.jsonl      the record                          curves.png     its picture
  results.json       metrics at the end, as printed      model.onnx     the net
  baseline.npy       how often each action was trained   README.md      what it is (model card)
  report.html        all of it, with pictures, in a file that needs no network
  pictures/          the report's pictures
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from variant_ai import __version__
from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import DataError
from variant_ai.core.factories import TRAINERS
from variant_ai.core.nets.description import describe
from variant_ai.core.nets.interface import NetworkBuilder
from variant_ai.core.rules.interface import Rules
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.system.files import write_whole
from variant_ai.core.train.interface import TrainResult
from variant_ai.core.train.loop.device import choose_device
from variant_ai.core.train.loop.distributed import ALONE, Workers
from variant_ai.core.train.loop.observer import Observer
from variant_ai.core.train.measure.evaluation import DETAILS, break_down, evaluate
from variant_ai.core.train.measure.frequency_baseline import action_counts, load_counts, save_counts
from variant_ai.core.train.measure.metrics import Scores
from variant_ai.core.train.measure.positions_by_rating import places_of
from variant_ai.core.train.pictures import draw_curves
from variant_ai.core.train.report.model_card import model_card
from variant_ai.core.train.report.run_report import REPORT, write_report
from variant_ai.core.train.run.checkpoint import read_config
from variant_ai.core.train.run.environment import describe_environment
from variant_ai.core.train.run.plan import Prepared, open_data
from variant_ai.core.train.run.publish import publish
from variant_ai.core.train.run.run_log import read_metrics
from variant_ai.core.train.run.training_settings import TrainConfig, require_spec

__all__ = [
    "REPORT",
    "RunReport",
    "open_run",
    "require_empty",
    "require_spec",
    "run_spec",
    "run_training",
]

CONFIG, ENVIRONMENT, RESULTS = "config.json", "environment.json", "results.json"
CURVES, MODEL, CARD = "curves.png", "model.onnx", "README.md"
SLOW_RULES_LIMIT = 5_000
"""Positions the baseline is measured on where legal moves cost milliseconds (`fairy`)."""


@dataclass(frozen=True)
class RunReport:
    """What came of a run."""

    folder: Path
    results: dict[str, Any]
    """As written to results.json; without `validation` where the run was stopped."""
    stopped: bool


def run_training(
    prepared: Prepared,
    folder: Path,
    rules: Rules,
    *,
    resume: bool = False,
    observer: Observer | None = None,
    builders: Mapping[str, NetworkBuilder] | None = None,
    say: Callable[[str], None] = lambda text: None,
    workers: Workers = ALONE,
    report: bool = False,
) -> RunReport:
    """Trains in `folder` and, if not stopped, measures and publishes the net.

    `say` is told what goes on after the training. With `report` the run's report is written at
    its end (some seconds). Of several processes the first alone writes,
    measures and publishes. Raises DataError where the folder holds another run, DivergedError,
    OSError.
    """
    config = prepared.config
    if not resume:
        require_empty(folder)
    # Before anything is written: what cannot be built leaves no folder behind.
    trainer = TRAINERS.load(config.trainer)(
        config,
        prepared.train,
        prepared.validation,
        folder,
        observer=observer,
        builders=builders,
        workers=workers,
    )
    workers.wait()  # every process has looked before the first one writes
    if workers.first:
        folder.mkdir(parents=True, exist_ok=True)
        if not resume or run_config(folder) != config:  # moved, it or its stores
            write_whole(folder / CONFIG, config.model_dump_json(indent=2))
        if not (folder / ENVIRONMENT).is_file():
            said = {**describe_environment(), "processes": workers.world}
            write_whole(folder / ENVIRONMENT, json.dumps(said, indent=2))
    trained = trainer.run(resume=resume, say=say)
    if not workers.first:
        return RunReport(folder, _summary(config, trained), trained.stopped)
    title = f"{config.variant}, {config.net.title}, {config.data.train_games:,} games"
    draw_curves(read_metrics(folder), folder / CURVES, title)
    results = _summary(config, trained)
    if not trained.stopped:
        say("measuring the baseline")
        _measure(results, prepared, trained.scores, folder, rules)
        say("exporting")
        metrics = {
            "validation": {
                name: value
                for name, value in (results["validation"] or {}).items()
                if name not in DETAILS or name == "unseen"
            },
            "baseline_accuracy": results["baseline_accuracy"],
        }
        difference = publish(config, trained.net, folder / MODEL, metrics, trained.state.step)
        results["onnx_difference"] = difference
        write_whole(folder / CARD, model_card(config, results))
    write_whole(folder / RESULTS, json.dumps(results, indent=2))
    if report and not trained.stopped:
        say("drawing the report")
        write_report(folder, config, results, rules, prepared=prepared, net=trained.net)
    return RunReport(folder, results, trained.stopped)


def require_empty(folder: Path) -> None:
    """Raises DataError where a new run would overwrite something."""
    if folder.is_file():
        raise DataError(f"{folder} is a file, not a run directory")
    if folder.exists() and any(folder.iterdir()):
        raise DataError(f"{folder} is not empty; resume it or name another run directory")


def open_run(
    folder: Path,
    spec: VariantSpec | None = None,
    rules: Rules | None = None,
    workers: Workers = ALONE,
    stores: Sequence[Path] = (),
    validation_stores: Sequence[Path] = (),
    *,
    device: str | None = None,
    threads: int | None = None,
) -> Prepared:
    """The training of a run directory, to be resumed: same stores, same splits.

    `spec` is the variant the caller means, if any; `stores` and `validation_stores` are where the
    run's own lie now, in its order, if they were moved; `device` and `threads`, where it is to go on
    if not as before. Raises DataError where the run is of another variant or spec, or its stores are
    gone or changed, and what `choose_device` raises.
    """
    config = run_config(folder)
    moved: dict[str, tuple[str, ...]] = {}
    for name, given in (("stores", stores), ("validation_stores", validation_stores)):
        had = getattr(config.data, name)
        if given and len(given) != len(had):
            raise DataError(
                f"{folder} is trained with {len(had)} stores ({', '.join(had) or 'none'}) where "
                f"{len(given)} are given now"
            )
        if given:
            moved[name] = tuple(str(path.resolve()) for path in given)
    own = run_spec(config)
    if spec is not None:
        require_spec(config, spec, str(folder))
    encoder = Encoder(own, config.net.head)
    opened = open_data(
        own,
        encoder,
        config.data.model_copy(update=moved),
        batch=config.batch // config.micro_batches,
        seed=config.seed,
        rules=rules,
        workers=workers,
        micro_batches=config.micro_batches,
    )
    placed: dict[str, Any] = {"threads": threads or config.threads}
    if device is not None:
        placed["device"] = str(choose_device(device))
    return opened.prepared(config.model_copy(update={"data": opened.config, **placed}), encoder)


def run_config(folder: Path) -> TrainConfig:
    """What a run directory was configured as. Raises DataError where it is none."""
    path = folder / CONFIG
    if not path.is_file():
        what = "is no run directory: it has no config.json" if folder.exists() else "is not there"
        raise DataError(f"{folder} {what}")
    return read_config(path)


def run_spec(config: TrainConfig) -> VariantSpec:
    """The spec a configuration carries."""
    return VariantSpec.model_validate_json(json.dumps(config.spec))


def _summary(config: TrainConfig, trained: TrainResult) -> dict[str, Any]:
    net = describe(trained.net, config.net.shape)
    return {
        "version": __version__,
        "variant": config.variant,
        "net": config.net.title,
        "parameters": net.parameters,
        "flops": net.flops,
        "steps": trained.state.step,
        "positions": trained.state.step * config.batch,
        "seconds": round(trained.state.seconds, 1),
        "recoveries": trained.state.recoveries,
        "train": trained.train.as_dict() if trained.train else None,
        "validation": trained.validation.as_dict() if trained.validation else None,
        "baseline_accuracy": None,
    }


def _measure(
    results: dict[str, Any], prepared: Prepared, scores: Scores | None, folder: Path, rules: Rules
) -> None:
    """Adds what needs more than the net: the baseline, accuracy by ply and on unseen moves."""
    counts = load_counts(folder, prepared.encoder.actions)
    if counts is None:
        counts = action_counts(prepared.train, prepared.encoder.actions)
        save_counts(folder, counts)
    config, source = prepared.config, prepared.validation
    if source is None or scores is None:
        return
    limit = config.final_limit
    slow = rules.name != "kernel" and len(scores.rank) > SLOW_RULES_LIMIT
    baseline = evaluate(
        {},
        source,
        prepared.encoder,
        rules=rules,
        counts=counts,
        limit=SLOW_RULES_LIMIT if slow else limit,
    )
    results["baseline_accuracy"] = baseline.baseline_accuracy
    results["baseline_positions"] = baseline.positions
    results["legal_moves"] = baseline.legal_moves
    if slow:
        return
    seen = prepared.seen if limit is None else None
    net = break_down(
        scores,
        baseline.ply,
        config.value_weight,
        side=baseline.side,
        seen=seen,
        places=places_of(source, prepared.validation_stores(), limit=limit),
    ).as_dict()
    results["validation"].update({name: net[name] for name in DETAILS})
    results["unseen_share"] = None if seen is None else float((~seen).mean())
