"""Requests become configurations: defaults, splits, budgets."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
import torch
from pydantic import ValidationError

from variant_ai.core.data.store.game_store import Store, StoreWriter
from variant_ai.core.errors import DataError, UnknownNameError, VariantAIError
from variant_ai.core.spec import VariantSpec, builtin_specs, load_spec
from variant_ai.core.train.loop.devices import Workers
from variant_ai.core.train.loop.trainer import Trainer
from variant_ai.core.train.measure.reduced_precision import write_fp16
from variant_ai.core.train.run.initial_weights import find_start
from variant_ai.core.train.run.plan import prepare, require_compiler
from variant_ai.core.train.run.training_data import parse_split
from variant_ai.core.train.run.training_settings import TrainRequest
from variant_ai.plugins import registry

TINY = {"blocks": 1, "channels": 8, "value_hidden": 8}


def prepared(spec: VariantSpec, store: Path, **options: object):
    options = {"size": TINY, "device": "cpu", "split": "game:0.25", **options}
    return prepare(TrainRequest(spec=spec, stores=(store,), **options))


def test_the_recipe_is_the_specs(xiangqi: VariantSpec, store: Path) -> None:
    config = prepared(xiangqi, store, batch=512, steps=10).config
    assert config.lr_max == 0.175
    assert config.momentum == (0.8, 0.95)
    assert config.value_weight == 0.01
    assert config.weight_decay == 1e-4


def test_the_rate_follows_the_batch(xiangqi: VariantSpec, store: Path) -> None:
    assert prepared(xiangqi, store, batch=64, steps=10).config.lr_max == 0.175 / 8
    assert prepared(xiangqi, store, batch=64, steps=10, lr_max=0.1).config.lr_max == 0.1


def test_the_least_rate_is_never_above_the_greatest(xiangqi: VariantSpec, store: Path) -> None:
    config = prepared(xiangqi, store, batch=16, steps=10, lr_max=1e-7).config
    assert config.lr_min == config.lr_max == 1e-7


def test_epochs_become_steps(xiangqi: VariantSpec, store: Path) -> None:
    ready = prepared(xiangqi, store, batch=16, epochs=2)
    assert ready.config.steps == round(2 * ready.train.positions / 16)
    mirrored = prepared(xiangqi, store, batch=16, epochs=2, mirror=True)
    assert mirrored.config.steps == round(4 * ready.train.positions / 16)
    assert prepared(xiangqi, store, batch=16, epochs=2, steps=3).config.steps == 3
    assert prepared(xiangqi, store, batch=16).config.steps == round(7 * ready.train.positions / 16)


def test_minutes_become_steps(
    xiangqi: VariantSpec, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads are slower than one here: half a second a step against a quarter."""

    def measured(trainer: Trainer, seconds: float) -> tuple[float, float]:
        return (0.5 if trainer.config.threads == 2 else 0.25), 0.001

    monkeypatch.setattr(Trainer, "time_steps", measured)
    monkeypatch.setattr("torch.get_num_threads", lambda: 2)
    config = prepared(xiangqi, store, minutes=10, batch=16).config
    assert config.threads == 1
    assert config.planned_rate == 64
    assert 2200 < config.steps < 2400
    assert config.minutes == 10
    assert prepared(xiangqi, store, minutes=10, steps=50, batch=16).config.steps == 50
    assert prepared(xiangqi, store, minutes=10, threads=2, batch=16).config.steps < 1200


def test_a_short_budget_validates_less(
    xiangqi: VariantSpec, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Trainer, "time_steps", lambda trainer, seconds: (1.0, 1.0))
    config = prepared(xiangqi, store, minutes=1, batch=16, split="game:0.9").config
    assert config.final_limit == 256
    assert config.steps == 15  # a quarter of the budget in any case


def test_the_minutes_include_what_came_before(
    xiangqi: VariantSpec, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Trainer, "time_steps", lambda trainer, seconds: (0.5, 0.001))
    long_ago = time.perf_counter() - 300
    config = prepared(xiangqi, store, minutes=10, started=long_ago, batch=16).config
    assert 500 < config.steps < 590


def test_a_small_net_on_a_cpu(xiangqi: VariantSpec, store: Path) -> None:
    config = prepared(xiangqi, store, size={}, steps=1).config
    assert config.net.name == "risev2-mobile-small"
    assert (config.net.size["blocks"], config.net.size["channels"]) == (5, 64)


