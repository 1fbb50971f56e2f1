"""Value labels and weights in the loss, in the metrics and in whole trainings."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from random_games import random_store
from synthetic import SyntheticSource, tiny_net

from variant_ai.cli.train.train import _announce
from variant_ai.core.data.game_record import TRAINS_POLICY, TRAINS_VALUE
from variant_ai.core.data.sample.value_labels import ValueLabels
from variant_ai.core.data.store.game_store import Store, StoreWriter
from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import DataError
from variant_ai.core.nets.network import outputs_of
from variant_ai.core.spec import VariantSpec
from variant_ai.core.train.loop.devices import Workers
from variant_ai.core.train.loop.learner import Learner
from variant_ai.core.train.loop.loss import LossWeights
from variant_ai.core.train.loop.position_source import loss_weights
from variant_ai.core.train.loop.trainer import Trainer
from variant_ai.core.train.measure.metrics import Scores, Sums, intervals
from variant_ai.core.train.run.plan import prepare
from variant_ai.core.train.run.run_folder import read_metrics
from variant_ai.core.train.run.training_data import Sampling, open_data
from variant_ai.core.train.run.training_settings import DataConfig, TrainRequest


@pytest.mark.parametrize("wdl", [False, True])
def test_weights_of_one_and_results_change_nothing(wdl: bool) -> None:
    torch.manual_seed(0)
    batch = SyntheticSource().batch(0)
    net = tiny_net(wdl=wdl).build().eval()
    learner = Learner(net, 0.5, 0.01)
    planes, action, outcome = map(torch.from_numpy, (batch.planes, batch.action, batch.value))
    ones = LossWeights(torch.ones(16), torch.ones(16))
    plain, weighted = (learner(planes, action, outcome, None, None, w) for w in (None, ones))
    torch.testing.assert_close(plain.loss, weighted.loss)


@pytest.mark.parametrize("wdl", [False, True])
def test_the_loss_is_the_weighted_sum_over_the_batch(wdl: bool) -> None:
    torch.manual_seed(0)
    batch = SyntheticSource().batch(0)
    net = tiny_net(wdl=wdl).build().eval()
    planes, action = torch.from_numpy(batch.planes), torch.from_numpy(batch.action)
    value = torch.linspace(-1, 1, 16)
    weights = LossWeights((torch.arange(16) % 3 > 0).float(), (torch.arange(16) % 2).float())
    found = Learner(net, 0.5, 0.01)(planes, action, value, None, None, weights)
    with torch.no_grad():
        outputs = outputs_of(net, planes)
    log_p = torch.log_softmax(outputs.policy, 1)
    total = 0.0
    for k in range(16):
        total -= float(weights.policy[k] * log_p[k, action[k]])
        error = (value[k] - outputs.value[k]).square()
        if wdl:
            assert outputs.wdl is not None
            v, log_q = float(value[k]), torch.log_softmax(outputs.wdl[k], 0).tolist()
            error = torch.tensor(
                -(max(v, 0) * log_q[0] + (1 - abs(v)) * log_q[1] + max(-v, 0) * log_q[2])
            )
        total += 0.5 * float(weights.value[k] * error)
    assert found.loss.item() == pytest.approx(total / 16, rel=1e-5)


def test_only_batches_of_plain_results_have_no_weights() -> None:
    batch, device = SyntheticSource().batch(0), torch.device("cpu")
    assert loss_weights(batch, device) is None
    batch.value[3] = 0.5
    assert loss_weights(batch, device) is not None


def test_metrics_leave_out_what_is_not_learnt() -> None:
    n = 12
    rng = np.random.default_rng(0)
    scores = Scores(
        -rng.random(n).astype("f4"), rng.integers(0, 9, n), rng.uniform(-1, 1, n).astype("f4"),
        rng.choice([-1, 0, 1], n).astype("f4"), (np.arange(n) % 3 > 0).astype("f4"),
        (np.arange(n) % 4 > 0).astype("f4"),
    )  # fmt: skip
    whole = scores.metrics(0.3)
    policy = scores.select(scores.teaches_policy).metrics(0.3)
    value = scores.select(scores.teaches_value).metrics(0.3)
    assert whole.policy_loss == pytest.approx(policy.policy_loss)
    assert whole.policy_accuracy == policy.policy_accuracy
    assert whole.top5_accuracy == policy.top5_accuracy
    assert (whole.value_loss, whole.decided) == (pytest.approx(value.value_loss), value.decided)
    assert whole.value_accuracy_sign == value.value_accuracy_sign
    found = intervals(scores, np.arange(n), 0.3)
    for name in ("policy_loss", "policy_accuracy", "value_loss", "value_accuracy_sign"):
        assert found[name].mean == pytest.approx(getattr(whole, name))
    nothing = Sums()
    nothing.add(replace(scores, value_weight=np.zeros(n, "f4")))
    assert math.isnan(nothing.mean(0.3).value_loss) and nothing.policies == 8


# --- stores --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def self_play(xiangqi: VariantSpec, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random games with root values and scores of the winner's side; every fourth was ended at its
    greatest length, and one in six plies teaches no policy."""
    folder = tmp_path_factory.mktemp("self-play")
    plain = Store(random_store(folder / "plain.store", xiangqi, 16, 12, 5))
    with StoreWriter(folder / "a.store", xiangqi) as writer:
        for number, record in enumerate(plain.games()):
            result = record.value or 0
            sides = [1 - 2 * (ply % 2) for ply in range(record.plies)]
            record.root_values = [result * side * 0.5 for side in sides]
            record.scores = [
                result * side * 120 + 60 * (ply % 3 - 1) for ply, side in enumerate(sides)
            ]
            value = 0 if number % 4 == 3 else TRAINS_VALUE
            record.trains = [
                value | (TRAINS_POLICY if ply % 6 else 0) for ply in range(record.plies)
            ]
            writer.add(record)
    return folder / "a.store"


