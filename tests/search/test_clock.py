"""Time for a move, compared with the clock times in the games of [CrazyAra-preprint] (30 min + 30 s)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from variant_ai.core.search.move.clock import FACTOR, Budget, Clock, Progress, TimeManager


def played(first: int, last: int, exceptions: dict[int, float] | None = None) -> dict[int, float]:
    """Seconds for each move, from 1800 s on the clock and 30 s per move; `exceptions`: printed seconds
    of moves that did not get their usual time."""
    manager = TimeManager(overhead=0.0, factor=1.0)
    remaining, times = 1800.0, {}
    for move in range(first, last + 1):
        target = manager.budget(Clock(remaining, 30.0), own_moves=move - 1).target
        times[move] = target
        remaining += 30.0 - (exceptions or {}).get(move, target)
    return times


def test_figure_18_white() -> None:
    times = played(4, 41)
    assert times[4] == pytest.approx(59.3, abs=0.05)
    assert times[40] == pytest.approx(72.7, abs=0.1)
    assert times[41] == pytest.approx(47.3, abs=0.1)


def test_figure_18_white_every_move_as_printed() -> None:
    printed = {
        6: 60, 9: 61, 14: 62, 18: 63, 21: 64, 25: 65, 28: 66, 31: 67, 33: 68, 35: 69, 37: 70,
        38: 71, 39: 72, 40: 73, 41: 47,
    }  # fmt: skip
    times = played(4, 41)
    assert {move: times[move] for move in printed} == pytest.approx(printed, abs=1.0)


def test_first_move_of_fifteen_minutes_and_five_seconds() -> None:
    assert TimeManager(overhead=0.0, factor=1.0).budget(Clock(900, 5), 0).target == pytest.approx(
        21.5
    )


def test_most_of_the_time_is_used_before_games_end() -> None:
    """With the paper's factor of 1 it is about three quarters by move 38, even if no move is played early."""

    def used(moves: int, factor: float) -> float:
        manager, remaining = TimeManager(overhead=0.02, factor=factor), 10.0
        for move in range(moves):
            target = manager.budget(Clock(remaining, 0.1), own_moves=move).target
            assert 0 < target < remaining
            remaining += 0.1 - target
        return 1 - remaining / (10.0 + 0.1 * moves)

    assert used(38, 1.0) < 0.8 < 0.9 < used(38, FACTOR)
    assert used(300, FACTOR) < 1


def test_figure_17_move_33_was_critical() -> None:
    """106 s, half as long again as 71 s; its move 32 took one second."""
    manager = TimeManager(overhead=0.0)
    manager.played(0.41)
    budget = Budget(71.0, 106.5)
    assert manager.verdict(budget, Progress(elapsed=75, q=0.3), 40) is None
    assert manager.verdict(budget, Progress(elapsed=106.5, q=0.3), 40) == "time"
    assert manager.verdict(budget, Progress(elapsed=71, q=0.32), 40) == "time"
    # the budget itself: figure 17's clock at its move 33, after a move 32 that took 1.0 s
    usual = played(3, 33, exceptions={32: 1.0})
    assert 1.5 * usual[33] == pytest.approx(106, abs=1.0)


def test_figure_16_move_47_was_easy() -> None:
    """22 s, half of 44 s."""
    manager = TimeManager(overhead=0.0)
    budget = Budget(44.0, 66.0)
    easy = Progress(elapsed=22.0, q=0.9, top_prior=0.95, top_prior_leads=True)
    assert manager.verdict(budget, easy, 30) == "easy"
    assert manager.verdict(budget, Progress(21.9, 0.9, 0.95, True), 30) is None
    assert manager.verdict(budget, Progress(22.0, 0.9, 0.90, True), 30) is None
    assert manager.verdict(budget, Progress(22.0, 0.9, 0.95, False), 30) is None


def test_a_critical_position_is_not_easy() -> None:
    manager = TimeManager()
    manager.played(0.5)
    falling = Progress(elapsed=30.0, q=0.2, top_prior=0.95, top_prior_leads=True)
    assert manager.verdict(Budget(40.0, 60.0), falling, 30) is None


def test_nothing_is_critical_before_the_first_move_or_in_a_new_game() -> None:
    manager = TimeManager()
    assert not manager.is_critical(-1.0)
    manager.played(0.5)
    assert manager.is_critical(0.39)
    assert not manager.is_critical(0.41)
    manager.forget()
    assert not manager.is_critical(-1.0)


def test_one_legal_move_is_played_at_once() -> None:
    assert TimeManager().verdict(Budget(10, 15), Progress(elapsed=0, q=0), 1) == "one move"


