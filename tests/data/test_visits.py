"""Visits of searches: kept by stores, carried along, and sampled as a plain reference says."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from store_fakes import CODEC, SPEC, game, read, records, visited, write

from variant_ai.core.data.game_record import GameRecord, PlyVisits
from variant_ai.core.data.sample.mixture import MixedSampler
from variant_ai.core.data.sample.sampler import Batch, Sampler
from variant_ai.core.data.store import store_format
from variant_ai.core.data.store.blocks import scan
from variant_ai.core.data.store.columns import ColumnError, ColumnReader, Columns
from variant_ai.core.data.store.game_store import Store, StoreWriter
from variant_ai.core.data.store.visits import (
    GameVisits,
    VisitBlock,
    Visits,
    add_visits,
    join_visits,
)
from variant_ai.core.encoding import Encoder, Head
from variant_ai.core.errors import DataError, MoveError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import Position
from variant_ai.core.spec import VariantSpec, builtin_specs, load_spec

Labelled = dict[int, float]


# --- in a store ----------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.lists(records(), max_size=7), st.integers(1, 3), st.integers(1, 3))
def test_visits_are_in_memory_as_in_the_games(
    games: list[GameRecord], shard: int, other: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = read(write(Path(folder) / "a.store", games, shard_games=shard))
        again = write(Path(folder) / "b.store", games, shard_games=other)
        assert read(again).content_hash == store.content_hash
        store.verify()
        searched = [g for g in games if g.visits is not None]
        assert store.info.games_with_visits == len(searched)
        assert store.info.plies_with_visits == sum(
            bool(p) for g in searched for p in g.visits or ()
        )
        found = store.visits
        assert (found is None) == (not searched)
        if found is None:
            return
        assert len(found.ends) == 1 + sum(g.plies for g in games)
        for number, record in enumerate(games):
            first = int(store.offsets[number])
            if record.visits is None:
                assert found.ends[first] == found.ends[first + record.plies]
            for ply, pairs in enumerate(record.visits or ()):
                here = slice(found.ends[first + ply], found.ends[first + ply + 1])
                assert found.codes[here].tolist() == [move for move, _ in pairs]
                exact = np.array([count for _, count in pairs], float)
                if exact.size and exact.max() > 65535:
                    exact = np.maximum(np.rint(exact * 65535 / exact.max()), 1)
                assert found.weights[here].tolist() == exact.tolist()


def with_visits(number: int, **facts: object) -> GameRecord:
    made = game(number, **facts)
    visits: list[PlyVisits] = [((move, 7), (move + 1, 2)) for move in made.moves]
    return replace(made, visits=[*visits[:-1], ()])


def test_a_store_without_visits_is_what_it_was(tmp_path: Path) -> None:
    """Byte for byte: such a store has no block of them."""
    path = write(tmp_path / "a.store", [game(i) for i in range(3)], shard_games=2)
    with path.open("rb") as file:
        kinds = [block.kind for block in scan(file, "a").blocks]
    shard = ["MOVE", "FACT", "NOTE"]
    assert kinds == ["HEAD", "RUN ", *shard, *shard, "END "]
    store = read(path)
    assert store.visits is None and store.raw(0)[2] is None
    assert store.info.games_with_visits == 0


def test_only_shards_with_visits_have_their_block(tmp_path: Path) -> None:
    games = [game(0), game(1), with_visits(2), game(3)]
    path = write(tmp_path / "a.store", games, shard_games=2)
    with path.open("rb") as file:
        blocks = [block for block in scan(file, "a").blocks if block.kind == store_format.ROOT]
    assert [(b.shard, b.games, b.plies) for b in blocks] == [(1, 1, 4)]
    assert list(read(path).games()) == games


def test_copies_carry_visits(tmp_path: Path) -> None:
    games = [with_visits(i) if i % 2 else game(i) for i in range(7)]
    store = read(write(tmp_path / "a.store", games, shard_games=2))
    with StoreWriter(tmp_path / "b.store", SPEC, codec=CODEC, parents=[store]) as writer:
        writer.copy(store, [5, 0, 3, 2])
    copied = read(tmp_path / "b.store")
    assert list(copied.games()) == [games[i] for i in (5, 0, 3, 2)]
    assert copied.info.plies_with_visits == 8


def test_a_store_reads_openings_from_the_header(tmp_path: Path) -> None:
    openings = ["2", "", "900", "-1", "two", "0"]
    games = [replace(game(i), tags={"OpeningPlies": text}) for i, text in enumerate(openings)]
    store = read(write(tmp_path / "a.store", games, shard_games=2))
    assert store.opening_plies.tolist() == [2, 0, games[2].plies, 0, 0, 0]
    assert list(store.games()) == games
    plain = read(write(tmp_path / "b.store", [game(i) for i in range(6)], shard_games=2))
    assert not plain.opening_plies.any()
    assert plain.content_hash != store.content_hash
    with StoreWriter(tmp_path / "c.store", SPEC, codec=CODEC, parents=[store]) as writer:
        writer.copy(store, [3, 2, 0])
    assert read(tmp_path / "c.store").opening_plies.tolist() == [0, games[2].plies, 2]


def test_the_content_hash_covers_visits(tmp_path: Path) -> None:
    bare = read(write(tmp_path / "a.store", [game(0), game(1)])).content_hash
    visited_hash = read(write(tmp_path / "b.store", [game(0), with_visits(1)])).content_hash
    other = with_visits(1)
    assert other.visits is not None
    other.visits[0] = ((other.moves[0], 8), (other.moves[0] + 1, 2))
    changed = read(write(tmp_path / "c.store", [game(0), other])).content_hash
    assert len({bare, visited_hash, changed}) == 3


@pytest.mark.parametrize(
    ("visits", "message"),
    [
        ([()] * 4, "4 visits for a game of 5 plies"),
        ([((1, 0),), *[()] * 4], "ply 1: visits 0; accepted: 1 to 4294967295"),
        ([*[()] * 4, ((1, 1 << 32),)], "ply 5: visits 4294967296"),
    ],
)
def test_invalid_visits_are_rejected(tmp_path: Path, visits: list[PlyVisits], message: str) -> None:
    with pytest.raises(DataError, match=message):
        write(tmp_path / "a.store", [replace(game(), visits=visits)])


def test_damage_to_visits_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.store", [with_visits(i) for i in range(4)], shard_games=2)
    with path.open("rb") as file:
        root = [block for block in scan(file, "a").blocks if block.kind == store_format.ROOT][1]
    data = bytearray(path.read_bytes())
    data[root.body_offset + 3] ^= 1
    path.write_bytes(data)
    for look in (Store.verify, lambda s: s.visits, lambda s: s.game(2)):
        with pytest.raises(DataError, match=f"shard 1.*offset {root.offset}.*checksum"):
            look(read(path))
    assert read(path).game(1) == with_visits(1)


def test_a_torn_block_of_visits_leaves_the_shards_before_it(tmp_path: Path) -> None:
    path = write(tmp_path / "a.store", [with_visits(i) for i in range(4)], shard_games=2)
    with path.open("rb") as file:
        root = [block for block in scan(file, "a").blocks if block.kind == store_format.ROOT][1]
    for size in (root.end, root.end - 1, root.body_offset, root.offset + 1):
        torn = tmp_path / "torn.store"
        torn.write_bytes(path.read_bytes()[:size])
        found = read(torn)
        assert len(found) == 2 and found.info.unfinished
        write(torn, [with_visits(9)], mode="append")
        assert list(read(torn).games()) == [with_visits(i) for i in (0, 1, 9)]


def columns_of(**lists: list[int] | bytes) -> bytes:
    columns = Columns()
    for name, values in lists.items():
        if isinstance(values, bytes):
            columns.add_bytes(name, values)
        else:
            columns.add_integers(name, values)
    return columns.to_bytes()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"has_visits": [1]}, "does not have 2 rows"),
        ({"has_visits": [1, 1]}, "a row for each ply"),
        ({"counts": [1, -1]}, "negative number of moves"),
        ({"counts": [1, 2]}, "do not match their sum"),
        ({"visits": [1]}, "do not match their sum"),
        ({"visits": [1, 0]}, "out of range"),
        ({"moves": b"\0\0\0"}, "two bytes"),
    ],
)
def test_columns_that_do_not_fit_are_no_visits(
    changed: dict[str, list[int] | bytes], message: str
) -> None:
    whole: dict[str, list[int] | bytes] = {
        "has_visits": [0, 1], "counts": [2, 0], "moves": b"\0\1\0\1", "visits": [5, 4],
    }  # fmt: skip
    none = np.zeros(0, np.int64)
    moves = store_format.Moves(
        none.astype(np.uint16), np.array([3, 2]), none.astype(np.int8), none.astype(np.int16),
        [], none.astype(np.int32), none.astype(np.int64),
    )  # fmt: skip
    assert VisitBlock(ColumnReader(columns_of(**whole)), 90, moves).of(0) is None
    with pytest.raises(ColumnError, match=message):
        VisitBlock(ColumnReader(columns_of(**{**whole, **changed})), 90, moves)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.lists(st.none() | st.lists(st.lists(visited, max_size=3), max_size=4), max_size=5))
def test_joining_is_packing_at_once(games: list[list[list[tuple[int, int]]] | None]) -> None:
    def packed(some: list[list[list[tuple[int, int]]] | None]) -> Visits | None:
        made = [
            None
            if plies is None
            else GameVisits(
                np.array([len(p) for p in plies], np.int64),
                np.array([m for p in plies for m, _ in p], np.uint16),
                np.array([n for p in plies for _, n in p], np.int64),
            )
            for plies in some
        ]
        lengths = np.array([len(plies or ()) for plies in some], np.int64)
        moves = store_format.Moves(
            np.zeros(0, np.uint16), lengths, np.zeros(0, np.int8), np.zeros(0, np.int16), [],
            np.zeros(0, np.int32), np.zeros(0, np.int64),
        )  # fmt: skip
        columns = Columns()
        add_visits(columns, made, 90)
        return VisitBlock(ColumnReader(columns.to_bytes()), 90, moves).arrays()

    whole = packed(games)
    parts = [(0, None) if plies is None else (len(plies), packed([plies])) for plies in games]
    joined = join_visits(parts)
    if joined is None:
        assert whole is None and all(plies is None for plies in games)
        return
    for name in ("ends", "codes", "weights"):
        assert getattr(joined, name).tolist() == getattr(whole, name).tolist()


# --- with real rules -----------------------------------------------------------------------------


@cache
def spec_of(name: str) -> VariantSpec:
    return load_spec(builtin_specs()[name])


@cache
def rules_of(name: str) -> Rules:
    return make_rules(spec_of(name))


@cache
def searched_games(name: str, count: int = 8, seed: int = 0) -> tuple[GameRecord, ...]:
    """Random games; every third has no visits, and some plies of the others have none."""
    rules, rng = rules_of(name), random.Random(seed)
    made = []
    for number in range(count):
        position, moves = rules.position(), []
        visits: list[PlyVisits] = []
        for _ in range(rng.randrange(8, 20)):
            legal = rules.legal_moves(position).tolist()
            looked_at = rng.sample(legal, min(len(legal), rng.randrange(0, 9)))
            visits.append(tuple((move, rng.randrange(1, 900)) for move in looked_at))
            moves.append(rng.choice(legal))
            position = rules.play(position, moves[-1])
        result = ("1-0", "0-1", "1/2-1/2", "*")[number % 4]
        made.append(
            GameRecord(
                name,
                moves,
                result=result,  # type: ignore[arg-type]
                visits=None if number % 3 == 2 else visits,
            )
        )
    return tuple(made)


@pytest.fixture(scope="module", params=["crazyhouse", "xiangqi"])
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Store:
    path = tmp_path_factory.mktemp("visits") / "a.store"
    with StoreWriter(path, spec_of(request.param), shard_games=3) as writer:
        for record in searched_games(request.param):
            writer.add(record)
    return Store(path)


def test_moves_come_back_through_the_rules(stored: Store) -> None:
    assert list(stored.games()) == list(searched_games(stored.spec.variant))


def test_a_visited_move_without_a_code_is_rejected(tmp_path: Path) -> None:
    record = searched_games("xiangqi")[0]
    far = 0 | 80 << 7  # a displacement that no piece has
    visits: list[PlyVisits] = [(), (), (), ((far, 1),), *[()] * (record.plies - 4)]
    with (
        StoreWriter(tmp_path / "a.store", spec_of("xiangqi")) as writer,
        pytest.raises(MoveError, match="ply 4: visited move"),
    ):
        writer.add(replace(record, visits=visits))


def plain_labels(
    record: GameRecord, encoder: Encoder, mirrored: bool
) -> Iterator[tuple[Position, Labelled]]:
    """Each position of a game with the share of every action, the slow way."""
    rules = rules_of(record.variant)
    position = rules.position(record.start_fen)
    for ply, move in enumerate(record.moves):
        pairs = (record.visits[ply] if record.visits else ()) or ((move, 1),)
        shares: Labelled = {}
        for choice, count in pairs:
            action = encoder.action(position, choice)
            action = int(encoder.mirror_actions[action]) if mirrored else action
            shares[action] = shares.get(action, 0.0) + count / sum(n for _, n in pairs)
        yield position, shares
        position = rules.play(position, move)


def labels_of(batch: Batch, k: int) -> Labelled:
    shares: Labelled = {}
    for action, share in zip(batch.choices[k].tolist(), batch.shares[k].tolist(), strict=True):
        if share:
            shares[action] = shares.get(action, 0.0) + share
    return shares


def reference(variant: str, encoder: Encoder, mirrored: bool) -> list[Labelled]:
    return [
        shares
        for record in searched_games(variant)
        if record.value is not None
        for _, shares in plain_labels(record, encoder, mirrored)
    ]


@pytest.mark.parametrize("head", ["map", "flat"])
def test_soft_labels_are_those_of_a_plain_replay(stored: Store, head: Head) -> None:
    encoder = Encoder(stored.spec, head)
    sampler = Sampler(stored, encoder, batch=13, labels="visits")
    wanted = reference(stored.spec.variant, encoder, False)
    at = 0
    for batch in sampler.sweep():
        for k in range(len(batch)):
            assert labels_of(batch, k) == pytest.approx(wanted[at])
            assert wanted[at][int(batch.action[k])] == max(wanted[at].values())
            at += 1
    assert at == len(wanted) == sampler.positions
    assert sampler.searched == sum(
        bool(pairs)
        for record in searched_games(stored.spec.variant)
        if record.value is not None
        for pairs in record.visits or ()
    )


def test_openings_have_no_labels_and_shift_none(tmp_path: Path) -> None:
    """Openings of a store: the header of a game has the length of its opening."""
    name, games = "xiangqi", list(searched_games("xiangqi"))
    for number, record in enumerate(games):
        games[number] = replace(record, tags={**record.tags, "OpeningPlies": str(number)})
    with StoreWriter(tmp_path / "a.store", spec_of(name)) as writer:
        for record in games:
            writer.add(record)
    store = Store(tmp_path / "a.store")
    encoder = Encoder(store.spec)
    wanted = [
        shares
        for record in games
        if record.value is not None
        for ply, (_, shares) in enumerate(plain_labels(record, encoder, False))
        if ply >= record.opening_plies
    ]
    sampler = Sampler(store, encoder, batch=13, labels="visits")
    found = [labels_of(batch, k) for batch in sampler.sweep() for k in range(len(batch))]
    assert found == [pytest.approx(shares) for shares in wanted]
    assert sampler.searched == sum(
        bool(pairs)
        for record in games
        if record.value is not None
        for pairs in (record.visits or ())[record.opening_plies :]
    )


def test_mirrored_positions_have_mirrored_labels() -> None:
    variant = "xiangqi"
    encoder = Encoder(spec_of(variant))
    with tempfile.TemporaryDirectory() as folder:
        with StoreWriter(Path(folder) / "a.store", encoder.spec) as writer:
            for record in searched_games(variant):
                writer.add(record)
        store = Store(Path(folder) / "a.store")
        sampler = Sampler(store, encoder, batch=16, mirror=True, seed=3, labels="visits")
    plain = {m: reference(variant, encoder, m) for m in (False, True)}
    seen = set()
    for step in range(sampler.steps_per_epoch):
        batch = sampler.batch(step)
        for k in range(16):
            game_, ply, flip, *_ = (int(at[0]) for at in sampler.places(step * 16 + k, 1))
            mirrored = bool(flip)
            at = int(sampler._games.arrays.cumulative[game_]) + ply
            assert labels_of(batch, k) == pytest.approx(plain[mirrored][at])
            seen.add((at, mirrored))
    assert len(seen) == 2 * sampler.positions


def test_the_rest_of_a_batch_does_not_change(stored: Store) -> None:
    encoder = Encoder(stored.spec)
    options = {"batch": 24, "seed": 5, "forget_move_number": 0.5, "mirror": encoder.symmetric}
    soft = Sampler(stored, encoder, labels="visits", **options)  # type: ignore[arg-type]
    hard = Sampler(stored, encoder, **options)  # type: ignore[arg-type]
    for step in range(5):
        one, two = soft.batch(step), hard.batch(step)
        for name in ("planes", "value", "plies_left", "positions"):
            assert np.array_equal(getattr(one, name), getattr(two, name)), name
        assert two.choices.shape == two.shares.shape == (24, 0)
        assert np.allclose(one.shares.sum(1), 1)


def test_batches_mix_stores_with_and_without_visits(stored: Store, tmp_path: Path) -> None:
    encoder = Encoder(stored.spec)
    bare = [replace(record, visits=None) for record in searched_games(stored.spec.variant)]
    with StoreWriter(tmp_path / "bare.store", stored.spec) as writer:
        for record in bare:
            writer.add(record)
    other = Store(tmp_path / "bare.store")
    both = Sampler([other, stored], encoder, batch=64, labels="visits", shuffle=False)
    alone = Sampler(stored, encoder, batch=64, labels="visits", shuffle=False)
    assert both.searched == alone.searched and both.positions == 2 * alone.positions
    whole = [labels_of(b, k) for b in both.sweep() for k in range(len(b))]
    played = [int(a) for b in Sampler(other, encoder, batch=64).sweep() for a in b.action]
    assert whole[: alone.positions] == [{action: 1.0} for action in played]
    assert whole[alone.positions :] == [
        labels_of(b, k) for b in alone.sweep() for k in range(len(b))
    ]
    parts = [Sampler(s, encoder, batch=8, labels="visits") for s in (other, stored)]
    mixed = MixedSampler(parts, [1, 1], batch=8)
    batch = mixed.batch(0)
    assert mixed.searched == alone.searched
    assert [len(labels_of(batch, k)) for k in range(4)] == [1] * 4
    assert np.allclose(batch.shares.sum(1), 1)


def test_rules_on_fairy_give_the_same_labels(stored: Store) -> None:
    spec = stored.spec
    slow = spec.model_copy(update={"rules": spec.rules.model_copy(update={"engine": "fairy"})})
    options = {"batch": 20, "seed": 2, "mirror": Encoder(spec).symmetric, "labels": "visits"}
    quick = Sampler(stored, Encoder(spec), **options).batch(1)  # type: ignore[arg-type]
    plain = Sampler(
        stored,
        Encoder(slow),
        rules=rules_of(spec.variant),
        **options,  # type: ignore[arg-type]
    ).batch(1)
    for name in ("choices", "shares", "action"):
        assert np.array_equal(getattr(quick, name), getattr(plain, name)), name


@dataclass
class Arrays:
    """A store in memory with visits."""

    codes: NDArray[np.uint16]
    offsets: NDArray[np.int64]
    results: NDArray[np.int8]
    starts: Position
    start_of: NDArray[np.int32]
    visits: Visits
    opening_plies: NDArray[np.int64]
    cut_off: NDArray[np.bool_]
    root_values: None = None
    scores: None = None
    trains: None = None


def test_a_visited_move_of_another_game_is_reported(stored: Store) -> None:
    assert stored.visits is not None
    wrong = stored.visits._replace(codes=np.full_like(stored.visits.codes, 0xFFFF))
    arrays = Arrays(
        stored.codes,
        stored.offsets,
        stored.results,
        stored.starts,
        stored.start_of,
        wrong,
        stored.opening_plies,
        stored.cut_off,
    )
    sampler = Sampler(cast("Store", arrays), Encoder(stored.spec), batch=64, labels="visits")
    with pytest.raises(DataError, match="a code is not a move of its position"):
        list(sampler.sweep())