def opened(spec: VariantSpec, store: Path, **said: object):  # type: ignore[no-untyped-def]
    data = DataConfig.model_validate({"stores": [str(store)], "split": "none", **said})
    return open_data(spec, Encoder(spec), data, Sampling(batch=8, seed=0))


def test_the_scale_is_fitted_once_and_kept(xiangqi: VariantSpec, self_play: Path) -> None:
    first = opened(xiangqi, self_play, value_labels="score")
    labels = ValueLabels.parse(first.data.value_labels)
    assert labels.source == "score" and labels.scale is not None and labels.scale < 200
    assert first.data.valued_positions == 16 * 12 - 4 * 2  # both bits are 0 in eight positions
    again = opened(xiangqi, self_play, **first.data.model_dump(exclude={"stores", "split", "seed"}))
    assert again.data == first.data
    for step in range(3):
        assert np.array_equal(first.train.batch(step).value, again.train.batch(step).value)
    half = opened(xiangqi, self_play, value_labels=f"score:{2 * labels.scale:g}")
    one, two = first.train.batch(0), half.train.batch(0)
    assert (np.abs(two.value) <= np.abs(one.value)).all() and not np.array_equal(
        one.value, two.value
    )


def test_validation_is_against_results(xiangqi: VariantSpec, self_play: Path) -> None:
    data = opened(xiangqi, self_play, value_labels="root", validation_stores=(str(self_play),))
    values = np.concatenate(
        [batch.value[batch.value_weight > 0] for batch in data.validation.sweep()]
    )
    assert len(values) == 12 * 12 and set(values.tolist()) <= {-1.0, 0.0, 1.0}
    learnt = np.concatenate([batch.value.copy() for batch in data.train.sweep()])
    assert set(learnt.tolist()) <= {-0.5, 0.0, 0.5}


def test_a_training_on_policies_alone(xiangqi: VariantSpec, store: Path, tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "policies.store", xiangqi) as writer:
        for record in Store(store, xiangqi).games():
            record.trains = [TRAINS_POLICY] * record.plies
            writer.add(record)
    size = {"blocks": 1, "channels": 8, "value_hidden": 8, "wdl": True, "plies_left": True}
    request = TrainRequest(
        spec=xiangqi, stores=(tmp_path / "policies.store",), split="none", size=size,
        device="cpu", steps=2, batch=16, threads=1,
    )  # fmt: skip
    ready = prepare(request)
    Trainer(ready.config, ready.train, None, tmp_path / "run", tensorboard=False).run()
    lines = [line for line in read_metrics(tmp_path / "run") if line["kind"] == "train"]
    assert lines[-1]["policy_loss"] > 0
    assert [lines[-1][name] for name in ("value_loss", "wdl_loss", "plies_error")] == [None] * 3


@pytest.mark.parametrize(("scale", "warns"), [(2_000, True), (380, False)])
def test_a_scale_that_makes_small_values_is_reported(
    xiangqi: VariantSpec,
    store: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    scale: int,
    warns: bool,
) -> None:
    """As in variants in which most games are drawn."""
    scored = tmp_path / "scored.store"
    with StoreWriter(scored, xiangqi) as writer:
        for record in Store(store, xiangqi).games():
            record.scores = [100] * record.plies
            writer.add(record)
    request = TrainRequest(
        spec=xiangqi, stores=(scored,), split="none", device="cpu", steps=2, threads=1,
        value_labels=f"score:{scale}",
    )  # fmt: skip
    _announce(prepare(request), Workers())
    said = capsys.readouterr().err
    assert f"score / {scale} centipawns" in said
    assert ("500 centipawns becomes a value of only 0.12" in said) == warns


@pytest.mark.parametrize(("labels", "name"), [("root", "root value"), ("mixed:0.5", "root value")])
def test_stores_without_these_values_are_rejected(
    xiangqi: VariantSpec, store: Path, labels: str, name: str
) -> None:
    with pytest.raises(DataError, match=f"no training game has a {name}"):
        opened(xiangqi, store, value_labels=labels)
    with pytest.raises(DataError, match="no position has a score and a result"):
        opened(xiangqi, store, value_labels="score")


def test_changed_root_values_are_a_changed_store(
    xiangqi: VariantSpec, self_play: Path, tmp_path: Path
) -> None:
    hashes = opened(xiangqi, self_play, value_labels="root").data.hashes
    with StoreWriter(tmp_path / "a.store", xiangqi) as writer:
        for record in Store(self_play).games():
            record.root_values = [0.25] * record.plies
            writer.add(record)
    with pytest.raises(DataError, match="no longer the store"):
        opened(xiangqi, tmp_path / "a.store", value_labels="root", hashes=hashes)


def test_changed_scores_are_reported_if_they_are_learnt(
    xiangqi: VariantSpec, self_play: Path, tmp_path: Path
) -> None:
    with StoreWriter(tmp_path / "a.store", xiangqi) as writer:
        for record in Store(self_play).games():
            record.scores = [score and -score for score in record.scores or ()]
            writer.add(record)
    for labels, changes in (("score", True), ("root", False)):
        first = opened(xiangqi, self_play, value_labels=labels).data
        kept = first.model_dump(exclude={"stores", "split", "seed"})
        assert bool(first.scores) == changes
        if changes:
            with pytest.raises(DataError, match=r"scores of .*a.store are no longer those"):
                opened(xiangqi, tmp_path / "a.store", **kept)
            kept["scores"] = ""  # of a version that kept no digest
        opened(xiangqi, tmp_path / "a.store", **kept)
