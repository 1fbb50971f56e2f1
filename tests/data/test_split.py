"""A split puts every game on one side, equal keys together, and moves nothing when games come."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_fakes import game, read, write

from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.sample.split import (
    By,
    Split,
    SplitPlan,
    parse_years,
    shared_prefix,
    split_games,
    split_stores,
)
from variant_ai.core.data.store.game_store import Store
from variant_ai.core.errors import DataError, UnknownNameError


def stored(folder: Path, games: list[GameRecord]) -> Store:
    return read(write(folder / "a.store", games, mode="replace"))


def moves_of(store: Store, split: Split) -> dict[str, set[tuple[int, ...]]]:
    return {name: {tuple(store.raw(i)[1].tolist()) for i in games} for name, games in split}


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["", "a", "b", "c"])), min_size=12),
    st.sampled_from(["game", "group", "source"]),
    st.integers(0, 3),
)
def test_every_game_is_on_one_side_and_keys_stay_together(
    drawn: list[tuple[int, str]], by: By, seed: int
) -> None:
    games = [game(n, group=g, source=f"s{n}", white=str(i)) for i, (n, g) in enumerate(drawn)]
    with tempfile.TemporaryDirectory() as folder:
        store = stored(Path(folder), games)
        plan = SplitPlan(by=by, validation=0.3, test=0.2, seed=seed)
        try:
            split = split_games(store, plan)
        except DataError as error:
            keys = {"game": 0, "source": 0, "group": 1}[by]
            assert "leaves none for" in str(error)
            assert len({d if by == "group" and d[1] == "" else d[keys] for d in drawn}) < 4
            return
    together = np.sort(np.concatenate([games_ for _, games_ in split]))
    assert together.tolist() == list(range(len(games)))
    side = {int(i): name for name, games_ in split for i in games_}
    for i, (n, g) in enumerate(drawn):
        for j, (m, h) in enumerate(drawn):
            same = g == h if by == "group" and (g or h) else n == m
            if same:
                assert side[i] == side[j]


def test_adding_games_moves_none(tmp_path: Path) -> None:
    games = [game(i, plies=8) for i in range(400)]
    plan = SplitPlan(validation=0.2, test=0.1)
    few, many = stored(tmp_path, games[:200]), None
    before = moves_of(few, split_games(few, plan))
    many = stored(tmp_path, games[::-1])
    after = moves_of(many, split_games(many, plan))
    for name, seen in before.items():
        assert seen <= after[name]


def test_a_game_in_two_stores_is_on_one_side(tmp_path: Path) -> None:
    """Also where the second store has so few that one of them would be held back by force."""
    games = [game(i, plies=8) for i in range(200)]
    large = read(write(tmp_path / "large.store", games))
    plan = SplitPlan(validation=0.05)
    alone = moves_of(large, split_games(large, plan))
    trained = [g for i, g in enumerate(games) if i in set(split_games(large, plan).train)][:3]
    small = read(write(tmp_path / "small.store", trained))
    first, second = split_stores([large, small], plan)
    assert moves_of(large, first) == alone
    assert len(second.train) == 3 and not len(second.validation)


def test_one_of_several_stores_may_have_no_validation_games(tmp_path: Path) -> None:
    old = read(write(tmp_path / "old.store", [game(i, date="2001") for i in range(4)]))
    new = read(write(tmp_path / "new.store", [game(i, date="2008") for i in range(5)]))
    plan = SplitPlan("year", validation_keys=("2008",))
    first, second = split_stores([old, new], plan)
    assert (len(first.train), len(second.validation)) == (4, 5)
    with pytest.raises(DataError, match=r"old\.store leaves none for validation"):
        split_stores([old, old], plan)


def test_shares_are_met_on_average(tmp_path: Path) -> None:
    store = stored(tmp_path, [game(i, plies=9) for i in range(3000)])
    split = split_games(store, SplitPlan(validation=0.2, test=0.05, seed=4))
    assert abs(len(split.validation) / 3000 - 0.2) < 0.03
    assert abs(len(split.test) / 3000 - 0.05) < 0.02
    assert [len(a) for _, a in split] != [
        len(a) for _, a in split_games(store, SplitPlan(validation=0.2, test=0.05, seed=5))
    ]


def test_few_games_still_give_every_side_one(tmp_path: Path) -> None:
    store = stored(tmp_path, [game(i) for i in range(3)])
    for seed in range(8):
        split = split_games(store, SplitPlan(validation=0.01, test=0.01, seed=seed))
        assert [len(a) for _, a in split] == [1, 1, 1]


def test_without_shares_all_games_are_for_training(tmp_path: Path) -> None:
    split = split_games(stored(tmp_path, [game(1), game(2)]), SplitPlan(validation=0))
    assert split.train.tolist() == [0, 1] and not len(split.validation) and not len(split.test)


def test_years_go_where_they_are_sent(tmp_path: Path) -> None:
    dates = ["2007.01.01", "2008.??.??", "", "2009", "2010.12.01", "1999"]
    store = stored(tmp_path, [game(i, date=d) for i, d in enumerate(dates)])
    split = split_games(store, SplitPlan("year", validation_keys=("2008",), test_keys=("2009-",)))
    assert split.train.tolist() == [0, 2, 5]
    assert split.validation.tolist() == [1] and split.test.tolist() == [3, 4]
    undated = split_games(store, SplitPlan("year", validation_keys=("none", "-1999")))
    assert undated.validation.tolist() == [2, 5]


def test_a_side_without_games_names_what_the_games_have(tmp_path: Path) -> None:
    def complaint(games: list[GameRecord], by: By, key: str) -> str:
        with pytest.raises(DataError) as found:
            split_games(stored(tmp_path, games), SplitPlan(by, validation_keys=(key,)))
        return str(found.value)

    undated = [game(i) for i in range(2)]
    assert complaint(undated, "year", "2008").endswith("for validation; no game has a date")
    dated = [game(i, date=str(1999 + i)) for i in range(3)]
    assert complaint([*undated, *dated], "year", "2008").endswith("; the games are of 1999 to 2001")
    assert complaint(dated[:1], "year", "2008").endswith("; the games are of 1999")
    sources = [game(i, source=f"{i}.pgn") for i in range(6)]
    said = complaint(sources, "source", "x")
    assert said.endswith("; their sources: 0.pgn, 1.pgn, 2.pgn, 3.pgn, 4.pgn and 1 other")
    assert complaint(undated, "source", "x").endswith("; no game has a source")


def test_a_store_without_games_cannot_be_split(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.store has no games$"):
        split_games(stored(tmp_path, []), SplitPlan())


def test_sources_go_where_they_are_sent(tmp_path: Path) -> None:
    games = [game(i, source=s) for i, s in enumerate(["a.pgn!1", "b.pgn", "a.pgn!2"])]
    split = split_games(stored(tmp_path, games), SplitPlan("source", validation_keys=("a.pgn*",)))
    assert split.validation.tolist() == [0, 2] and split.train.tolist() == [1]


def test_the_other_start_is_another_game(tmp_path: Path) -> None:
    games = [game(1, start_fen=f"f{i}") for i in range(40)]
    split = split_games(stored(tmp_path, games), SplitPlan(validation=0.5))
    assert len(split.train) and len(split.validation)


@pytest.mark.parametrize(
    ("text", "years"),
    [
        ("2008", (2008, 2008)),
        ("2008-2010", (2008, 2010)),
        ("2010-", (2010, 9999)),
        ("none", (0, 0)),
        ("-1990", (1, 1990)),
    ],
)
def test_spans_of_years(text: str, years: tuple[int, int]) -> None:
    assert parse_years(text) == years


@pytest.mark.parametrize("text", ["", "-", "208", "2010-2008", "2008-05", "x"])
def test_bad_spans_of_years(text: str) -> None:
    with pytest.raises(DataError, match=r"accepted|ends before"):
        SplitPlan("year", validation_keys=(text,))


def test_invalid_plans() -> None:
    with pytest.raises(DataError, match="leave games for training"):
        SplitPlan(validation=0.6, test=0.4)
    with pytest.raises(DataError, match="must not be negative"):
        SplitPlan(validation=-0.1)
    with pytest.raises(DataError, match="requires the years"):
        SplitPlan("year")
    with pytest.raises(DataError, match="takes shares"):
        SplitPlan("group", test_keys=("a",))
    with pytest.raises(UnknownNameError, match="did you mean 'game'"):
        SplitPlan("gmae")  # type: ignore[arg-type]


def test_empty_and_overlapping_sets_are_reported(tmp_path: Path) -> None:
    store = stored(tmp_path, [game(1, date="2008"), game(2, date="2009")])
    with pytest.raises(DataError, match=r"validation 2001\) of the 2 games .* none for validation"):
        split_games(store, SplitPlan("year", validation_keys=("2001",)))
    with pytest.raises(DataError, match="none for train"):
        split_games(store, SplitPlan("year", validation_keys=("2008-2009",)))
    with pytest.raises(DataError, match="game 1 and 0 others are in both"):
        split_games(store, SplitPlan("year", validation_keys=("2008",), test_keys=("-2008",)))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.lists(
        st.tuples(st.sampled_from([None, "f"]), st.lists(st.integers(0, 2), max_size=6)),
        min_size=1,
        max_size=12,
    ),
    st.integers(0, 12),
)
def test_shared_prefix_is_the_longest_common_one(
    drawn: list[tuple[str | None, list[int]]], at: int
) -> None:
    games = [game(start_fen=fen) for fen, _ in drawn]
    for record, (_, moves) in zip(games, drawn, strict=True):
        record.moves = moves
    at = min(at, len(games))
    train, others = np.arange(at), np.arange(at, len(games))

    def common(a: GameRecord, b: GameRecord) -> int:
        if a.start_fen != b.start_fen:
            return 0
        pairs = zip(a.moves, b.moves, strict=False)
        return next((i for i, (x, y) in enumerate(pairs) if x != y), min(a.plies, b.plies))

    with tempfile.TemporaryDirectory() as folder:
        found = shared_prefix(stored(Path(folder), games), train, others)
    expected = [max((common(games[i], games[j]) for j in train), default=0) for i in others]
    assert found.tolist() == expected
