"""`variant-ai data`: games from where they are published."""

from __future__ import annotations

import click

from variant_ai.cli.common.console import examples
from variant_ai.cli.games.fetch_lichess import lichess

_EXAMPLES = examples(
    "variant-ai data fetch lichess -V NAME --from 2016-01 --to 2018-06 -o games.store",
)


@click.group(epilog=_EXAMPLES)
def command() -> None:
    """Fetch published games into game stores.

    Files that you have already are read by `variant-ai import`.
    """


@command.group(epilog=_EXAMPLES)
def fetch() -> None:
    """Stream an archive of games into a store, without keeping its files."""


fetch.add_command(lichess)