def test_flat_head_and_its_actions(xiangqi: VariantSpec, store: Path) -> None:
    ready = prepared(xiangqi, store, head="flat", steps=1)
    assert ready.config.net.actions == ready.encoder.actions == 2086
    named = prepared(xiangqi, store, net="alphazero-4v8p", steps=1)
    assert named.config.net.head == "flat"


def test_validation_stores(xiangqi: VariantSpec, store: Path, other_store: Path) -> None:
    ready = prepared(xiangqi, store, split="", validation_stores=(other_store,), steps=1)
    data = ready.config.data
    assert (data.train_games, data.validation_games) == (24, 8)
    assert data.split == "none"
    assert len(data.hashes) == 2
    assert ready.seen is None


def test_a_store_without_games(xiangqi: VariantSpec, tmp_path: Path) -> None:
    empty = tmp_path / "empty.store"
    StoreWriter(empty, xiangqi).close()
    for split in ("none", "year:2008"):
        with pytest.raises(DataError, match=r"empty\.store has no games$"):
            prepared(xiangqi, empty, split=split, steps=1)


def test_games_that_are_validated_on_should_not_be_trained_on(
    xiangqi: VariantSpec, store: Path, other_store: Path, tmp_path: Path
) -> None:
    both = tmp_path / "both.store"
    with StoreWriter(both, xiangqi) as writer:
        for path in (store, other_store):
            for record in Store(path).games():
                writer.add(record)
    said: list[str] = []
    request = TrainRequest(
        spec=xiangqi, stores=(store,), validation_stores=(both,), steps=1, size=TINY, device="cpu"
    )
    assert prepare(request, report=said.append).shared == 24
    assert said == ["Warning: 24 of the 32 validation games are also trained on."]
    with pytest.raises(DataError, match=r"all games of .* are also trained on"):
        prepare(request.model_copy(update={"stores": (both,)}))
    with pytest.raises(VariantAIError, match=r"holds games back .* validation stores are given"):
        prepare(request.model_copy(update={"split": "game:0.1"}))


def test_split_by_year(xiangqi: VariantSpec, store: Path) -> None:
    ready = prepared(xiangqi, store, split="year:2003:2004", steps=1)
    assert (ready.config.data.train_games, ready.config.data.validation_games) == (12, 6)
    assert ready.seen is not None
    assert len(ready.seen) == ready.validation.positions


@pytest.mark.parametrize(
    ("text", "by", "validation", "test"),
    [
        ("group", "group", 0.05, 0.0),
        ("game:0.1", "game", 0.1, 0.0),
        ("game:0.1:0.2", "game", 0.1, 0.2),
        ("year:2008:2009-", "year", ("2008",), ("2009-",)),
        ("year:2007,2008", "year", ("2007", "2008"), ()),
        ("source:club*", "source", ("club*",), ()),
        ("source:0.3", "source", 0.3, 0.0),
    ],
)
def test_split_text(text: str, by: str, validation: object, test: object) -> None:
    plan = parse_split(text, 3)
    assert plan is not None
    assert plan.by == by
    assert validation in (plan.validation, plan.validation_keys)
    assert test in (plan.test, plan.test_keys)
    assert plan.seed == 3


@pytest.mark.parametrize("split", ["none", "year:2003"])
def test_a_seed_of_a_split_without_shares(xiangqi: VariantSpec, store: Path, split: str) -> None:
    with pytest.raises(VariantAIError, match="--split-seed has no effect"):
        prepared(xiangqi, store, split=split, split_seed=0, steps=1)


def test_no_split() -> None:
    assert parse_split("none", 0) is None


