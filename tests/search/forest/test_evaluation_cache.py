"""Evaluations that are kept for later searches: they save work and change no game."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from variant_ai.core.encoding import Encoder
from variant_ai.core.inference import Evaluation, RandomEvaluator
from variant_ai.core.rules.game import Game
from variant_ai.core.search.forest.evaluation_cache import EvaluationCache, new_cache
from variant_ai.core.search.forest.forest_arrays import ENDED
from variant_ai.core.search.forest.forest_search import ForestSearch, ForestSettings
from variant_ai.plugins import registry

GAMES = 6
NO_CACHE = (1, 0)
SMALL = (16, 300)
"""Entries are overwritten all the time, by key and at the end of the ring."""


class Opposite(RandomEvaluator):
    """Another net: finds the opposite of every value."""

    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        found = super().evaluate(planes)
        return Evaluation(-found.value, found.policy)


def forest(variant: str, gumbel: bool, cache: EvaluationCache | None) -> ForestSearch:
    spec = registry().variant(variant)
    encoder = Encoder(spec)
    net = RandomEvaluator(encoder.shape, encoder.actions)
    settings = ForestSettings(gumbel=gumbel, nodes=24, considered=8, max_plies=24)
    return ForestSearch(spec, net, settings, GAMES, cache=cache)


def played(trees: ForestSearch) -> list[tuple[object, ...]]:
    """Moves, values and targets of one game a tree."""
    for tree in range(GAMES):
        trees.start(tree, Game(trees.rules), tree, seed=tree)
    found = []
    while not (trees.states >= ENDED).all():
        trees.step()
        found += trees.entries()
    return sorted((s.game, s.ply, s.move, s.root_value, s.weights.tolist()) for s in found)


@pytest.mark.parametrize("gumbel", [True, False])
@pytest.mark.parametrize("variant", ["dobutsu", "xiangqi", "crazyhouse"])
def test_games_are_the_same_with_a_cache_of_any_size(variant: str, gumbel: bool) -> None:
    evaluations = []
    games = []
    for size in (NO_CACHE, SMALL, None):
        trees = forest(variant, gumbel, None if size is None else new_cache(*size))
        games.append(played(trees))
        evaluations.append(trees.evaluations)
    assert games[0] == games[1] == games[2]
    none, small, usual = evaluations
    assert none > small > usual
    assert played(trees) == games[0]
    again = trees.evaluations - usual
    assert again < usual / 20, "only entries that shared a place are evaluated again"


def test_another_net_does_not_get_evaluations_of_the_one_before() -> None:
    trees = forest("dobutsu", True, None)
    played(trees)
    other = Opposite(trees.encoder.shape, trees.encoder.actions)
    trees.set_evaluator(other)
    after = played(trees)
    fresh = forest("dobutsu", True, None)
    fresh.set_evaluator(other)
    assert after == played(fresh)
