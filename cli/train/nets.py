"""`variant-ai nets`: list the networks that can be trained, with their size and speed; adopt one of
another project, or give one more input planes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import note, print_facts, print_json, print_table
from variant_ai.cli.common.network_options import net_size, size_options
from variant_ai.cli.common.options import COUNT, examples, json_option, load_variant, reject_given
from variant_ai.cli.train.nets_adopt import adopt, widen
from variant_ai.core.errors import UnknownNameError

if TYPE_CHECKING:
    from variant_ai.core.encoding import Encoder
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
        from variant_ai.cli.train.nets_time import time_nets

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
