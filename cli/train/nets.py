"""`variant-ai nets`: list the networks that can be trained, with their size and speed; adopt one of
another project, or give one more input planes."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import note, print_facts, print_json, print_table, progress
from variant_ai.cli.common.options import COUNT, examples, json_option, load_variant, reject_given
from variant_ai.cli.common.training_options import net_size, size_options
from variant_ai.cli.train.nets_adopt import adopt, widen
from variant_ai.core.errors import UnknownNameError
from variant_ai.core.system.text_tables import counted

if TYPE_CHECKING:
    from variant_ai.core.encoding import Encoder
    from variant_ai.core.inference import Evaluator
    from variant_ai.core.nets import NetworkBuilder
    from variant_ai.core.nets.description import NetReport
    from variant_ai.core.spec.schema import VariantSpec


class _Nets(click.Group):
    """A group that lists networks if no other command of it is named."""

    default = "list"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        known = (*self.commands, "-h", "--help")
        return super().parse_args(ctx, args if args and args[0] in known else [self.default, *args])


@click.group(
    cls=_Nets,
    epilog=examples(
        "variant-ai nets", "variant-ai nets -V NAME --time", "variant-ai nets adopt --help"
    ),
)
def command() -> None:
    """List the networks that can be trained, adopt one of another project, or give one more planes.

    `list` may be left out.
    """


command.add_command(adopt)
command.add_command(widen)


@command.command(
    "list",
    epilog=examples(
        "variant-ai nets list -V NAME",
        "variant-ai nets -V NAME --blocks 5 --channels 64",
        "# the options of one net, and its layers",
        "variant-ai nets risev2-mobile -V NAME",
        "# how long they take",
        "variant-ai nets -V NAME --time --measurements 50",
        "variant-ai nets risev2-mobile -V NAME --time --evaluator onnx --evaluator openvino@bf16",
        "variant-ai nets -V NAME --time --device cuda --evaluator torch@bf16",
    ),
)
@click.argument("net", required=False)
@click.option(
    "-V",
    "--variant",
    "variants",
    multiple=True,
    metavar="NAME",
    help="Count parameters and operations for this variant; may be repeated.",
)
@click.option("--head", metavar="map|flat", help="Only with this policy head.")
@size_options
@click.option("--time", "timed", is_flag=True, help="Measure how long an evaluation takes.")
@click.option(
    "--batch",
    type=COUNT,
    default=8,
    help="--time: positions of an evaluation.",
)
@click.option(
    "--warm-up",
    type=click.IntRange(min=0),
    default=30,
    help="--time: evaluations before the measurement.",
)
@click.option(
    "--measurements",
    type=COUNT,
    default=300,
    help="--time: evaluations to measure.",
)
@click.option(
    "--evaluator",
    "evaluators",
    multiple=True,
    default=("onnx",),
    metavar="NAME[@PRECISION]",
    help="--time: evaluator of the nets (onnx, openvino, torch, auto); may be repeated.",
)
@click.option(
    "--device",
    default="cpu",
    metavar="NAME",
    help="--time: cpu, cuda, cuda:N, tensorrt.",
)
@click.option("--threads", type=COUNT, help="--time: threads of an evaluation.")
@json_option
def list_nets(
    net: str | None,
    variants: tuple[str, ...],
    head: str | None,
    blocks: int | None,
    channels: int | None,
    sizes: tuple[str, ...],
    timed: bool,
    as_json: bool,
    **timing: Any,
) -> None:
    """List the networks that can be trained; with -V their parameters and operations.

    With the name of a net: its options and, for the variants named, its layers.
    """
    from variant_ai.core.encoding import Encoder
    from variant_ai.core.nets import HEADS, find_builder
    from variant_ai.plugins import registry

    if head is not None and head not in HEADS:
        raise UnknownNameError("head", head, HEADS)

    builders = registry().builders()
    size = net_size(blocks, channels, sizes)
    specs = [load_variant(name) for name in variants]
    known = {name for b in builders.values() for name in b.size_type.model_fields}
    for name in size:
        if name not in known:
            raise UnknownNameError("option of a net", name, known)
    if timed:
        time_nets(
            [find_builder(net)] if net is not None else list(builders.values()),
            specs,
            head,
            size,
            as_json=as_json,
            **timing,
        )
        return
    reject_given(list(timing), "has an effect only with --time")
    if net is not None:
        _one(find_builder(net), specs, head, size, as_json)
        return
    rows: list[dict[str, Any]] = [
        {
            "net": builder.name,
            "head": offered,
            "summary": builder.summary,
            "source": builder.source,
            "variants": {},
        }
        for builder in builders.values()
        for offered in builder.heads
        if head in (None, offered)
    ]
    for spec in specs:
        encoders = {h: Encoder(spec, h) for h in HEADS if head in (None, h)}
        for row in rows:
            builder = builders[row["net"]]
            fitting = {k: v for k, v in size.items() if k in builder.size_type.model_fields}
            try:
                report = _report(builder, encoders[row["head"]], fitting)
            except Exception as error:
                if builder.name not in registry().networks:
                    raise
                note(f"{builder.name}, {row['head']}: {type(error).__name__}: {error}")
                continue
            row["variants"][spec.variant] = {
                "parameters": report.parameters,
                "flops": report.flops,
            }
    if as_json:
        print_json(rows)
        return
    _table(rows, [spec.variant for spec in specs])


def _table(rows: list[dict[str, Any]], variants: list[str]) -> None:
    columns = ["net", "head"]
    for name in variants:
        columns += [f"{name}: parameters", "MFLOP"]
    if not variants:
        columns.append("summary")
    lines = []
    for row in rows:
        line = [row["net"], row["head"]]
        for name in variants:
            counts = row["variants"].get(name)
            line += (
                [f"{counts['parameters']:,}", f"{counts['flops'] / 1e6:,.1f}"]
                if counts
                else ["", ""]
            )
        lines.append(line if variants else [*line, row["summary"]])
    print_table(columns, lines, right=columns[2:] if variants else ())
    if not variants:
        click.echo("\nParameters and operations: variant-ai nets -V NAME")


def _one(
    builder: NetworkBuilder,
    specs: list[VariantSpec],
    head: str | None,
    size: dict[str, Any],
    as_json: bool,
) -> None:
    from variant_ai.core.encoding import Encoder
    from variant_ai.core.nets import choose_head

    facts: dict[str, Any] = {
        "net": builder.name,
        "summary": builder.summary,
        "source": builder.source,
        "heads": builder.heads,
        "size": builder.size(**size).model_dump(),
        "variants": {},
    }
    for spec in specs:
        chosen = choose_head(builder, head)
        report = _report(builder, Encoder(spec, chosen), size)
        facts["variants"][spec.variant] = {
            "head": chosen,
            "parameters": report.parameters,
            "flops": report.flops,
            "layers": report.layers,
        }
    if as_json:
        print_json(facts)
        return
    print_facts(
        [
            ("net", builder.name),
            ("summary", builder.summary),
            ("source", builder.source),
            ("heads", ", ".join(builder.heads)),
        ]
    )
    click.echo()
    fields = builder.size_type.model_fields
    print_table(
        ["option", "value", "meaning"],
        [(name, facts["size"][name], fields[name].description or "") for name in fields],
    )
    for name, counts in facts["variants"].items():
        click.echo()
        print_table(
            ["layer", "kind", "output", "parameters", "operations"],
            [
                *(
                    (
                        layer.name,
                        layer.kind,
                        " x ".join(map(str, layer.output)),
                        f"{layer.parameters:,}" if layer.parameters else "",
                        f"{layer.flops:,}" if layer.flops else "",
                    )
                    for layer in counts["layers"]
                ),
                ("all", "", "", f"{counts['parameters']:,}", f"{counts['flops']:,}"),
            ],
            title=f"{name}, {counts['head']} head",
            right=["parameters", "operations"],
        )
    if not specs:
        click.echo("\nLayers, parameters and operations: variant-ai nets NET -V NAME")


def _report(builder: NetworkBuilder, encoder: Encoder, size: dict[str, Any]) -> NetReport:
    """Parameters and operations of a net without weights, from its shapes alone."""
    import torch

    from variant_ai.core.nets import configure_for
    from variant_ai.core.nets.description import describe

    torch.set_num_threads(1)  # a second thread makes a single position slower
    config = configure_for(builder.name, encoder, **size)
    try:
        with torch.device("meta"):
            net = config.build()
        return describe(net.to_empty(device="cpu"), config.shape)
    except (RuntimeError, IndexError):  # a net that reads numbers while it is built or runs
        return describe(config.build(), config.shape)


# --- speed -------------------------------------------------------------------------------------------


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
    machine slows all of them equally ([CrazyAra-preprint] table 9)."""
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
    _print_times(rows, f"{evaluated} after {warm_up} to warm up", on_cpu=device == "cpu")


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


def _print_times(rows: list[dict[str, Any]], title: str, *, on_cpu: bool) -> None:
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
    from variant_ai.core.inference.model_file import CONFIG, MODEL, RUN_MODEL
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
