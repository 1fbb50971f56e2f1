"""The search without a net: simulations a second, memory, stops and pauses.

    python benchmarks/search.py                                     # three positions
    python benchmarks/search.py --simulations 1000000 --rounds 5
    python benchmarks/search.py --big 1000000                       # stop and reuse of a big graph too

The evaluator returns the same for every position and costs nothing, so the timing is of selection, rules,
repetition, expansion and back-up, with each variant's own settings. Rates are by wall time, the best of
the rounds and the median; `processor` is the best rate per second of processor time. The first round,
which loads compiled code and touches memory for the first time, is left out.

With `--big` a graph of this many nodes is built. Then the search is stopped at random moments, the best
move is played, and the longest pause between two looks at the clock is measured while the unreachable
nodes are freed.
"""

from __future__ import annotations

import argparse
import random
import statistics
import threading
import time
from dataclasses import dataclass
from typing import Any

from variant_ai.cli.common.ending import run_script
from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import SettingError
from variant_ai.core.inference import UniformEvaluator
from variant_ai.core.rules.game import Game
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.search import Search
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.search.tree.nodes import bytes_used
from variant_ai.plugins import registry

TACTICAL = "3k2r1/pBpr1p1p/Pp3p1B/3p4/2PPn2B/5NPp/q4PpP/1R1QR1K1[NNbp] w - - 1 23"
POSITIONS = (
    ("crazyhouse", "start", None, 250_000),
    ("xiangqi", "start", None, 250_000),
    ("crazyhouse", "middle game", TACTICAL, 120_000),
)
"""Variant, name, FEN, and target rate on two idle cores."""


@dataclass
class Row:
    what: str
    rates: list[float]
    processor: float
    nodes: int
    node_bytes: float
    depth: float
    goal: int


def search_of(
    variant: str, fen: str | None, memory_mb: int, *, bare: bool = False
) -> tuple[Search, Game]:
    """Return a search and a game. bare: without the search for mates and material at leaves."""
    spec = registry().variant(variant)
    rules = registry().rules(spec)
    encoder = Encoder(spec)
    evaluator = UniformEvaluator(encoder.shape, encoder.actions)
    ahead: dict[str, Any] = {"look_for_mates": False, "look_for_material": False} if bare else {}
    params = SearchParams.of(spec, memory_mb=memory_mb, **ahead)
    search = Search(spec, evaluator, params, rules=rules)
    return search, Game(rules, fen)


def measure(
    variant: str, name: str, fen: str | None, goal: int, simulations: int, n: int, bare: bool
) -> Row:
    search, game = search_of(variant, fen, 1024, bare=bare)
    rates, processor = [], 0.0
    with search:
        for turn in range(n + 1):
            search.clear()
            search.set_game(game)
            cpu, wall = time.process_time(), time.perf_counter()
            report = search.run(Limits(simulations=simulations))
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            if turn:
                rates.append(report.visits / wall)
                processor = max(processor, report.visits / cpu)
        nodes, used = search.tree.counter("node_count"), bytes_used(search.tree.arrays)
        depth = search.tree.counter("depths") / max(report.visits, 1)
    return Row(f"{variant}, {name}", rates, processor, nodes, used / nodes, depth, goal)


def big(variant: str, nodes: int) -> None:
    """Measure stops and reuse of a graph of this many nodes."""
    search, game = search_of(variant, None, 2048)
    with search:
        search.set_game(game)
        while search.tree.counter("node_count") < nodes:
            search.run(Limits(simulations=200_000))
        rng, late = random.Random(0), []
        for _ in range(20):
            stopped_at = [0.0]

            def stop(stopped_at: list[float] = stopped_at) -> None:
                stopped_at[0] = time.perf_counter()
                search.stop()

            timer = threading.Timer(rng.uniform(0.05, 0.3), stop)
            timer.start()
            search.run(Limits(infinite=True))
            late.append(time.perf_counter() - stopped_at[0])
        before = search.tree.counter("node_count")
        best = search.report().best
        assert best is not None
        begun = time.perf_counter()
        search.advance(best)
        moved = time.perf_counter() - begun
        pauses, looked = [0.0], [time.perf_counter()]

        def look(_: object) -> None:
            now = time.perf_counter()
            pauses.append(now - looked[0])
            looked[0] = now

        search.run(Limits(movetime=3.0), on_report=look, interval=0.0)
        print(
            f"{variant}: {before:,} nodes; stop answered in {max(late) * 1e3:.1f} ms at worst of "
            f"{len(late)}, move taken over in {moved * 1e3:.1f} ms, longest pause of the next search "
            f"{max(pauses) * 1e3:.1f} ms, {search.tree.counter('node_count'):,} nodes after it"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--simulations", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--bare", action="store_true", help="without the search for mates and material at leaves"
    )
    parser.add_argument("--big", type=int, metavar="NODES", help="also measure stops and reuse")
    options = parser.parse_args()
    if min(options.simulations, options.rounds) < 1:
        raise SettingError("--simulations and --rounds must be 1 or more")
    head = ("position", "best/s", "median/s", "processor/s", "goal", "depth", "nodes", "bytes/node")
    print(f"{head[0]:<26}" + "".join(f"{word:>13}" for word in head[1:]))
    for variant, name, fen, goal in POSITIONS:
        row = measure(variant, name, fen, goal, options.simulations, options.rounds, options.bare)
        cells = (max(row.rates), statistics.median(row.rates), row.processor, row.goal)
        print(
            f"{row.what:<26}"
            + "".join(f"{value:>13,.0f}" for value in cells)
            + f"{row.depth:>13.1f}{row.nodes:>13,}{row.node_bytes:>13.0f}"
        )
    if options.big:
        for variant in ("crazyhouse", "xiangqi"):
            big(variant, options.big)


if __name__ == "__main__":
    run_script(main)
