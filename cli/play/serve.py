"""`variant-ai serve`: analysis for programs, as JSON lines over standard input and output."""

from __future__ import annotations

import click

from variant_ai import __version__
from variant_ai.cli.common.console import note
from variant_ai.cli.common.ending import EXIT_INTERRUPTED, exit_at_once
from variant_ai.cli.common.options import examples, load_variant, variant_option
from variant_ai.cli.common.search_options import NetChoice, load_engine, net_options


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
    """Analyse positions for another program, one JSON object per line.

    A query has `id`, `variant`, `fen`, `moves`, limits (`nodes`, `movetime` in seconds, `depth`,
    `mate`), `multipv`, `search_moves`, `priority` and `report_every`; each gets an answer with
    `final: true`. docs/api.md describes all fields.
    """
    from variant_ai.core.engine.json_service import JsonService
    from variant_ai.core.engine.line_io import LineWriter, claim_stdout, read_lines

    if variant is not None:
        load_variant(variant)
    write = LineWriter(claim_stdout())
    service = JsonService(
        lambda name: load_engine(load_variant(name), net, log=note),
        write,
        default_variant=variant,
        version=__version__,
    )
    try:
        service.run(read_lines(0))
    except KeyboardInterrupt:
        exit_at_once(EXIT_INTERRUPTED)
    if write.is_broken:
        exit_at_once(0)
