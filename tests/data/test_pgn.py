"""PGN as it is found."""

from __future__ import annotations

import io
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from variant_ai.core.data.read.game_reader import MAX_COMMENT, MAX_COMMENTS, MAX_PLIES, RawGame
from variant_ai.core.data.read.pgn import PgnReader

WHOLE = """\
[Event "Club \\"A\\" evening"]
[Site "C:\\\\games"]
[White "Alpha"]
[Black "Beta"]
[Result "1-0"]

1. e4 {[%eval 0.3] King's pawn} e5 2. Nf3! $1 (2. f4 exf4 (2... d5 {Falkbeer}) 3. Nf3) 2... Nc6?!
; a remark to the end of the line ) }
3.Bb5 3...a6 4.N@g5 P@h6 5. @h7 O-O-O# 1-0
"""


def _read(text: str) -> list[RawGame]:
    return list(PgnReader().read(io.BufferedReader(io.BytesIO(text.encode())), "a.pgn"))


def test_a_game_with_everything() -> None:
    (game,) = _read(WHOLE)
    assert game.headers["Event"] == 'Club "A" evening'
    assert game.headers["Site"] == "C:\\games"
    assert game.moves == "e4 e5 Nf3 Nc6 Bb5 a6 N@g5 P@h6 @h7 O-O-O#".split()
    assert game.lines == [7, 7, 7, 7, 9, 9, 9, 9, 9, 9]
    assert game.result == "1-0"
    assert game.comments == {
        0: "[%eval 0.3] King's pawn",
        3: "a remark to the end of the line ) }",
    }
    assert (game.source, game.number, game.line) == ("a.pgn", 1, 1)
    assert not game.problem
    assert not game.open_end


def test_games_without_a_line_between_them() -> None:
    text = '[Event "1"]\n[Result "1-0"]\n1. e4 e5 1-0\n[Event "2"]\n1. d4\n[Event "3"]\n\n1. c4 *'
    games = _read(text)
    assert [game.headers["Event"] for game in games] == ["1", "2", "3"]
    assert [game.moves for game in games] == [["e4", "e5"], ["d4"], ["c4"]]
    assert [game.result for game in games] == ["1-0", "", "*"]
    assert [game.number for game in games] == [1, 2, 3]
    assert [game.line for game in games] == [1, 4, 6]


def test_headers_without_moves_are_games_of_their_own() -> None:
    games = _read('[Event "1"]\n[White "A"]\n\n[Event "2"]\n[White "B"]\n\n1. e4 *\n')
    assert [(game.headers["White"], game.moves) for game in games] == [("A", []), ("B", ["e4"])]
    games = _read('[Event "1"]\n[White "A"]\n[Event "2"]\n[White "B"]\n1. e4 *\n')
    assert [(game.headers["White"], game.moves) for game in games] == [("A", []), ("B", ["e4"])]


def test_an_empty_line_among_headers_does_not_part_them() -> None:
    (game,) = _read('[Event "1"]\n\n[White "A"]\n[Black "B"]\n\n1. e4 *\n')
    assert game.headers == {"Event": "1", "White": "A", "Black": "B"}


def test_games_without_headers() -> None:
    games = _read("1. e4 e5 1-0\n\n1. d4 d5 1/2-1/2 1. c4 *")
    assert [game.moves for game in games] == [["e4", "e5"], ["d4", "d5"], ["c4"]]
    assert [game.result for game in games] == ["1-0", "1/2-1/2", "*"]


