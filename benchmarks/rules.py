"""Speed of the rules kernel, compared with its prototype and with Fairy-Stockfish.

    python benchmarks/rules.py
    python benchmarks/rules.py --prototype ../shared/prototype     # ratios, in the same run
    python benchmarks/rules.py --compile                           # cold and warm start as well

Prints a table, or JSON with --json. Times are processor time of one thread, the best of several
runs taken in turns, so that other work on the machine changes the ratio little. "Legal moves" is
the time of one call for a middle game; "bulk perft" counts the moves of the last ply without
playing them.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from variant_ai.cli.common.ending import run_script
from variant_ai.core.jit import Number, njit
from variant_ai.core.rules.kernel.attacks import MoveWork
from variant_ai.core.rules.kernel.kernel_rules import KernelRules
from variant_ai.core.rules.kernel.movegen import legal_moves_into, new_work
from variant_ai.core.rules.kernel.perft import count_in_kernel
from variant_ai.core.rules.kernel.play_move import play_into, replay_into
from variant_ai.core.rules.kernel.table_layout import MoveLists, Tables, new_moves
from variant_ai.core.rules.position import Position, new_position
from variant_ai.core.spec import builtin_specs, load_spec
from variant_ai.core.system.folders import FOLDER_VARIABLE

PERFT_DEPTH = {"crazyhouse": 5, "xiangqi": 4}
MIDDLE_GAMES = {
    "crazyhouse": "3k2r1/pBpr1p1p/Pp3p1B/3p4/2PPn2B/5NPp/q4PpP/1R1QR1K1[NNbp] w - - 1 23",
    "xiangqi": "r1ba1a3/4kn3/2n1b4/pNp1p1p1p/4c4/6P2/P1P2R2P/1CcC5/9/2BAKAB2 w - - 0 1",
}
CALLS = 20_000
RUNS = 7
TARGET_RATIO = 0.8
START = """
import time
start = time.perf_counter()
from variant_ai.core.rules.kernel.kernel_rules import KernelRules
from variant_ai.core.spec import builtin_specs, load_spec
rules = KernelRules(load_spec(builtin_specs()["{variant}"]))
position = rules.position()
rules.play(position, int(rules.legal_moves(position)[0]))
rules.outcome(position)
print(time.perf_counter() - start)
"""


@dataclass
class Row:
    variant: str
    what: str
    kernel: float
    prototype: float | None
    unit: str
    more_is_better: bool

    @property
    def ratio(self) -> float | None:
        """Speed of the kernel as a multiple of the prototype's."""
        if self.prototype is None:
            return None
        ratio = self.kernel / self.prototype
        return ratio if self.more_is_better else 1 / ratio


@njit
def generate_often(t: Tables, p: Position, out: MoveLists, work: MoveWork, calls: Number) -> Number:
    """Generate the legal moves this many times."""
    total = 0
    for _ in range(calls):
        total += legal_moves_into(t, p, np.int64(0), out, work)
    return total


@njit
def play_often(
    t: Tables,
    p: Position,
    q: Position,
    out: MoveLists,
    count: Number,
    calls: Number,
    replay: Number,
) -> Number:
    """Play each legal move of the position this many times, with or without counting checks."""
    zero = np.int64(0)
    for _ in range(calls):
        for k in range(count):
            move = np.int64(out[0]["move"][k])
            if replay:
                replay_into(t, p, zero, q, zero, move)
            else:
                play_into(t, p, zero, q, zero, move)
    return calls * count


class Prototype:
    """Prototype in another folder, as far as it can be compared."""

    def __init__(self, folder: Path) -> None:
        sys.path.insert(0, str(folder))
        self.kernel = importlib.import_module("kernel")

    def position(self, variant: str, fen: str | None) -> tuple[Any, Any]:
        """Return its tables, and the position as its record array."""
        description = getattr(self.kernel, variant)()
        tables = self.kernel.build(description)
        record = self.kernel.parse_fen(description, tables, fen or description["fen"])
        return tables, record

    def perft(self, variant: str, depth: int) -> Callable[[], int]:
        tables, record = self.position(variant, None)
        return lambda: int(self.kernel.run_perft(tables, record, depth))

    def generate(self, variant: str, fen: str) -> Callable[[], int]:
        k = self.kernel
        tables, record = self.position(variant, fen)
        positions = np.zeros(1, k.PD)
        positions[0]["b"] = record
        out, work = np.zeros(1, k.MD), np.zeros(1, k.WD)
        return lambda: int(k.bench_gen(tables, positions, out, work, CALLS))


