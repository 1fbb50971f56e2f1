"""Fit `piece_gains:` of a spec: by how much the capture of each piece raises the value of a leaf.

    python benchmarks/piece_gains.py -V xiangqi --store games.store --labels leaves.jsonl

It searches positions of the store's games without the search for material, samples leaves of these
searches, and asks a strong program about them (by default Fairy-Stockfish at 6,000 nodes). Its answers
are kept in the file of labels; without --store, those that are there are used. Then it fits, by least
squares in the value,

    tanh(atanh(v) + gain)  to  2 / (1 + exp(-score / scale)) - 1

where v is the net's value of the leaf, score the program's in centipawns, and gain the sum of
piece gains that the side to move wins by captures (`core/search/tree/look_ahead/material.py`). It prints the gains as
a line for the spec, and the mean squared error with and without gains, on leaves that were not fitted.
Matches decide: compare with `search.look_for_material=false`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from judgement import Judge
from numpy.typing import NDArray

from variant_ai import Engine, Position
from variant_ai.cli.common.console import note, progress
from variant_ai.cli.common.ending import run_script
from variant_ai.core.arena.games.openings import played_out, sampled_from_store
from variant_ai.core.data.store.game_store import Store
from variant_ai.core.errors import DataError, SettingError
from variant_ai.core.search.compiled_settings import compile_settings
from variant_ai.core.search.search import Search
from variant_ai.core.search.tree.look_ahead.material import MOST, gain_by_captures
from variant_ai.core.search.tree.nodes import OPEN
from variant_ai.plugins import registry

Doubles = NDArray[np.float64]
NODES = 200
"""Visits of the searches whose leaves are sampled."""
LEAVES = 8
"""Leaves of one search."""
START = 0.1
"""First guess of every gain."""
STEP = 0.01
"""Change of a gain that shows how often its piece is captured."""
ROUNDS = 8
LARGEST = 0.995
"""Greatest value whose logit is used."""


def leaves_of(search: Search, rng: np.random.Generator) -> Iterator[str]:
    """FENs of leaves, sampled from the nodes of a search."""
    tree, rules = search.tree, search.rules
    assert search.game is not None
    positions = {tree.root: search.game.position}
    todo = [tree.root]
    while todo:
        node = todo.pop()
        edges = tree.edges(node)
        for move, child in zip(edges.moves.tolist(), edges.children.tolist(), strict=True):
            if child and child not in positions and tree.arrays.nodes[child]["state"] == OPEN:
                positions[child] = rules.play(positions[node], move)
                todo.append(child)
    nodes = list(positions)
    for node in rng.choice(nodes, min(LEAVES, len(nodes)), replace=False):
        yield rules.fen(positions[int(node)])


def sample(judge: Judge, engine: Engine, store: Path, count: int, seed: int) -> None:
    """Judge `count` leaves of searches that begin between plies 8 and 150 of the store's games."""
    rng = np.random.default_rng(seed)
    games = Store(store, engine.spec)
    openings = sampled_from_store(games, engine.rules, -(-count // LEAVES), (8, 150), seed)
    with progress() as bar:
        task = bar.add_task("judging leaves", total=count)
        for opening in openings:
            engine.analyse(
                Position(judge.variant, played_out(engine.rules, opening).fen()), nodes=NODES
            )
            assert isinstance(engine.search, Search)
            for fen in leaves_of(engine.search, rng):
                if engine.rules.outcome(engine.rules.position(fen)) is None:
                    judge.score(fen, sampled=True)
                bar.advance(task)


class Gains:
    """Gains of positions for any piece gains."""

    def __init__(self, engine: Engine, fens: Sequence[str]) -> None:
        assert isinstance(engine.search, Search)
        tree = engine.search.tree
        self.tables, self.scratch = tree.tables, tree.scratch
        self.pieces = [piece for piece, row in engine.spec.pieces.items() if not row.royal]
        self.positions = [engine.rules.position(fen) for fen in fens]
        self.spec = engine.spec
        self.params = engine.params
        self.descent = tree.descent._replace(line=np.zeros(40, self.positions[0].dtype))

    def of(self, gains: Doubles) -> Doubles:
        """Gain of each position, in logits."""
        table = dict(zip(self.pieces, gains.tolist(), strict=True))
        settings = compile_settings(
            self.spec, self.params.replace(piece_gains=table, look_for_material=True)
        )
        found = np.zeros(len(self.positions))
        for i, position in enumerate(self.positions):
            self.descent.line[0] = position[0]
            self.scratch.material.used[0] = 0
            found[i] = gain_by_captures(
                self.tables, settings, self.descent, self.scratch, 0, 0, -MOST, MOST
            )
        return found

    def captures(self, gains: Doubles) -> Doubles:
        """Return how often the gain counts each piece, [positions, pieces]."""
        before, columns = self.of(gains), []
        for piece in range(len(gains)):
            step = np.zeros_like(gains)
            step[piece] = STEP
            columns.append((self.of(gains + step) - before) / STEP)
        return np.stack(columns, 1)


def fitted(gains: Gains, logits: Doubles, targets: Doubles) -> Doubles:
    """Return the piece gains, by Gauss-Newton steps."""
    table = np.full(len(gains.pieces), START)
    for _ in range(ROUNDS):
        predicted = np.tanh(logits + gains.of(table))
        rows = gains.captures(table) * (1 - predicted**2)[:, None]
        square = rows.T @ rows + np.eye(len(table))  # a prior of no change, for rare pieces
        table = np.maximum(table + np.linalg.solve(square, rows.T @ (targets - predicted)), 0.0)
    return table


def fit(judge: Judge, engine: Engine, scale: float) -> None:
    """Fit on four of five leaves, print the errors on the others, then the gains from all."""
    fens = judge.sampled
    scores = np.array([judge.scores[fen] for fen in fens], np.float64)
    targets = 2 / (1 + np.exp(-scores / scale)) - 1
    leaves = [Position(judge.variant, fen) for fen in fens]
    values = np.array([value for value, _ in engine.evaluate(leaves)])
    logits = np.arctanh(np.clip(values, -LARGEST, LARGEST))
    held = np.arange(len(fens)) // LEAVES % 5 == 0
    used, others = (
        Gains(engine, [fen for fen, out in zip(fens, held, strict=True) if out == part])
        for part in (False, True)
    )
    gain = others.of(fitted(used, logits[~held], targets[~held]))
    for name, predicted in (
        ("without gains", np.tanh(logits[held])),
        ("with gains", np.tanh(logits[held] + gain)),
    ):
        print(f"{name}: mean squared error {np.mean((predicted - targets[held]) ** 2):.4f}")
    everything = Gains(engine, fens)
    table = fitted(everything, logits, targets)
    words = ", ".join(f"{p}: {g:.2f}" for p, g in zip(everything.pieces, table, strict=True))
    print(f"{len(fens)} leaves\nsearch: {{piece_gains: {{{words}}}}}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-V", "--variant", required=True)
    parser.add_argument("--labels", type=Path, required=True, metavar="FILE")
    parser.add_argument("--store", type=Path, help="games to search positions of")
    parser.add_argument("--positions", type=int, default=3000, metavar="N", help="leaves to judge")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--judge", default="fairy-stockfish", help="a player, as `match` takes it")
    parser.add_argument("--judge-nodes", type=int, default=6000, metavar="N")
    parser.add_argument("--model", default="packaged", metavar="NET")
    parser.add_argument("--scale", type=float, default=380.0, help="centipawns of a logistic unit")
    given = parser.parse_args()
    if given.positions < 1 or given.judge_nodes < 1 or given.scale <= 0:
        raise SettingError("--positions, --judge-nodes and --scale must be above 0")
    spec = registry().variant(given.variant)
    net = registry().net(spec, Path(given.model))
    judge = Judge(given.variant, given.judge, given.judge_nodes, given.labels)
    try:
        with Engine(given.variant, net, threads=1, log=note, look_for_material=False) as engine:
            if given.store is not None:
                sample(judge, engine, given.store, given.positions, given.seed)
            if not judge.sampled:
                raise DataError(f"{given.labels}: it has no labels; give --store")
            fit(judge, engine, given.scale)
    finally:
        judge.close()


if __name__ == "__main__":
    run_script(main)
