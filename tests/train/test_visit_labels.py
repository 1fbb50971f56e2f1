"""Visits of a search as labels: their loss, and trainings with them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from random_games import random_store
from synthetic import SyntheticSource, assert_same_bits, tiny_config, tiny_net
from torch import nn

from variant_ai.core.data.game_record import PlyVisits
from variant_ai.core.data.store.game_store import Store, StoreWriter
from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import DataError
from variant_ai.core.spec import VariantSpec
from variant_ai.core.train.loop.learner import Learner
from variant_ai.core.train.loop.loss import SoftLabels, losses
from variant_ai.core.train.loop.trainer import Trainer
from variant_ai.core.train.measure.metrics import score
from variant_ai.core.train.measure.prediction import predict
from variant_ai.core.train.run.training_data import Sampling, open_data
from variant_ai.core.train.run.training_settings import DataConfig


def test_the_loss_is_the_sum_over_the_distribution() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(5, 7))
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    pi = rng.dirichlet(np.ones(7), 5)
    soft = SoftLabels(torch.arange(7).tile(5, 1), torch.tensor(pi))
    nothing = torch.zeros(5)
    policy, value = losses(nothing, torch.tensor(logits), torch.zeros(5).long(), nothing, soft)
    assert policy.numpy() == pytest.approx(-(pi * np.log(p)).sum(1))
    assert value.tolist() == [0.0] * 5


@pytest.mark.parametrize("width", [1, 4])
def test_all_of_the_share_on_one_move_is_that_move(width: int) -> None:
    """The same loss, scores and gradients; choices that fill up a row change nothing."""
    torch.manual_seed(0)
    rng = np.random.default_rng(1)
    batch = SyntheticSource().batch(0)
    planes = torch.from_numpy(batch.planes)
    action, outcome = torch.from_numpy(batch.action), torch.from_numpy(batch.value)
    choices = torch.tensor(rng.integers(0, 24, (16, width)))
    choices[:, 0] = action
    shares = torch.zeros(16, width)
    shares[:, 0] = 1
    net = tiny_net().build()
    learner = Learner(net, 0.01, 0.01)
    gradients = []
    for soft in (None, SoftLabels(choices, shares)):
        net.zero_grad()
        learnt = learner(planes, action, outcome, None, soft)
        learnt.loss.backward()
        gradients.append(
            [learnt.policy_loss, *(w.grad for w in net.parameters() if w.grad is not None)]
        )
    for hard, other in zip(*gradients, strict=True):
        torch.testing.assert_close(hard, other)
    logits = torch.randn(16, 24)
    one, two = (
        score(outcome, logits, action, outcome, None, soft)
        for soft in (None, SoftLabels(choices, shares))
    )
    assert two.log_probability == pytest.approx(one.log_probability)
    assert np.array_equal(one.rank, two.rank)


def trained(folder: Path, resume: bool = False) -> None:
    train, validation = (SyntheticSource(seed=seed, soft=(0.7, 0.2, 0.1)) for seed in (0, 9))
    Trainer(tiny_config(steps=40), train, validation, folder, tensorboard=False).run(resume=resume)


def test_a_net_learns_the_distribution(tmp_path: Path) -> None:
    """Its loss comes near the entropy of the labels, which no net can be below."""
    shares = (0.6, 0.4)
    source = SyntheticSource(soft=shares)
    config = tiny_config(steps=150, validate_every=1000, checkpoint_every=1000)
    trainer = Trainer(config, source, SyntheticSource(seed=9, soft=shares), tmp_path)
    result = trainer.run()
    assert result.train is not None
    entropy = -sum(share * np.log(share) for share in shares)
    assert entropy <= result.train.policy_loss < entropy + 1.2
    assert result.train.policy_accuracy > 0.5


def test_resuming_with_visits_gives_the_same_bits(tmp_path: Path) -> None:
    trained(tmp_path / "whole")

    class CutError(Exception):
        pass

    class Cutter:
        def stepped(self, step: int) -> None:
            if step == 27:
                raise CutError

        def recorded(self, *_: object) -> None: ...

        def validating(self, step: int) -> None: ...

    soft = (0.7, 0.2, 0.1)
    trainer = Trainer(
        tiny_config(), SyntheticSource(soft=soft), SyntheticSource(seed=9, soft=soft),
        tmp_path / "cut", observer=Cutter(), tensorboard=False,
    )  # fmt: skip
    with pytest.raises(CutError):
        trainer.run()
    trained(tmp_path / "cut", resume=True)
    name = "checkpoints/step-00000040"
    assert_same_bits(tmp_path / "whole" / name, tmp_path / "cut" / name)


# --- stores --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def searched(xiangqi: VariantSpec, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random games of which every other one has visits: the move played twice as often as the
    first of the others."""
    folder = tmp_path_factory.mktemp("visits")
    plain = Store(random_store(folder / "plain.store", xiangqi, 8, 10, 3))
    rules = plain.codec.rules  # type: ignore[attr-defined]
    with StoreWriter(folder / "a.store", xiangqi) as writer:
        for number, record in enumerate(plain.games()):
            position, visits = rules.position(), []
            for move in record.moves:
                other = int(next(m for m in rules.legal_moves(position) if m != move))
                visits.append(((move, 20), (other, 10)))
                position = rules.play(position, move)
            told: list[PlyVisits] = visits
            record.visits = told if number % 2 else None
            writer.add(record)
    return folder / "a.store"


