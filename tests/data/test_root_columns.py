"""Root values, `trains` and generations: kept by stores, carried along, part of the content hash."""

from __future__ import annotations

import io
import json
import math
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_fakes import CODEC, SPEC, game, read, records, write

from variant_ai.core.data.game_record import FULL_WEIGHT, MATE, GameRecord, PlyVisits
from variant_ai.core.data.game_text import json_line
from variant_ai.core.data.read.game_reader import RawGame
from variant_ai.core.data.read.line_formats import JsonlReader
from variant_ai.core.data.read.resolve import Resolver
from variant_ai.core.data.store import store_format
from variant_ai.core.data.store.blocks import scan
from variant_ai.core.data.store.columns import ColumnError, Columns
from variant_ai.core.data.store.game_store import StoreWriter
from variant_ai.core.data.store.visits import RootBlock
from variant_ai.core.errors import DataError
from variant_ai.core.rules import make_rules
from variant_ai.core.rules.text.notation import core_notations


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.lists(records(), max_size=7), st.integers(1, 3), st.integers(1, 3))
def test_the_arrays_of_a_store_are_those_of_its_games(
    games: list[GameRecord], shard: int, other: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = read(write(Path(folder) / "a.store", games, shard_games=shard))
        store.verify()
        assert list(store.games()) == games
        again = read(write(Path(folder) / "b.store", games, shard_games=other))
        assert again.content_hash == store.content_hash
        arrays = {name: getattr(store, name) for name in ("root_values", "scores", "trains")}

    def plies(name: str, default: float) -> list[float]:
        listed = [getattr(g, name) or [None] * g.plies for g in games]
        return [default if v is None else v for values in listed for v in values]

    for name in ("root_values", "scores"):
        wanted = np.array(plies(name, math.nan), np.float32)
        found = arrays[name]
        if found is None:
            assert np.isnan(wanted).all()
        else:
            np.testing.assert_allclose(found, wanted, rtol=1e-6)
    bits = plies("trains", 3)
    assert bits == ([3] * len(bits) if arrays["trains"] is None else arrays["trains"].tolist())


def taught(number: int = 0, **facts: object) -> GameRecord:
    values = [0.25, None, -1.0, 0.5, 1.0]
    made = replace(game(number), root_values=values, trains=[0, 3, 2, 1, 3], generation=7)
    return replace(made, **facts)  # type: ignore[arg-type]


def test_only_shards_with_these_columns_have_their_block(tmp_path: Path) -> None:
    games = [game(0), game(1), taught(2), game(3), game(4), replace(game(5), generation=0)]
    path = write(tmp_path / "a.store", games, shard_games=2)
    with path.open("rb") as file:
        blocks = [block for block in scan(file, "a").blocks if block.kind == store_format.ROOT]
    assert [(b.shard, b.games, b.plies) for b in blocks] == [(1, 0, 0), (2, 0, 0)]
    store = read(path)
    assert list(store.games()) == games
    assert store.visits is None and store.info.games_with_visits == 0


def test_copies_carry_them(tmp_path: Path) -> None:
    games = [taught(i) if i % 2 else game(i) for i in range(7)]
    store = read(write(tmp_path / "a.store", games, shard_games=2))
    with StoreWriter(tmp_path / "b.store", SPEC, codec=CODEC, parents=[store]) as writer:
        writer.copy(store, [5, 0, 3, 2])
    assert list(read(tmp_path / "b.store").games()) == [games[i] for i in (5, 0, 3, 2)]


def test_the_content_hash_covers_what_is_learnt(tmp_path: Path) -> None:
    def content(number: int, record: GameRecord) -> str:
        return read(write(tmp_path / f"{number}.store", [game(0), record])).content_hash

    bare = content(0, game(1))
    different = [
        taught(1),
        taught(1, root_values=None),
        taught(1, trains=None),
        taught(1, trains=[0, 3, 2, 3, 3]),
        taught(1, root_values=[0.25, None, -1.0, 0.5, 0.9999]),
    ]
    hashes = {content(number, record) for number, record in enumerate(different, 1)}
    assert len(hashes | {bare}) == 6
    assert content(7, replace(game(1), generation=7)) == bare


def test_the_content_hash_does_not_see_shards(tmp_path: Path) -> None:
    """A game without plies has lists without numbers."""
    games = [replace(game(0, plies=0), root_values=[], trains=[]), game(1)]
    alone = read(write(tmp_path / "a.store", games, shard_games=1))
    together = read(write(tmp_path / "b.store", games, shard_games=2))
    assert alone.content_hash == together.content_hash


def test_values_between_steps_are_rounded(tmp_path: Path) -> None:
    values = [0.123449, 1e-9, None, -0.99996, 1 / 3]
    store = read(write(tmp_path / "a.store", [taught(root_values=values)]))
    assert store.game(0).root_values == [0.1234, 0.0, None, -1.0, 0.3333]


def test_a_policy_target_over_all_moves_of_a_position_is_kept(tmp_path: Path) -> None:
    weights = [FULL_WEIGHT - 599 * 100, *[100] * 599]
    visits: list[PlyVisits] = [tuple(enumerate(weights)), (), (), (), ()]
    record = replace(game(), visits=visits)
    store = read(write(tmp_path / "a.store", [record]))
    assert store.game(0) == record
    assert store.visits is not None and store.visits.max_moves == 600
    assert store.visits.weights.tolist() == weights


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"root_values": [0.0] * 4}, "4 root values for a game of 5 plies"),
        ({"root_values": [0.0, 1.5, 0.0, 0.0, 0.0]}, r"ply 2: root value 1.5; accepted: -1 to 1"),
        ({"root_values": [math.nan, 0.0, 0.0, 0.0, 0.0]}, "ply 1: root value nan"),
        ({"trains": [1, 2, 3]}, "3 trains for a game of 5 plies"),
        ({"trains": [1, 2, 3, 4, 0]}, "ply 4: trains 4; accepted: 0 to 3"),
        ({"generation": -1}, "generation -1; accepted: 0 to 2147483647"),
    ],
)
def test_records_that_cannot_be_kept_are_rejected(
    tmp_path: Path, facts: dict[str, object], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        write(tmp_path / "a.store", [taught(**facts)])


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("has_root_values", [1], "'has_root_values' does not have 2 rows"),
        ("root_values", [1, 1], "'root_values' does not have a row for each ply"),
        ("root_values", [1, 1, 10_002], "a root value is out of range"),
        ("trains", [1, 1], "'trains' does not have a row for each ply"),
        ("trains", [1, 4], "'trains' does not have a row for each ply"),
        ("trains", [1, 4, 0], "a number of 'trains' is out of range"),
        ("generation", [1], "'generation' does not have 2 rows"),
    ],
)
def test_columns_that_do_not_fit_are_damage(name: str, values: list[int], message: str) -> None:
    def body(changed: dict[str, list[int]]) -> bytes:
        lists = {
            "has_visits": [0, 0], "counts": [], "visits": [], "codes": [],
            "has_root_values": [1, 0], "root_values": [1, -10_000, 0],
            "has_trains": [1, 0], "trains": [1, 2, 3], "generation": [1, 0],
        }  # fmt: skip
        columns = Columns()
        for key, numbers in (lists | changed).items():
            columns.add_integers(key, numbers)
        return columns.to_bytes()

    none = np.zeros(0, np.int64)
    moves = store_format.Moves(
        none.astype(np.uint16), np.array([3, 2]), none.astype(np.int8), none.astype(np.int16),
        [], none.astype(np.int32), none,
    )  # fmt: skip
    block = RootBlock(body({}), 90, moves)
    made = [GameRecord("x"), GameRecord("x")]
    for number, record in enumerate(made):
        block.add_to(record, number)
    assert made[0].root_values == [0.0, -1.0, None] and made[0].trains == [1, 2, 3]
    assert made[0].generation == 0 and made[1] == GameRecord("x")
    with pytest.raises(ColumnError, match=message):
        RootBlock(body({name: values}), 90, moves)