def in_turns(works: list[Callable[[], Any]]) -> list[float]:
    """Return the minimum processor time of each, with alternating runs."""
    for work in works:
        work()
    times: list[list[float]] = [[] for _ in works]
    for _ in range(RUNS):
        for work, taken in zip(works, times, strict=True):
            begun = time.process_time()
            work()
            taken.append(time.process_time() - begun)
    return [min(taken) for taken in times]


def measure(variant: str, prototype: Prototype | None) -> list[Row]:
    rules = KernelRules(load_spec(builtin_specs()[variant]))
    depth, fen = PERFT_DEPTH[variant], MIDDLE_GAMES[variant]
    start, middle = rules.position(), rules.position(fen)
    nodes = count_in_kernel(rules.tables, start, depth)
    out, work, after = new_moves(2), new_work(), new_position()
    count = len(rules.legal_moves(middle))

    works: list[Callable[[], Any]] = [lambda: count_in_kernel(rules.tables, start, depth)]
    if prototype is not None:
        works.append(prototype.perft(variant, depth))
    times = in_turns(works)
    rates = [nodes / taken / 1e6 for taken in times]
    rows = [
        Row(
            variant,
            f"bulk perft {depth}, {nodes:,} nodes",
            rates[0],
            rates[1] if prototype else None,
            "M nodes/s",
            True,
        )
    ]
    works = [lambda: generate_often(rules.tables, middle, out, work, CALLS)]
    if prototype is not None:
        works.append(prototype.generate(variant, fen))
    times = [taken / CALLS * 1e6 for taken in in_turns(works)]
    what = f"legal moves, middle game ({count} moves)"
    rows.append(Row(variant, what, times[0], times[1] if prototype else None, "us", False))

    legal_moves_into(rules.tables, middle, 0, out, work)
    for what, replay in (("make a move", False), ("make a move, checks not counted", True)):
        played = CALLS // 10 * count
        playing = functools.partial(
            play_often, rules.tables, middle, after, out, count, CALLS // 10, replay
        )
        (taken,) = in_turns([playing])
        rows.append(Row(variant, what, taken / played * 1e9, None, "ns", False))
    return rows


def starts(variant: str) -> list[Row]:
    """Return the seconds of a new process to its first move, without and with compiled code."""
    with tempfile.TemporaryDirectory() as folder:
        environ = {**os.environ, FOLDER_VARIABLE: folder}
        command = [sys.executable, "-c", START.format(variant=variant)]
        taken = [
            float(subprocess.run(command, env=environ, capture_output=True, check=True).stdout)
            for _ in range(4)
        ]
    return [
        Row(variant, "first move, everything compiled", taken[0], None, "s", False),
        Row(variant, "first move, warm cache", min(taken[1:]), None, "s", False),
    ]


def report(rows: list[Row]) -> None:
    print(f"{'variant':<12}{'what':<46}{'kernel':>10}{'prototype':>11}  {'unit':<10}{'speed':>7}")
    for row in rows:
        prototype = f"{row.prototype:.3g}" if row.prototype is not None else "-"
        ratio = f"{row.ratio:.2f}x" if row.ratio is not None else ""
        print(
            f"{row.variant:<12}{row.what:<46}{row.kernel:>10.3g}{prototype:>11}  {row.unit:<10}"
            f"{ratio:>7}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description="Speed of the rules kernel.")
    parser.add_argument("--prototype", type=Path, help="folder of the prototype to compare with")
    parser.add_argument("--compile", action="store_true", help="also time cold and warm starts")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    prototype = Prototype(options.prototype) if options.prototype else None
    rows = [row for variant in PERFT_DEPTH for row in measure(variant, prototype)]
    if options.compile:
        rows += starts("crazyhouse")
    if options.json:
        print(json.dumps([{**asdict(row), "ratio": row.ratio} for row in rows], indent=2))
    else:
        report(rows)
    slow = [r for r in rows if "perft" in r.what and r.ratio is not None and r.ratio < TARGET_RATIO]
    for row in slow:
        print(f"{row.variant}: below {TARGET_RATIO} of the prototype", file=sys.stderr)
    return 1 if slow else 0


if __name__ == "__main__":
    run_script(main)
