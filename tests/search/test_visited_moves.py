"""Targets for the policy from a search: visits, and proofs before visits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.move.variations import visited_moves
from variant_ai.core.search.search import Search
from variant_ai.core.search.tree.edges import Edges

MakeSearch = Callable[..., Search]


def edges(visits: list[int], mates: list[int] | None = None) -> Edges:
    n = len(visits)
    none = np.zeros(n)
    return Edges(
        moves=np.arange(10, 10 + n, dtype=np.int32),
        priors=none,
        visits=np.array(visits, np.int64),
        q=none,
        draws=none,
        mates=np.array(mates or [0] * n, np.int64),
        children=none.astype(np.int32),
    )


@pytest.mark.parametrize(
    ("visits", "mates", "allowed", "found"),
    [
        ([3, 0, 9, 3], None, None, [(12, 9), (10, 3), (13, 3)]),
        ([3, 0, 9, 3], None, [10, 11], [(10, 3)]),
        ([0, 0], None, None, []),
        # only the quickest win, with all the visits
        ([8, 2, 5], [0, 7, 3], None, [(12, 15)]),
        ([8, 0], [0, 1], None, [(11, 8)]),
        ([0, 0], [0, 1], None, [(11, 1)]),
        ([8, 4], [5, 0], [11], [(11, 4)]),
        # losses only if there is nothing else
        ([8, 2, 5], [-4, 0, -2], None, [(11, 2)]),
        ([8, 2], [-4, -2], None, [(10, 8), (11, 2)]),
        ([8, 0], [-4, 0], None, [(10, 8)]),
    ],
)
def test_visits_and_proofs(
    visits: list[int],
    mates: list[int] | None,
    allowed: list[int] | None,
    found: list[tuple[int, int]],
) -> None:
    assert visited_moves(edges(visits, mates), allowed) == found


def test_a_search_returns_its_visits(make_search: MakeSearch) -> None:
    search = make_search("xiangqi", net="random")
    report = search.run(Limits(simulations=90), multipv=200)
    visits = search.root_visits()
    assert dict(visits) == {line.move: line.visits for line in report.lines if line.visits}
    assert visits == sorted(visits, key=lambda pair: -pair[1])


def test_a_mate_in_one_is_all_of_the_policy(make_search: MakeSearch) -> None:
    # Two rooks: the upper one mates on the last rank.
    search = make_search("xiangqi", "4k4/R8/1R7/9/9/9/9/9/9/3K5 w - - 0 1", net="uniform")
    report = search.run(Limits(simulations=300))
    assert report.lines[0].mate == 1
    ((move, visits),) = search.root_visits()
    assert move == report.best and visits >= 1


@pytest.mark.parametrize("looks", [True, False])
def test_an_explosion_of_the_king_is_found_like_a_mate(
    make_search: MakeSearch, looks: bool
) -> None:
    # After the only move, Kg8, the rook takes on h7, one of sixteen moves with equal priors.
    fen = "7k/R6p/7P/8/8/8/8/K7 b - - 0 1"
    search = make_search("atomic", fen, look_for_mates=looks, batch_size=1)
    report = search.run(Limits(simulations=12))
    assert (report.lines[0].mate == -2) == looks


def test_another_seed_samples_other_noise(make_search: MakeSearch) -> None:
    search = make_search("xiangqi", net="random", noise_epsilon=0.5, deterministic=True)

    def visits(seed: int | None) -> list[tuple[int, int]]:
        search.clear(seed)
        search.run(Limits(simulations=60))
        return search.root_visits()

    assert visits(3) == visits(3) != visits(4)
    assert visits(None) == visits(search.params.seed)
