"""`variant-ai experiment`: the experiments of the papers, and comparisons written down in files."""

from __future__ import annotations

import click

from variant_ai.cli.common.console import examples
from variant_ai_experiments.n_e6 import command as n_e6
from variant_ai_experiments.run import run


@click.group(
    epilog=examples(
        "variant-ai experiment run experiments/normalisation.yaml",
        "variant-ai experiment n-e6 -V NAME --model net.onnx -o n-e6.png",
    )
)
def command() -> None:
    """Repeat an experiment of the papers, or run one of your own."""


command.add_command(run, "run")
command.add_command(n_e6, "n-e6")
