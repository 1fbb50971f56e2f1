"""The metrics, compared with numbers computed by hand and the papers' tables."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from variant_ai.core.train.loop.loss import losses
from variant_ai.core.train.measure.metrics import Scores, Sums, intervals, score


def scored() -> Scores:
    logits = torch.zeros(4, 8)
    logits[0, 2] = 1.0  # played 2: a hit
    logits[1, 3] = 1.0  # played 0: seven others are not greater, one is
    logits[2, :6] = torch.arange(6.0)  # played 0: the rank is 5, not in the top five
    logits[3, 1] = float("nan")  # played 1: no hit
    action = torch.tensor([2, 0, 0, 1])
    value = torch.tensor([0.5, -0.5, 0.25, 0.0])
    outcome = torch.tensor([1.0, 1.0, 0.0, -1.0])
    return score(value, logits, action, outcome)


def test_rank() -> None:
    assert scored().rank.tolist() == [0, 1, 5, 8]


def test_of_equal_logits_only_the_first_is_a_hit() -> None:
    action = torch.arange(8)
    none = torch.zeros(8)
    assert score(none, torch.full((8, 8), 0.5), action, none).rank.tolist() == list(range(8))


def test_metrics_by_hand() -> None:
    three = scored().select(np.array([True, True, True, False]))
    metrics = three.metrics(0.01)
    assert metrics.policy_accuracy == pytest.approx(1 / 3)
    assert metrics.top5_accuracy == pytest.approx(2 / 3)
    assert metrics.value_loss == pytest.approx((0.25 + 2.25 + 0.0625) / 3)
    assert metrics.value_accuracy_sign == 0.5  # the drawn game is left out
    assert metrics.decided == 2
    expected = [
        math.log(7 + math.e) - 1,
        math.log(7 + math.e),
        math.log(sum(math.exp(k) for k in range(6)) + 2),
    ]
    assert metrics.policy_loss == pytest.approx(sum(expected) / 3)


def test_value_of_zero_is_no_sign() -> None:
    assert scored().metrics(0.01, np.array([False, False, False, True])).value_accuracy_sign == 0


def test_combined_loss_is_that_of_the_training_divided_by_its_weights() -> None:
    n = 10_000
    sums = Sums(positions=n, policies=n, values=n, policy_loss=12184.0, value_loss=7596.0)
    assert sums.mean(0).combined_loss == pytest.approx(1.2184)
    assert sums.mean(1).combined_loss == pytest.approx((1.2184 + 0.7596) / 2)
    assert sums.mean(3).combined_loss == pytest.approx((1.2184 + 3 * 0.7596) / 4)
    # [CrazyAra-preprint] table 10 weighs the policy by 1 - α
    assert sums.mean(0.01).combined_loss == pytest.approx(1.2138, abs=1e-4)


@pytest.mark.parametrize("weight", [0.01, 1.0, 3.0])
def test_combined_loss_has_its_interval_around_it(weight: float) -> None:
    scores = scored().select(np.array([True, True, True, False]))
    middle = intervals(scores, np.arange(3), weight)["combined_loss"].mean
    assert middle == pytest.approx(scores.metrics(weight).combined_loss)


def test_sums_of_parts_are_sums_of_the_whole() -> None:
    rng = np.random.default_rng(0)
    whole = score(
        torch.tensor(rng.uniform(-1, 1, 60), dtype=torch.float32),
        torch.tensor(rng.normal(size=(60, 9)), dtype=torch.float32),
        torch.tensor(rng.integers(0, 9, 60)),
        torch.tensor(rng.integers(-1, 2, 60), dtype=torch.float32),
    )
    sums = Sums()
    for part in np.array_split(np.arange(60), 7):
        sums.add(whole.select(np.isin(np.arange(60), part)))
    expected = whole.metrics(0.3).as_dict()
    assert sums.mean(0.3).as_dict() == pytest.approx(expected)


def test_nothing_has_no_mean() -> None:
    metrics = Sums().mean(0.01)
    assert math.isnan(metrics.policy_loss)
    assert metrics.as_dict()["policy_loss"] is None


def test_training_loss_is_the_papers() -> None:
    logits = torch.tensor([[0.0, math.log(3.0)]])
    policy, value = losses(torch.tensor([0.5]), logits, torch.tensor([1]), torch.tensor([-1.0]))
    assert policy.item() == pytest.approx(-math.log(0.75))
    assert value.item() == pytest.approx(2.25)
