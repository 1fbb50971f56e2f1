"""`variant-ai nets`: the networks that can be trained, and what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common import (
    examples,
    json_option,
    load_variant,
    print_facts,
    print_json,
    print_table,
    variant_option,
)
from variant_ai.cli.networks import all_builders, net_size, size_options

if TYPE_CHECKING:
    from variant_ai.core.nets import NetworkBuilder
    from variant_ai.core.nets.describe import NetReport
    from variant_ai.specs.schema import VariantSpec


@click.command(
    epilog=examples(
        "variant-ai nets",
        "variant-ai nets -V NAME --blocks 5 --channels 64",
        "# one net layer by layer, and its options",
        "variant-ai nets risev2-mobile -V NAME",
    )
)
@click.argument("net", required=False)
@variant_option(required=False, help="Only for this variant; every registered one by default.")
@click.option("--head", metavar="map|flat", help="Only with this policy head.")
@size_options
@json_option
def command(
    net: str | None,
    variant: str | None,
    head: str | None,
    blocks: int | None,
    channels: int | None,
    sizes: tuple[str, ...],
    as_json: bool,
) -> None:
    """List the networks that can be trained, with parameters and operations for each variant.

    With the name of a net: its options and, for one variant, its layers.
    """
    from variant_ai.core.nets import find_builder
    from variant_ai.plugins import registry

    builders = all_builders()
    size = net_size(blocks, channels, sizes)
    names = [variant] if variant else list(registry().variants)
    specs = [load_variant(name) for name in names]
    if net is not None:
        builder = find_builder(net, builders)
        _one(builder, specs if variant else specs[:1], head, size, as_json)
        return
    rows: list[dict[str, Any]] = []
    for builder in builders.values():
        fitting = {k: v for k, v in size.items() if k in builder.size_type.model_fields}
        for chosen in builder.heads if head is None else (head,):
            if chosen in builder.heads:
                for spec in specs:
                    report = _report(builder, spec, chosen, fitting)
                    rows.append(
                        {
                            "net": builder.name,
                            "head": chosen,
                            "variant": spec.variant,
                            "parameters": report.parameters,
                            "flops": report.flops,
                            "summary": builder.summary,
                            "source": builder.source,
                        }
                    )
    if as_json:
        print_json(rows)
        return
    _table(rows, [spec.variant for spec in specs])


def _table(rows: list[dict[str, Any]], variants: list[str]) -> None:
    columns = ["net", "head"]
    for name in variants:
        columns += [f"{name}: parameters", "MFLOP"]
    lines: dict[tuple[str, str], list[object]] = {}
    for row in rows:
        line = lines.setdefault((row["net"], row["head"]), [row["net"], row["head"]])
        line += [f"{row['parameters']:,}", f"{row['flops'] / 1e6:,.1f}"]
    print_table(columns, lines.values(), right=columns[2:])
    click.echo()
    print_facts({row["net"]: row["summary"] for row in rows}.items())


def _one(
    builder: NetworkBuilder,
    specs: list[VariantSpec],
    head: str | None,
    size: dict[str, Any],
    as_json: bool,
) -> None:
    complete = builder.size(**size).model_dump()
    spec = specs[0]
    report = _report(builder, spec, head or builder.heads[0], size)
    if as_json:
        print_json(
            {
                "net": builder.name,
                "summary": builder.summary,
                "source": builder.source,
                "heads": builder.heads,
                "size": complete,
                "variant": spec.variant,
                "parameters": report.parameters,
                "flops": report.flops,
                "layers": report.layers,
            }
        )
        return
    print_facts(
        [
            ("net", builder.name),
            ("is", builder.summary),
            ("from", builder.source),
            ("heads", ", ".join(builder.heads)),
            ("variant", spec.variant),
            ("parameters", f"{report.parameters:,}"),
            ("operations a position", f"{report.flops:,}"),
        ]
    )
    click.echo()
    fields = builder.size_type.model_fields
    print_table(
        ["option", "value", "is"],
        [(name, complete[name], fields[name].description or "") for name in fields],
    )
    click.echo()
    print_table(
        ["layer", "is", "output", "parameters", "operations"],
        [
            (
                layer.name,
                layer.kind,
                " x ".join(map(str, layer.output)),
                f"{layer.parameters:,}" if layer.parameters else "",
                f"{layer.flops:,}" if layer.flops else "",
            )
            for layer in report.layers
        ],
        right=["parameters", "operations"],
    )


def _report(
    builder: NetworkBuilder, spec: VariantSpec, head: str, size: dict[str, Any]
) -> NetReport:
    """Counts without numbers: the net is built on torch's meta device."""
    import torch

    from variant_ai.core.encoding import Encoder
    from variant_ai.core.nets import configure_net
    from variant_ai.core.nets.describe import describe

    encoder = Encoder(spec, "flat" if head == "flat" else "map")
    planes, height, width = encoder.shape
    config = configure_net(
        builder.name,
        planes=planes,
        board=(height, width),
        policy_planes=encoder.policy_shape[0],
        actions=encoder.actions,
        head=head,
        builders={builder.name: builder},
        **size,
    )
    with torch.device("meta"):
        return describe(config.build({builder.name: builder}), config.shape)
