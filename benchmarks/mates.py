"""Mates that the search must prove with the uniform evaluator.

    python benchmarks/mates.py -V xiangqi --suite ../shared/data/puzzles/xiangqi-mates.jsonl --most 2
    python benchmarks/mates.py -V crazyhouse --games games.store --most 3 --count 100

Every position gets a new search with the variant's own settings, until it is proven or the
simulations are used up. A suite is JSON lines with `fen` and `mate_in`. From a game store, positions
just before the ends of games are taken if trying every move shows a win in 1, 2, ... `--most` moves,
`--count` of each; this also gives the length of the shortest win.

A row of the table: mates in a number of moves, those proven, those reported with the shortest distance,
those reported too short (there must be none), visits and seconds. Failures are listed, and the exit
status is then 1.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from variant_ai.cli.common.ending import run_script
from variant_ai.core.data.store.game_store import Store
from variant_ai.core.encoding import Encoder
from variant_ai.core.inference import UniformEvaluator
from variant_ai.core.rules.game import Game
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.report import Report
from variant_ai.core.search.search import Search
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.search.tree.look_ahead.shortest_mate import MateShortener
from variant_ai.plugins import registry

POSITIONS = 100_000
"""Maximum number of positions for finding the shortest win; harder ones are left out."""


@dataclass(frozen=True)
class Mate:
    fen: str
    moves: int
    """Length of the shortest win."""


@dataclass(frozen=True)
class Found:
    mate: Mate
    report: Report

    @property
    def reported(self) -> int | None:
        return self.report.lines[0].mate


def uniform_search(variant: str, memory_mb: int) -> Search:
    spec = registry().variant(variant)
    rules = registry().rules(spec)
    encoder = Encoder(spec)
    evaluator = UniformEvaluator(encoder.shape, encoder.actions)
    return Search(spec, evaluator, SearchParams.of(spec, memory_mb=memory_mb), rules=rules)


def suite(path: Path, most: int) -> list[Mate]:
    rows = [
        json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()
    ]
    return [Mate(row["fen"], row["mate_in"]) for row in rows if row["mate_in"] <= most]


def mates_of_games(search: Search, path: Path, most: int, count: int) -> Iterator[Mate]:
    """Positions of different games first; a game gives one mate of each length."""
    wanted = dict.fromkeys(range(1, most + 1), count)
    for record in Store(path).games():
        if not any(wanted.values()):
            return
        game = Game(search.rules, record.start_fen)
        for move in record.moves:
            game.push(move)
        if game.outcome() is None:  # resigned, usually far from a short mate
            continue
        seen: set[int] = set()
        for _ in range(min(2 * most, game.ply)):
            game.pop()
            search.clear()
            search.set_game(Game(search.rules, game.fen()))
            deepest = 2 * max((n for n in wanted if wanted[n]), default=0) - 1
            found = MateShortener(search.tree, POSITIONS, lambda: True).quickest(deepest)
            if found is None:
                continue
            moves = (found.plies + 1) // 2
            if moves not in seen and wanted[moves]:
                seen.add(moves)
                wanted[moves] -= 1
                yield Mate(game.fen(), moves)


def solve(search: Search, mate: Mate, simulations: int) -> Found:
    search.clear()
    search.set_game(Game(search.rules, mate.fen))
    search.clear()  # the tree of the previous position must not help
    return Found(mate, search.run(Limits(simulations=simulations)))


def table(found: list[Found], variant: str) -> int:
    print(
        "| variant | mate in | positions | proven | shortest | too short | visits: median, most |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    wrong = 0
    for moves in sorted({each.mate.moves for each in found}):
        rows = [each for each in found if each.mate.moves == moves]
        plies = 2 * moves - 1
        proven = [each for each in rows if each.reported is not None and each.reported > 0]
        shortest = sum(each.reported == plies for each in proven)
        short = sum(each.reported < plies for each in proven if each.reported is not None)
        visits = [each.report.visits for each in rows]
        wrong += short + len(rows) - len(proven)
        middle = f"{statistics.median(visits):,.0f}, {max(visits):,}"
        print(
            f"| {variant} | {moves} | {len(rows):,} | {len(proven):,} | {shortest:,} | {short} | {middle} |"
        )
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-V", "--variant", required=True)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--suite", type=Path, help="JSON lines with fen and mate_in")
    source.add_argument("--games", type=Path, help="a game store")
    parser.add_argument("--most", type=int, default=2, help="maximum length of a mate, in moves")
    parser.add_argument(
        "--count", type=int, default=100, help="positions of each length, from games"
    )
    parser.add_argument("--every", type=int, default=1, help="take every n-th position of a suite")
    parser.add_argument("--simulations", type=int, default=200_000)
    parser.add_argument("--memory", type=int, default=512, help="MB")
    parser.add_argument("--write", type=Path, help="write the positions as a suite")
    given = parser.parse_args()
    with uniform_search(given.variant, given.memory) as search:
        if given.suite:
            mates = suite(given.suite, given.most)[:: given.every]
        else:
            mates = list(mates_of_games(search, given.games, given.most, given.count))
        if given.write:
            rows = [{"fen": mate.fen, "mate_in": mate.moves} for mate in mates]
            given.write.write_text("".join(json.dumps(row) + "\n" for row in rows))
        found = []
        try:
            for mate in mates:
                each = solve(search, mate, given.simulations)
                found.append(each)
                if each.reported != 2 * mate.moves - 1:
                    print(f"{mate.fen}: mate in {mate.moves}, reported {each.reported} plies,",
                          f"{each.report.stopped_by}, {each.report.visits} visits", file=sys.stderr)  # fmt: skip
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
    if not found:
        sys.exit("no mates found")
    sys.exit(1 if table(found, given.variant) else 0)


if __name__ == "__main__":
    run_script(main)
