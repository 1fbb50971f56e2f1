"""The sampler: what a batch holds, in which order, and that the order needs no memory."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from dataclasses import dataclass, fields
from functools import cache
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from variant_ai.core.data.sample import compiled_replay as replay
from variant_ai.core.data.sample.mixture import MixedSampler, distribute
from variant_ai.core.data.sample.sampler import Batch, Sampler
from variant_ai.core.data.store.game_store import Store
from variant_ai.core.encoding import Encoder, Head, MoveCodec
from variant_ai.core.errors import DataError, SpecError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import Position, same_position
from variant_ai.core.spec import VariantSpec, builtin_specs, load_spec

UNKNOWN = 2


@dataclass
class Games:
    """A store in memory."""

    codes: NDArray[np.uint16]
    offsets: NDArray[np.int64]
    results: NDArray[np.int8]
    starts: Position
    start_of: NDArray[np.int32]
    opening_plies: NDArray[np.int64]
    visits: None = None
    root_values: None = None
    scores: None = None
    trains: None = None

    @property
    def cut_off(self) -> NDArray[np.bool_]:
        return np.zeros(len(self.results), np.bool_)


@cache
def spec_of(name: str, engine: str = "kernel") -> VariantSpec:
    spec = load_spec(builtin_specs()[name])
    rules = spec.rules.model_copy(update={"engine": engine})
    return spec.model_copy(update={"rules": rules})


@cache
def rules_of(name: str) -> Rules:
    return make_rules(spec_of(name))


@cache
def encoder_of(name: str, head: Head = "map") -> Encoder:
    return Encoder(spec_of(name), head)


SECOND_START = {
    "crazyhouse": "r3k2r/1P4P1/8/3pP3/3Pp3/8/1p4p1/R3K2R[QRBNPqrbnp] b KQkq d3 3 30",
    "xiangqi": "1b1ak4/4P4/4b4/9/P1r3C1P/2n3N2/9/9/9/4K4 b - - 55 140",
}


@cache
def games_of(
    name: str, count: int = 9, plies: int = 30, seed: int = 1
) -> tuple[Store, list[list[Position]]]:
    """Random games, some from a second start position, one empty, one of unknown result; and
    every position of each. Pieces go back and forth, so that positions repeat."""
    rules, codec, rng = rules_of(name), MoveCodec(spec_of(name)), random.Random(seed)
    starts = [rules.position(), rules.position(SECOND_START[name])]
    every: list[list[Position]] = []
    codes, start_of, results = [], [], []
    for number in range(count):
        which = int(number % 3 == 2)
        position = starts[which]
        positions, moves = [position], []
        for _ in range(0 if number == 4 else plies - number):
            legal = rules.legal_moves(position).tolist()
            if not legal:
                break
            back = [m for m in legal if len(moves) > 1 and _undoes(m, moves[-2])]
            moves.append(rng.choice(back if back and rng.random() < 0.8 else legal))
            position = rules.play(position, moves[-1])
            positions.append(position)
        codes.append(codec.encode_game(rules, starts[which], moves))
        start_of.append(which)
        results.append((1, -1, 0, UNKNOWN)[number % 4])
        every.append(positions)
    offsets = np.cumsum([0, *map(len, codes)])
    store = Games(
        np.concatenate(codes),
        offsets.astype(np.int64),
        np.array(results, np.int8),
        np.concatenate(starts),
        np.array(start_of, np.int32),
        np.zeros(count, np.int64),
    )
    return cast("Store", store), every


def _undoes(move: int, before: int) -> bool:
    return (move & 127, move >> 7 & 127) == (before >> 7 & 127, before & 127) and move < 1 << 14


def expected(name: str, head: Head = "map") -> list[tuple[int, int, Position, int, float]]:
    """(game, ply, position, action, value) of every sample, by plain replay."""
    store, every = games_of(name)
    encoder, codec = encoder_of(name, head), MoveCodec(spec_of(name))
    found = []
    for game, positions in enumerate(every):
        result = int(store.results[game])
        if result == UNKNOWN:
            continue
        for ply in range(len(positions) - 1):
            position = positions[ply].copy()
            position["repetitions"] = sum(
                int(p[0]["key"]) == int(position[0]["key"]) for p in positions[:ply]
            )
            code = int(store.codes[store.offsets[game] + ply])
            action = encoder.action(position, codec.decode(position, code))
            found.append((game, ply, position, action, result * (1 - 2 * int(position[0]["side"]))))
    return found


def copied(batch: Batch) -> Batch:
    return Batch(**{f.name: np.copy(getattr(batch, f.name)) for f in fields(Batch)})


@pytest.mark.parametrize("memory", [1 << 30, 0])
def test_last_moves_are_encoded_if_the_spec_needs_them(memory: int) -> None:
    data = spec_of("crazyhouse").model_dump(by_alias=True)
    data["input"] = ({"last_moves": 3}, *data["input"])
    spec = VariantSpec.model_validate(data)
    rules, codec, encoder = make_rules(spec), MoveCodec(spec), Encoder(spec)
    store, every = games_of("crazyhouse")
    sampler = Sampler(store, encoder, batch=13, memory=memory)
    planes = np.concatenate([copied(batch).planes[:, :6] for batch in sampler.sweep()])
    wanted = []
    for game, positions in enumerate(every):
        if int(store.results[game]) == UNKNOWN:
            continue
        position = positions[0]
        for ply in range(len(positions) - 1):
            wanted.append(encoder.planes(position)[0, :6])
            code = int(store.codes[store.offsets[game] + ply])
            position = rules.play(position, codec.decode(position, code))
    assert np.array_equal(planes, np.stack(wanted))
    assert planes[20].sum() >= 5


@pytest.mark.parametrize("name", ["crazyhouse", "xiangqi"])
@pytest.mark.parametrize("memory", [1 << 30, 0])
def test_a_sweep_is_every_position_by_plain_replay(name: str, memory: int) -> None:
    store, _ = games_of(name)
    encoder, samples = encoder_of(name), expected(name)
    sampler = Sampler(store, encoder, batch=17, memory=memory)
    assert sampler.positions == len(samples)
    seen = [copied(batch) for batch in sampler.sweep()]
    assert [len(b) for b in seen] == [17] * (len(samples) // 17) + [len(samples) % 17]
    planes = np.concatenate([b.planes for b in seen])
    positions = np.concatenate([b.positions for b in seen])
    asks = any(p.item == "repetitions" for p in encoder.input_planes)
    assert any(int(p[0]["repetitions"]) > 1 for _, _, p, _, _ in samples)
    for i, (_, _, position, action, value) in enumerate(samples):
        got = positions[i : i + 1].copy()
        wanted = position.copy()
        for one in (got, wanted):
            one["checks"] = 0  # the replay of known games does not look for checks
            if not asks:
                one["repetitions"] = 0
        assert same_position(got, wanted)
        assert np.array_equal(planes[i], encoder.planes(wanted)[0])
        assert seen[i // 17].action[i % 17] == action
        assert seen[i // 17].value[i % 17] == value


@pytest.mark.parametrize("name", ["crazyhouse", "xiangqi"])
@pytest.mark.parametrize("engine", ["kernel", "fairy"])
def test_plies_of_openings_give_no_samples(name: str, engine: str) -> None:
    store, _ = games_of(name)
    lengths = np.diff(store.offsets)
    openings = np.minimum([3, 0, 1, 5, 0, 28, 7, 2, 4], lengths)
    openings[5] = lengths[5]  # nothing of it is left
    opened = cast("Store", Games(**(vars(store) | {"opening_plies": openings})))
    encoder = Encoder(spec_of(name, engine))
    rules = rules_of(name) if engine == "fairy" else None
    sampler = Sampler(opened, encoder, batch=17, rules=rules)
    samples = [s for s in expected(name) if s[1] >= openings[s[0]]]
    assert sampler.positions == len(samples) < len(expected(name))
    seen = [copied(batch) for batch in sampler.sweep()]
    asks = any(p.item == "repetitions" for p in encoder.input_planes)
    for i, (game, ply, position, action, value) in enumerate(samples):
        batch, k = seen[i // 17], i % 17
        wanted = position.copy()
        if not asks:
            wanted["repetitions"] = 0  # else those before the end of the opening count too
        assert np.array_equal(batch.planes[k], encoder.planes(wanted)[0])
        assert (batch.action[k], batch.value[k]) == (action, value)
        assert batch.plies_left[k] == lengths[game] - ply
    first = Sampler(opened, encoder, batch=1, rules=rules, shuffle=False).places(0, 1)
    assert (first.games[0], first.plies[0]) == (0, 3)


@pytest.mark.parametrize("head", ["map", "flat"])
@pytest.mark.parametrize("mirror", [False, True])
def test_an_epoch_is_every_sample_once(head: Head, mirror: bool) -> None:
    name = "xiangqi"
    store, _ = games_of(name)
    # the second start has pieces where the flat head has no labels for them
    games = np.flatnonzero(store.start_of == 0)
    encoder = encoder_of(name, head)
    sampler = Sampler(store, encoder, batch=10, seed=3, mirror=mirror, games=games)
    samples = [s for s in expected("xiangqi") if s[0] in games]
    total = len(samples) * (2 if mirror else 1)
    assert sampler.samples_per_epoch == total
    assert sampler.steps_per_epoch == -(-total // 10)

    wanted: Counter[bytes] = Counter()
    for _, _, position, _, value in samples:
        for flip in (False, True)[: 2 if mirror else 1]:
            planes = encoder.planes(position, mirrored=flip)
            wanted[planes.tobytes() + np.float32(value).tobytes()] += 1
    for epoch in range(3):
        found: Counter[bytes] = Counter()
        for sample in range(epoch * total, (epoch + 1) * total):
            batch = sampler.batch(sample // 10)
            k = sample % 10
            found[batch.planes[k].tobytes() + batch.value[k].tobytes()] += 1
        assert found == wanted


def test_mirrored_samples_have_mirrored_moves() -> None:
    store, _ = games_of("xiangqi")
    encoder = encoder_of("xiangqi")
    by_sample = {(game, ply): (p, a) for game, ply, p, a, _ in expected("xiangqi")}
    known = [g for g in range(len(store.results)) if store.results[g] != UNKNOWN]
    known = [g for g in known if store.offsets[g + 1] > store.offsets[g]]
    sampler = Sampler(store, encoder, batch=64, seed=1, mirror=True)
    batch = sampler.batch(0)
    flips = 0
    for k in range(64):
        game, ply, flipped, *_ = (int(at[0]) for at in sampler.places(k, 1))
        position, action = by_sample[known[game], ply]
        assert np.array_equal(batch.planes[k], encoder.planes(position, mirrored=bool(flipped))[0])
        assert batch.action[k] == (encoder.mirror_actions[action] if flipped else action)
        flips += flipped
    assert 16 < flips < 48


def test_steps_depend_on_seed_and_step_alone() -> None:
    store, _ = games_of("crazyhouse")
    first = Sampler(store, encoder_of("crazyhouse"), batch=8, seed=5)
    again = Sampler(store, encoder_of("crazyhouse"), batch=8, seed=5)
    other = Sampler(store, encoder_of("crazyhouse"), batch=8, seed=6)
    for step in (1000, 3, 0):
        batch = first.batch(step)
        assert batch.planes.tobytes() == again.batch(step).planes.tobytes()
        assert batch.positions.tobytes() != other.batch(step).positions.tobytes()
    assert (
        first.batch(0).positions.tobytes() != first.batch(first.steps_per_epoch).positions.tobytes()
    )


def test_background_batches_are_the_steps_in_order() -> None:
    store, _ = games_of("crazyhouse")
    sampler = Sampler(store, encoder_of("crazyhouse"), batch=8, seed=5)
    steps = 0
    for step, batch in enumerate(sampler.batches(4, 30, ahead=3, threads=2), start=4):
        plain = sampler.batch(step)
        assert batch.planes.tobytes() == plain.planes.tobytes()
        assert batch.action.tolist() == plain.action.tolist()
        assert batch.value.tolist() == plain.value.tolist()
        steps += 1
    assert steps == 26
    endless = sampler.batches(7)
    assert [next(endless).action.tolist() for _ in range(3)] == [
        sampler.batch(step).action.tolist() for step in (7, 8, 9)
    ]


def test_processes_share_the_steps_between_them() -> None:
    store, _ = games_of("crazyhouse")
    encoder = encoder_of("crazyhouse")
    alone = Sampler(store, encoder, batch=8, seed=5)
    for rank in range(3):
        one = Sampler(store, encoder, batch=8, seed=5, rank=rank, world=3)
        for step in range(4):
            assert one.batch(step).planes.tobytes() == alone.batch(3 * step + rank).planes.tobytes()
            assert one.whole().batch(step).planes.tobytes() == alone.batch(step).planes.tobytes()
        assert (one.rank, one.world) == (rank, 3)
        assert one.steps_per_epoch == -(-one.positions // 24)


def test_several_stores_are_one_after_the_other() -> None:
    a, _ = games_of("crazyhouse")
    b, _ = games_of("crazyhouse", 5, 20, 9)
    encoder = encoder_of("crazyhouse")
    both = Sampler([a, b], encoder, batch=50, games=[np.array([7, 1]), np.arange(3)])
    parts = [
        Sampler(a, encoder, batch=50, games=np.array([7, 1])),
        Sampler(b, encoder, batch=50, games=np.arange(3)),
    ]
    assert both.positions == sum(part.positions for part in parts)
    joined = np.concatenate([copied(x).planes for x in both.sweep()])
    apart = np.concatenate([copied(x).planes for part in parts for x in part.sweep()])
    assert np.array_equal(joined, apart)


def test_a_limited_sweep_is_a_fixed_choice_without_repeats() -> None:
    store, _ = games_of("xiangqi")
    sampler = Sampler(store, encoder_of("xiangqi"), batch=16, seed=2, mirror=True)

    def keys(batches: list[Batch]) -> list[tuple[int, int]]:
        return [(int(p["key"]), int(p["ply"])) for b in batches for p in b.positions]

    every = keys([copied(b) for b in sampler.sweep()])
    part = [copied(b) for b in sampler.sweep(limit=40)]
    again = [copied(b) for b in sampler.sweep(limit=40)]
    assert [len(b) for b in part] == [16, 16, 8]
    assert not Counter(keys(part)) - Counter(every)
    assert keys(part) == keys(again) != every[:40]
    assert sum(len(b) for b in sampler.sweep(limit=10**9)) == sampler.positions
    shuffled = keys([copied(b) for b in sampler.sweep(shuffle=True)])
    assert Counter(shuffled) == Counter(every) and shuffled[:40] == keys(part)


def test_a_share_of_samples_forgets_the_move_number() -> None:
    store, _ = games_of("crazyhouse")
    encoder = encoder_of("crazyhouse")
    plane = next(p.index for p in encoder.input_planes if p.item == "move_number")
    plain = Sampler(store, encoder, batch=2000, seed=5).batch(0)
    forgetful = Sampler(store, encoder, batch=2000, seed=5, forget_move_number=0.1).batch(0)
    changed = plain.planes[:, plane, 0, 0] != forgetful.planes[:, plane, 0, 0]
    assert 100 < changed.sum() < 300
    assert np.allclose(forgetful.planes[changed, plane], 1 / 500)
    others = np.delete(plain.planes, plane, 1), np.delete(forgetful.planes, plane, 1)
    assert np.array_equal(*others)


@pytest.mark.parametrize("name", ["crazyhouse", "xiangqi"])
def test_rules_on_fairy_give_the_same_batches(name: str) -> None:
    store, _ = games_of(name)
    spec = spec_of(name, "fairy")
    mirror = "files" in spec.symmetry
    options = {"batch": 6, "seed": 5, "mirror": mirror, "forget_move_number": 0.3}
    slow = Sampler(store, Encoder(spec), rules=rules_of(name), **options)  # type: ignore[arg-type]
    fast = Sampler(store, encoder_of(name), **options)  # type: ignore[arg-type]
    for step in range(5):
        a, b = slow.batch(step), fast.batch(step)
        assert np.array_equal(a.planes, b.planes)
        assert a.action.tolist() == b.action.tolist()
        assert a.value.tolist() == b.value.tolist()
    with pytest.raises(SpecError, match="pass its rules to the sampler"):
        Sampler(store, Encoder(spec), batch=6)


def test_games_without_a_result_or_a_move_give_no_samples() -> None:
    store, _ = games_of("xiangqi")
    with pytest.raises(DataError, match="no position to sample"):
        Sampler(store, encoder_of("xiangqi"), batch=4, games=np.array([3, 4, 7]))
    with pytest.raises(DataError, match="no position to sample"):
        Sampler(store, encoder_of("xiangqi"), batch=4, games=np.array([], np.int64))


def test_a_damaged_code_is_found_before_training() -> None:
    store, _ = games_of("xiangqi")
    codes = store.codes.copy()
    codes[store.offsets[1] + 5] = 65535
    damaged = cast("Store", Games(**(vars(store) | {"codes": codes})))
    with pytest.raises(DataError, match="game 2 of the sampled games"):
        Sampler(damaged, encoder_of("xiangqi"), batch=4)


def test_a_move_without_a_flat_label_is_named() -> None:
    store, _ = games_of("xiangqi")
    sampler = Sampler(store, encoder_of("xiangqi", "flat"), batch=sum(store.offsets[-1:]))
    with pytest.raises(DataError, match=r"game \d+ of the sampled games, ply \d+: .* no action"):
        for step in range(3):
            sampler.batch(step)


def test_mirroring_is_rejected_without_symmetry() -> None:
    store, _ = games_of("crazyhouse")
    with pytest.raises(SpecError, match="symmetry"):
        Sampler(store, encoder_of("crazyhouse"), batch=4, mirror=True)


# --- the permutation ---------------------------------------------------------------------------


@given(st.integers(1, 600), st.integers(0, 2**63 - 1), st.integers(0, 50))
def test_shuffling_is_a_permutation(n: int, seed: int, epoch: int) -> None:
    assert sorted(replay.shuffled(i, n, seed, epoch) for i in range(n)) == list(range(n))


def test_a_large_permutation_repeats_nothing() -> None:
    n = 200_003
    found = np.fromiter((replay.shuffled(i, n, 7, 2) for i in range(n)), np.int64, n)
    assert np.array_equal(np.sort(found), np.arange(n))
    # neighbours part: their distance is that of two random places, a third of n
    assert 0.32 < np.abs(np.diff(found)).mean() / n < 0.35
    # no leaning of early places to early steps
    assert abs(np.corrcoef(np.arange(n), found)[0, 1]) < 0.01


def test_every_small_permutation_is_about_equally_likely() -> None:
    n, trials = 4, 24_000
    counts = Counter(
        tuple(replay.shuffled(i, n, seed, 0) for i in range(n)) for seed in range(trials)
    )
    places = np.zeros((n, n))
    for order, count in counts.items():
        for place, value in enumerate(order):
            places[place, value] += count
    # each value at each place, and each ordered pair side by side, as often as chance would
    assert np.abs(places / trials - 1 / n).max() < 0.02
    pairs = Counter(
        pair for order, c in counts.items() for pair in itertools.pairwise(order) for _ in range(c)
    )
    assert len(pairs) == n * (n - 1)
    assert max(pairs.values()) / min(pairs.values()) < 1.5


def test_epochs_and_seeds_give_other_orders() -> None:
    def order(seed: int, epoch: int) -> tuple[int, ...]:
        return tuple(replay.shuffled(i, 50, seed, epoch) for i in range(50))

    orders = {order(seed, epoch) for seed in range(20) for epoch in range(20)}
    assert len(orders) == 400


def test_compiled_functions_have_one_signature() -> None:
    for name in ("crazyhouse", "xiangqi"):
        store, _ = games_of(name)
        Sampler(store, encoder_of(name), batch=4).batch(0)
    compiled = [f for f in vars(replay).values() if hasattr(f, "signatures")]
    for function in compiled:
        assert len(function.signatures) <= 1, (function, function.signatures)
    assert replay.fill.signatures and replay.replay_games.signatures  # type: ignore[attr-defined]


class TestMixture:
    def parts(self, **options: object) -> list[Sampler]:
        stores = [games_of("crazyhouse")[0], games_of("crazyhouse", 5, 20, 9)[0]]
        return [Sampler(s, encoder_of("crazyhouse"), batch=8, seed=3, **options) for s in stores]

    def test_batches_hold_the_parts_own_sequences(self) -> None:
        parts = self.parts()
        mixed = MixedSampler(parts, (3, 1), batch=8)
        assert mixed.counts == (6, 2)
        for step in (0, 5, 60):
            batch = mixed.batch(step)
            for part, count, at in zip(parts, mixed.counts, (0, 6), strict=True):
                own = part.new_batch(count)
                part.fill(own, step * count)
                mine = batch.part(at, at + count)
                assert mine.planes.tobytes() == own.planes.tobytes()
                assert mine.action.tolist() == own.action.tolist()
                assert mine.plies_left.tolist() == own.plies_left.tolist()

    def test_processes_share_the_steps(self) -> None:
        parts = self.parts()
        alone = MixedSampler(parts, (3, 1), batch=8)
        other = MixedSampler(parts, (3, 1), batch=8, rank=1, world=2)
        assert other.batch(3).action.tolist() == alone.batch(7).action.tolist()

    def test_a_step_in_parts_holds_the_same_samples(self) -> None:
        """0.7 of a part of four would be rounded to three of them, in every part."""
        parts = self.parts()
        whole = MixedSampler(parts, (0.7, 0.3), batch=64)
        split = MixedSampler(parts, (0.7, 0.3), batch=4, batches=16)
        assert split.counts == whole.counts == (45, 19)
        for step in (0, 7):
            moves = [split.batch(16 * step + part).action for part in range(16)]
            expected = whole.batch(step).action.tolist()
            assert sorted(np.concatenate(moves).tolist()) == sorted(expected)
        other = MixedSampler(parts, (0.7, 0.3), batch=4, batches=16, rank=1, world=2)
        assert other.batch(3).action.tolist() == split.batch(7).action.tolist()

    def test_a_sweep_is_every_position(self) -> None:
        parts = self.parts()
        mixed = MixedSampler(parts, (1, 9), batch=10)
        swept = sum(len(batch) for batch in mixed.sweep())
        assert swept == mixed.positions == sum(part.positions for part in parts)
        assert mixed.steps_per_epoch == -(-mixed.positions // 10)

    def test_a_share_without_samples_is_rejected(self) -> None:
        with pytest.raises(DataError, match="has no sample of a store"):
            MixedSampler(self.parts(), (1000, 1), batch=8)


@pytest.mark.parametrize(
    ("total", "weights", "counts"),
    [
        (10, (1, 1), (5, 5)),
        (10, (0.7, 0.3), (7, 3)),
        (7, (1, 1, 1), (3, 2, 2)),
        (3, (9, 1), (3, 0)),
    ],
)
def test_shares_add_up(total: int, weights: tuple[float, ...], counts: tuple[int, ...]) -> None:
    assert distribute(total, weights) == counts


@pytest.mark.parametrize("name", ["crazyhouse", "xiangqi"])
def test_plies_left_count_down_to_one(name: str) -> None:
    store, _ = games_of(name)
    batch = next(Sampler(store, encoder_of(name), batch=40).sweep())
    ends = np.flatnonzero(batch.plies_left == 1)
    assert len(ends)
    within = np.diff(batch.plies_left)
    assert set(within[np.setdiff1d(np.arange(39), ends)].tolist()) == {-1.0}
