"""Choice of the move from given statistics of the root."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from variant_ai.core.search.move.move_choice import (
    choose,
    clipped,
    move_policy,
    move_temperature,
    q_threshold,
    ranking,
    tempered,
)
from variant_ai.core.search.settings import SearchParams

PLAIN = SearchParams()
WITH_Q = SearchParams(q_weight=0.7)


def test_threshold_grows_from_half_to_nine_tenths() -> None:
    """[CrazyAra-preprint] eq. 7: at 1965 visits 1/e of the way is left."""
    assert q_threshold(0, 0.5, 0.9, 1965) == pytest.approx(0.5)
    assert q_threshold(1965, 0.5, 0.9, 1965) == pytest.approx(0.9 - 0.4 / math.e)
    assert q_threshold(1e9, 0.5, 0.9, 1965) == pytest.approx(0.9)


def test_without_q_the_policy_is_the_share_of_visits() -> None:
    visits = np.array([30, 60, 10])
    policy = move_policy(visits, np.array([1.0, -1.0, 0.0]), PLAIN)
    assert policy.tolist() == pytest.approx([0.3, 0.6, 0.1])


def test_q_of_rarely_visited_moves_is_left_out() -> None:
    """[CrazyAra-preprint] eq. 5 by hand: 100 visits, threshold 0.33, so 60·0.33 = 19.8 visits are needed."""
    params = SearchParams(q_weight=0.7, q_thresh_init=0.33, q_thresh_max=0.33)
    visits = np.array([60, 25, 15])
    q = np.array([0.0, 0.5, 0.9])
    raw = np.array([0.3 * 0.6 + 0.7 * 0.5, 0.3 * 0.25 + 0.7 * 0.75, 0.3 * 0.15])
    assert move_policy(visits, q, params) == pytest.approx(raw / raw.sum())


def test_a_late_refutation_is_seen_with_q_and_not_without() -> None:
    visits, q = np.array([520, 480]), np.array([-0.4, 0.3])
    prior = np.array([0.6, 0.4])
    assert choose(visits, q, prior, PLAIN) == 0
    assert choose(visits, q, prior, WITH_Q) == 1


def test_no_visits_and_nothing_but_lost_moves_still_give_a_policy() -> None:
    assert move_policy(np.zeros(4, np.int64), np.zeros(4), WITH_Q).tolist() == [0.25] * 4
    only_q = SearchParams(q_weight=1.0)
    assert move_policy(np.array([3, 1]), np.full(2, -1.0), only_q).tolist() == [0.75, 0.25]


def test_ranking_of_proven_moves() -> None:
    """Quickest win first, longest defence first among the losses."""
    policy = np.array([0.5, 0.1, 0.1, 0.1, 0.1, 0.1])
    mates = np.array([-2, 5, 3, 0, -8, 0])
    q = np.array([-1.0, 1.0, 1.0, 0.0, -1.0, 0.2])
    assert ranking(policy, q, np.zeros(6), mates).tolist() == [2, 1, 5, 3, 4, 0]


def test_equal_moves_are_ranked_by_q_then_prior_then_order() -> None:
    policy = np.full(4, 0.25)
    q = np.array([0.0, 0.0, 0.1, 0.0])
    prior = np.array([0.1, 0.3, 0.1, 0.1])
    assert ranking(policy, q, prior).tolist() == [2, 1, 0, 3]


def test_temperature_lasts_for_the_first_own_moves_and_decays() -> None:
    params = SearchParams(temperature=1.7, temperature_decay=0.92, temperature_moves=3)
    taus = [move_temperature(params, n) for n in range(5)]
    assert taus == pytest.approx([1.7, 1.564, 1.43888, 0.0, 0.0])
    assert move_temperature(PLAIN, 0) == 0.0


def test_low_temperatures_do_not_lose_the_move() -> None:
    """[CrazyAra-preprint] section 11.1 plays with τ = 0.07: N^14 of a share of visits is very small."""
    policy = np.array([1e-30, 2e-30])
    assert tempered(policy, 0.07).tolist() == pytest.approx([0.0, 1.0], abs=1e-4)
    assert tempered(np.array([0.2, 0.5, 0.3]), 0.0).tolist() == [0.0, 1.0, 0.0]


def test_clipping_drops_the_unlikely_quarter() -> None:
    policy = np.array([0.5, 0.1, 0.3, 0.05, 0.05])
    # 0.05 + 0.05 + 0.1 = 0.2 is less than a quarter, with 0.3 it is more
    assert clipped(policy, 0.25).tolist() == pytest.approx([0.625, 0.0, 0.375, 0.0, 0.0])
    assert clipped(policy, 0.0).tolist() == policy.tolist()
    assert clipped(policy, 1.0).tolist() == pytest.approx([1.0, 0.0, 0.0, 0.0, 0.0])


def test_sampling_follows_the_visits() -> None:
    params = SearchParams(temperature=1.0, temperature_moves=1, quantile_clipping=0.0)
    rng = np.random.default_rng(5)
    visits, q = np.array([60, 30, 10]), np.zeros(3)
    drawn = [choose(visits, q, q, params, rng=rng) for _ in range(3000)]
    shares = np.bincount(drawn, minlength=3) / 3000
    assert shares.tolist() == pytest.approx([0.6, 0.3, 0.1], abs=0.03)


def test_sampling_follows_the_priors_without_visits() -> None:
    params = SearchParams(temperature=1.0, temperature_moves=1, quantile_clipping=0.0)
    rng = np.random.default_rng(5)
    none, prior = np.zeros(3, np.int64), np.array([0.05, 0.9, 0.05])
    drawn = [choose(none, np.zeros(3), prior, params, rng=rng) for _ in range(3000)]
    assert (np.bincount(drawn, minlength=3) / 3000).tolist() == pytest.approx(prior, abs=0.03)
    still = SearchParams(temperature=0.0)
    assert choose(none, np.zeros(3), prior, still) == 1


def test_a_proven_win_is_not_left_to_chance_and_a_loss_is_not_sampled() -> None:
    params = SearchParams(temperature=50.0, temperature_moves=1, quantile_clipping=0.0)
    visits, q = np.array([50, 50, 1]), np.array([0.0, 0.0, 1.0])
    rng = np.random.default_rng(1)
    won, lost = np.array([0, 0, 3]), np.array([-2, 0, -4])
    assert {choose(visits, q, q, params, mates=won, rng=rng) for _ in range(50)} == {2}
    assert {choose(visits, q, q, params, mates=lost, rng=rng) for _ in range(50)} == {1}


def test_the_same_seed_samples_the_same_move() -> None:
    params = SearchParams(temperature=1.0, temperature_moves=1, seed=11)
    visits, q = np.arange(1, 31), np.zeros(30)
    assert len({choose(visits, q, q, params) for _ in range(5)}) == 1


@given(
    st.lists(st.tuples(st.integers(0, 10_000), st.floats(-1, 1)), min_size=1, max_size=40),
    st.floats(0, 1),
    st.floats(0, 5),
    st.floats(0, 1),
)
def test_a_policy_stays_one(
    moves: list[tuple[int, float]], q_weight: float, tau: float, quantile: float
) -> None:
    visits = np.array([n for n, _ in moves])
    q = np.array([v for _, v in moves])
    policy = move_policy(visits, q, SearchParams(q_weight=q_weight))
    for each in (policy, tempered(policy, tau), clipped(tempered(policy, tau), quantile)):
        assert each.sum() == pytest.approx(1.0)
        assert (each >= 0).all()
    # the most likely move can always be sampled
    assert clipped(policy, quantile)[int(np.argmax(policy))] > 0
