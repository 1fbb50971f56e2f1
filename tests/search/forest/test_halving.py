"""The schedule of sequential halving, by the values of [Gumbel]'s own implementation."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from variant_ai.core.search.forest.halving import schedule_table, visit_schedule


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