def test_early_stop_when_the_leader_cannot_be_overtaken() -> None:
    manager, budget = TimeManager(), Budget(10.0, 15.0)

    def at(elapsed: float, *, chosen: bool = True) -> Progress:
        return Progress(
            elapsed, 0.0, leader_visits=900, second_visits=300, leader_chosen=chosen,
            visits_per_second=100.0,
        )  # fmt: skip

    assert manager.verdict(budget, at(3.9), 20) is None  # 610 visits to come, the lead is 600
    assert manager.verdict(budget, at(4.1), 20) == "early stop"
    assert manager.verdict(budget, at(4.1, chosen=False), 20) is None
    assert TimeManager(early_stop=False).verdict(budget, at(4.1), 20) is None
    manager.played(0.5)  # critical: the visits of the longer time count
    assert manager.verdict(budget, at(4.1), 20) is None
    assert manager.verdict(budget, at(9.1), 20) == "early stop"


def test_moves_to_go_share_the_time_equally() -> None:
    manager = TimeManager(overhead=0.0)
    assert manager.budget(Clock(120.0, 0.0, moves_to_go=4), 30).target == pytest.approx(30.0)
    assert manager.budget(Clock(120.0, 1.0, moves_to_go=4), 30).target == pytest.approx(30.7)
    last = manager.budget(Clock(9.0, 0.0, moves_to_go=1), 39)
    assert last == Budget(pytest.approx(8.9), pytest.approx(8.9))


def test_byoyomi_is_spent_in_full_once_less_than_one_is_left() -> None:
    manager = TimeManager(overhead=0.0, factor=1.0)
    counted = manager.budget(Clock(0.0, byoyomi=10.0), 60)
    assert counted == Budget(pytest.approx(9.9), pytest.approx(9.9))
    assert manager.budget(Clock(3.0, byoyomi=10.0), 60).target == pytest.approx(12.9)
    early = manager.budget(Clock(600.0, byoyomi=10.0), 0)
    assert early.target == pytest.approx(600 / 50 + 7.0)
    assert early.maximum <= 610.0
    assert manager.pace(Clock(0.0, byoyomi=1.0), 60) == "search"
    assert manager.pace(Clock(0.0, byoyomi=0.0), 60) == "at once"


def test_the_last_move_of_a_control_leaves_time_for_a_lag() -> None:
    manager = TimeManager()
    for ply in range(0, 40, 2):
        cost = 0.2 if ply == 10 else 0.05
        manager.lag.shown(ply, 60.0)
        manager.lag.sent(ply, 60.0, 0.0, 1.0)
        manager.lag.shown(ply + 2, 60.0 - 1.0 - cost)
        manager.lag.forget_last()
    assert manager.lag.worst > 0.15 > 2 * manager.lag.usual
    budget = manager.budget(Clock(60.0, 0.0, moves_to_go=1), 39)
    assert budget.maximum == pytest.approx(60.0 - manager.lag.worst)


def test_overhead_is_paid_for_every_move() -> None:
    manager = TimeManager(overhead=0.5, factor=1.0)
    assert manager.budget(Clock(120.0, 0.0, 4), 0).target == pytest.approx(29.5)
    assert manager.budget(Clock(500.0), 0).target == pytest.approx(9.5)
    assert manager.budget(Clock(0.6), 0).maximum <= 0.1


def test_an_increment_that_is_not_there_yet_is_not_spent() -> None:
    budget = TimeManager(overhead=0.0).budget(Clock(2.0, 30.0), 10)
    assert budget.target == pytest.approx(1.0)
    assert budget.maximum == pytest.approx(1.5)


def test_games_with_people_vary_by_a_tenth() -> None:
    manager = TimeManager(overhead=0.0, factor=1.0, jitter=0.1, rng=np.random.default_rng(3))
    times = [manager.budget(Clock(500.0), 0).target for _ in range(400)]
    assert 9.0 <= min(times) < 9.1
    assert 10.9 < max(times) <= 11.0


@given(
    remaining=st.floats(-5, 1e5),
    increment=st.floats(0, 100),
    moves_to_go=st.one_of(st.none(), st.integers(1, 60)),
    own_moves=st.integers(0, 300),
    jitter=st.sampled_from([0.0, 0.1]),
)
def test_the_flag_never_falls(
    remaining: float, increment: float, moves_to_go: int | None, own_moves: int, jitter: float
) -> None:
    manager = TimeManager(overhead=0.02, jitter=jitter, rng=np.random.default_rng(0))
    budget = manager.budget(Clock(remaining, increment, moves_to_go), own_moves)
    assert 0 < budget.target <= budget.maximum
    assert budget.maximum <= max(remaining - 0.02, 0.001) + 1e-9


def test_slow_mover_scales_the_time_for_a_move() -> None:
    clock = Clock(60.0, 0.5)
    usual = TimeManager(overhead=0.0).budget(clock, 10).target
    slow = TimeManager(overhead=0.0, speed=1.5).budget(clock, 10).target
    assert slow == pytest.approx(1.5 * usual)
    # never more than the clock allows
    assert TimeManager(speed=10.0).budget(Clock(1.0), 0).maximum < 1.0