# --- as JSON lines -------------------------------------------------------------------------------


def raw_of(line: str) -> RawGame:
    (raw,) = JsonlReader().read(io.BufferedReader(io.BytesIO(line.encode())), "a.jsonl")  # type: ignore[arg-type]
    return raw


def test_json_lines_carry_them() -> None:
    rules = make_rules(SPEC)
    position, moves = rules.position(None), []
    for _ in range(5):
        moves.append(int(rules.legal_moves(position)[0]))
        position = rules.play(position, moves[-1])
    record = taught(moves=moves, scores=[3, None, MATE - 2, 0, 1])
    (uci,) = [notation for notation in core_notations() if notation.name == "uci"]
    again = Resolver(rules, [uci]).resolve(raw_of(json_line(rules, uci, record)))
    assert isinstance(again, GameRecord)
    for name in ("moves", "scores", "root_values", "trains", "generation"):
        assert getattr(again, name) == getattr(record, name), name


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("root_values", [0.5], "list of 2 nulls or numbers"),
        ("root_values", [0.5, 2], "list of 2 nulls or numbers"),
        ("trains", [3, 4], "list of 2 integers from 0 to 3"),
        ("generation", -1, "must be from 0"),
    ],
)
def test_json_that_does_not_fit_is_no_game(key: str, value: object, message: str) -> None:
    raw = raw_of(json.dumps({"moves": "h3e3 h10g8", key: value}))
    assert raw.problem == "not a game" and message in raw.detail
