"""`variant-ai nets adopt` and `widen`: make another project's ONNX net one of ours, or give a net more
input planes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from variant_ai.cli.common.console import note, print_facts, print_json
from variant_ai.cli.common.options import (
    FILE,
    examples,
    json_option,
    load_variant,
    output_option,
    replace_option,
    require_new,
    variant_option,
)

if TYPE_CHECKING:
    from variant_ai.core.spec.schema import VariantSpec

POSITIONS = 100
"""Positions of random games on which the policy is tried."""
PLIES = 60
"""Most random moves before a position."""
LITTLE = 0.5
"""Mean probability of legal moves below which a layout is probably wrong."""


@click.command(
    epilog=examples(
        "variant-ai nets adopt model.onnx -V crazyhouse --layout crazyara-crazyhouse -o adopted.onnx",
        "variant-ai nets adopt model.onnx -V NAME --layout mine.yaml -o adopted.onnx",
    )
)
@click.argument("file", type=FILE)
@variant_option()
@click.option(
    "--layout",
    required=True,
    metavar="NAME|FILE",
    help="Order of planes and policy, and meaning of the value: one of the layouts that ship, or a "
    "YAML file.",
)
@output_option("The file to write.")
@replace_option
@json_option
def adopt(
    file: Path, variant: str, layout: str, output: Path, replace: bool, as_json: bool
) -> None:
    """Make another project's ONNX net one of ours, for engine, analysis and matches.

    The file that is written holds the net and the conversion of its planes and policy. It is tried on
    positions of random games: a net that gives most of its probability to illegal moves has another
    layout.
    """
    from variant_ai.core.nets.adopted_net import adopt as adopted_net
    from variant_ai.core.nets.foreign_layout import read_layout
    from variant_ai.core.nets.onnx_files import read_onnx, write_onnx

    spec = load_variant(variant)
    chosen = read_layout(layout)
    require_new(output, replace, [file])
    adopted = adopted_net(read_onnx(file), chosen, spec, str(file))
    with tempfile.TemporaryDirectory() as folder:  # a net that fails here leaves no file
        tried = Path(folder, output.name)
        write_onnx(adopted.content, tried)
        legal = _legal_share(tried, spec)
    write_onnx(adopted.content, output)
    if as_json:
        print_json(
            {
                "file": str(output),
                "head": adopted.head,
                "policy": adopted.numbers,
                "missing_moves": list(adopted.missing),
                "legal_share": legal,
            }
        )
    else:
        print_facts(
            [
                ("variant", spec.variant),
                ("layout", layout),
                ("head", adopted.head),
                ("policy", adopted.numbers),
                ("moves it does not have", f"{len(adopted.missing):,}"),
                ("probability of legal moves", f"{100 * legal:.1f} %"),
                ("file", str(output)),
            ]
        )
    if legal < LITTLE:
        note(
            f"only {100 * legal:.0f} % of the policy falls on legal moves: the layout is probably "
            "not that of the net, or the net was never trained"
        )


def _legal_share(path: Path, spec: VariantSpec) -> float:
    """Mean probability that the net gives to legal moves, in positions of random games."""
    import numpy as np

    from variant_ai.core.arena.games.openings import played_out, random_lines
    from variant_ai.core.encoding import Encoder
    from variant_ai.core.inference.backends.onnx_backend import OnnxEvaluator
    from variant_ai.core.inference.interface import softmax
    from variant_ai.core.rules import make_rules

    rules = make_rules(spec)
    shares: list[float] = []
    with OnnxEvaluator(path, spec, threads=1) as evaluator:
        encoder = Encoder(spec, evaluator.info.head)
        for line in random_lines(rules, POSITIONS, (0, PLIES), seed=0):
            game = played_out(rules, line)
            logits = evaluator.evaluate(encoder.planes(game.position)).policy[0].astype(np.float64)
            actions = encoder.action_indices(game.position, game.legal_moves().tolist())
            shares.append(float(softmax(logits)[np.unique(actions)].sum()))
    return float(np.mean(shares))


@click.command(
    epilog=examples(
        "variant-ai nets widen packaged -V mine.yaml -o wider.onnx",
        "variant-ai reinforce -V mine.yaml --from wider.onnx --minutes 60",
        "# begin a variant of chess with a net of chess",
        "variant-ai nets widen chess -V mine.yaml --other-rules -o start.onnx",
    )
)
@click.argument("net")
@variant_option(help="Spec with more input planes: a name, or the path of a YAML spec.")
@click.option(
    "--other-rules",
    is_flag=True,
    help="The net may be of another variant on a board of the same size.",
)
@output_option("The file to write.")
@replace_option
@json_option
def widen(
    net: str, variant: str, other_rules: bool, output: Path, replace: bool, as_json: bool
) -> None:
    """Give a net the input planes of another spec, with weights of zero for those that it never saw.

    NET is an ONNX file, a run folder, or the name of a variant for the net that comes with it (`packaged`:
    that of -V). The spec has the same rules and policy, and all planes of the net. The new net returns the
    same numbers as before, and can be trained further with the new planes.

    With --other-rules the spec may be of another variant, whose training then starts from these weights.
    Pieces are the same if they have the same letter; input planes that the spec does not have are left out;
    a move that the net does not have begins like the most similar one.
    """
    from variant_ai.core.inference.model_file import RUN_MODEL, find_model_file
    from variant_ai.core.inference.widened_net import differences
    from variant_ai.core.inference.widened_net import widen as widened
    from variant_ai.core.nets.onnx_files import write_onnx
    from variant_ai.core.spec.catalogue import PACKAGED
    from variant_ai.core.spec.plane_layout import input_planes
    from variant_ai.plugins import registry

    spec = load_variant(variant)
    is_given = Path(net).is_file() or (Path(net) / RUN_MODEL).is_file()
    if net in registry().variants and not is_given:
        source = registry().net(registry().variant(net), Path(PACKAGED))
    else:
        source = registry().net(spec, Path(net))
    source = find_model_file(source).path
    require_new(output, replace, [source])
    write_onnx(widened(source, spec, other_rules=other_rules), output)
    left_out, new = differences(source, spec)
    if as_json:
        print_json(
            {"file": str(output), "net": str(source), "new_planes": new, "left_out": left_out}
        )
        return
    if left_out:
        note(f"the spec does not have these planes of the net: {', '.join(left_out)}")
    print_facts(
        [
            ("variant", spec.variant),
            ("net", str(source)),
            ("input planes", f"{len(input_planes(spec)):,}, {len(new)} of them new to the net"),
            ("file", str(output)),
        ]
    )
