"""`variant-ai nets widen`: a net for more input planes, which returns the same numbers."""

from __future__ import annotations

from pathlib import Path

import click

from variant_ai.cli.common.console import (
    FILE,
    NetPath,
    examples,
    load_variant,
    print_facts,
    variant_option,
)
from variant_ai.cli.common.output_files import replace_option, require_new


@click.command(
    epilog=examples(
        "variant-ai nets widen packaged -V mine.yaml -o wider.onnx",
        "variant-ai reinforce -V mine.yaml --from wider.onnx --minutes 60",
    )
)
@click.argument("net", type=NetPath(), metavar="ONNX|packaged")
@variant_option(help="Spec with more input planes: a name, or the path of a YAML spec.")
@click.option("-o", "--output", type=FILE, required=True, help="The file to write.")
@replace_option
def widen(net: Path, variant: str, output: Path, replace: bool) -> None:
    """Give a net the input planes of another spec, with weights of zero for those that it never saw.

    The spec has the same rules and policy, and all planes of the net. The new net returns the same
    numbers as before; training it goes on from there with the new planes.
    """
    from variant_ai.core.inference.widened_net import widen as widened
    from variant_ai.core.nets.onnx_files import write_onnx
    from variant_ai.core.spec.plane_layout import input_planes
    from variant_ai.plugins import registry

    spec = load_variant(variant)
    require_new(output, replace=replace)
    source = registry().net(spec, net)
    write_onnx(widened(source, spec), output)
    print_facts(
        [
            ("variant", spec.variant),
            ("net", str(source)),
            ("input planes", f"{len(input_planes(spec)):,}"),
            ("file", str(output)),
        ]
    )
