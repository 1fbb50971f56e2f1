"""The forest: searches of single positions, and the limits of its memory."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from numpy.typing import NDArray

from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import DataError
from variant_ai.core.inference import Evaluation, RandomEvaluator
from variant_ai.core.jit import functions
from variant_ai.core.rules.game import Game
from variant_ai.core.search.forest.forest_arrays import ENDED
from variant_ai.core.search.forest.forest_search import (
    ForestSearch,
    ForestSettings,
    SearchedMove,
)
from variant_ai.plugins import registry


class Indifferent(RandomEvaluator):
    """Finds everything even, and all moves alike."""

    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        found = super().evaluate(planes)
        return Evaluation(found.value * 0, found.policy * 0)


def forest(
    variant: str,
    games: int,
    *,
    gumbel: bool = True,
    max_plies: int = 30,
    nodes: int = 16,
    material: bool | None = None,
) -> ForestSearch:
    spec = registry().variant(variant)
    encoder = Encoder(spec)
    net = (Indifferent if material is not None else RandomEvaluator)(encoder.shape, encoder.actions)
    settings = ForestSettings(
        gumbel=gumbel,
        nodes=nodes,
        considered=8,
        noise=False,
        max_plies=max_plies,
        look_for_material=bool(material),
    )
    return ForestSearch(spec, net, settings, games)


def searched(trees: ForestSearch) -> list[SearchedMove]:
    """Search until every tree has ended."""
    found = []
    while not (trees.states >= ENDED).all():
        trees.step()
        found += trees.entries()
    return found


@pytest.mark.parametrize("gumbel", [True, False])
@pytest.mark.parametrize("variant", ["dobutsu", "minixiangqi", "crazyhouse"])
def test_a_game_is_the_same_position_by_position(variant: str, gumbel: bool) -> None:
    whole = forest(variant, 1, gumbel=gumbel)
    whole.start(0, Game(whole.rules), 1, 0)
    moves = searched(whole)
    assert len(moves) > 5
    single = forest(variant, 3, gumbel=gumbel)
    game = Game(single.rules)
    for expected in moves:
        for tree in range(3):
            single.start(tree, game, 10 + tree, 0, moves=1)
        found = searched(single)
        assert sorted(one.game for one in found) == [10, 11, 12]
        assert (single.states == ENDED).all()
        for one in found:
            assert (one.ply, one.move) == (expected.ply, expected.move)
            assert one.weights.tolist() == expected.weights.tolist()
            assert one.root_value == pytest.approx(expected.root_value)
        game.push(expected.move)


def test_material_at_leaves_counts_if_it_is_asked_for() -> None:
    """A chariot that hangs is taken. Trees do not disturb one another when
    lines of captures go beyond the last ply of their games."""
    hanging = "3aka3/9/9/r8/9/9/9/R8/9/3K5 w - - 0 1"
    values = []
    for material in (False, True):
        trees = forest("xiangqi", 3, material=material, max_plies=12)
        for tree in range(3):
            trees.start(tree, Game(trees.rules, hanging), tree, 0)
        games: dict[int, list[tuple[int, float]]] = {0: [], 1: [], 2: []}
        for one in searched(trees):
            games[one.game].append((one.move, one.root_value))
        assert games[0] == games[1] == games[2]
        values.append(games[0][0][1])
        taken = trees.rules.uci(games[0][0][0]) == "a3a7"
        assert taken or not material
    assert values[0] == pytest.approx(0, abs=1e-9) and values[1] > 0


def test_more_moves_than_one() -> None:
    trees = forest("minixiangqi", 1)
    trees.start(0, Game(trees.rules), 1, 0, moves=3)
    assert [one.ply for one in searched(trees)] == [0, 1, 2]


def test_a_game_that_does_not_fit_is_refused() -> None:
    trees = forest("minixiangqi", 1, max_plies=4)
    trees.start(0, Game(trees.rules), 1, 0)
    game = Game(trees.rules)
    for one in searched(trees):
        game.push(one.move)
    assert game.ply == 4
    with pytest.raises(DataError, match="the game has 4 plies"):
        trees.start(0, game, 2, 0)


def test_any_number_of_nodes_that_settings_allow() -> None:
    trees = forest("dobutsu", 1, nodes=4096)
    trees.start(0, Game(trees.rules), 1, 0, moves=1)
    assert len(searched(trees)) == 1


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="compilation is switched off")
def test_functions_are_compiled_for_one_signature() -> None:
    """A second one, made by another process at the same time, would get the file of the first."""
    trees = forest("dobutsu", 1)
    trees.start(0, Game(trees.rules), 1, 0, moves=1)
    searched(trees)
    own = [one for one in functions.compiled if ".forest." in one.py_func.__module__]
    assert any(one.signatures for one in own)
    assert [one.py_func.__name__ for one in own if len(one.signatures) > 1] == []
