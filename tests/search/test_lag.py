"""What moves cost beyond the time meant for them, and the clock kept for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from variant_ai.core.search.clock import Clock, TimeManager
from variant_ai.core.search.lag import GAIN, MEMORY, MOST, Lag


def test_the_next_clock_shows_the_lag() -> None:
    lag = Lag()
    lag.sent(7, 10.0, 0.5, meant=1.0)
    lag.shown(8, 9.42)  # 1.08 s spent, 0.5 s given back
    assert lag.worst == pytest.approx(0.08)
    assert lag.usual == pytest.approx(GAIN * 0.08)


def test_the_greatest_lag_is_forgotten_slowly_and_the_usual_one_soon() -> None:
    lag = Lag()
    for move, seconds in enumerate((0.1, *[0.0] * 69)):
        lag.sent(move, 60.0, 0.0, meant=0.5)
        lag.shown(move + 1, 59.5 - seconds)
    assert lag.worst == pytest.approx(0.1 * MEMORY**69)
    assert lag.usual < 0.001


@pytest.mark.parametrize(
    ("number", "remaining"),
    [
        (8, 10.6),  # time was added, or a new control has begun
        (7, 9.0),  # taken back
        (10, 8.0),  # a move was pondered in between
        (0, 5.0),  # another game
    ],
)
def test_clocks_that_say_nothing_of_the_last_move(number: int, remaining: float) -> None:
    lag = Lag()
    lag.sent(7, 10.0, 0.5, meant=0.1)
    lag.shown(number, remaining)
    assert (lag.usual, lag.worst) == (0.0, 0.0)


def test_a_move_is_compared_once() -> None:
    lag = Lag()
    lag.sent(7, 10.0, 0.0, meant=0.5)
    lag.shown(8, 9.4)
    lag.shown(8, 9.0)  # the same position asked for again
    assert lag.worst == pytest.approx(0.1)


def test_a_new_game_keeps_what_was_learnt_and_not_the_last_clock() -> None:
    manager = TimeManager()
    manager.lag.sent(0, 10.0, 0.0, meant=0.5)
    manager.lag.shown(1, 9.4)
    manager.lag.sent(1, 9.4, 0.0, meant=0.5)
    manager.forget()
    manager.lag.shown(2, 8.0)
    assert manager.lag.worst == pytest.approx(0.1)


def test_a_move_faster_than_meant_and_a_pause_of_the_machine_are_bounded() -> None:
    lag = Lag()
    lag.sent(0, 10.0, 0.0, meant=0.5)
    lag.shown(1, 9.9)
    assert lag.worst == 0.0
    lag.sent(1, 9.9, 0.0, meant=0.1)
    lag.shown(2, 2.0)
    assert lag.worst == MOST


def test_the_usual_lag_is_paid_for_like_the_overhead() -> None:
    manager = TimeManager(overhead=0.02)
    clock = Clock(60.0, 0.0)
    before = manager.budget(clock, 10).target
    manager.lag.usual = 0.05
    assert manager.budget(clock, 10).target == pytest.approx(before - 0.03)
    assert manager.budget(Clock(60.0, 0.0, 20), 10).target == pytest.approx(60.0 / 20 - 0.05)


def test_pace_by_the_time_left() -> None:
    manager = TimeManager(overhead=0.02)
    paces = [manager.pace(Clock(left, 0.01), 45) for left in (0.25, 0.27, 0.49, 0.51)]
    assert paces == ["at once", "look", "look", "search"]
    # an increment that pays for a search: nothing to hurry for
    assert manager.pace(Clock(0.27, 0.1), 45) == "search"
    manager.lag.worst, manager.lag.usual = 0.09, 0.01
    paces = [manager.pace(Clock(left), 45) for left in (0.31, 0.33, 0.61, 0.63)]
    assert paces == ["at once", "look", "look", "search"]


@given(
    every=st.integers(30, 60),
    late=st.floats(0.0, 0.11),
    first=st.integers(0, 59),
    usual=st.floats(0.0, 0.004),
)
def test_threads_that_wake_up_late_lose_no_game_at_one_second(
    every: int, late: float, first: int, usual: float
) -> None:
    """200 moves at 1 s + 10 ms, where every so many moves one takes up to 110 ms more than meant:
    as much as the increments can pay for."""
    manager = TimeManager(overhead=0.02)
    remaining, increment = 1.0, 0.01
    for move in range(200):
        clock = Clock(remaining, increment)
        manager.lag.shown(move, remaining)
        search = max(manager.budget(clock, move).target, 0.012)  # one evaluation at least
        took = {"search": search, "look": 0.012, "at once": 0.002}
        pace = manager.pace(clock, move)
        meant = took[pace] if pace == "search" else 0.0
        manager.lag.sent(move, remaining, increment, meant)
        remaining -= took[pace] + usual + (late if move % every == first % every else 0.0)
        assert remaining > 0
        remaining += increment