class TestWrongInput:
    def test_trainer(self, xiangqi: VariantSpec, tmp_path: Path) -> None:
        with pytest.raises(UnknownNameError, match="unknown trainer 'foo'"):
            prepared(xiangqi, tmp_path / "missing.store", trainer="foo")

    def test_way_to_split(self) -> None:
        with pytest.raises(UnknownNameError, match="did you mean 'year'"):
            parse_split("yaer:2008", 0)

    def test_share(self) -> None:
        with pytest.raises(DataError, match="shares are numbers"):
            parse_split("game:many", 0)

    def test_too_many_parts(self) -> None:
        with pytest.raises(DataError, match="accepted is BY"):
            parse_split("game:0.1:0.1:0.1", 0)

    def test_device(self, xiangqi: VariantSpec, store: Path) -> None:
        with pytest.raises(UnknownNameError, match="device 'gpu'"):
            prepared(xiangqi, store, device="gpu")

    def test_absent_device(
        self, xiangqi: VariantSpec, store: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("torch.cuda.is_available", lambda: False)
        with pytest.raises(VariantAIError, match="not available here"):
            prepared(xiangqi, store, device="cuda")

    def test_precision(self, xiangqi: VariantSpec, store: Path) -> None:
        with pytest.raises(UnknownNameError, match="precision 'fp64'"):
            prepared(xiangqi, store, precision="fp64")

    def test_net(self, xiangqi: VariantSpec, store: Path) -> None:
        with pytest.raises(UnknownNameError, match="did you mean 'risev2-mobile'"):
            prepared(xiangqi, store, net="risev2-moble")

    def test_store_of_another_variant(self, xiangqi: VariantSpec, crazyhouse_store: Path) -> None:
        with pytest.raises(DataError, match="holds games of crazyhouse, not of xiangqi"):
            prepared(xiangqi, crazyhouse_store)

    def test_mirroring_without_symmetry(self, crazyhouse_store: Path) -> None:
        from variant_ai.core.spec import builtin_specs, load_spec

        with pytest.raises(VariantAIError, match="no left-right symmetry"):
            prepared(load_spec(builtin_specs()["crazyhouse"]), crazyhouse_store, mirror=True)


class TestBeforeTheData:
    """Errors that do not depend on the data are reported before a store is opened."""

    @pytest.fixture(autouse=True)
    def closed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def opened(*_: object) -> None:
            raise AssertionError("a store was opened")

        monkeypatch.setattr("variant_ai.core.train.run.training_data.Store", opened)

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"net": "risev2-moble"}, "unknown net"),
            ({"device": "gpu"}, "unknown device"),
            ({"precision": "fp8"}, "unknown precision"),
            ({"size": {"blocs": 3}}, "option of net"),
            ({"size": {"blocks": 0}}, "blocks = 0"),
            ({"head": "round"}, "unknown head"),
            ({"split": "yaer:2008"}, "way to split"),
            ({"batch": 16, "accumulate": 3}, "in 3 parts"),
            ({"batch": 4, "accumulate": 4}, "two positions or more"),
            ({"freeze": 2}, "a net to start from"),
            ({"lr_max": 0.01, "lr_min": 0.1}, "0.1, is above the greatest, 0.01"),
            ({"momentum": (0.95, 0.8)}, "0.95, is above the greatest, 0.8"),
            ({"plies_weight": 0.1}, "remove --plies-weight, or add --plies-left"),
            ({"optimiser": "adam", "warmup": 0.2}, "Adam has a constant learning rate .* --warmup"),
            ({"start_from": Path("nowhere")}, "nowhere does not exist"),
            ({"weights": (1.0, 2.0)}, "2 weights for 1 store"),
            ({"stores": (Path("nowhere.store"),)}, "no game store nowhere.store"),
        ],
    )
    def test_rejected(
        self, xiangqi: VariantSpec, store: Path, options: dict[str, object], said: str
    ) -> None:
        with pytest.raises(VariantAIError, match=said):
            prepared(xiangqi, options.pop("stores", (store,))[0], steps=1, **options)  # type: ignore[index]

    def test_minutes_of_several_processes(self, xiangqi: VariantSpec, store: Path) -> None:
        request = TrainRequest(spec=xiangqi, stores=(store,), minutes=5)
        with pytest.raises(VariantAIError, match="for one process only"):
            prepare(request, workers=Workers(0, 2))

    def test_mirroring_without_the_symmetry(self, store: Path) -> None:
        spec = load_spec(builtin_specs()["crazyhouse"])
        with pytest.raises(VariantAIError, match="no left-right symmetry"):
            prepare(TrainRequest(spec=spec, stores=(store,), steps=1, mirror=True))

    def test_no_compiler(
        self, xiangqi: VariantSpec, store: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("shutil.which", lambda name: None)
        monkeypatch.setattr("torch.cuda.is_available", lambda: False)
        with pytest.raises(VariantAIError, match=r"needs a C\+\+ compiler on cpu"):
            prepared(xiangqi, store, steps=1, compile=True)
        with pytest.raises(VariantAIError, match=r"needs a C compiler on cuda \(gcc"):
            require_compiler(torch.device("cuda"))  # a GPU's programs are started by one in C


def test_move_numbers_are_forgotten_where_they_are_shown(xiangqi: VariantSpec, store: Path) -> None:
    ready = prepared(xiangqi, store, steps=1, batch=256)
    assert ready.config.data.forget_move_number == 0.1
    restarted = sum((ready.train.batch(k).positions["ply"] < 2).sum() for k in range(8))
    plain = prepared(xiangqi, store, steps=1, batch=256, forget_move_number=0.0)
    assert plain.config.data.forget_move_number == 0
    assert restarted > 1.5 * sum(
        (plain.train.batch(k).positions["ply"] < 2).sum() for k in range(8)
    )


def test_a_seed_has_63_bits(xiangqi: VariantSpec, store: Path) -> None:
    """The compiled order of samples and torch take no larger one."""
    options = {"spec": xiangqi, "stores": (store,), "size": TINY, "steps": 1, "batch": 16}
    assert prepare(TrainRequest(**options, seed=2**63 - 1, device="cpu")).train.batch(0)
    with pytest.raises(ValidationError, match="less than or equal to"):
        TrainRequest(**options, seed=2**63)


def test_stores_by_weight(xiangqi: VariantSpec, store: Path, other_store: Path) -> None:
    request = TrainRequest(
        spec=xiangqi, stores=(store, other_store), weights=(3, 1), split="none", size=TINY,
        device="cpu", steps=1, batch=16,
    )  # fmt: skip
    ready = prepare(request)
    assert ready.config.data.weights == (3, 1)
    assert ready.train.counts == (12, 4)


def test_equal_games_of_two_stores_are_not_visited_together(
    xiangqi: VariantSpec, store: Path, tmp_path: Path
) -> None:
    """As of a store and of the same games with other labels."""
    copy = Path(shutil.copy(store, tmp_path / "copy.store"))
    request = TrainRequest(
        spec=xiangqi, stores=(store, copy), weights=(1, 1), split="none", size=TINY,
        device="cpu", steps=1, batch=16,
    )  # fmt: skip
    positions = prepare(request).train.batch(0).positions
    assert int((positions[:8] == positions[8:]).sum()) < 4


def test_fine_tuning_is_slow(xiangqi: VariantSpec, store: Path, tmp_path: Path) -> None:
    first = prepared(xiangqi, store, steps=1, batch=16)
    Trainer(first.config, first.train, None, tmp_path, tensorboard=False).run()
    options = {"size": {}, "split": "game:0.25", "device": "cpu", "steps": 1, "batch": 16}
    request = TrainRequest(spec=xiangqi, stores=(store,), start_from=tmp_path, freeze=2, **options)
    config = prepare(request).config
    assert config.net == first.config.net
    assert config.lr_max == pytest.approx(first.config.lr_max * 0.01 / 0.35)
    assert config.start_from.endswith("step-00000001")
    with pytest.raises(VariantAIError, match=r"keeps it; remove --net$"):
        prepare(
            TrainRequest(spec=xiangqi, stores=(store,), start_from=tmp_path, net="risev2-mobile")
        )
    with pytest.raises(VariantAIError, match="the net has 2, its stem and 1 more"):
        prepare(
            TrainRequest(spec=xiangqi, stores=(store,), start_from=tmp_path, freeze=3, **options)
        )
    crazyhouse = load_spec(builtin_specs()["crazyhouse"])
    with pytest.raises(DataError, match="is a net for xiangqi, not for crazyhouse"):
        prepare(TrainRequest(spec=crazyhouse, stores=(store,), start_from=tmp_path))


def test_fine_tuning_of_a_file(xiangqi: VariantSpec, store: Path, tmp_path: Path) -> None:
    packaged = registry().net_paths(xiangqi)[-1]
    own = find_start(packaged).info.own_spec(xiangqi)  # it may see more planes than the spec has
    options = {"split": "game:0.25", "device": "cpu", "steps": 1, "batch": 16}
    request = TrainRequest(spec=own, stores=(store,), start_from=packaged, **options)
    config = prepare(request).config
    assert config.net.name == "alphazero-8v-map"
    assert config.start_from == str(packaged.resolve())
    with pytest.raises(DataError, match="is a net for xiangqi, not for crazyhouse"):
        crazyhouse = load_spec(builtin_specs()["crazyhouse"])
        prepare(TrainRequest(spec=crazyhouse, stores=(store,), start_from=packaged))
    half = tmp_path / "half.onnx"
    write_fp16(packaged, half, own)
    with pytest.raises(DataError, match="is an fp16 file; use the fp32 file"):
        prepare(TrainRequest(spec=own, stores=(store,), start_from=half))
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(packaged.read_bytes()[:1000])
    with pytest.raises(
        DataError, match="is not a usable ONNX model: it is cut off after 1,000 bytes"
    ):
        prepare(TrainRequest(spec=xiangqi, stores=(store,), start_from=broken))
