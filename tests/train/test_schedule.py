"""One cycle: where it starts, peaks and ends, and that momentum mirrors the rate."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from variant_ai.core.train.loop.optimisers import OneCycle


def cycle(steps: int = 100, warmup: float = 0.25) -> OneCycle:
    return OneCycle(steps, 0.35, 1e-5, (0.85, 0.95), warmup)


def test_corners() -> None:
    schedule = cycle()
    assert schedule.lr_at(0) == pytest.approx(1e-5)
    assert schedule.lr_at(25) == pytest.approx(0.35)
    assert schedule.lr_at(100) == pytest.approx(1e-5)
    assert schedule.momentum_at(0) == pytest.approx(0.95)
    assert schedule.momentum_at(25) == pytest.approx(0.85)


def test_both_ways_are_straight() -> None:
    schedule = cycle()
    up = [schedule.lr_at(s + 1) - schedule.lr_at(s) for s in range(25)]
    down = [schedule.lr_at(s + 1) - schedule.lr_at(s) for s in range(25, 99)]
    assert up == pytest.approx([up[0]] * len(up))
    assert down == pytest.approx([down[0]] * len(down))


@given(st.integers(1, 2000), st.floats(0.01, 0.99), st.data())
def test_momentum_mirrors_the_rate(steps: int, warmup: float, data: st.DataObject) -> None:
    schedule = cycle(steps, warmup)
    step = data.draw(st.integers(0, steps - 1))
    share = (schedule.lr_at(step) - 1e-5) / (0.35 - 1e-5)
    assert -1e-12 <= share <= 1 + 1e-12
    assert schedule.momentum_at(step) == pytest.approx(0.95 - 0.1 * share)
