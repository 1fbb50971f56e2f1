"""The table of past positions of each game: it grows with the game and holds every position."""

from __future__ import annotations

from collections import Counter

import numpy as np

from variant_ai.core.encoding import Encoder
from variant_ai.core.inference import RandomEvaluator
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.search.forest.forest_search import ForestSearch, ForestSettings
from variant_ai.plugins import registry


def test_tables_hold_the_positions_of_their_games() -> None:
    spec = registry().variant("minixiangqi")
    encoder = Encoder(spec)
    net = RandomEvaluator(encoder.shape, encoder.actions)
    settings = ForestSettings(nodes=2, considered=2, noise=False, sampled_plies=200)
    forest = ForestSearch(spec, net, settings, 4)
    for tree in range(4):
        forest.start(tree, Game(make_rules(spec)), tree, seed=tree)
    f = forest.forest
    sizes = set()
    for _ in range(150):
        forest.step()
        forest.entries()
        for tree in range(4):
            first, length = tree * int(f.sizes[2]), int(f.path_infos[tree]["root_at"]) + 1
            begin, size = tree * int(f.sizes[3]), int(f.trees[tree]["past"])
            table = f.past[begin : begin + size]
            held = table[table["times"] > 0]
            found = dict(zip(held["key"].tolist(), held["times"].tolist(), strict=True))
            assert found == Counter(np.asarray(f.line[first : first + length]["key"]).tolist())
            assert size >= 2 * length
            sizes.add(size)
    assert len(sizes) > 1
