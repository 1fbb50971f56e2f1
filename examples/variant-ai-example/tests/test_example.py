"""The conformance kit of variant-ai, applied to the encoder, the search and the trainer."""

from __future__ import annotations

from pathlib import Path

from variant_ai_example.attack_maps import AttackMaps
from variant_ai_example.one_ply import OnePlySearch
from variant_ai_example.plain_trainer import PlainTrainer

from variant_ai.core.encoding import Encoder
from variant_ai.core.train.run.plan import prepare
from variant_ai.core.train.run.run_folder import Observer
from variant_ai.core.train.run.training_settings import TrainRequest
from variant_ai.plugins import registry
from variant_ai.testing import check_input_encoder, check_search, check_trainer


def test_the_planes() -> None:
    spec = registry().variant("attack-minixiangqi")
    check_input_encoder(AttackMaps, spec)
    encoder = Encoder(spec)
    assert encoder.shape == (12, 7, 7)
    rules = registry().rules(spec)
    start = rules.position()
    attacked = encoder.planes(start, raw=True)[0, -2]
    assert attacked.sum() == len(rules.legal_moves(start))


def test_the_search() -> None:
    check_search(OnePlySearch, registry().variant("attack-minixiangqi"))


def test_the_trainer(tmp_path: Path) -> None:
    xiangqi = registry().variants["xiangqi"]
    request = TrainRequest(
        spec=registry().variant("xiangqi"),
        stores=(xiangqi.sample,),
        steps=4,
        batch=16,
        device="cpu",
        size={"blocks": 1, "channels": 8},
        net="risev2-mobile-small",
    )
    prepared = prepare(request)

    def make(folder: Path, observer: Observer) -> PlainTrainer:
        config = prepared.config
        return PlainTrainer(config, prepared.train, None, folder, observer=observer)

    check_trainer(make, tmp_path)
