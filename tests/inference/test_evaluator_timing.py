"""Timing evaluators in turns."""

from __future__ import annotations

import time

import numpy as np
import pytest
from numpy.typing import NDArray

from variant_ai.core.inference import Evaluation, Evaluator, ModelInfo, ParallelEvaluator
from variant_ai.core.inference.choosing import evaluator_timing as measure

BATCH = 4


class Clock:
    """Time that only evaluations take."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    process_time = perf_counter


class Spinning(Evaluator):
    """Takes 10 ms of a clock, and twice as long while the threads of another still spin, which they
    do for 55 ms after a batch."""

    name = "spinning"

    def __init__(self, clock: Clock, others: list[Spinning]) -> None:
        self.info = ModelInfo("spinning")
        self.planes_shape, self.actions = (1, 2, 2), 3
        self.clock, self.others, self.spins_until = clock, others, 0.0
        others.append(self)

    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        busy = any(o is not self and o.spins_until > self.clock.now for o in self.others)
        self.clock.now += 0.02 if busy else 0.01
        self.spins_until = self.clock.now + 0.055
        return answer(len(planes))


class Napping(Evaluator):
    """Takes so many milliseconds, asleep."""

    name = "napping"

    def __init__(self, milliseconds: float) -> None:
        self.info = ModelInfo("napping")
        self.planes_shape, self.actions = (1, 2, 2), 3
        self.seconds = milliseconds / 1000
        self.asked: set[int] = set()

    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        self.asked.add(len(planes))
        time.sleep(self.seconds)
        return answer(len(planes))


def answer(count: int) -> Evaluation:
    return Evaluation(np.zeros(count, np.float32), np.zeros((count, 3), np.float32))


def test_threads_that_spin_slow_nobody_who_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(measure, "time", clock)
    made: list[Spinning] = []
    both = {name: Spinning(clock, made) for name in ("first", "second")}
    timings = measure.interleaved(both, BATCH, rounds=20)
    assert timings["second"].mean == pytest.approx(0.01)
    assert timings["first"].mean == pytest.approx(0.01)


@pytest.mark.parametrize("rounds", [1, 7, 40])
def test_the_requested_number_of_evaluations_is_timed(
    rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(measure, "time", clock)
    made: list[Spinning] = []
    both = {name: Spinning(clock, made) for name in ("first", "second")}
    told: list[int] = []
    measure.interleaved(both, BATCH, rounds=rounds, advance=told.append)
    assert sum(told) == 2 * rounds


def test_parts_of_an_evaluator_are_timed_as_a_search_uses_them() -> None:
    quick, slow = Napping(20), Napping(60)  # long enough for a busy machine
    with ParallelEvaluator([quick, slow]) as shared:
        together = measure.interleaved({"it": shared}, BATCH, seconds=0.3)["it"]
        apart = measure.interleaved({"it": shared}, BATCH, seconds=0.3, apart=True)["it"]
    # Together each batch waits for the slow one; apart the quick one does three while it does one.
    assert together.median >= 0.06
    assert apart.median < 0.75 * together.median
    assert quick.asked == slow.asked == {2}


def test_a_batch_may_be_smaller_than_the_number_of_parts() -> None:
    first, second = Napping(1), Napping(1)
    with ParallelEvaluator([first, second]) as shared:
        measure.interleaved({"it": shared}, 1, seconds=0.01, apart=True)
    assert (first.asked, second.asked) == ({1}, set())


class Cached(Evaluator):
    """Takes 1 ms a position in batches up to 16, and 3 ms in larger ones."""

    name = "cached"

    def __init__(self) -> None:
        self.info = ModelInfo("cached")
        self.planes_shape, self.actions = (1, 2, 2), 3
        self.now = 0.0
        self.asked: list[int] = []

    def perf_counter(self) -> float:
        return self.now

    def evaluate(self, planes: NDArray[np.float32]) -> Evaluation:
        self.asked.append(len(planes))
        self.now += len(planes) * (0.001 if len(planes) <= 16 else 0.003) + 0.001
        return answer(len(planes))


def test_a_batch_that_is_slower_than_smaller_ones_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator = Cached()
    monkeypatch.setattr(measure.time, "perf_counter", evaluator.perf_counter)
    assert measure.best_piece(evaluator, 64) == 16
    assert measure.best_piece(evaluator, 16) is None


def test_a_batch_is_left_whole_if_pieces_are_not_faster() -> None:
    assert measure.best_piece(Napping(1.0), 64) is None
