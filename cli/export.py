"""`variant-ai export`: a checkpoint as an ONNX file."""

from __future__ import annotations

from pathlib import Path

import click

from variant_ai.cli.common import (
    examples,
    json_option,
    load_variant,
    note,
    print_json,
    variant_option,
)
from variant_ai.cli.networks import all_builders


@click.command(
    epilog=examples(
        "variant-ai export runs/mine -o mine.onnx",
        "variant-ai export runs/mine/checkpoints/step-00001000 -o early.onnx",
    )
)
@click.argument("checkpoint", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="The file to write.",
)
@variant_option(required=False, help="Refuse a checkpoint of another variant or spec.")
@json_option
def command(checkpoint: Path, output: Path, variant: str | None, as_json: bool) -> None:
    """Write a net as an ONNX file, from a run directory (its newest checkpoint) or a checkpoint.

    The file carries variant, spec hashes, net, data hashes and metrics, and is compared with the
    net before it is kept.
    """
    import json

    from variant_ai.core.train.checkpoint import find_checkpoint
    from variant_ai.core.train.publish import publish
    from variant_ai.core.train.session import RESULTS, require_spec

    found = find_checkpoint(checkpoint)
    config = found.config()
    if variant is not None:
        require_spec(config, load_variant(variant), str(checkpoint))
    state = found.state()
    metrics = {}
    results = found.path.parent.parent / RESULTS
    if results.is_file():
        said = json.loads(results.read_text())
        if said.get("steps") == state.step:
            metrics = {name: said.get(name) for name in ("validation", "baseline_accuracy")}
    net = found.build(config, all_builders())
    difference = publish(config, net, output, metrics, state.step)
    if as_json:
        print_json(
            {
                "path": output,
                "variant": config.variant,
                "net": config.net.title,
                "step": state.step,
                "difference": difference,
            }
        )
        return
    note(
        f"{output}: {config.variant}, {config.net.title}, step {state.step:,}; "
        f"differs from torch by at most {difference:.1g}"
    )
