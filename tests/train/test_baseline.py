"""The baseline: counts, choices, and the file of counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from variant_ai.core.data.sample.sampler import Sampler
from variant_ai.core.data.store.game_store import Store
from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import DataError
from variant_ai.core.rules import make_rules
from variant_ai.core.spec import VariantSpec
from variant_ai.core.train.measure.evaluation import (
    action_counts,
    best_legal,
    legal_actions,
    most_frequent,
)
from variant_ai.core.train.run.run_folder import load_counts, save_counts


def test_choice_among_legal_moves() -> None:
    counts = np.array([9, 0, 5, 5, 1])
    legal = [np.array([1, 4]), np.array([2, 3]), np.array([1]), np.array([], np.int64)]
    assert most_frequent(counts, legal).tolist() == [4, 2, 1, -1]


def test_best_legal_ignores_greater_illegal_logits() -> None:
    logits = np.array([[9.0, 1.0, 2.0], [0.0, 5.0, 1.0]], np.float32)
    assert best_legal(logits, [np.array([1, 2]), np.array([0, 1])]).tolist() == [2, 1]


def test_counts_are_the_stores_moves(store: Path, xiangqi: VariantSpec) -> None:
    opened, encoder = Store(store, xiangqi), Encoder(xiangqi)
    counts = action_counts(Sampler(opened, encoder, batch=7), encoder.actions)
    assert counts.sum() == opened.plies
    rules = make_rules(xiangqi)
    expected = np.zeros(encoder.actions, np.int64)
    for game in opened.games():
        position = rules.position()
        for move in game.moves:
            expected[encoder.action(position, move)] += 1
            position = rules.play(position, move)
    assert np.array_equal(counts, expected)


def test_played_moves_are_among_the_legal_actions(store: Path, xiangqi: VariantSpec) -> None:
    encoder = Encoder(xiangqi)
    sampler = Sampler(Store(store, xiangqi), encoder, batch=64)
    batch = sampler.batch(0)
    legal = legal_actions(make_rules(xiangqi), encoder, batch.positions)
    assert all(a in actions for a, actions in zip(batch.action, legal, strict=True))
    assert all(np.all(np.diff(actions) > 0) for actions in legal)


def test_counts_are_kept(tmp_path: Path) -> None:
    assert load_counts(tmp_path, 4) is None
    save_counts(tmp_path, np.array([1, 2, 3, 4]))
    loaded = load_counts(tmp_path, 4)
    assert loaded is not None
    assert loaded.tolist() == [1, 2, 3, 4]
    with pytest.raises(DataError, match="counts 4 actions; the net has 5"):
        load_counts(tmp_path, 5)
    (tmp_path / "baseline.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(DataError, match="damaged"):
        load_counts(tmp_path, 4)
