"""`variant-ai store`: look at game stores and make new ones of them."""

from __future__ import annotations

import click

from variant_ai.cli.common.console import examples
from variant_ai.cli.games.store_make import filter_, merge, split
from variant_ai.cli.games.store_show import show
from variant_ai.cli.games.store_text import export, verify
from variant_ai.cli.train.mate_options import mates


@click.group(
    epilog=examples(
        "variant-ai store show games.store",
        "variant-ai store filter games.store --min-rating 2000 -o strong.store",
        "variant-ai store export games.store -o games.pgn",
    )
)
def command() -> None:
    """Show, filter, merge, split, export or verify game stores, or find their mates in one."""


for _subcommand in (show, filter_, merge, split, export, verify, mates):
    command.add_command(_subcommand)
