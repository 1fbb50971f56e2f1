"""The store gives back what was put in, in any shards, and tells what it is."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_fakes import CODEC, OTHER, SPEC, game, read, records, write

from variant_ai.core.data.filters import GameFilter
from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.store.columns import ColumnError, ColumnReader, Columns
from variant_ai.core.data.store.game_store import NO_RATING, Store, StoreWriter
from variant_ai.core.errors import DataError, MoveError
from variant_ai.core.spec.hashing import rules_hash, spec_hash
from variant_ai.core.spec.schema import VariantSpec


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(records(), max_size=9), st.integers(1, 4))
def test_games_come_back_as_they_were(games: list[GameRecord], shard: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = read(write(Path(folder) / "a.store", games, shard_games=shard))
        assert list(store.games()) == games
        assert len(store) == len(games)
        assert store.plies == sum(g.plies for g in games) == len(store.codes)
        assert store.info.shards == -(-len(games) // shard)
        assert store.offsets.tolist() == np.cumsum([0, *(g.plies for g in games)]).tolist()
        assert store.results.tolist() == [2 if g.value is None else g.value for g in games]
        assert store.years.tolist() == [g.year or 0 for g in games]
        assert [store.start_fens[i] for i in store.start_of] == [g.start_fen for g in games]
        assert store.starts["ply"].tolist() == [len(fen or "") for fen in store.start_fens]
        for name in ("white", "event", "source"):
            table, rows = store.column(name)
            assert [table[i] for i in rows] == [getattr(g, name) for g in games]
            assert len(set(table)) == len(table)
        ratings = [
            [NO_RATING if r is None else r for r in (g.white_elo, g.black_elo)] for g in games
        ]
        assert store.ratings.tolist() == ratings
        store.verify()


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.lists(records(), max_size=8), st.integers(0, 8), st.integers(1, 3), st.integers(1, 3))
def test_appending_is_writing_at_once(
    games: list[GameRecord], at: int, shard: int, other: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        whole = read(write(Path(folder) / "whole.store", games, shard_games=shard))
        path = write(Path(folder) / "parts.store", games[:at], shard_games=other)
        parts = read(write(path, games[at:], mode="append", shard_games=shard))
        assert list(parts.games()) == games
        assert parts.content_hash == whole.content_hash
        assert not parts.info.unfinished


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    st.lists(st.integers(-(1 << 62), 1 << 62)),
    st.lists(st.none() | st.integers(-(1 << 40), 1 << 40)),
    st.lists(st.text(max_size=5) | st.just("\ud800 lone")),
    st.binary(),
)
def test_columns_come_back(
    integers: list[int], optional: list[int | None], words: list[str], data: bytes
) -> None:
    columns = Columns()
    columns.add_integers("integers", integers)
    columns.add_optional("optional", optional)
    columns.add_texts("words", words)
    columns.add_bytes("data", data)
    reader = ColumnReader(columns.to_bytes())
    assert reader.integers("integers").tolist() == integers
    assert reader.optional("optional") == optional
    table, rows = reader.texts("words")
    assert [table[i] for i in rows] == words
    assert bytes(reader.bytes("data")) == data
    with pytest.raises(ColumnError, match="'nothing' is missing"):
        reader.integers("nothing")


def test_content_hash_covers_only_moves_results_and_starts(tmp_path: Path) -> None:
    games = [game(i, result="1-0") for i in range(5)]
    here = read(write(tmp_path / "a.store", games)).content_hash

    def other(i: int, **facts: object) -> str:
        changed = [replace(g, **facts) if k == i else g for k, g in enumerate(games)]
        return read(write(tmp_path / "b.store", changed, mode="replace")).content_hash

    assert other(1, white="Hu Ronghua", group="g") == here
    assert other(1, result="0-1") != here
    assert other(1, start_fen="x") != here
    assert other(1, moves=[1, 2, 3, 4, 6]) != here
    assert other(1, moves=[*games[1].moves, 0]) != here


def test_the_same_games_make_the_same_bytes(tmp_path: Path) -> None:
    games = [game(i, event=f"e{i}") for i in range(7)]
    first = write(tmp_path / "a.store", games, shard_games=3).read_bytes()
    assert write(tmp_path / "b.store", games, shard_games=3).read_bytes() == first


def test_info_has_the_origin_of_games(tmp_path: Path) -> None:
    path = tmp_path / "a.store"
    asked = GameFilter(min_rating=2000, not_endings=("aborted",))
    with StoreWriter(path, SPEC, codec=CODEC, sources=["a.pgn"], conditions=asked) as writer:
        writer.add(game(1))
        writer.close({"rating missing": 3})
    write(path, [game(2)], mode="append", sources=["b.pgn", "a.pgn"])
    info = Store(path).info
    assert info.variant == SPEC.variant and info.title == SPEC.title
    assert (info.rules_hash, info.spec_hash) == (rules_hash(SPEC), spec_hash(SPEC))
    assert (info.games, info.plies, info.shards) == (2, 10, 2)
    assert info.bytes == path.stat().st_size
    assert info.sources == ("a.pgn", "b.pgn")
    assert info.runs[0].conditions == {"min_rating": 2000, "not_endings": ["aborted"]}
    assert info.runs[0].dropped == {"rating missing": 3} and info.runs[1].dropped == {}
    assert info.runs[0].tool.startswith("variant-ai ")


def test_the_spec_travels_with_the_games(tmp_path: Path) -> None:
    assert Store(write(tmp_path / "a.store", [game()])).spec == SPEC


def test_the_start_of_the_spec_is_stored_as_none(tmp_path: Path) -> None:
    store = read(write(tmp_path / "a.store", [game(start_fen=SPEC.rules.start)]))
    assert store.start_fens == (None,) and store.game(0).start_fen is None


def test_groups_number_games_without_one_by_themselves(tmp_path: Path) -> None:
    games = [game(i, group=g) for i, g in enumerate(["", "a", "", "b", "a"])]
    groups = read(write(tmp_path / "a.store", games)).groups.tolist()
    assert groups[1] == groups[4] and len(set(groups)) == 4


def test_select_counts_reasons(tmp_path: Path) -> None:
    games = [game(0, plies=30), game(1, plies=3), game(2, plies=30, result="1-0")]
    kept, dropped = read(write(tmp_path / "a.store", games)).select(
        GameFilter(min_plies=20, known_result=True)
    )
    assert kept.tolist() == [2]
    assert dropped == {"under 20 plies": 1, "result unknown": 1}


def test_copy_takes_games_without_replaying(tmp_path: Path) -> None:
    games = [game(i, scores=[i] * 5, tags={"n": str(i)}) for i in range(7)]
    store = read(write(tmp_path / "a.store", games, shard_games=2))

    class NoCodec:
        def __getattr__(self, name: str) -> object:
            raise AssertionError("a copy asked the rules")

    with StoreWriter(tmp_path / "b.store", SPEC, codec=NoCodec()) as writer:  # type: ignore[arg-type]
        writer.copy(store, [6, 0, 3])
        assert (writer.games, writer.plies) == (3, 15)
    assert list(read(tmp_path / "b.store").games()) == [games[6], games[0], games[3]]


def test_indices_count_from_the_end_too(tmp_path: Path) -> None:
    games = [game(i) for i in range(5)]
    store = read(write(tmp_path / "a.store", games, shard_games=2))
    assert store.game(-1) == games[4] and store.raw(-5)[1].tolist() == games[0].moves
    for index in (5, -6):
        with pytest.raises(IndexError, match="of a store of 5 games"):
            store.game(index)


def test_codes_beyond_a_byte_of_planes_are_kept(tmp_path: Path) -> None:
    games = [game(0, plies=0), replace(game(1), moves=[65535, 0, 30000, 90, 1])]
    assert list(read(write(tmp_path / "a.store", games)).games()) == games


# --- rejections --------------------------------------------------------------------------------


def changed(spec: VariantSpec, **rules: object) -> VariantSpec:
    data = json.loads(spec.model_dump_json(by_alias=True))
    data["rules"]["no_progress"].update(rules)
    return VariantSpec.model_validate_json(json.dumps(data))


def test_another_variant_is_rejected(tmp_path: Path) -> None:
    path = write(tmp_path / "a.store", [game()])
    with pytest.raises(DataError, match="holds games of xiangqi, not of crazyhouse"):
        Store(path, OTHER)
    with pytest.raises(DataError, match="holds games of xiangqi, not of crazyhouse"):
        StoreWriter(path, OTHER, mode="append")
    with (
        StoreWriter(tmp_path / "b.store", OTHER, codec=CODEC) as writer,
        pytest.raises(DataError, match="a game of 'xiangqi' for a store of crazyhouse"),
    ):
        writer.add(game())


def test_other_rules_are_rejected_with_the_difference(tmp_path: Path) -> None:
    path = write(tmp_path / "a.store", [game()])
    with pytest.raises(
        DataError, match=r"other rules.*rules\.no_progress\.plies: 120 there, 100 here"
    ):
        Store(path, changed(SPEC, plies=100))
    writer = StoreWriter(tmp_path / "b.store", changed(SPEC, plies=100), codec=CODEC)
    with pytest.raises(DataError, match="other rules"):
        writer.copy(read(path))
    writer.abort()


def test_input_planes_may_change(tmp_path: Path) -> None:
    """A store depends on the rules alone; a spec with another network input reads it."""
    data = json.loads(SPEC.model_dump_json(by_alias=True))
    data["input"] = data["input"][:2]
    data["title"] = "another"
    other = VariantSpec.model_validate_json(json.dumps(data))
    assert len(Store(write(tmp_path / "a.store", [game()]), other)) == 1


def test_existing_stores_are_not_overwritten(tmp_path: Path) -> None:
    path = write(tmp_path / "a.store", [game()])
    with pytest.raises(DataError, match="already exists"):
        write(path, [game(1)])
    assert len(read(path)) == 1
    write(path, [game(1), game(2)], mode="replace")
    assert len(read(path)) == 2


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
def test_a_device_or_a_pipe_is_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(DataError, match="is a device or a pipe, not a game store"):
        StoreWriter(pipe, SPEC, mode="replace", codec=CODEC, command="x")
    assert list(tmp_path.iterdir()) == [pipe] and pipe.is_fifo()


def test_files_that_are_not_stores(tmp_path: Path) -> None:
    (tmp_path / "a.pgn").write_text('[Event "x"]\n\n1. e4 *\n')
    (tmp_path / "empty.store").touch()
    for path, words in (
        (tmp_path / "none.store", "there is no game store"),
        (tmp_path, "is a folder"),
        (tmp_path / "a.pgn", "is not a game store"),
        (tmp_path / "empty.store", "is empty"),
    ):
        with pytest.raises(DataError, match=words):
            Store(path)


def test_later_formats_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("variant_ai.core.data.store.store_format.FORMAT", 2)
    path = write(tmp_path / "a.store", [])
    monkeypatch.undo()
    with pytest.raises(
        DataError, match="store format 2, but this version of variant-ai reads format 1"
    ):
        Store(path)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"scores": [1, 2]}, "2 scores for a game of 5 plies"),
        ({"result": "won"}, "result 'won' is not one of"),
        ({"white_elo": 1 << 40}, "white elo 1099511627776; accepted"),
    ],
)
def test_records_that_do_not_fit_add_nothing(
    tmp_path: Path, facts: dict[str, object], words: str
) -> None:
    with StoreWriter(tmp_path / "a.store", SPEC, codec=CODEC) as writer:
        with pytest.raises(DataError, match=words):
            writer.add(game(**facts))
        assert writer.games == 0
        writer.add(game())
    assert len(read(tmp_path / "a.store")) == 1


def test_moves_without_a_code_add_nothing(tmp_path: Path) -> None:
    class Refusing:
        def encode(self, fen: str | None, moves: object) -> None:
            raise MoveError("ply 0: no such move")

    with StoreWriter(tmp_path / "a.store", SPEC, codec=Refusing()) as writer:  # type: ignore[arg-type]
        with pytest.raises(MoveError, match="ply 0"):
            writer.add(game())
        assert writer.games == 0


def test_codes_of_no_move_name_the_game(tmp_path: Path) -> None:
    class Refusing:
        def decode(self, fen: str | None, codes: object) -> None:
            raise MoveError("ply 3: code 7 is no move")

    path = write(tmp_path / "a.store", [game(), game(1)])
    store = Store(path, SPEC, codec=Refusing())  # type: ignore[arg-type]
    with pytest.raises(DataError, match="game 2: ply 3: code 7"):
        store.game(1)


def test_a_closed_writer_rejects_games(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "a.store", SPEC, codec=CODEC)
    writer.close()
    writer.close()
    with pytest.raises(DataError, match="is closed"):
        writer.add(game())