def opened(spec: VariantSpec, labels: str, *stores: Path, **said: object):  # type: ignore[no-untyped-def]
    data = DataConfig.model_validate(
        {"stores": [str(s) for s in stores], "split": "none", "labels": labels, **said}
    )
    return open_data(spec, Encoder(spec), data, Sampling(batch=8, seed=0))


def test_the_configuration_says_what_was_learnt(
    xiangqi: VariantSpec, searched: Path, store: Path
) -> None:
    config = opened(xiangqi, "visits", searched).data
    assert (config.labels, config.searched_positions, config.train_positions) == ("visits", 40, 80)
    mixed = opened(xiangqi, "visits", searched, store, weights=(1, 1))
    assert mixed.data.searched_positions == 40
    batch = next(iter(mixed.train.batches()))
    assert batch.shares.shape == (8, 2) and batch.shares.sum(1).tolist() == pytest.approx([1] * 8)
    moves = opened(xiangqi, "move", searched)
    assert (moves.data.labels, moves.data.searched_positions) == ("move", 0)
    assert next(iter(moves.train.batches())).choices.shape == (8, 0)
    assert json.loads(DataConfig(stores=("a",)).model_dump_json())["labels"] == "move"


def test_stores_without_visits_are_rejected(xiangqi: VariantSpec, store: Path) -> None:
    with pytest.raises(DataError, match=r"no training game has visits of a search \(.*a.store"):
        opened(xiangqi, "visits", store)


def test_changed_visits_are_a_changed_store(
    xiangqi: VariantSpec, searched: Path, tmp_path: Path
) -> None:
    hashes = opened(xiangqi, "visits", searched).data.hashes
    path = tmp_path / "a.store"
    with StoreWriter(path, xiangqi) as writer:
        for record in Store(searched).games():
            record.visits = [((move, 5),) for move in record.moves] if record.visits else None
            writer.add(record)
    with pytest.raises(DataError, match="no longer the store"):
        opened(xiangqi, "visits", path, hashes=hashes)


def test_validation_is_measured_by_the_same_labels(xiangqi: VariantSpec, searched: Path) -> None:
    actions = Encoder(xiangqi).actions
    logits = torch.linspace(0, 5, actions)

    class Same(nn.Module):
        """Says the same of every position."""

        def forward(self, planes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return torch.zeros(len(planes)), logits.expand(len(planes), actions)

    data = opened(xiangqi, "visits", searched, validation_stores=(str(searched),))
    assert data.validation is not None and data.validation.labels == "visits"
    told = torch.log_softmax(logits, 0).numpy()
    wanted = np.concatenate(
        [(batch.shares * told[batch.choices]).sum(1) for batch in data.validation.sweep()]
    )
    scores = predict(Same(), data.validation, torch.device("cpu"))
    assert scores.log_probability == pytest.approx(wanted, rel=1e-5)
    assert len(wanted) == 80
