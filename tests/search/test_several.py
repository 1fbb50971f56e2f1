"""Several evaluators on one tree."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest
from graph_walk import signature
from numpy.typing import NDArray

from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import SettingError
from variant_ai.core.inference import (
    Evaluation,
    Evaluator,
    ParallelEvaluator,
    RandomEvaluator,
)
from variant_ai.core.rules.interface import Rules
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.search import Search
from variant_ai.core.search.settings import SearchParams

MakeSearch = Callable[..., Search]


def test_several_evaluators_share_a_tree(rules_of: Callable[[str], Rules]) -> None:
    rules = rules_of("crazyhouse")
    encoder = Encoder(rules.spec)
    nets = [RandomEvaluator(encoder.shape, encoder.actions) for _ in range(2)]
    params = SearchParams.of(rules.spec, memory_mb=64, batch_size=8)
    with Search(rules.spec, nets, params, rules=rules) as search:
        assert search.run(Limits(simulations=400)).visits == 400


def test_more_leaves_than_a_node_counts(rules_of: Callable[[str], Rules]) -> None:
    rules = rules_of("crazyhouse")
    encoder = Encoder(rules.spec)
    nets = [RandomEvaluator(encoder.shape, encoder.actions) for _ in range(8)]
    params = SearchParams.of(rules.spec, memory_mb=64, batch_size=4096)
    with pytest.raises(SettingError, match=r"batch_size 4096 with 8 evaluators exceeds"):
        Search(rules.spec, nets, params, rules=rules)


class Counting(RandomEvaluator):
    """Counts the batches it has started, and records the largest."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__(encoder.shape, encoder.actions)
        self.begun = 0
        self.largest = 0
        self.changed = threading.Condition()

    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        with self.changed:
            self.begun += 1
            self.largest = max(self.largest, len(planes))
            self.changed.notify_all()
        return super().evaluate(planes)


class Waiting(Counting):
    """In each batch, waits until the other evaluator has started one more batch."""

    other: Counting
    came_too_late = 0

    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        answer = super().evaluate(planes)
        with self.other.changed:
            on_time = self.other.changed.wait_for(lambda: self.other.begun > self.begun, 1)
        self.came_too_late += not on_time
        return answer


def test_parts_of_an_evaluator_do_not_wait_for_each_other(
    make_search: MakeSearch, rules_of: Callable[[str], Rules]
) -> None:
    encoder = Encoder(rules_of("crazyhouse").spec)
    first, second = Waiting(encoder), Counting(encoder)
    first.other = second
    settings = {"batch_size": 8, "batch_growth": 0.0}
    search = make_search("crazyhouse", net=ParallelEvaluator([first, second]), **settings)
    search.run(Limits(simulations=1))
    first.begun = second.begun = first.came_too_late = (
        0  # the root was evaluated by the first one alone
    )
    assert search.run(Limits(simulations=200)).visits == 200
    assert (first.largest, second.largest) == (4, 4)
    assert first.begun > 20
    assert first.came_too_late < 4  # some of the last batches, after which none is started


def test_how_an_evaluator_works_does_not_change_a_deterministic_tree(
    make_search: MakeSearch, rules_of: Callable[[str], Rules]
) -> None:
    encoder = Encoder(rules_of("crazyhouse").spec)
    trees = []
    for parts in (1, 2, 3):
        nets: list[Evaluator] = [
            RandomEvaluator(encoder.shape, encoder.actions) for _ in range(parts)
        ]
        search = make_search(
            "crazyhouse", net=ParallelEvaluator(nets), deterministic=True, batch_size=8
        )
        search.run(Limits(simulations=500))
        trees.append(signature(search))
    assert trees[0] == trees[1] == trees[2]
