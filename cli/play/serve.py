"""`variant-ai serve`: analysis for programs, as JSON lines over standard input and output."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from variant_ai import __version__
from variant_ai.cli.common.console import (
    EXIT_INTERRUPTED,
    examples,
    load_variant,
    note,
    variant_option,
)
from variant_ai.cli.common.search_options import (
    NetChoice,
    load_evaluator,
    net_options,
    search_params,
)

if TYPE_CHECKING:
    from variant_ai.core.engine.json_service import Desk


@click.command(
    epilog=examples(
        "variant-ai serve -V NAME --model net.onnx < queries.jsonl > answers.jsonl",
        '# {"id": 1, "moves": ["e2e4"], "nodes": 400, "multipv": 3}',
        '# {"id": 2, "fen": "...", "movetime": 0.5, "priority": 10, "report_every": 0.1}',
        '# {"action": "stop", "id": 2}',
        "variant-ai serve --evaluator uniform",
    )
)
@variant_option(required=False, help="Variant of queries that name none.")
@net_options
def command(variant: str | None, net: NetChoice) -> None:
    """Analyse positions for another program, a JSON object a line.

    A query has `id`, `variant`, `fen`, `moves`, limits (`nodes`, `movetime` in seconds, `depth`,
    `mate`), `multipv`, `search_moves`, `priority` and `report_every`; each gets an answer with
    `final: true`. docs/api.md tells all of it.
    """
    from variant_ai.core.engine.json_service import Service
    from variant_ai.core.engine.line_io import LineReader, LineWriter, claim_stdout

    name = None if variant is None else variant
    if name is not None:
        load_variant(name)
    write = LineWriter(claim_stdout())
    service = Service(
        lambda wanted: _desk(wanted, net), write, default_variant=name, version=__version__
    )
    try:
        service.run(LineReader(0))
    except KeyboardInterrupt:
        sys.stderr.flush()
        os._exit(EXIT_INTERRUPTED)
    if write.is_broken:
        os._exit(0)


def _desk(name: str, net: NetChoice) -> Desk:
    """Rules and search of a variant. Raises UnknownNameError, DataError."""
    from variant_ai.core.engine.json_service import Desk
    from variant_ai.core.search.search import Search
    from variant_ai.plugins import registry

    spec = load_variant(name)
    params = search_params(spec, net)
    evaluator = load_evaluator(spec, net, params.batch_size, log=note)
    rules = registry().rules(spec)
    return Desk(rules, Search(spec, evaluator, params, rules=rules))
