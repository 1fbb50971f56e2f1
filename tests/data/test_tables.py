"""Games as rows of a table."""

from __future__ import annotations

import pytest
from importing import HOUSE_UCI, RED, RED_UCI, RED_WXF, moves, one, raw_games, reader, resolved

from variant_ai.core.data.game_record import GameRecord

HEAD = "red;black;red_elo;black_elo;result;num_moves;event;moves"
NUMBERED = "1. C2=5 H8+7 2. H2+3 R9=8 3. R1=2 h2+3 4. P7+1 p7+1"


def test_the_export_of_the_thesis() -> None:
    text = f"{HEAD}\n许银川;赵国荣;2470;0;1-0;8;全国个人赛;{NUMBERED}\n"
    game = one("xiangqi", "table", text)
    assert moves(game) == RED_UCI
    assert (game.white, game.black, game.result) == ("许银川", "赵国荣", "1-0")
    assert (game.white_elo, game.black_elo, game.event) == (2470, None, "全国个人赛")
    assert game.tags == {}


@pytest.mark.parametrize(
    "text",
    [RED_WXF, " ".join(RED), NUMBERED.replace(". ", "."), NUMBERED.replace("=", ".")],
)
def test_moves_in_any_notation_numbered_or_not(text: str) -> None:
    assert moves(one("xiangqi", "table", f"moves;result\n{text} 1/2-1/2;1/2-1/2\n")) == RED_UCI


def test_commas_quotes_and_columns_of_ones_own() -> None:
    text = f'White,Black Elo,Moves,Opening\n"Ada, Countess",2050,"{HOUSE_UCI}",a\n'
    game = one("crazyhouse", "table", text)
    assert (game.white, game.black_elo, game.tags) == ("Ada, Countess", 2050, {"Opening": "a"})
    assert moves(game) == HOUSE_UCI


def test_moves_on_several_lines_of_a_quoted_field() -> None:
    text = 'White,Moves\nAda,"' + HOUSE_UCI.replace(" ", "\n") + '"\n'
    assert moves(one("crazyhouse", "table", text)) == HOUSE_UCI


def test_bad_rows_are_skipped_by_line() -> None:
    text = f"{HEAD}\na;b\n\n;;;;;;;{NUMBERED}\n;;;;;;;1. C2=5 X8+7\n"
    first, good, illegal = resolved("xiangqi", "table", text)
    assert isinstance(good, GameRecord)
    assert not isinstance(first, GameRecord)
    assert (first.reason, first.line) == ("not a game", 2)
    assert "2 columns, but the first line names 8" in first.detail
    assert not isinstance(illegal, GameRecord)
    assert (illegal.line, illegal.ply, illegal.text) == (5, 2, "X8+7")


def test_lines_count_all_that_is_before_a_game() -> None:
    text = f'\n\n{HEAD}\n\n许银川\n"a\nb";c\n'
    games = raw_games(reader("xiangqi", "table"), text)
    assert [game.line for game in games] == [5, 6]


@pytest.mark.parametrize(
    ("head", "fits"),
    [
        (HEAD, True),
        ("moves\tresult", True),
        ("\n" + HEAD, True),
        ('{"moves": "e2e4", "result": "1-0"}', False),
        ("position startpos moves e2e4, e7e5", False),
        ("red;black;result", False),
        ("moves", False),
        ("", False),
    ],
)
def test_what_is_a_table(head: str, fits: bool) -> None:
    assert reader("xiangqi", "table").sniff(head.encode() + b"\n") is fits


def test_a_field_without_end_is_one_bad_game() -> None:
    text = f'{HEAD}\n"{"x" * 200_000}\n'
    (game,) = raw_games(reader("xiangqi", "table"), text)
    assert game.problem == "not a game"
