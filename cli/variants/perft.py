"""`variant-ai perft`: count the leaves of the move tree with one rules engine or two."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import print_json, print_table
from variant_ai.cli.common.ending import fail
from variant_ai.cli.common.options import (
    examples,
    fen_option,
    json_option,
    load_variant,
    variant_option,
)
from variant_ai.core.errors import UnknownNameError

if TYPE_CHECKING:
    from variant_ai.core.spec.schema import VariantSpec


@dataclass
class _Count:
    engine: str
    nodes: int
    seconds: float
    divide: dict[str, int] | None


@click.command(
    epilog=examples(
        "variant-ai perft --variant crazyhouse --depth 4",
        "variant-ai perft --variant xiangqi --depth 3 --divide",
        "# the kernel against Fairy-Stockfish, move by move",
        "variant-ai perft --variant crazyhouse --fen '2k5/8/8/8/8/8/8/4K3[Qn] w - - 0 1'"
        " --depth 2 --engine both",
    )
)
@variant_option()
@fen_option()
@click.option(
    "--depth",
    type=click.IntRange(0, 20),
    required=True,
    help="Length of the move sequences, in plies.",
)
@click.option("--divide", "divided", is_flag=True, help="Show the count for each first move.")
@click.option(
    "--engine",
    metavar="kernel|fairy|both|NAME",
    help="Rules engine, or one of a plugin; `both` compares kernel and fairy, and fails if they "
    "differ.  [default: the spec's]",
)
@json_option
def command(
    variant: str, fen: str | None, depth: int, divided: bool, engine: str | None, as_json: bool
) -> None:
    """Count the sequences of legal moves of a given length.

    The counts of many positions are known, so this tests the move rules and measures their speed.
    The kernel makes millions of positions a second, Fairy-Stockfish's Python module a few thousand.
    """
    from variant_ai.core.rules import RULES_ENGINES
    from variant_ai.plugins import registry

    spec = load_variant(variant)
    engine = engine or spec.rules.engine
    known = [*RULES_ENGINES.builtin, "both", *registry().rules_engines]
    if engine not in known:
        raise UnknownNameError("rules engine", engine, known)
    engines = ["kernel", "fairy"] if engine == "both" else [engine]
    counts = [_count(spec, name, fen, depth, divided or engine == "both") for name in engines]
    difference = _difference(counts)
    if as_json:
        head = {"variant": variant, "fen": fen or spec.rules.start, "depth": depth}
        rows = {
            c.engine: {"nodes": c.nodes, "seconds": c.seconds}
            | ({"divide": c.divide} if divided and c.divide is not None else {})
            for c in counts
        }
        agree: dict[str, Any] = {"agree": difference is None, "difference": difference}
        both = engine == "both"
        print_json(
            head | ({"engines": rows} | agree if both else {"engine": engine} | rows[engine])
        )
    else:
        _print(counts, divided)
    if difference:
        fail(difference)


def _count(spec: VariantSpec, engine: str, fen: str | None, depth: int, divided: bool) -> _Count:
    from variant_ai.core.rules.kernel.perft import divide, perft
    from variant_ai.plugins import registry

    rules = registry().rules(spec, engine)
    position = rules.position(fen)
    perft(rules, position, min(depth, 1))  # compiles, which is not timed
    start = time.perf_counter()
    parts = divide(rules, position, depth) if divided and depth > 0 else None
    nodes = perft(rules, position, depth) if parts is None else sum(parts.values())
    return _Count(engine, nodes, time.perf_counter() - start, parts)


def _difference(counts: list[_Count]) -> str | None:
    """Describe the first move on which two engines differ; None if they agree."""
    if len(counts) < 2:
        return None
    first, second = (count.divide or {} for count in counts)
    for move in sorted(first.keys() | second.keys()):
        if first.get(move) != second.get(move):
            return (
                f"the engines differ after {move}: kernel {first.get(move, 'has no such move')}, "
                f"fairy {second.get(move, 'has no such move')}"
            )
    return None


def _print(counts: list[_Count], divided: bool) -> None:
    parts = [c.divide for c in counts if c.divide is not None]
    if divided and parts:
        moves = sorted({move for part in parts for move in part})
        print_table(
            ["move", *(c.engine for c in counts)],
            [[move, *(part.get(move) for part in parts)] for move in moves],
            right=[c.engine for c in counts],
        )
        click.echo()
    print_table(
        ["engine", "nodes", "seconds", "nodes/s"],
        [
            (
                c.engine,
                f"{c.nodes:,}",
                f"{c.seconds:.3f}",
                f"{c.nodes / c.seconds:,.0f}" if c.seconds > 0 else "",
            )
            for c in counts
        ],
        right=["nodes", "seconds", "nodes/s"],
    )
