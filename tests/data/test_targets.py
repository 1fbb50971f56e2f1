"""Value labels and weights of samples, against a plain reading of the records."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from variant_ai.core.data.game_record import (
    CAPPED,
    FULL_WEIGHT,
    MATE,
    MOVE_LIMIT,
    TRAINS_POLICY,
    TRAINS_VALUE,
    GameRecord,
    Labels,
    PlyVisits,
    Result,
    whole_weights,
)
from variant_ai.core.data.sample.mixture import MixedSampler
from variant_ai.core.data.sample.sampler import Sampler
from variant_ai.core.data.sample.value_labels import ValueLabels, fit_scale, value_of_scores
from variant_ai.core.data.store.game_store import Store, StoreWriter
from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import DataError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.interface import Rules
from variant_ai.core.spec import VariantSpec, builtin_specs, load_spec

RESULTS: tuple[Result, ...] = ("1-0", "0-1", "1/2-1/2", "*")
LABELS = ["result", "root", "mixed:0.25", "mixed:0", "score:150", "score:150:0.75"]


@cache
def spec_of(name: str) -> VariantSpec:
    return load_spec(builtin_specs()[name])


@cache
def rules_of(name: str) -> Rules:
    return make_rules(spec_of(name))


@cache
def self_play(name: str, count: int = 16, seed: int = 0) -> tuple[GameRecord, ...]:
    """Random games with everything that self-play records, some of it missing in some games."""
    rules, rng = rules_of(name), random.Random(seed)
    made = []
    for number in range(count):
        position = rules.position()
        record = GameRecord(name, result=RESULTS[number % 4], number=number + 1)
        visits: list[PlyVisits] = []
        values: list[float | None] = []
        trains, scores = [], []
        for _ in range(rng.randrange(6, 16)):
            legal = rules.legal_moves(position).tolist()
            full = rng.random() < 0.6
            looked_at = rng.sample(legal, min(3, len(legal))) if full else []
            visits.append(tuple((move, rng.randrange(1, 900)) for move in looked_at))
            value = rng.randrange(-10_000, 10_001) / 10_000
            values.append(None if rng.random() < 0.2 else value)
            scores.append(None if rng.random() < 0.3 else rng.choice([-90, 0, 40, 700, MATE - 3]))
            trains.append(rng.randrange(4))
            record.moves.append(rng.choice(legal))
            position = rules.play(position, record.moves[-1])
        record.tags = {"OpeningPlies": str(number % 3)}
        if number % 5 != 1:
            record.visits, record.root_values = visits, values
        if number % 5 != 2:
            record.trains = trains
        if number % 5 != 3:
            record.scores = scores  # type: ignore[assignment]
        made.append(record)
    return tuple(made)


@pytest.fixture(scope="module", params=["crazyhouse", "xiangqi"])
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Store:
    path = tmp_path_factory.mktemp("targets") / "a.store"
    with StoreWriter(path, spec_of(request.param), shard_games=3) as writer:
        for record in self_play(request.param):
            writer.add(record)
    return Store(path)


def search_value(record: GameRecord, ply: int, labels: ValueLabels) -> float | None:
    if labels.source == "result":
        return None
    score = record.scores[ply] if record.scores else None
    if labels.source == "root" or score is None:
        return record.root_values[ply] if record.root_values else None
    if abs(score) > 31_000:
        return math.copysign(1, score)
    assert labels.scale is not None
    return 2 / (1 + math.exp(-score / labels.scale)) - 1


def plain_targets(
    record: GameRecord, labels: ValueLabels, draw_value: float
) -> dict[int, tuple[float, float, float]]:
    """Ply -> value, weights of policy and value, of the positions of a game that are sampled."""
    found = {}
    values = [search_value(record, ply, labels) for ply in range(record.plies)]
    if record.value is None and all(v is None for v in values[record.opening_plies :]):
        return {}
    for ply in range(record.opening_plies, record.plies):
        bits = record.trains[ply] if record.trains else TRAINS_POLICY | TRAINS_VALUE
        if bits == 0:
            continue
        value = values[ply]
        result: float | None = record.value
        if result is not None:
            result = draw_value if result == 0 else result * (-1 if ply % 2 else 1)
        if not bits & TRAINS_VALUE:
            result = None
        if result is None and value is None:
            label, weight = 0.0, 0.0
        elif result is None or value is None:
            label, weight = (value if result is None else result), 1.0  # type: ignore[assignment]
        else:
            label, weight = (1 - labels.share) * result + labels.share * value, 1.0
        if weight or bits & TRAINS_POLICY:
            found[ply] = label, float(bool(bits & TRAINS_POLICY)), weight
    return found


@pytest.mark.parametrize("text", LABELS)
@pytest.mark.parametrize("labels", ["move", "visits"])
def test_targets_are_those_of_a_plain_reading(stored: Store, labels: Labels, text: str) -> None:
    records = self_play(stored.spec.variant)
    spec, parsed = stored.spec, ValueLabels.parse(text)
    options = {
        "batch": 17, "labels": labels, "value_labels": text, "draw_value": -0.125,
        "mirror": Encoder(spec).symmetric, "seed": 4,
    }  # fmt: skip
    quick = Sampler(stored, Encoder(spec), **options)  # type: ignore[arg-type]
    wanted = {
        (number, ply): numbers
        for number, record in enumerate(records)
        for ply, numbers in plain_targets(record, parsed, -0.125).items()
    }
    swept = []
    for batch in quick.sweep():
        numbers = zip(batch.value, batch.policy_weight, batch.value_weight, strict=True)
        swept += [tuple(map(float, row)) for row in numbers]
    games = quick.origins[quick.swept().games, 1].tolist()
    places = list(zip(games, quick.swept().plies.tolist(), strict=True))
    assert places == list(wanted) and len(places) == quick.positions
    assert swept == [pytest.approx(numbers, abs=1e-5) for numbers in wanted.values()]
    left = np.concatenate([batch.plies_left.copy() for batch in quick.sweep()])
    for (game, ply), plies in zip(places, left.tolist(), strict=True):
        record = records[game]
        bits = record.trains[ply] if record.trains else TRAINS_VALUE
        # An unfinished game, or one ended at its greatest length, does not end where its moves do.
        whole = record.value is not None and bits & TRAINS_VALUE
        assert plies == record.plies - ply if whole else math.isnan(plies)
    if labels == "visits":
        assert quick.searched == sum(
            bool(records[game].visits and records[game].visits[ply])  # type: ignore[index]
            for game, ply in places
        )
    slow_spec = spec.model_copy(update={"rules": spec.rules.model_copy(update={"engine": "fairy"})})
    slow = Sampler(stored, Encoder(slow_spec), rules=rules_of(spec.variant), **options)  # type: ignore[arg-type]
    for step in (0, quick.steps_per_epoch):
        one, two = quick.batch(step), slow.batch(step)
        for name in ("action", "choices", "shares", "policy_weight", "value_weight", "plies_left"):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name), name)
        np.testing.assert_allclose(one.value, two.value, atol=1e-6)
        for k in range(17):
            game, ply, *_ = (int(at[0]) for at in quick.places(step * 17 + k, 1))
            value, policy, weight = wanted[int(quick.origins[game, 1]), ply]
            assert float(one.value[k]) == pytest.approx(value, abs=1e-5)
            assert (one.policy_weight[k], one.value_weight[k]) == (policy, weight)


def test_an_epoch_has_every_position_that_teaches_once(stored: Store) -> None:
    sampler = Sampler(stored, Encoder(stored.spec), batch=1, labels="visits", value_labels="root")
    every = sampler.places(0, sampler.positions)
    places = set(zip(every.games.tolist(), every.plies.tolist(), strict=True))
    assert len(places) == sampler.positions < sum(r.plies for r in self_play(stored.spec.variant))


def test_results_of_ordinary_games_are_left_as_they_are(stored: Store, tmp_path: Path) -> None:
    """Root values that are not asked for change nothing, nor do labels that a store has nothing of."""
    known = [replace(r, trains=None) for r in self_play(stored.spec.variant) if r.value is not None]
    bare = [replace(r, root_values=None, scores=None) for r in known]
    for name, records in (("known", known), ("bare", bare)):
        with StoreWriter(tmp_path / f"{name}.store", stored.spec) as writer:
            for record in records:
                writer.add(record)
    plain, *others = (
        Sampler(Store(tmp_path / f"{name}.store"), Encoder(stored.spec), batch=32, value_labels=text)
        for name, text in (
            ("bare", "result"), ("known", "result"), ("bare", "root"), ("bare", "score:90"),
        )
    )  # fmt: skip
    for sampler in others:
        assert sampler.positions == plain.positions
        for step in range(4):
            one, two = plain.batch(step), sampler.batch(step)
            for field in ("planes", "action", "value", "policy_weight", "value_weight"):
                assert np.array_equal(getattr(one, field), getattr(two, field)), field
            assert two.policy_weight.all() and two.value_weight.all()


def test_mixed_stores_keep_their_own_weights(stored: Store, tmp_path: Path) -> None:
    """A batch is shared by samplers with and without targets."""
    bare = [
        replace(r, trains=None, root_values=None)
        for r in self_play(stored.spec.variant)
        if r.value is not None
    ]
    with StoreWriter(tmp_path / "bare.store", stored.spec) as writer:
        for record in bare:
            writer.add(record)
    encoder = Encoder(stored.spec)
    parts = [
        Sampler(Store(tmp_path / "bare.store"), encoder, batch=8, labels="visits"),
        Sampler(stored, encoder, batch=8, labels="visits", value_labels="root"),
    ]
    mixed = MixedSampler(parts, (1, 1), batch=4, batches=3)
    out = mixed.new_batch()
    seen = set()
    for step in range(30):
        batch = mixed.batch(step, out)
        first, end = mixed._until[step % 3 : step % 3 + 2, 0].tolist()
        assert batch.policy_weight[: end - first].all()
        assert batch.value_weight[: end - first].all()
        seen |= set(batch.policy_weight.tolist())
    assert seen == {0.0, 1.0}


def test_games_that_teach_nothing_are_an_error(stored: Store, tmp_path: Path) -> None:
    records = [replace(r, trains=[0] * r.plies) for r in self_play(stored.spec.variant)]
    with StoreWriter(tmp_path / "a.store", stored.spec) as writer:
        for record in records:
            writer.add(record)
    with pytest.raises(DataError, match="none that may be learnt"):
        Sampler(Store(tmp_path / "a.store"), Encoder(stored.spec), batch=4, value_labels="root")


# --- value labels --------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [*LABELS, "score", "mixed:1", "score:1e3"])
def test_labels_are_written_as_they_are_read(text: str) -> None:
    labels = ValueLabels.parse(text)
    assert ValueLabels.parse(str(labels)) == labels


@pytest.mark.parametrize(
    "text", ["", "results", "mixed", "mixed:1.5", "mixed:nan", "score:0", "root:1"]
)
def test_other_labels_are_rejected(text: str) -> None:
    with pytest.raises(DataError, match="accepted are result, root"):
        ValueLabels.parse(text)


@pytest.mark.parametrize("scale", [45.0, 180.0, 900.0])
def test_the_scale_of_results_that_follow_it_is_found(scale: float) -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(0, 300, 40_000).round().astype(np.float32)
    won = rng.random(len(scores)) < (1 + value_of_scores(scores, scale)) / 2
    results = np.where(rng.random(len(scores)) < 0.2, 0, np.where(won, 1, -1)).astype(np.int8)
    decided = results != 0
    scores[:50], results[:50] = MATE - 2, -1  # mates say nothing of the scale
    scores[50:90] = np.nan
    found = fit_scale(scores[decided], results[decided])
    assert found == pytest.approx(scale, rel=0.06)
    assert fit_scale(scores, results) > found  # draws flatten the curve


def test_a_scale_needs_scores() -> None:
    nothing = np.array([np.nan, 0, MATE - 1], np.float32)
    with pytest.raises(DataError, match="no position has a score and a result"):
        fit_scale(nothing, np.ones(3, np.int8))


def test_values_of_scores_are_odd_and_monotonic() -> None:
    scores = np.array([-MATE + 2, -300, -1, 0, 1, 300, 5_000, MATE - 1, np.nan], np.float32)
    values = value_of_scores(scores, 100.0)
    assert values[0] == -1 and values[7] == 1 and values[3] == 0 and np.isnan(values[8])
    assert (np.diff(values[:7]) > 0).all() and np.abs(values[1:7]).max() <= 1
    assert values[1] == pytest.approx(-values[5])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50), st.integers(1, 60))
def test_whole_weights_add_up_and_differ_by_less_than_one(parts: list[float], times: int) -> None:
    shares = np.array(parts * times) + 1e-9
    shares /= shares.sum()
    weights = dict(whole_weights(range(len(shares)), shares.tolist()))
    assert sum(weights.values()) == FULL_WEIGHT
    assert all(
        abs(weights.get(i, 0) - FULL_WEIGHT * share) < 1.001 for i, share in enumerate(shares)
    )


@pytest.mark.parametrize("end", [MOVE_LIMIT, CAPPED])
@pytest.mark.parametrize("engine", ["kernel", "fairy"])
def test_plies_left_are_not_known_of_a_game_ended_at_its_greatest_length(
    tmp_path: Path, engine: str, end: str
) -> None:
    """In generated games and matches, which count as drawn, and in self-play that was read from PGN."""
    spec = spec_of("crazyhouse")
    endings = (end, "repetition")
    with StoreWriter(tmp_path / "a.store", spec) as writer:
        for record, ending in zip(self_play(spec.variant), endings, strict=False):
            writer.add(
                replace(record, result="1/2-1/2", termination=ending, trains=None, root_values=None)
            )
    store = Store(tmp_path / "a.store", spec)
    assert store.cut_off.tolist() == [True, False]
    rules = spec.rules.model_copy(update={"engine": engine})
    encoder = Encoder(spec.model_copy(update={"rules": rules}))
    sampler = Sampler(store, encoder, batch=1000, rules=rules_of(spec.variant))
    (batch,) = sampler.sweep()
    games = sampler.origins[sampler.swept().games, 1]
    assert np.isnan(batch.plies_left).tolist() == (games == 0).tolist()
    assert batch.plies_left[games == 1].tolist() == list(range(int((games == 1).sum()), 0, -1))
    assert not batch.value.any() and batch.value_weight.all()
