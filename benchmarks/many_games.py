"""Thousands of games between two engine processes, with a referee: no fault is allowed.

    python benchmarks/many_games.py --games 10000 --folder /tmp/games

The games are shared among variants, limits and protocols; `variant-ai match` plays them
with two separate processes of `variant-ai engine`. A game that is lost by a crash, a hang, time, an
illegal move, no move or a false claim is a fault, and the status is then 1. The same command continues
after any interruption; the folder keeps the games. Games on clocks need an idle core: on a loaded
machine time can be lost without a fault of the engine.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import get_args

from variant_ai.cli.common.ending import run_script
from variant_ai.core.arena.players.player import Reason
from variant_ai.core.rules.game import Game
from variant_ai.plugins import registry

ARRANGEMENTS = (
    # share, variant, protocol, options of the engine, limits of the match
    (30, "dobutsu", "uci", "Evaluator=uniform", "--nodes 4"),
    (25, "minixiangqi", "uci", "Evaluator=uniform", "--nodes 4"),
    (15, "crazyhouse", "uci", "Evaluator=random", "--nodes 2"),
    (5, "xiangqi", "ucci", "Evaluator=random", "--nodes 2"),
    (5, "xiangqi", "cyclone", "Evaluator=random", "--nodes 2"),
    (10, "dobutsu", "uci", "Evaluator=uniform", "--clock 2+0.02"),
    (5, "minixiangqi", "uci", "Evaluator=uniform", "--clock 2+0.02"),
    (5, "crazyhouse", "uci", "Evaluator=uniform", "--clock 2+0.02"),
)
FAULTS = set(get_args(Reason)) - {"resignation"}
OPENING_PLIES = (2, 10)
"""Minimum and maximum number of random plies before a game, so that games differ."""
STEP = 500
"""Games of an arrangement before the next one is played."""


def play(number: int, games: int, given: argparse.Namespace) -> Counter[str]:
    """Play an arrangement up to a number of games. Returns their ends, and the number of repeats."""
    _, variant, protocol, options, limits = ARRANGEMENTS[number]
    folder = Path(given.folder) / f"{number}-{variant}"
    words = " ".join(f"--option {option}" for option in options.split())
    engine = (
        f"{protocol}:{sys.executable} -m variant_ai.cli.play.engine {words} --variant {variant}"
    )
    command = [sys.executable, "-m", "variant_ai.cli.main", "match", "-V", variant]
    command += [f"{engine};name=one;timeout=120", f"{engine};name=two;timeout=120"]
    command += ["--games", str(games), "-o", str(folder), *limits.split()]
    command += ["--openings", str(openings(variant, Path(given.folder)))]
    command += ["--concurrency", str(given.concurrency), *given.more]
    print(f"{variant} by {protocol}, {limits}: up to {games} games", flush=True)
    subprocess.run(command, check=False)
    return endings(folder)


def openings(variant: str, folder: Path) -> Path:
    """Write a file of positions after random moves, more than an arrangement has pairs of games."""
    path = folder / f"{variant}.fen"
    if path.is_file():
        return path
    rules = registry().rules(registry().variant(variant))
    chance = random.Random(variant)
    found: dict[str, None] = {}
    for _ in range(3000):
        game = Game(rules)
        for _ in range(chance.randint(*OPENING_PLIES)):
            game.push(chance.choice(sorted(map(int, game.legal_moves()))))
            if game.outcome() is not None:
                break
        else:
            found[game.fen()] = None
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(found) + "\n", "utf-8")
    return path


def endings(folder: Path) -> Counter[str]:
    """Return the number of games in a match's folder by their end."""
    journal = folder / "games.jsonl"
    if not journal.is_file():
        return Counter()
    lines = journal.read_text("utf-8").splitlines()
    return Counter(json.loads(line)["reason"] for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", type=int, default=10_000)
    parser.add_argument(
        "--folder", required=True, help="folder of the games; an existing one is continued"
    )
    parser.add_argument("--concurrency", type=int, default=1)
    parser.add_argument("--only", default="", help="only arrangements that contain this")
    parser.add_argument("more", nargs="*", help="options for `variant-ai match`, after --")
    given = parser.parse_args()
    chosen = [n for n, one in enumerate(ARRANGEMENTS) if given.only in " ".join(map(str, one))]
    if not chosen:
        names = ["; ".join(map(str, one)) for one in ARRANGEMENTS]
        parser.error(f"--only {given.only}: is in none of: {', '.join(names)}")
    wanted = {n: given.games * ARRANGEMENTS[n][0] // 100 for n in chosen}
    faults: Counter[str] = Counter()
    for step in range(STEP, max(wanted.values(), default=0) + STEP, STEP):
        total: Counter[str] = Counter()
        for number in chosen:
            if min(step, wanted[number]) > min(step - STEP, wanted[number]):
                play(number, min(step, wanted[number]), given)
            total += endings(Path(given.folder) / f"{number}-{ARRANGEMENTS[number][1]}")
        faults = Counter({reason: n for reason, n in total.items() if reason in FAULTS})
        ends = ", ".join(f"{reason} {n}" for reason, n in total.most_common())
        print(f"{total.total()} games, {faults.total()} faults: {ends}", flush=True)
    sys.exit(bool(faults))


if __name__ == "__main__":
    run_script(main)
