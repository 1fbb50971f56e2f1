"""A whole run: train, measure, and write everything else into the run directory (`run_folder`)."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from variant_ai import __version__
from variant_ai.core.encoding import ENCODER_VERSION, Encoder
from variant_ai.core.errors import DataError
from variant_ai.core.factories import TRAINERS
from variant_ai.core.nets.description import describe, parameters
from variant_ai.core.nets.onnx_export import export_onnx
from variant_ai.core.rules.interface import Rules
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.system.files import write_whole
from variant_ai.core.system.missing_packages import installed_version
from variant_ai.core.system.text_tables import counted
from variant_ai.core.train.interface import TrainResult
from variant_ai.core.train.loop.devices import ALONE, Workers, choose_device
from variant_ai.core.train.measure.evaluation import (
    DETAILS,
    action_counts,
    evaluate,
    position_origins,
    sampled_seen,
    summarise,
)
from variant_ai.core.train.measure.metrics import Scores
from variant_ai.core.train.pictures.training_curves import learning_curves
from variant_ai.core.train.report.run_report import model_card, write_report
from variant_ai.core.train.run.run_folder import (
    CARD,
    CONFIG,
    CURVES,
    ENVIRONMENT,
    MODEL,
    RESULTS,
    Observer,
    load_counts,
    locked,
    read_metrics,
    read_results,
    require_empty,
    run_config,
    save_counts,
)
from variant_ai.core.train.run.training_data import Prepared, Sampling, open_data
from variant_ai.core.train.run.training_settings import TrainConfig, model_info, run_spec

SLOW_RULES_LIMIT = 5_000
"""Positions that the baseline is measured on if legal moves take milliseconds (`fairy`)."""
PACKAGES = ("variant-ai", "torch", "numpy", "numba", "onnx", "onnxruntime", "safetensors")


@dataclass(frozen=True)
class RunReport:
    """The result of a run."""

    folder: Path
    results: dict[str, Any]
    """Contents of results.json; without `validation` if the run was stopped."""
    stopped: bool


def run_training(
    prepared: Prepared,
    folder: Path,
    rules: Rules,
    *,
    resume: bool = False,
    observer: Observer | None = None,
    report: Callable[[str], None] = lambda text: None,
    workers: Workers = ALONE,
    html: bool = False,
) -> RunReport:
    """Train in `folder` and, if not stopped, measure and export the net.

    The folder, once it is made, and progress after the training are passed to `report`. With `html`
    the run's report page is written at the end (some seconds). Of several processes only the first one
    writes, measures and exports.
    Raises DataError if the folder holds another run, DivergedError, OSError.
    """
    config = prepared.config
    if not resume:
        require_empty(folder)
    # Before anything is written, so that a net that cannot be built leaves no folder behind.
    trainer = TRAINERS.load(config.trainer)(
        config,
        prepared.train,
        prepared.validation,
        folder,
        observer=observer,
        workers=workers,
    )
    workers.barrier()  # every process has checked the folder before the first one writes
    with contextlib.ExitStack() as held:
        if workers.first:
            folder.mkdir(parents=True, exist_ok=True)
            held.enter_context(locked(folder))
            if not resume:
                require_empty(folder)  # another training may have begun there meanwhile
            if not resume or run_config(folder) != config:  # it or its stores were moved
                write_whole(folder / CONFIG, config.model_dump_json(indent=2))
            if not (folder / ENVIRONMENT).is_file():
                environment = {**describe_environment(), "processes": workers.world}
                write_whole(folder / ENVIRONMENT, json.dumps(environment, indent=2))
            report(f"Run directory: {folder}")
        trained = trainer.run(resume=resume, report=report)
        return _finished(
            trained, prepared, folder, rules, report=report, workers=workers, html=html
        )


def _finished(
    trained: TrainResult,
    prepared: Prepared,
    folder: Path,
    rules: Rules,
    *,
    report: Callable[[str], None],
    workers: Workers,
    html: bool,
) -> RunReport:
    """Measure and export the net of a training, unless it was stopped, and write its results."""
    config = prepared.config
    if not workers.first:
        return RunReport(folder, _summary(config, trained), trained.stopped)
    title = f"{config.variant}, {config.net.title}, {counted(config.data.train_games, 'game')}"
    write_whole(folder / CURVES, learning_curves(read_metrics(folder), title).png)
    results = _summary(config, trained)
    if not trained.stopped:
        report("measuring the baseline")
        _measure(results, prepared, trained.scores, folder, rules)
        report("exporting")
        metrics = {
            "validation": {
                name: value
                for name, value in (results["validation"] or {}).items()
                if name not in DETAILS or name == "unseen"
            },
            "baseline_accuracy": results["baseline_accuracy"],
        }
        difference = export_net(config, trained.net, folder / MODEL, metrics, trained.state.step)
        results["onnx_difference"] = difference
        write_whole(folder / CARD, model_card(config, results))
    write_whole(folder / RESULTS, json.dumps(results, indent=2))
    if html and not trained.stopped:
        report("drawing the report")
        write_report(folder, config, results, rules, prepared=prepared, net=trained.net)
    return RunReport(folder, results, trained.stopped)


def finished_run(folder: Path) -> RunReport | None:
    """The result of a run that was trained to its last step, measured and exported; None if a part of
    that is left to do. Raises DataError if the folder is no run directory."""
    results = read_results(folder, run_config(folder).steps)
    if results is None or not (folder / MODEL).is_file():
        return None
    return RunReport(folder, results, stopped=False)


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
    """Open the training of a run directory to resume it, with the same stores and splits.

    Args:
        spec: the variant that the run must be of, if any.
        stores, validation_stores: new paths of the run's stores, in its order, if they were moved.
        device, threads: to continue on another device or with another number of threads.

    Raises DataError if the run is of another variant or spec, or its stores are missing or changed;
    and the errors of `choose_device`.
    """
    config = run_config(folder)
    moved: dict[str, tuple[str, ...]] = {}
    for name, given in (("stores", stores), ("validation_stores", validation_stores)):
        had = getattr(config.data, name)
        if given and len(given) != len(had):
            raise DataError(
                f"{folder} is trained with {counted(len(had), 'store')} ({', '.join(had) or 'none'}), but "
                f"{len(given)} are given now"
            )
        if given:
            moved[name] = tuple(str(path.resolve()) for path in given)
    own = run_spec(config)
    if spec is not None:
        model_info(config, folder).require(spec)
    encoder = Encoder(own, config.net.head)
    data = config.data.model_copy(update=moved)
    sampling = Sampling(config.batch, config.seed, rules, workers, config.micro_batches)
    opened = open_data(own, encoder, data, sampling)
    placed: dict[str, Any] = {"threads": threads or config.threads}
    if device is not None:
        placed["device"] = str(choose_device(device))
    placed["data"] = opened.data
    return Prepared(**vars(opened), config=config.model_copy(update=placed), encoder=encoder)


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
    """Add the measurements that need the games: the baseline, accuracy by ply and on unseen moves."""
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
    seen = sampled_seen(prepared.seen, source, limit)
    net = summarise(
        scores,
        baseline.ply,
        config.value_weight,
        side=baseline.side,
        seen=seen,
        origins=position_origins(source, prepared.validation_stores(), limit=limit),
    ).as_dict()
    results["validation"].update({name: net[name] for name in DETAILS})
    results["unseen_share"] = None if seen is None else float((~seen).mean())


# --- the exported net, the environment -----------------------------------------------------------


def export_net(
    config: TrainConfig,
    net: nn.Module,
    path: str | os.PathLike[str],
    metrics: Mapping[str, Any],
    step: int,
) -> float:
    """Write the net of a training to an ONNX file, with metadata about variant, net and training.

    Returns the largest difference between onnxruntime and torch. Raises DataError if it exceeds 1e-4,
    OSError if the file cannot be written.
    """
    metadata = {
        **config.model_dump(include={"variant", "spec_hash", "encoding_hash", "spec", "batch"}),
        "encoder_version": ENCODER_VERSION,
        "net": config.net.title,
        "net_config": config.net.model_dump(mode="json"),
        "parameters": parameters(net),
        "head": config.net.head,
        "data_hashes": config.data.hashes,
        "train_stores": len(config.data.stores),
        "data_split": config.data.split,
        "split_seed": config.data.seed,
        "mirror": config.data.mirror,
        "steps": step,
        "metrics": metrics,
        "program": f"variant-ai {__version__}",
    }
    return export_onnx(net, path, metadata, shape=config.net.shape)


def describe_environment() -> dict[str, Any]:
    """Versions, operating system, processor and devices; nothing personal (no paths, no names)."""
    capabilities = torch.cpu.get_capabilities()
    extensions = ("amx_bf16", "avx512_bf16", "avx512_f", "avx2")
    return {
        "python": sys.version.split()[0],
        "system": f"{platform.system()} {platform.machine()}",
        "packages": {name: installed_version(name) for name in PACKAGES},
        "cpu": {
            "name": str(capabilities.get("cpu_name", platform.processor())),
            "cores": os.cpu_count(),
            "extensions": [name for name in extensions if capabilities.get(name)],
        },
        "gpus": [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())],
        "threads": torch.get_num_threads(),
    }
