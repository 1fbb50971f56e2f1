"""The learning-rate range test."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from synthetic import SyntheticSource, tiny_config

from variant_ai.core.errors import VariantAIError
from variant_ai.core.train.loop.trainer import Trainer
from variant_ai_experiments.lr_find import draw_range, loss_limits, range_test


def trainer(**changes: object) -> Trainer:
    return Trainer(tiny_config(**changes), SyntheticSource(), None, Path(), tensorboard=False)


def test_the_rate_grows_evenly_and_the_suggestion_lies_below_the_best(tmp_path: Path) -> None:
    steps: list[int] = []
    test = range_test(
        trainer(),
        low=1e-3,
        high=100,
        steps=120,
        on_step=lambda step, rate, loss: steps.append(step),
    )
    assert steps == list(range(1, len(test.rates) + 1))
    assert test.rates[0] == pytest.approx(1e-3)
    ratio = (100 / 1e-3) ** (1 / 119)
    assert all(b / a == pytest.approx(ratio) for a, b in pairwise(test.rates))
    assert 1e-3 < test.suggested < test.least
    assert test.steepest <= test.least
    assert test.diverged
    assert len(test.rates) == len(test.losses) == len(test.smoothed) <= 120
    draw_range(test, tmp_path / "a.png", "a title")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_an_explosion_does_not_flatten_the_curve(tmp_path: Path) -> None:
    test = range_test(trainer(), low=1e-2, high=1e4, steps=80)
    exploded = replace(test, smoothed=(*test.smoothed[:-1], 1e9))
    low, top = loss_limits(exploded)
    assert min(test.smoothed) - 1 < low < min(test.smoothed)
    assert top < 2 * test.smoothed[0]
    draw_range(exploded, tmp_path / "a.png", "a title")


def test_a_range_that_ends_too_early_is_not_diverged() -> None:
    assert not range_test(trainer(), low=1e-4, high=1e-2, steps=60).diverged


def test_an_empty_range_is_an_error() -> None:
    with pytest.raises(VariantAIError, match=r"from 1 to 0\.1: the range is empty"):
        range_test(trainer(), low=1.0, high=0.1, steps=60)


def test_a_loss_that_is_not_a_number_from_the_start() -> None:
    source = SyntheticSource(poisoned=(5,))
    broken = Trainer(tiny_config(), source, None, Path(), tensorboard=False)
    with pytest.raises(VariantAIError, match="not a number after 5 steps"):
        range_test(broken, low=1e-3, high=1.0, steps=60)
