"""Statistics of small sets of games whose numbers are counted by hand."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from store_fakes import game, read, write

from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.statistics import Statistics, statistics


def described(path: Path, played: list[GameRecord], **options: object) -> Statistics:
    store = read(write(path / "a.store", played, mode="replace", shard_games=3))
    return statistics(store, write_move=lambda code: f"m{code}", **options)  # type: ignore[arg-type]


def test_table_of_the_thesis(tmp_path: Path) -> None:
    games = [
        game(0, 4, white="Hu", black="Xu", result="1-0", white_elo=2400, event="Cup", date="2007"),
        game(1, 9, white="Hu", black="Lü", result="0-1", white_elo=2500, black_elo=2300),
        game(2, 2, white="Zhao", black="Hu", result="1/2-1/2", event="Cup", date="2007.02.01"),
        game(3, 0, white="Tao", black="Wang", date="2009", termination="Time forfeit"),
        game(4, 5, white="?", result="1-0", event="League", group="g", time_control="60+0"),
    ]
    found = described(tmp_path, games)
    assert (found.games, found.events, found.players, found.nameless) == (5, 2, 6, 1)
    assert (found.plies.least, found.plies.mean, found.plies.median, found.plies.most) == (
        0,
        4.0,
        4.0,
        9,
    )
    assert found.plies_in_all == 20 and found.plies.deviation == pytest.approx(9.2**0.5)
    assert [(r.name, r.games, r.share) for r in found.results] == [
        ("first player won", 2, 0.4),
        ("drawn", 1, 0.2),
        ("second player won", 1, 0.2),
        ("unknown", 1, 0.2),
    ]
    assert found.ratings["first"].numbers.mean == 2450 and found.ratings["first"].missing == 0.6
    assert found.ratings["second"].numbers.count == 1 and found.ratings["second"].missing == 0.8
    assert found.ratings["game"].numbers.mean == 2400 and found.rating_missing == 0.8
    assert [(y.name, y.games) for y in found.years] == [("2007", 2), ("2009", 1)]
    assert found.undated == 2
    assert [(t.name, t.games) for t in found.time_controls] == [("", 4), ("60+0", 1)]
    assert [(e.name, e.games) for e in found.endings] == [("unknown", 4), ("time", 1)]
    json.dumps(asdict(found))


def test_share_of_the_most_active(tmp_path: Path) -> None:
    """Eight players; Ann is in four games of six, the top fifth (Ann, Bo) in five."""
    pairs = ["Ann Bo", "Ann C", "D Ann", "Ann E", "Bo F", "G H"]
    games = [game(i, white=w, black=b) for i, (w, b) in enumerate(pair.split() for pair in pairs)]
    games += [game(9, white="", black="?")]
    found = described(tmp_path, games, top=1)
    assert found.players == 8 and found.nameless == 1
    assert [(p.name, p.games) for p in found.top_players] == [("Ann", 4)]
    assert found.top_players[0].share == found.top_players_share == pytest.approx(4 / 6)
    assert found.top_fifth_players == 2 and found.top_fifth_share == pytest.approx(5 / 6)


def test_a_player_against_himself_plays_one_game(tmp_path: Path) -> None:
    found = described(tmp_path, [game(i, white="SF", black="SF") for i in range(3)])
    assert found.players == 1 and found.top_players[0].games == 3
    assert found.top_players_share == 1.0 and found.top_fifth_players == 1


def test_first_moves_with_their_score(tmp_path: Path) -> None:
    def opened(code: int, result: str, fen: str | None = None) -> GameRecord:
        return replace(game(start_fen=fen), moves=[code, 7], result=result)  # type: ignore[arg-type]

    games = [
        opened(5, "1-0"),
        opened(5, "1/2-1/2"),
        opened(5, "*"),
        opened(3, "*"),
        opened(4, "0-1"),
        opened(9, "1-0", "another start"),
        game(0, 0),
    ]
    found = described(tmp_path, games, moves=2)
    assert [(m.move, m.games, m.share, m.score) for m in found.first_moves] == [
        ("m5", 3, 0.6, 0.75),
        ("m3", 1, 0.2, None),
    ]
    assert found.other_starts == 1


def test_copies_are_equal_moves_from_equal_starts(tmp_path: Path) -> None:
    games = [game(1), game(1, white="x"), game(1, start_fen="f"), game(2), game(1)]
    assert described(tmp_path, games).copies == 2


def test_groups_count_lone_games(tmp_path: Path) -> None:
    games = [game(i, group=g) for i, g in enumerate(["a", "", "a", "", "b"])]
    assert described(tmp_path, games).groups == 4


def test_a_part_of_the_games(tmp_path: Path) -> None:
    games = [game(i, 3 + i, white=f"p{i}", black="q", date=str(2000 + i)) for i in range(6)]
    found = described(tmp_path, games, games=[1, 4])
    assert found.games == 2 and found.plies.most == 7 and found.players == 3
    assert [y.name for y in found.years] == ["2001", "2004"]


def test_no_games(tmp_path: Path) -> None:
    found = described(tmp_path, [])
    assert found.games == found.players == found.copies == 0
    assert found.plies.mean is None and found.top_players == () and found.first_moves == ()
    assert found.top_fifth_share == 0.0
