"""`variant-ai nets --time`: measure the speed of networks ([CrazyAra-preprint] table 9)."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import note, print_json, print_table, progress
from variant_ai.core.errors import UnknownNameError
from variant_ai.core.system.text_tables import counted

if TYPE_CHECKING:
    from variant_ai.core.inference import Evaluator
    from variant_ai.core.nets import NetworkBuilder
    from variant_ai.core.spec.schema import VariantSpec


def time_nets(
    builders: list[NetworkBuilder],
    specs: list[VariantSpec],
    head: str | None,
    size: dict[str, Any],
    *,
    evaluators: tuple[str, ...],
    batch: int,
    warm_up: int,
    measurements: int,
    device: str,
    threads: int | None,
    as_json: bool,
) -> None:
    """Export each net with random weights, and time all of them in turns, so that other work of the
    machine slows all of them equally."""
    if not specs:
        raise click.UsageError("--time needs a variant: -V NAME")
    from variant_ai.core.inference.choosing.evaluator_timing import interleaved
    from variant_ai.plugins import registry

    if head is not None and not any(head in builder.heads for builder in builders):
        raise UnknownNameError("head", head, {name for b in builders for name in b.heads})
    made: dict[tuple[str, str, str], Evaluator] = {}
    with tempfile.TemporaryDirectory() as folder:
        for spec, title, run in _written(Path(folder), builders, specs, head, size):
            for name in evaluators:
                evaluator = registry().evaluator(
                    spec, run, evaluator=name, batch=batch, threads=threads, device=device, log=note
                )
                made[spec.variant, title, evaluator.describe()] = evaluator
        with progress() as bar:
            task = bar.add_task("evaluations", total=len(made) * measurements)
            timings = interleaved(
                made,
                batch,
                warm_up=warm_up,
                rounds=measurements,
                advance=lambda n: bar.advance(task, n),
            )
        for evaluator in made.values():
            evaluator.close()
    rows: list[dict[str, Any]] = [
        {
            "variant": variant,
            "net": net,
            "evaluator": described,
            "batch": batch,
            "milliseconds": timing.mean * 1000,
            "median_milliseconds": timing.median * 1000,
            "best_milliseconds": timing.best * 1000,
            "processor_milliseconds": timing.processor * 1000,
            "positions_per_second": timing.rate,
        }
        for (variant, net, described), timing in timings.items()
    ]
    if as_json:
        print_json(rows)
        return
    evaluated = f"{counted(measurements, 'evaluation')} of {counted(batch, 'position')}"
    _print(rows, f"{evaluated} after {warm_up} to warm up", on_cpu=device == "cpu")


def _written(
    folder: Path,
    builders: list[NetworkBuilder],
    specs: list[VariantSpec],
    head: str | None,
    size: dict[str, Any],
) -> Iterator[tuple[VariantSpec, str, Path]]:
    """Write the nets that have the head, and yield variant, title and run directory of each."""
    for spec in specs:
        for builder in builders:
            chosen = head or builder.heads[0]
            if chosen in builder.heads:
                run = folder / f"{spec.variant}-{builder.name}"
                yield spec, write_net(builder, spec, chosen, size, run), run


def _print(rows: list[dict[str, Any]], title: str, *, on_cpu: bool) -> None:
    # Other programs may use the CPU, so CPU time is compared; on a GPU it would mean nothing.
    decides = "processor_milliseconds" if on_cpu else "median_milliseconds"
    slowest = max(row[decides] for row in rows)
    columns = ["variant", "net", "evaluator", "ms", "median", "best", "CPU ms", "positions/s", "×"]
    print_table(
        columns,
        [
            (
                row["variant"],
                row["net"],
                row["evaluator"],
                *(f"{row[f'{kind}milliseconds']:.1f}" for kind in ("", "median_", "best_")),
                f"{row['processor_milliseconds']:.1f}",
                f"{row['positions_per_second']:,.0f}",
                f"{slowest / row[decides]:.2f}",
            )
            for row in rows
        ],
        title=title,
        right=columns[3:],
    )
    by = "CPU time" if on_cpu else "the median"
    note(f"ms: mean time of a batch. ×: speed relative to the slowest, by {by}.")


def write_net(
    builder: NetworkBuilder, spec: VariantSpec, head: str, size: dict[str, Any], run: Path
) -> str:
    """Write the net with random weights as a run directory, which all evaluators accept; return its
    title."""
    import torch
    from safetensors.torch import save_model

    from variant_ai.core.encoding import Encoder
    from variant_ai.core.inference.checkpoint_files import CONFIG, MODEL
    from variant_ai.core.inference.model_file import RUN_MODEL
    from variant_ai.core.nets import choose_head, configure_for
    from variant_ai.core.nets.interface import spec_metadata
    from variant_ai.core.nets.onnx_export import export_onnx
    from variant_ai.core.train.run.checkpoint import checkpoint_name
    from variant_ai.core.train.run.run_folder import CHECKPOINTS

    encoder = Encoder(spec, choose_head(builder, head))
    fitting = {k: v for k, v in size.items() if k in builder.size_type.model_fields}
    config = configure_for(builder.name, encoder, **fitting)
    torch.manual_seed(0)
    metadata = {**spec_metadata(spec), "net": config.title, "head": head}
    net = config.build()
    checkpoint = run / CHECKPOINTS / checkpoint_name(0)
    checkpoint.mkdir(parents=True)
    export_onnx(net, run / RUN_MODEL, metadata, shape=config.shape)
    values = {**metadata, "net": config.model_dump(mode="json")}
    (checkpoint / CONFIG).write_text(json.dumps(values), encoding="utf-8")
    save_model(net, str(checkpoint / MODEL))
    return config.title
