"""`variant-ai bench`: speed of the search and its parts."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from variant_ai.cli.common.console import print_facts, print_json, progress
from variant_ai.cli.common.ending import EXIT_INTERRUPTED
from variant_ai.cli.common.options import (
    COUNT,
    FiniteRange,
    examples,
    fen_option,
    json_option,
    load_variant,
    variant_option,
)
from variant_ai.cli.common.search_options import (
    NetChoice,
    fail_if_over,
    load_evaluator,
    net_options,
    settings_given,
)
from variant_ai.core.system.interrupts import stop_on_signal

if TYPE_CHECKING:
    from variant_ai.core.analysis.search_speed import Speed


@click.command(
    epilog=examples(
        "variant-ai bench -V NAME --model net.onnx --batch 16",
        "# the search alone, with an evaluator that takes no time",
        "variant-ai bench -V NAME --evaluator uniform --nodes 1000000",
        "variant-ai bench -V NAME --fen FEN --json",
    )
)
@variant_option()
@net_options
@fen_option("Position to search.")
@click.option(
    "-n",
    "--nodes",
    "--simulations",
    "simulations",
    type=COUNT,
    metavar="N",
    help="Simulations in total.  [default: as many as possible in --seconds]",
)
@click.option(
    "--seconds",
    type=FiniteRange(min=0, min_open=True),
    default=15.0,
    help="Time for the search, if --nodes is not given; at most 1.5 times that where most simulations end the game.",
)
@click.option(
    "--rounds",
    type=click.IntRange(1, 100),
    default=3,
    help="Number of alternating measurements of evaluator and search.",
)
@click.option(
    "--rules-workers",
    type=click.IntRange(0, 64),
    metavar="N",
    help="Worker processes for rules played by Fairy-Stockfish; 0: none.  [default: one per "
    "processor, at most 8]",
)
@json_option
def command(
    variant: str,
    net: NetChoice,
    fen: str | None,
    simulations: int | None,
    seconds: float,
    rounds: int,
    rules_workers: int | None,
    as_json: bool,
) -> int:
    """Time the search, the evaluator alone at the same batch size, and the search's parts.

    Evaluator and search take turns, so that other work of the machine affects both. Rates are per
    second of wall-clock time; `processor` are rates per second of processor time of all threads.
    """
    from variant_ai.core.analysis.search_speed import measure
    from variant_ai.core.factories import SEARCHES
    from variant_ai.core.rules.fairy.fairy_workers import workers_of
    from variant_ai.core.rules.game import Game
    from variant_ai.core.search.settings import SearchParams
    from variant_ai.plugins import registry

    spec = load_variant(variant)
    params = SearchParams.of(spec, net.settings_name, **settings_given(net))
    rules = registry().rules(spec)
    SEARCHES.load(params.algorithm)  # raises before a net is loaded
    workers = workers_of(rules, rules_workers)
    game = Game(rules, fen)
    fail_if_over(game)
    evaluator = load_evaluator(spec, net, params.batch_size)
    with stop_on_signal() as interrupt, progress(quiet=as_json) as bar:
        task = bar.add_task("rounds", total=rounds)
        speed = measure(
            game,
            evaluator,
            params,
            simulations=simulations,
            seconds=seconds,
            rounds=rounds,
            on_round=lambda: bar.advance(task),
            stops=interrupt.stops,
            stopped=interrupt,
        )
    facts = {"variant": spec.variant, "fen": game.fen(), "evaluator": evaluator.describe()}
    facts["net"] = evaluator.info.source
    facts["rules"] = rules.name
    if workers is not None:
        facts["rules"] += f", {workers.count} worker processes"
    if as_json:
        print_json({**facts, "batch": params.batch_size, **asdict(speed), "ratio": speed.ratio})
    else:
        _print(facts, params.batch_size, speed)
    return EXIT_INTERRUPTED if interrupt() else 0


def _print(facts: dict[str, str], batch: int, speed: Speed) -> None:
    shown: list[tuple[str, object]] = [*facts.items(), ("batch", batch)]
    rate = speed.evaluator_rate
    shown += [
        ("simulations", f"{speed.simulations:,} in {speed.seconds:.2f} s"),
        ("simulations/s", f"{speed.simulations_per_second:,.0f}"),
        ("  processor", f"{speed.simulations_per_processor_second:,.0f}"),
        ("evaluations/s", f"{speed.evaluations_per_second:,.0f}"),
        ("evaluator alone", "free" if rate is None else f"{rate:,.0f} evaluations/s"),
        ("ratio", "" if speed.ratio is None else f"{speed.ratio:.3f}"),
        ("filled", f"{100 * speed.batch_fill:.1f} % of each batch" if speed.batch_fill else ""),
    ]
    for name, part in speed.time_split.items():
        shown.append((f"  {name}", f"{100 * part:.1f} %"))
    shown += [
        ("collisions", f"{speed.collisions:,} ({100 * speed.waste:.2f} % of selections wasted)"),
        ("merges", f"{speed.merges:,}"),
        ("terminals", f"{speed.terminals:,}"),
        ("nodes", f"{speed.tree_nodes:,}"),
        ("bytes a node", "" if speed.bytes_per_node is None else f"{speed.bytes_per_node:.0f}"),
        ("mean depth", f"{speed.mean_depth:.1f}"),
    ]
    print_facts((name, value) for name, value in shown if value != "")
