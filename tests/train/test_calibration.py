"""Calibration, confidence intervals and classes of positions, compared with hand-made numbers."""

from __future__ import annotations

import json
import math
from dataclasses import asdict

import numpy as np
import pytest

from variant_ai.core.data.store.game_store import NO_RATING
from variant_ai.core.train.measure.calibration import calibration, value_calibration, wdl_quality
from variant_ai.core.train.measure.evaluation import PositionOrigins, rating_classes, summarise
from variant_ai.core.train.measure.metrics import (
    Scores,
    for_json,
    interval,
    intervals,
    paired_differences,
)
from variant_ai.core.train.pictures.quality_pictures import quality_pictures


def scores(rank, value, outcome, log_probability=None) -> Scores:
    n = len(rank)
    return Scores(
        np.asarray(log_probability if log_probability is not None else [-1.0] * n, np.float32),
        np.asarray(rank, np.int64),
        np.asarray(value, np.float32),
        np.asarray(outcome, np.float32),
        np.ones(n, np.float32),
        np.ones(n, np.float32),
    )


def test_bins_by_hand() -> None:
    # Bins [0, 0.5) and [0.5, 1]: 0.2 and 0.4 happen half the time, 0.8 and 1.0 always.
    found = calibration(np.array([0.2, 0.4, 0.8, 1.0]), np.array([0.0, 1.0, 1.0, 1.0]), 0, 1, 2)
    low, high = found.bins
    assert (low.positions, high.positions) == (2, 2)
    assert (low.predicted, low.happened) == (pytest.approx(0.3), 0.5)
    assert (high.predicted, high.happened) == (pytest.approx(0.9), 1.0)
    assert found.expected_error == pytest.approx((2 * 0.2 + 2 * 0.1) / 4)


def test_a_net_that_is_right_on_average_has_no_error() -> None:
    # 0.5 is said of four games: three won, one lost, mean 0.5; empty bins are left out.
    found = value_calibration(scores([0] * 4, [0.5] * 4, [1, 1, 1, -1]))
    assert found.expected_error == pytest.approx(0)
    assert [b.positions for b in found.bins] == [4]
    assert found.bins[0].low <= 0.5 < found.bins[0].high
    assert sum(b.positions for b in value_calibration(scores([0, 0], [-1, 1], [0, 0])).bins) == 2


def test_win_draw_loss_by_hand() -> None:
    wdl = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], np.float32)
    found = wdl_quality(wdl, np.array([1, 0], np.float32))  # won, drawn
    assert found.log_loss == pytest.approx(-(math.log(0.5) + math.log(0.1)) / 2, abs=1e-6)
    brier = (0.25 + 0.09 + 0.04) + (0.01 + 0.81 + 0.64)
    assert found.brier == pytest.approx(brier / 2, abs=1e-6)
    assert found.accuracy == 0.5
    assert list(found.classes) == ["win", "draw", "loss"]
    assert found.classes["win"].expected_error == pytest.approx((0.5 + 0.1) / 2, abs=1e-6)
    assert wdl_quality(np.array([[1, 0, 0]], np.float32), np.array([-1.0], "f4")).log_loss < 20


def test_an_interval_of_independent_positions_is_the_usual_one() -> None:
    x = np.array([1.0, 0.0, 1.0, 1.0])
    found = interval(x, np.ones(4), np.arange(4))
    assert found.mean == 0.75
    error = x.std(ddof=1) / 2
    assert found.high - found.mean == pytest.approx(1.959964 * error, rel=1e-5)
    assert found.mean - found.low == pytest.approx(found.high - found.mean)


def test_games_of_like_positions_count_once() -> None:
    """Every position ten times over in the same game tells nothing new; as independent it would."""
    x = np.array([1.0, 0.0, 1.0, 1.0])
    single = interval(x, np.ones(4), np.arange(4))
    many = interval(np.repeat(x, 10), np.ones(40), np.repeat(np.arange(4), 10))
    alone = interval(np.repeat(x, 10), np.ones(40), np.arange(40))
    assert many.high - many.low == pytest.approx(single.high - single.low)
    assert alone.high - alone.low < 0.5 * (single.high - single.low)


