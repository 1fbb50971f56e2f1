"""How long the engine takes from its start to `uciok`, to `readyok`, and to its first move.

    python benchmarks/start.py
    python benchmarks/start.py --variants xiangqi --rounds 10

The first start on a machine compiles and chooses an evaluator: it is not counted. Seconds of the wall
clock, the median of the rounds.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

from variant_ai.cli.common import run_script

ENGINE = [sys.executable, "-m", "variant_ai.cli.engine", "--variant"]
STEPS = (("uci", "uciok"), ("isready", "readyok"), ("go movetime 100", "bestmove"))


def started(variant: str) -> list[float]:
    """Seconds from the start until each of STEPS was answered."""
    begun = time.perf_counter()
    with subprocess.Popen(
        [*ENGINE, variant], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as engine:
        assert engine.stdin is not None and engine.stdout is not None
        answered = []
        for asked, answer in STEPS:
            engine.stdin.write(f"{asked}\n")
            next(line for line in engine.stdout if line.startswith(answer))
            answered.append(time.perf_counter() - begun)
        engine.stdin.write("quit\n")
    return answered


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--variants", nargs="+", default=["crazyhouse", "xiangqi"])
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    print("variant       uciok  readyok  bestmove of 100 ms")
    for variant in given.variants:
        started(variant)
        rounds = zip(*(started(variant) for _ in range(given.rounds)), strict=True)
        uciok, readyok, move = (statistics.median(seconds) for seconds in rounds)
        print(f"{variant:12} {uciok:6.2f} {readyok:8.2f} {move:19.2f}")


if __name__ == "__main__":
    run_script(main)
