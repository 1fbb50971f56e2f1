"""The compiled Gumbel search against a plain implementation of the paper: visits, weights, moves.

The solver, transpositions and the look for mates are off. Both get the same evaluations, priors of 16
bits and Gumbel noise. Ends of games and repetitions count as visits for both.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
import pytest
from gumbel_reference import Found, GumbelTree, Search, Vector, halving
from numpy.typing import NDArray
from plain_search import rounded

from variant_ai.core.encoding import Encoder
from variant_ai.core.inference import Evaluation, Evaluator, RandomEvaluator
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.game import Game
from variant_ai.core.search.forest.forest_arrays import MAX_MOVES
from variant_ai.core.search.forest.forest_search import ForestSearch, ForestSettings, SearchedMove
from variant_ai.core.search.forest.root_moves import visit_schedule
from variant_ai.core.search.tree.nodes import OPEN, first_move, first_prior
from variant_ai.core.search.tree.priors import decode_priors
from variant_ai.plugins import registry

DECISIVE = 1e-5
"""Searches with a closer choice than this are not compared: rounding may decide it."""


class SmallValues(RandomEvaluator):
    """Random values in [-0.1, 0.1]: with c_scale 1 they weigh about as much as the logits."""

    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        answer = super().evaluate(planes)
        return answer._replace(value=answer.value * np.float32(0.1))


class GameWorld:
    """Continuations of a game; a state is the tuple of the moves since its last position."""

    def __init__(self, game: Game, evaluator: Evaluator) -> None:
        self.games: dict[Hashable, Game] = {(): game}
        self.evaluator = evaluator
        self.encoder = Encoder(game.rules.spec)
        self.root = game.ply
        self.ends = 0
        """Ends of the game found so far."""
        self.evaluate = functools.cache(self.judge)
        self.play = functools.cache(self.after)

    def judge(self, state: Hashable) -> tuple[Vector, float]:
        game = self.games[state]
        answer = self.evaluator.evaluate(self.encoder.planes(game.position))
        actions = self.encoder.action_indices(game.position, game.legal_moves().tolist())
        logits = answer.policy[0, actions].astype(np.float64)
        priors = np.exp(logits - logits.max())
        priors = np.array([rounded(p) for p in priors / priors.sum()])
        return np.log(priors), float(answer.value[0])

    def after(self, state: Hashable, move: int) -> tuple[Hashable, float | None]:
        assert isinstance(state, tuple)
        game = self.games[state].copy()
        played = int(game.legal_moves()[move])
        game.push(played)
        state = (*state, played)
        self.games[state] = game
        keys = [int(position["key"][0]) for position in game.positions]
        outcome = game.outcome()
        if outcome is not None:
            self.ends += 1
            return state, float(outcome.value(game.side))
        repeats = keys[-1] in keys[self.root + 1 : -1]  # in a search the second time is a draw
        return state, 0.0 if repeats else None


class Compiled(NamedTuple):
    noise: dict[int, float]
    """Gumbel noise of each legal move."""
    visits: dict[int, int] | None
    """None if the last visit ended without an evaluation: the next search has begun since."""
    result: SearchedMove


def compiled(games: list[Game], evaluator: Evaluator, settings: ForestSettings) -> list[Compiled]:
    """Search the last positions of some games."""
    forest = ForestSearch(games[0].rules.spec, evaluator, settings, len(games))
    for tree, game in enumerate(games):
        forest.start(tree, game, tree, seed=tree)
    noise: dict[int, dict[int, float]] = {}
    visits: dict[int, dict[int, int]] = {}
    results: dict[int, SearchedMove] = {}
    f = forest.forest
    while len(results) < len(games):
        assert forest.step()
        for entry in forest.entries():
            results.setdefault(entry.game, entry)
        for tree in set(range(len(games))) - set(results):
            if not f.trees[tree]["prepared"]:
                continue
            at = tree * int(f.sizes[0]) + int(f.states[tree]["root"])  # cell of all trees' arena
            root = f.nodes[at]
            assert root["state"] == OPEN
            count, slots = int(root["count"]), 4 * tree * int(f.sizes[0]) + int(root["slots"])
            first, prior = int(first_move(at, count)), int(first_prior(at))
            moves = f.moves[first : first + count].tolist()
            if tree not in noise:
                scores = f.root_scores[tree * MAX_MOVES : tree * MAX_MOVES + count]
                logits = np.log(decode_priors(f.priors[prior : prior + count]))
                noise[tree] = dict(zip(moves, (scores - logits).tolist(), strict=True))
            if root["visits"] - 1 == settings.nodes:
                held = [int(f.slots[slots + e]["visits"]) for e in range(int(root["opened"]))]
                visits[tree] = dict(zip(moves, held, strict=False))
    return [Compiled(noise[k], visits.get(k), results[k]) for k in range(len(games))]


def games_of(variant: str, count: int, plies: int) -> list[Game]:
    """Unfinished games of random moves, of `plies` to `plies` + `count` - 1 plies."""
    rules = make_rules(registry().variant(variant))
    rng = np.random.default_rng(7)
    games: list[Game] = []
    while len(games) < count:
        game = Game(rules)
        while game.ply < plies + len(games) and game.outcome() is None:
            game.push(int(rng.choice(game.legal_moves())))
        if game.outcome() is None:
            games.append(game)
    return games


@functools.cache
def worlds_of(variant: str) -> list[GameWorld]:
    games = games_of(variant, 6, 4)
    encoder = Encoder(games[0].rules.spec)
    net = SmallValues(encoder.shape, encoder.actions)
    return [GameWorld(game, net) for game in games]


def assert_same(legal: list[int], ours: Compiled, found: Found) -> None:
    weights = dict(zip(ours.result.moves.tolist(), ours.result.weights.tolist(), strict=True))
    assert [weights.get(move, 0.0) for move in legal] == pytest.approx(found.weights, abs=1e-3)
    assert ours.result.move == legal[found.move]
    assert ours.result.root_value == pytest.approx(found.value, abs=1e-5)
    if ours.visits is not None:
        assert [ours.visits.get(move, 0) for move in legal] == found.visits.tolist()


@pytest.mark.parametrize("considered", [4, 8, 16])
@pytest.mark.parametrize("nodes", [4, 16, 32, 50])
@pytest.mark.parametrize("rescale", [False, True], ids=["fixed", "minmax"])
@pytest.mark.parametrize("variant", ["dobutsu", "minixiangqi"])
def test_visits_weights_and_moves(variant: str, rescale: bool, nodes: int, considered: int) -> None:
    worlds = worlds_of(variant)
    scale = 0.1 if rescale else 1.0
    settings = ForestSettings(
        nodes=nodes, considered=considered, value_scale=scale, minmax=rescale, solver=False
    )
    search = Search(simulations=nodes, considered=considered, c_scale=scale, rescale=rescale)
    games = [world.games[()] for world in worlds]
    compared = 0
    for world, ours in zip(worlds, compiled(games, worlds[0].evaluator, settings), strict=True):
        legal = world.games[()].legal_moves().tolist()
        noise = np.array([ours.noise[move] for move in legal])
        found = GumbelTree(world, (), search, noise).run()
        if found.margin > DECISIVE:
            assert_same(legal, ours, found)
            compared += 1
    assert compared >= len(worlds) // 2
    if variant == "dobutsu" and nodes >= 16:
        assert any(world.ends for world in worlds), "no end of a game was within reach"


@pytest.mark.parametrize("nodes", [1, 2, 4, 7, 16, 32, 50, 64])
def test_schedule(nodes: int) -> None:
    for moves in range(1, 33):
        assert visit_schedule(nodes, moves) == halving(moves, nodes)