def test_nothing_and_one_game() -> None:
    nothing = interval(np.zeros(3), np.zeros(3), np.arange(3))
    assert math.isnan(nothing.mean) and not nothing.certain
    assert for_json(asdict(nothing)) == {"mean": None, "low": None, "high": None}
    one = interval(np.array([1.0, 0.0]), np.ones(2), np.zeros(2, np.int64))
    assert one.mean == 0.5 and math.isnan(one.low)


def test_differences_are_paired() -> None:
    game = np.arange(6)
    better = scores([0, 0, 0, 0, 1, 7], [0.5] * 6, [1, 1, 0, 0, -1, -1])
    worse = scores([0, 0, 1, 0, 1, 7], [-0.5] * 6, [1, 1, 0, 0, -1, -1])
    found = paired_differences(better, worse, game, 0.01)
    assert found["policy_accuracy"].mean == pytest.approx(1 / 6)
    # Five positions of six agree: far surer than the difference of two independent means.
    spread = intervals(better, game, 0.01)["policy_accuracy"]
    paired = found["policy_accuracy"]
    assert paired.high - paired.low < spread.high - spread.low
    assert found["top5_accuracy"].mean == 0 and not found["top5_accuracy"].certain
    # Of four decided positions both have two signs right.
    assert found["value_accuracy_sign"].mean == 0
    assert found["policy_loss"].mean == 0


def test_intervals_agree_with_the_metrics() -> None:
    rng = np.random.default_rng(0)
    made = scores(
        rng.integers(0, 9, 50), rng.uniform(-1, 1, 50), rng.integers(-1, 2, 50),
        -rng.random(50),
    )  # fmt: skip
    metrics = made.metrics(0.01).as_dict()
    for name, found in intervals(made, np.repeat(np.arange(10), 5), 0.01).items():
        assert found.mean == pytest.approx(metrics[name], rel=1e-5), name
        assert found.low < found.mean < found.high


@pytest.mark.parametrize("said", (np.nan, np.inf))
def test_a_net_that_says_no_numbers_is_told_as_json(said: float) -> None:
    n = 60
    result = np.tile([1, 0, -1], n // 3)
    made = Scores(
        np.full(n, -np.inf, "f4"), np.full(n, 9), np.full(n, said, "f4"), result.astype("f4"),
        np.ones(n, "f4"), np.ones(n, "f4"), np.full((n, 3), np.nan, "f4"),
    )  # fmt: skip
    with np.errstate(invalid="ignore"):
        found = summarise(made, np.arange(n, dtype=np.int32), 0.01).as_dict()
    json.dumps(found, allow_nan=False)
    assert found["policy_loss"] is None and found["calibration"]["expected_error"] is None
    assert [picture.name for picture in quality_pictures({"net": found})] == ["by-ply"]


def test_scores_carry_win_draw_loss() -> None:
    room = Scores.empty(4, wdl=True)
    part = Scores(*(np.ones(2, np.float32) for _ in range(6)), np.full((2, 3), 0.25, "f4"))
    assert room.put(1, part) == 3
    assert room.wdl is not None and room.wdl[:, 0].tolist() == [0, 0.25, 0.25, 0]
    assert room.select(slice(1, 3)).wdl.shape == (2, 3)
    assert room.select(np.array([False, True, False, False])).wdl.tolist() == [[0.25] * 3]
    assert Scores.empty(2).wdl is None


def test_rating_classes() -> None:
    ratings = np.array([[2150, NO_RATING], [2290, 2301]], np.int32)
    places = PositionOrigins(np.array([0, 0, 1, 1]), ratings)
    movers = places.mover_ratings(np.array([0, 1, 0, 1]))
    assert movers.tolist() == [2150, NO_RATING, 2290, 2301]
    classes = rating_classes(movers)
    assert {name: where.tolist() for name, where in classes.items()} == {
        "2100-2199": [True, False, False, False],
        "2200-2299": [False, False, True, False],
        "2300-2399": [False, False, False, True],
        "no rating": [False, True, False, False],
    }
    wide = rating_classes(np.array([600, 2790], np.int32))
    assert list(wide) == ["400-799", "2400-2799"]
    assert list(rating_classes(np.array([NO_RATING], np.int32))) == ["no rating"]
