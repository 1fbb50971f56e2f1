"""Evaluation of several nets on one set of positions and its parts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from synthetic import SyntheticSource

from variant_ai.core.data.sample.sampler import Sampler
from variant_ai.core.data.store.game_store import Store, StoreWriter
from variant_ai.core.encoding import Encoder
from variant_ai.core.inference import Evaluation
from variant_ai.core.rules import make_rules
from variant_ai.core.spec import VariantSpec
from variant_ai.core.train.measure.evaluation import (
    Measured,
    action_counts,
    evaluate,
    over_plies,
    ply_classes,
)
from variant_ai.core.train.measure.metrics import Scores
from variant_ai.core.train.run.training_data import seen_positions


class Constant:
    """Says the same of every position: one action, one value."""

    def __init__(self, actions: int, action: int, value: float) -> None:
        self.logits = np.zeros(actions, np.float32)
        self.logits[action] = 3
        self.value = value

    def __call__(self, planes):
        n = len(planes)
        return Evaluation(np.full(n, self.value, np.float32), np.tile(self.logits, (n, 1)))


@pytest.fixture(scope="module")
def positions(store: Path, xiangqi: VariantSpec):
    encoder = Encoder(xiangqi)
    return Sampler(Store(store, xiangqi), encoder, batch=50), encoder


def test_two_nets_and_the_baseline(positions, xiangqi: VariantSpec) -> None:
    source, encoder = positions
    counts = action_counts(source, encoder.actions)
    favourite = int(counts.argmax())
    told: list[int] = []
    result = evaluate(
        {
            "good": Measured(Constant(encoder.actions, favourite, 0.5)),
            "bad": Measured(Constant(encoder.actions, encoder.actions - 1, -0.5)),
        },
        source,
        encoder,
        rules=make_rules(xiangqi),
        counts=counts,
        advance=told.append,
    )
    assert result.positions == source.positions == sum(told)
    good, bad = result.nets["good"].metrics, result.nets["bad"].metrics
    assert good.policy_accuracy == pytest.approx(counts[favourite] / counts.sum())
    assert bad.policy_accuracy < good.policy_accuracy
    # Each says v = ±½ everywhere, so where one has the sign right the other has not.
    assert good.value_accuracy_sign + bad.value_accuracy_sign == pytest.approx(1)
    assert result.baseline_accuracy is not None
    assert result.baseline_accuracy > good.policy_accuracy
    assert result.nets["good"].legal_accuracy >= good.policy_accuracy
    parts = result.nets["good"].by_ply
    assert sum(part.positions for part in parts.values()) == result.positions


def test_choices_that_fill_up_a_row_need_no_action_of_another_head(positions) -> None:
    _, encoder = positions
    source = SyntheticSource(batch=4, positions=4, soft=(1.0, 0.0))
    batch = source.batch(0)
    table = np.arange(24, dtype=np.int32)
    unplayed = np.setdiff1d(batch.choices[:, 1], batch.action)
    table[unplayed] = -1
    net = Measured(Constant(24, int(batch.action[0]), 0.1), actions=table)
    result = evaluate({"net": net}, source, encoder)
    assert len(unplayed) and 0 < result.nets["net"].metrics.policy_loss < 10


def test_without_rules_there_is_no_baseline(positions) -> None:
    source, encoder = positions
    result = evaluate(
        {"net": Measured(Constant(encoder.actions, 0, 0.1))}, source, encoder, limit=30
    )
    assert result.positions == 30
    assert result.baseline_accuracy is None
    assert result.nets["net"].legal_accuracy is None


def test_ply_classes() -> None:
    classes = ply_classes(np.array([0, 19, 20, 99, 100, 250], np.int32))
    assert {title: where.sum() for title, where in classes.items()} == {
        "0-19": 2, "20-39": 1, "80-99": 1, "100+": 2,
    }  # fmt: skip


def test_games_that_begin_behind_an_opening_have_a_curve_too() -> None:
    ply = np.arange(1000, dtype=np.int32) % 40 + 20
    ply[0] = 3  # one game from a position
    points = over_plies(Scores.empty(1000), ply, 0.01)
    assert [point["first"] for point in points] == [20, 30, 40, 50]


def test_seen_positions_leave_openings_out(
    store: Path, xiangqi: VariantSpec, tmp_path: Path
) -> None:
    with StoreWriter(tmp_path / "opened.store", xiangqi) as writer:
        for number, record in enumerate(Store(store, xiangqi).games(range(12))):
            opening = record.plies if number == 5 else number
            writer.add(replace(record, tags={"OpeningPlies": str(opening)}))
    opened, games = Store(tmp_path / "opened.store", xiangqi), np.arange(4, 10)
    source = Sampler(opened, Encoder(xiangqi), batch=64, games=games)
    seen = seen_positions(opened, games, source)
    assert seen.all() and len(seen) == source.positions
    part = seen_positions(opened, np.array([4, 11]), source)
    assert part[: opened.lengths[4] - 4].all() and len(part) == source.positions


def test_seen_positions_follow_the_sweep(store: Path, xiangqi: VariantSpec) -> None:
    opened = Store(store, xiangqi)
    games = np.arange(4, 10)
    # A game is known to its last move where it was trained on, and at no move where not: random
    # games part at once, or soon.
    source = Sampler(opened, Encoder(xiangqi), batch=64, games=games)
    everything = seen_positions(opened, games, source)
    assert everything.all()
    apart = seen_positions(opened, np.arange(10, 24), source)
    assert len(apart) == len(everything) == int(opened.lengths[games].sum())
    assert not apart.all()
    plies = np.concatenate([b.positions["ply"].copy() for b in source.sweep()])
    starts = np.flatnonzero(plies == 0)
    # Within a game, seen positions come first.
    for part in np.split(apart, starts[1:]):
        assert not np.any(np.diff(part.astype(int)) > 0)


def test_unseen_moves_are_measured_on_a_sample_too(store: Path, xiangqi: VariantSpec) -> None:
    opened, encoder = Store(store, xiangqi), Encoder(xiangqi)
    source = Sampler(opened, encoder, batch=16, games=np.arange(4, 10), seed=3)
    seen = seen_positions(opened, np.arange(10, 24), source)
    plies = np.concatenate([batch.positions["ply"].copy() for batch in source.sweep()])
    rows = source.swept_rows(limit=50)
    net = {"net": Measured(Constant(encoder.actions, 0, 0.1))}
    found = evaluate(net, source, encoder, seen=seen, limit=50)
    np.testing.assert_array_equal(found.ply, plies[rows])
    assert found.unseen_share == (~seen[rows]).mean()
    assert found.nets["net"].unseen is not None
    assert found.nets["net"].unseen.positions == (~seen[rows]).sum()
    for limit in (source.positions, source.positions + 1):  # the whole sweep, in its own order
        whole = evaluate(net, source, encoder, seen=seen, limit=limit)
        assert whole.unseen_share == (~seen).mean()


def test_rows_of_a_sample_where_not_every_position_is_sampled(
    store: Path, xiangqi: VariantSpec, tmp_path: Path
) -> None:
    with StoreWriter(tmp_path / "a.store", xiangqi) as writer:
        for record in Store(store, xiangqi).games(range(6)):
            trains = [ply % 3 == 0 for ply in range(record.plies)]
            visits = [((move, 5),) for move in record.moves]
            writer.add(replace(record, visits=visits, trains=trains))
    opened = Store(tmp_path / "a.store", xiangqi)
    source = Sampler(opened, Encoder(xiangqi), batch=16, labels="visits", value_labels="root")
    rows = source.swept_rows(limit=10)
    assert source.positions < opened.lengths.sum()
    np.testing.assert_array_equal(source.swept().games[rows], source.swept(limit=10).games)
    plies = np.concatenate([b.positions["ply"].copy() for b in source.sweep(limit=10)])
    np.testing.assert_array_equal(source.swept().plies[rows], plies)
