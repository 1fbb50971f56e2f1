"""Moves of the root in self-play: the schedule of sequential halving, by the values of [Gumbel]'s own
implementation, and sampled moves."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from variant_ai.core.search.forest.forest_arrays import new_forest
from variant_ai.core.search.forest.root_moves import sampled_edge, schedule_table, visit_schedule


def visits_of(nodes: int, considered: int) -> list[int]:
    """Visits of each move if the move with the lowest number always wins a comparison."""
    held = [0] * considered
    for wanted in visit_schedule(nodes, considered):
        held[held.index(wanted)] += 1
    return held


@pytest.mark.parametrize(
    ("nodes", "considered", "visits"),
    [
        (16, 16, [1] * 16),
        (16, 8, [4, 4, 2, 2, 1, 1, 1, 1]),
        (16, 5, [7, 6, 1, 1, 1]),
        (16, 4, [6, 6, 2, 2]),
        (16, 1, [16]),
        (32, 16, [4] * 4 + [2] * 4 + [1] * 8),
    ],
)
def test_visits(nodes: int, considered: int, visits: list[int]) -> None:
    assert visits_of(nodes, considered) == visits


@given(st.integers(1, 300), st.integers(1, 64))
def test_every_visit_has_a_move(nodes: int, considered: int) -> None:
    schedule = visit_schedule(nodes, considered)
    assert len(schedule) == nodes
    assert sum(visits_of(nodes, considered)) == nodes
    most = Counter(schedule)
    assert all(most[n] <= considered for n in most)


def test_table() -> None:
    table = schedule_table(16, 8, 20)
    assert table.shape == (9, 20)
    assert table[8, :16].tolist() == visit_schedule(16, 8)


@pytest.mark.parametrize("power", [1.0, 3.0, 1000.0])
def test_sampled_edges_follow_the_power_of_their_share(power: float) -> None:
    """0.4 to the power of 1000 is 0 in floating point: the first edge was chosen."""
    forest = new_forest(1, 64, 8, 8, schedule_table(4, 4, 4))
    forest.randoms[0] = 7
    p = np.array([0.25, 0.35, 0.0, 0.4])
    edges = [sampled_edge(forest, np.int64(0), p, np.int64(4), power) for _ in range(4000)]
    expected = (p / p.max()) ** power
    found = np.bincount(edges, minlength=4) / len(edges)
    assert found == pytest.approx(expected / expected.sum(), abs=0.03)
