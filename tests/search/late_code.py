"""Program that prints the compiled functions that are loaded after the warm-up of a search."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numba.core import dispatcher

from variant_ai.core.encoding import Encoder
from variant_ai.core.inference.backends.netless_backends import RandomEvaluator, UniformEvaluator
from variant_ai.core.rules.chase_judge import load_judge
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.kernel.kernel_rules import is_compiled
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.search import Search
from variant_ai.core.search.settings import SearchParams
from variant_ai.plugins import registry

loaded: list[str] = []
original = dispatcher.Dispatcher.compile


def compile(self: Any, signature: Any) -> Any:
    loaded.append(f"{self.py_func.__module__}.{self.py_func.__name__}")
    return original(self, signature)


def play(search: Search, plies: int, limits: Limits) -> None:
    """Use a search as engines and matches do: position, search, report, takebacks."""
    game = Game(search.rules)
    rng = np.random.default_rng(3)
    for _ in range(plies):
        search.set_game(game)
        best = search.run(limits, multipv=2).best
        if best is None:
            break
        search.report(3)
        search.root_visits()
        game.push(best if rng.random() < 0.8 else int(rng.choice(game.legal_moves())))
    for _ in range(min(3, len(game.moves))):
        game.pop()
        search.set_game(game)
        search.run(limits)


def main(variant: str, *fens: str) -> None:
    spec = registry().variant(variant.removesuffix(" on fairy"))
    if spec.variant != variant:
        rules = spec.rules.model_copy(update={"engine": "fairy"})
        spec = spec.model_copy(update={"rules": rules})
    rules = registry().rules(spec)
    load_judge(rules)
    encoder = Encoder(spec)
    evaluator = RandomEvaluator(encoder.shape, encoder.actions)
    uniform = UniformEvaluator(encoder.shape, encoder.actions)
    small = SearchParams.of(spec, memory_mb=1)
    with (
        Search(spec, evaluator, small, rules=rules) as search,
        Search(spec, uniform, SearchParams.of(spec), rules=rules) as solver,
    ):
        search.warm_up()
        loaded.clear()
        for fen in fens:
            solver.set_game(Game(rules, fen))
            assert solver.run(Limits(simulations=200_000)).stopped_by == "solved"
        if is_compiled(rules):
            play(search, 60, Limits(simulations=400))
        else:
            play(search, 12, Limits(simulations=40))


if __name__ == "__main__":
    dispatcher.Dispatcher.compile = compile
    main(*sys.argv[1:])
    print(*loaded, sep="\n")
