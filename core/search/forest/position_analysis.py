"""Analyses of many positions with shared batches."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

import numpy as np

from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.kernel.kernel_rules import is_compiled
from variant_ai.core.search.forest.position_searches import PositionSearches
from variant_ai.core.search.interface import BaseSearch
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.report import Report
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.search.tree_factory import encoder_and_rules
from variant_ai.core.spec.schema import VariantSpec

MOST_AT_ONCE = 256
"""Most positions that are searched at once when only visits limit them."""
USUAL_VISIT = 2048
"""Bytes that a visit takes if a hundred moves are legal."""


def analyse_many(
    spec: VariantSpec,
    evaluator: Evaluator,
    games: Sequence[Game],
    params: SearchParams | None = None,
    *,
    nodes: int | None = None,
    movetime: float | None = None,
    rules: Rules | None = None,
) -> list[Report]:
    """Search the last positions of games; returns a report for each, in order.

    nodes: visits of each search. movetime: seconds for all of them together; with it all begin at
    once, otherwise as many as the memory of `params` is enough for. Rules that are not compiled are
    searched one position after the other. Raises DataError if the evaluator does not fit the spec.
    """
    params = params or SearchParams.of(spec)
    reports = [Report(best=None, stopped_by="game over") for _ in games]
    waiting = deque(index for index, game in enumerate(games) if game.outcome() is None)
    if not waiting:
        return reports
    _, known = encoder_and_rules(evaluator, spec, rules)
    if not is_compiled(known):
        from variant_ai.core.search.search import Search

        with Search(spec, evaluator, params, rules=known) as search:
            _analyse_in_turn(search, games, nodes, movetime, waiting, reports)
        return reports
    deadline = None if movetime is None else time.perf_counter() + movetime
    trees = len(waiting)
    if nodes is not None and movetime is None:
        fitting = (params.memory_mb << 20) // (USUAL_VISIT * (nodes + 1))
        trees = min(trees, MOST_AT_ONCE, max(1, fitting))
    searches = PositionSearches(
        spec,
        evaluator,
        params,
        trees,
        positions=max(len(games[index].positions) for index in waiting),
        nodes=nodes,
        rules=known,
    )
    game_of: dict[int, int] = {}
    """Index of the game that each tree searches."""

    def start(tree: int) -> None:
        game_of[tree] = waiting.popleft()
        rng = np.random.default_rng([params.seed, game_of[tree]])
        searches.start(tree, games[game_of[tree]], nodes, rng)

    for tree in range(trees):
        start(tree)
    while game_of and (deadline is None or time.perf_counter() < deadline):
        for tree in searches.step():
            reports[game_of.pop(tree)] = searches.report(tree)
            if waiting:
                start(tree)
    for tree, index in game_of.items():
        reports[index] = searches.report(tree)
    return reports


def _analyse_in_turn(
    search: BaseSearch,
    games: Sequence[Game],
    nodes: int | None,
    movetime: float | None,
    waiting: deque[int],
    reports: list[Report],
) -> None:
    """Search one position after the other; each gets its share of the time that is left."""
    begun = time.perf_counter()
    while waiting:
        share = None
        if movetime is not None:
            share = max(0.0, begun + movetime - time.perf_counter()) / len(waiting)
        index = waiting.popleft()
        search.clear()
        search.set_game(games[index])
        reports[index] = search.run(Limits(nodes=nodes, movetime=share))
