"""Lag of moves, and the time reserved for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from variant_ai.core.search.move.clock import (
    ASSUMED_LAG,
    GAIN,
    LAG_LIMIT,
    MEMORY,
    Clock,
    Lag,
    TimeManager,
)


def calm() -> Lag:
    """Time manager that assumes no lag before any was seen."""
    lag = Lag()
    lag.worst = 0.0
    return lag


def test_the_next_clock_shows_the_lag() -> None:
    lag = calm()
    lag.sent(14, 10.0, 0.5, meant=1.0)
    lag.shown(16, 9.42)  # 1.08 s spent, 0.5 s given back
    assert lag.worst == pytest.approx(0.08)
    assert lag.usual == pytest.approx(GAIN * 0.08)


def test_the_greatest_lag_is_forgotten_slowly_and_the_usual_one_soon() -> None:
    lag = calm()
    for move, seconds in enumerate((0.1, *[0.0] * 69)):
        lag.sent(2 * move, 60.0, 0.0, meant=0.5)
        lag.shown(2 * move + 2, 59.5 - seconds)
    assert lag.worst == pytest.approx(0.1 * MEMORY**69)
    assert lag.usual < 0.001


def test_the_lag_assumed_at_first_is_forgotten_like_a_real_one() -> None:
    lag = Lag()
    lag.sent(0, 10.0, 0.0, meant=0.5)
    lag.shown(2, 9.499)
    assert lag.worst == pytest.approx(MEMORY * ASSUMED_LAG)


@pytest.mark.parametrize(
    ("ply", "remaining"),
    [
        (16, 10.8),  # time was added, or a new time control has begun
        (14, 9.0),  # taken back
        (15, 9.0),  # the other side, which the same engine plays
        (18, 8.0),  # a move that was pondered in between
        (0, 5.0),  # another game
    ],
)
def test_clocks_that_do_not_show_the_lag(ply: int, remaining: float) -> None:
    lag = calm()
    lag.sent(14, 10.1, 0.5, meant=0.1)
    lag.shown(ply, remaining)
    assert (lag.usual, lag.worst) == (0.0, 0.0)


def test_clocks_in_whole_seconds_show_no_lag() -> None:
    lag = calm()
    lag.sent(0, 10.0, 0.0, meant=0.4)
    lag.shown(2, 9.0)
    assert lag.worst == 0.0
    lag.sent(2, 9.0, 0.0, meant=0.4)
    lag.shown(4, 8.5)
    assert lag.worst == pytest.approx(0.1)


def test_a_move_is_compared_once() -> None:
    lag = calm()
    lag.sent(14, 10.0, 0.0, meant=0.5)
    lag.shown(16, 9.4)
    lag.shown(16, 9.1)  # the same position is searched again
    assert lag.worst == pytest.approx(0.1)


def test_a_new_game_keeps_the_estimates_and_not_the_last_clock() -> None:
    manager = TimeManager()
    manager.lag = calm()
    manager.lag.sent(0, 10.0, 0.0, meant=0.5)
    manager.lag.shown(2, 9.4)
    manager.lag.sent(2, 9.4, 0.0, meant=0.5)
    manager.forget()
    manager.lag.shown(4, 8.0)
    assert manager.lag.worst == pytest.approx(0.1)


def test_a_move_faster_than_meant_and_a_pause_of_the_machine_are_bounded() -> None:
    lag = calm()
    lag.sent(0, 10.0, 0.0, meant=0.5)
    lag.shown(2, 9.9)
    assert lag.worst == 0.0
    lag.sent(2, 9.9, 0.0, meant=0.1)
    lag.shown(4, 2.0)
    assert lag.worst == LAG_LIMIT


def test_the_usual_lag_is_paid_for_like_the_overhead() -> None:
    manager = TimeManager(overhead=0.02)
    clock = Clock(60.0, 0.0)
    before = manager.budget(clock, 10).target
    manager.lag.usual = 0.05
    assert manager.budget(clock, 10).target == pytest.approx(before - 0.03)
    assert manager.budget(Clock(60.0, 0.0, 20), 10).target == pytest.approx(60.0 / 20 - 0.05)


def paces(manager: TimeManager, increment: float, *remaining: float) -> list[str]:
    return [manager.pace(Clock(left, increment), 45) for left in remaining]


def test_pace_by_the_time_left_and_the_lag_above_the_usual() -> None:
    manager = TimeManager(overhead=0.02, factor=1.0)
    expected = ["at once", "look", "look", "search"]
    # before anything was seen: 20 ms and three or six times 80
    assert paces(manager, 0.01, 0.25, 0.27, 0.49, 0.51) == expected
    manager.lag.worst = 0.12
    assert paces(manager, 0.0, 0.31, 0.33, 0.61, 0.63) == expected
    manager.lag.worst = 0.0
    assert paces(manager, 0.0, 0.07, 0.09, 0.13, 0.15) == expected
    # a constant lag is no reason to reserve more than it takes
    manager.lag.worst = manager.lag.usual = 0.2
    assert paces(manager, 0.0, 0.25, 0.27, 0.31, 0.33) == expected


def test_time_that_comes_back_is_spent() -> None:
    manager = TimeManager(overhead=0.02)
    assert paces(manager, 0.03, 0.15) == ["at once"]
    assert paces(manager, 0.05, 0.11, 0.15) == ["at once", "search"]
    assert paces(manager, 1.0, 0.15) == ["search"]
    assert manager.pace(Clock(0.15, 0.0, 1), 45) == "search"  # the next control is at hand


@pytest.mark.parametrize("lag", [0.0, 0.05, 0.2])
def test_a_steady_lag_that_the_increment_pays_for_leaves_time_to_search(lag: float) -> None:
    """The clock becomes stable where the increments are spent, and the search gets its share of them."""
    manager = TimeManager(overhead=0.02)
    remaining, increment = 2.0, lag + 0.1
    searched = 0
    for move in range(200):
        clock = Clock(remaining, increment)
        manager.lag.shown(2 * move, remaining)
        pace = manager.pace(clock, move)
        target = manager.budget(clock, move).target if pace == "search" else 0.0
        searched += pace == "search"
        manager.lag.sent(2 * move, remaining, increment, target)
        remaining -= target + lag
        assert remaining > 0
        remaining += increment
    assert searched == 200


@given(
    every=st.integers(30, 60),
    late=st.floats(0.0, 0.11),
    first=st.integers(0, 59),
    usual=st.floats(0.0, 0.004),
)
def test_threads_that_wake_up_late_lose_no_game_at_one_second(
    every: int, late: float, first: int, usual: float
) -> None:
    """200 moves at 1 s + 10 ms; regularly a move takes up to 110 ms more than intended, as much as the
    increments can pay for."""
    manager = TimeManager(overhead=0.02)
    manager.lag = calm()
    remaining, increment = 1.0, 0.01
    for move in range(200):
        clock = Clock(remaining, increment)
        manager.lag.shown(2 * move, remaining)
        search = max(manager.budget(clock, move).target, 0.012)  # one evaluation at least
        took = {"search": search, "look": 0.012, "at once": 0.002}
        pace = manager.pace(clock, move)
        meant = took[pace] if pace == "search" else 0.0
        manager.lag.sent(2 * move, remaining, increment, meant)
        remaining -= took[pace] + usual + (late if move % every == first % every else 0.0)
        assert remaining > 0
        remaining += increment