@pytest.mark.parametrize(
    ("line", "headers"),
    [
        ('[Event "a"] [Site "b"]', {"Event": "a", "Site": "b"}),
        ('[Event "the "big" cup"]', {"Event": 'the "big" cup'}),
        ('  [ Event  "spaced" ]  ', {"Event": "spaced"}),
        ('[Event "no end', {"Event": "no end"}),
        ('[Event "no bracket"', {"Event": "no bracket"}),
        ('[Event ""]', {"Event": ""}),
        ('[Red "許銀川"]', {"Red": "許銀川"}),
        ('[Event "a [b] c"]', {"Event": "a [b] c"}),
        ('[Event "a"]  ', {"Event": "a"}),
    ],
)
def test_headers_as_they_are_found(line: str, headers: dict[str, str]) -> None:
    (game,) = _read(f"{line}\n\n1. e4 *\n")
    assert game.headers == headers
    assert game.moves == ["e4"]


def test_moves_behind_headers_on_their_line() -> None:
    first, second = _read(
        '[White "A"] [Result "1-0"] 1. e4 {good} e5 2. Nf3 1-0\n[White "B"] 1. d4\n'
    )
    assert first.headers == {"White": "A", "Result": "1-0"}
    assert (first.moves, first.result) == (["e4", "e5", "Nf3"], "1-0")
    assert (second.headers, second.moves) == ({"White": "B"}, ["d4"])


@pytest.mark.parametrize("stray", ["],", "% a remark", ",", "x"])
def test_text_after_a_header_is_not_a_move(stray: str) -> None:
    (game,) = _read(f'[White "A"] {stray}\n[Black "B"]\n\n1. e4 *\n')
    assert (game.headers["Black"], game.moves) == ("B", ["e4"])


def test_files_put_one_behind_another() -> None:
    """Concatenated files, each with the byte order mark of UTF-8."""
    games = _read("".join(f'\ufeff[Event "{n}"]\n\n1. e4 *\n\n' for n in range(3)))
    assert [game.headers for game in games] == [{"Event": str(n)} for n in range(3)]


def test_chinese_moves_and_fullwidth_numbers() -> None:
    (game,) = _read("１．炮二平五　馬８進７\n2.馬二進三 車９平８ 3、車一平二 1/2-1/2")
    assert game.moves == ["炮二平五", "馬８進７", "馬二進三", "車９平８", "車一平二"]
    assert game.result == "1/2-1/2"


def test_wxf_moves_that_begin_with_a_digit_are_no_numbers() -> None:
    (game,) = _read("1. C2=5 H8+7 2. 15+1 25=6 3. C2.5 R+-2 0-1")
    assert game.moves == ["C2=5", "H8+7", "15+1", "25=6", "C2.5", "R+-2"]
    (game,) = _read("1. C2.5 15.6 2. 25.4 H8+7 3.15.6 12. 35.6 0-1")
    assert game.moves == ["C2.5", "15.6", "25.4", "H8+7", "15.6", "35.6"]


@pytest.mark.parametrize(
    "line",
    [
        '[Event "a' + " " * 20_000 + "x",
        '[Event "a"]' + " " * 20_000 + "1. e4",
        '[Event "' + '" ' * 10_000 + "x",
        "[" + " " * 20_000 + "Event",
        "[" + "a" * 20_000 + " ",
    ],
    ids=("open", "moves", "quotes", "blank", "name"),
)
def test_a_malformed_header_takes_no_time(line: str) -> None:
    """Tens of minutes, where a regular expression tried every way to part it."""
    started = time.perf_counter()
    _read(f"{line}\n\n1. e4 *\n")
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize(
    ("text", "moves", "problem"),
    [
        ("1. e4 e5 2. Nf3 {and then", ["e4", "e5", "Nf3"], "cut off"),
        ("1. e4 e5 2. Nf3 (2. f4", ["e4", "e5", "Nf3"], "cut off"),
        ("1. e4 e5 2. Nf", ["e4", "e5", "Nf"], ""),
    ],
)
def test_a_file_that_ends_in_the_middle(text: str, moves: list[str], problem: str) -> None:
    (game,) = _read(text)
    assert game.moves == moves
    assert game.problem == problem
    assert bool(problem) != game.open_end


def test_a_missing_result_is_a_cut_where_other_games_have_theirs() -> None:
    one, two = _read('[Result "1-0"]\n\n1. e4 1-0\n\n[Result "0-1"]\n\n1. d4 d5')
    assert not one.problem
    assert two.problem == "cut off"
    (alone,) = _read('[Result "0-1"]\n\n1. d4 d5')
    assert not alone.problem
    assert alone.open_end


def test_an_unended_comment_spoils_one_game_only() -> None:
    text = '[Event "1"]\n\n1. e4 {no end\n\n[Event "2"]\n\n1. d4 *\n'
    one, two = _read(text)
    assert one.problem == "cut off"
    assert two.moves == ["d4"]
    assert not two.problem


def test_marks_that_are_not_moves_are_left_out() -> None:
    (game,) = _read("1. e4!! e5?? 2. Nf3 += Nc6 +- 3. exd6 e.p. $14 Bd7 ½-½")
    assert game.moves == ["e4", "e5", "Nf3", "Nc6", "exd6", "Bd7"]
    assert game.result == "1/2-1/2"
    (escaped,) = _read("% 1. a4\n1. e4 *")
    assert escaped.moves == ["e4"]


def test_bounds_on_what_one_game_may_hold() -> None:
    (game,) = _read("Nf3 " * (MAX_PLIES + 10) + "*")
    assert len(game.moves) == MAX_PLIES
    assert game.problem == "too long"
    (talk,) = _read("1. e4 {" + "word " * MAX_COMMENT + "} *")
    assert len(talk.comments[0]) <= MAX_COMMENT + 5
    (talk,) = _read("1. e4 " + ("{" + "x" * MAX_COMMENT + "} ") * 99 + "*")
    assert len(talk.comments[0]) <= MAX_COMMENTS + 50
    (word,) = _read("1. e4 " + "x" * 300 + " *")
    assert word.problem == "too long"
    assert "line 1: a word has 300 characters, at most 256" in word.detail


@pytest.mark.parametrize(
    ("head", "fits"),
    [
        ('[Event "?"]', True),
        ("1. e4 e5", True),
        ("1.炮二平五", True),
        ("\n\n  1. e4", True),
        ('{"moves": "e2e4"}', False),
        ("e2e4 e7e5", False),
        ("", False),
        ("\x89PNG\r\n", False),
    ],
)
def test_pgn_is_recognised(head: str, fits: bool) -> None:
    assert PgnReader().sniff(head.encode()) is fits


@given(st.text(st.sampled_from('[]"{}();$%\\\n 1.e4-0*#!?馬Event'), max_size=300))
def test_no_text_breaks_the_reader(text: str) -> None:
    games = _read(text)
    assert [game.number for game in games] == list(range(1, len(games) + 1))
    for game in games:
        assert len(game.lines) == len(game.moves)
        assert all(not re.search(r"[\s{}();]", move) for move in game.moves)
        assert all(-1 <= ply < len(game.moves) for ply in game.comments)


@pytest.mark.parametrize(
    "line",
    ['[White-Title "GM"]', '[2ndRound "x"]', "[WhiteTeam]", '[Zug+x "1"]', "[no header at all]"],
)
def test_unusual_headers_lose_nothing_else(line: str) -> None:
    text = f'[Event "t"]\n[White "A"]\n{line}\n[Black "B"]\n[Result "1-0"]\n\n1. e4 e5 1-0\n'
    (game,) = _read(text)
    assert [game.headers[name] for name in ("Event", "White", "Black", "Result")] == [
        "t", "A", "B", "1-0",
    ]  # fmt: skip
    assert (game.moves, game.problem) == (["e4", "e5"], "")


def test_a_percent_sign_begins_a_remark_outside_of_comments_only() -> None:
    (game,) = _read("% a remark\n1. e4 {sixty\n% of the games} e5 *\n")
    assert (game.moves, game.comments) == (["e4", "e5"], {0: "sixty % of the games"})
