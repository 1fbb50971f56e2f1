"""The same game in every format and notation is the same game."""

from __future__ import annotations

import json

import pytest
from importing import (
    HOUSE,
    HOUSE_UCI,
    RED,
    RED_ICCS,
    RED_UCCI,
    RED_UCI,
    RED_WXF,
    moves,
    one,
    one_skip,
    raw_games,
    reader,
    resolved,
)

from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.read.game_reader import choose_reader, core_readers


def _numbered(words: list[str]) -> str:
    return " ".join(f"{i // 2 + 1}. {word}" if i % 2 == 0 else word for i, word in enumerate(words))


def test_crazyhouse_pgn() -> None:
    game = one("crazyhouse", "pgn", HOUSE)
    assert moves(game) == HOUSE_UCI
    assert (game.white, game.black, game.white_elo, game.black_elo) == ("Ada", "Bob", 2100, 2050)
    assert (game.result, game.date, game.termination) == ("0-1", "2016.05.01", "White resigns")
    assert game.scores is not None
    assert game.scores[6] == 50
    assert game.clocks is not None
    assert game.clocks[6] == 179_000
    assert game.comments == {17: "White resigns"}


@pytest.mark.parametrize("tag", ("", "Crazyhouse", "crazyhouse", "Crazy House"))
def test_a_variant_header_may_be_missing(tag: str) -> None:
    header = f'[Variant "{tag}"]\n' if tag else ""
    assert moves(one("crazyhouse", "crazyhouse-pgn", header + HOUSE)) == HOUSE_UCI


@pytest.mark.parametrize(
    ("header", "skipped"),
    [
        ('[Variant "Atomic"]', True),
        ('[Variant "Standard"]', True),
        ('[Variant "?"]', False),
        ('[Game "Chinese Chess"]', True),
        ('[Game "17"]', False),
    ],
)
def test_games_of_another_variant(header: str, skipped: bool) -> None:
    (game,) = resolved("crazyhouse", "pgn", f"{header}\n{HOUSE}")
    assert isinstance(game, GameRecord) != skipped
    if not isinstance(game, GameRecord):
        assert game.reason == "another variant"


@pytest.mark.parametrize("codec", ("utf-8", "utf-16", "big5hkscs", "gb18030"))
@pytest.mark.parametrize(
    "words",
    (
        RED,
        "炮二平五 马8进7 马二进三 车9平8 车一平二 马2进3 兵七进一 卒7进1".split(),
        "砲２平５ 馬8進７ 傌二進三 俥九平八 車1平2 馬二進三 兵7進1 卒七進一".split(),
        RED_WXF.split(),
        RED_WXF.lower().replace("=", ".").split(),
        RED_ICCS.split(),
        RED_UCCI.split(),
        RED_UCI.split(),
    ),
)
def test_xiangqi_pgn_in_every_notation_and_encoding(words: list[str], codec: str) -> None:
    text = f'[Game "Chinese Chess"]\n[Red "許銀川"]\n[Result "*"]\n\n{_numbered(words)} *\n'
    if codec == "big5hkscs" and any("马" in word for word in words):
        text = text.replace("許銀川", "A")
        codec = "gb2312"
    game = one("xiangqi", "xiangqi-pgn", text.encode(codec, "strict"))
    assert moves(game) == RED_UCI
    assert game.white in ("許銀川", "A")


@pytest.mark.parametrize(
    "line",
    [
        RED_UCI,
        RED_UCCI,
        f"position startpos moves {RED_UCI}",
        f"startpos moves {RED_UCCI} 1-0",
        "position fen rnbakabnr/9/1c5c1/p1p1p1p1p/9/9/P1P1P1P1P/1C5C1/9/RNBAKABNR w - - 0 1 "
        f"moves {RED_UCCI}",
        "rnbakabnr/9/1c5c1/p1p1p1p1p/9/9/P1P1P1P1P/1C5C1/9/RNBAKABNR r - - 0 1 moves "
        f"{RED_ICCS.lower()}",
        RED_UCI.replace(" ", ","),
        f"{RED_UCI} # a remark",
    ],
)
def test_move_lists(line: str) -> None:
    text = f"# games of a test\n\n{line}\n"
    chosen = choose_reader(core_readers(), "games.txt", text.encode())
    assert chosen is not None
    assert chosen.name == "moves"
    game = one("xiangqi", "moves", text)
    assert moves(game) == RED_UCI
    assert game.start_fen is None
    assert game.result == ("1-0" if "1-0" in line else "*")


def test_move_lists_with_drops_and_other_starts() -> None:
    assert moves(one("crazyhouse", "moves", HOUSE_UCI)) == HOUSE_UCI
    fen = "4k3/8/8/8/8/8/8/4K3[P] w - - 0 1"
    game = one("crazyhouse", "moves", f"fen {fen} moves P@e4 e8e7 1-0\n")
    assert moves(game) == "P@e4 e8e7"
    assert game.start_fen == fen
    assert game.result == "1-0"


def test_json_lines() -> None:
    data = {
        "moves": RED_UCI,
        "red": "許銀川",
        "result": "1-0",
        "date": "7.14",
        "year": 2008,
        "ecco": "C84",
        "opening_group": "abc",
        "scores": [30, None, 25, 10, 5, 0, -5, 40],
        "comments": {"1": "common", "-1": "before"},
        "tags": {"RedTeam": "廣東"},
        "copies": 2,
        "nothing": None,
    }
    game = one("xiangqi", "jsonl", "\n" + json.dumps(data, ensure_ascii=False) + "\n")
    assert moves(game) == RED_UCI
    assert (game.white, game.result, game.date, game.year) == ("許銀川", "1-0", "2008.??.??", 2008)
    assert (game.eco, game.group) == ("C84", "abc")
    assert game.scores == data["scores"]
    assert game.comments == {-1: "before", 1: "common"}
    assert game.tags == {"RedTeam": "廣東", "copies": "2"}
    listed = {"moves": RED_WXF.split(), "notation": "WXF"}
    assert moves(one("xiangqi", "jsonl", json.dumps(listed))) == RED_UCI


def test_clocks_of_correspondence_games() -> None:
    line = json.dumps({"moves": RED_UCI, "clocks": [30 * 86_400_000] * 8})
    assert one("xiangqi", "jsonl", line).clocks == [30 * 86_400_000] * 8


def test_a_json_line_of_megabytes() -> None:
    """Lines of long games with visits have several MiB; lines of text are cut after one."""
    data = {"moves": RED_UCI, "comments": {str(ply): "long " * 3900 for ply in range(8)}}
    data["tags"] = {f"tag{n}": "x" * 10_000 for n in range(150)}
    line = json.dumps(data)
    assert len(line) > 1 << 20
    assert moves(one("xiangqi", "jsonl", line)) == RED_UCI


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"result": "1-0"}',
        '{"moves": 7}',
        '{"moves": [1, 2]}',
        '{"moves": "e2e4", "scores": [1, 2]}',
        '{"moves": "e2e4", "scores": [1000000000000000000000]}',
        '{"moves": "e2e4", "clocks": [100000000000000000000]}',
        '{"moves": "e2e4", "comments": {"7": "x"}}',
        "[" * 100_000,
    ],
)
def test_json_that_is_not_a_game_is_skipped(line: str) -> None:
    assert one_skip("crazyhouse", "jsonl", line).reason == "not a game"


def test_formats_are_recognised() -> None:
    for text, name in (
        (HOUSE, "pgn"),
        ('{"moves": "e2e4"}\n', "jsonl"),
        ("e2e4 e7e5\n", "moves"),
        ("startpos moves e4 e5 1-0\n", "moves"),
        ("fen 8/8/8/8/8/8/8/K1k5[] w - - 0 1 moves N@e4\n", "moves"),
        ("position startpos moves 炮二平五\n", "moves"),
        ("P@e4\n", "moves"),
        ("Dear reader,\nthese are games.\n", None),
        ("\x00\x01\x02", None),
    ):
        chosen = choose_reader(core_readers(), "file", text.encode())
        assert (chosen.name if chosen else None) == name


DHTML = """\
[DhtmlXQ]
[DhtmlXQ_title]一局[/DhtmlXQ_title]
[DhtmlXQ_red]許銀川[/DhtmlXQ_red]
[DhtmlXQ_result]红胜[/DhtmlXQ_result]
[DhtmlXQ_binit]8979695949392919097717866646260600102030405060708012720323436383[/DhtmlXQ_binit]
[DhtmlXQ_movelist]77477062796780708979102226256364[/DhtmlXQ_movelist]
[/DhtmlXQ]
"""


def test_boards_saved_from_web_pages() -> None:
    text = DHTML.encode("gb18030")
    assert reader("xiangqi", "dhtmlxq").sniff(text)
    game = one("xiangqi", "dhtmlxq", text)
    assert moves(game) == RED_UCI
    assert (game.white, game.result) == ("許銀川", "1-0")


@pytest.mark.parametrize(
    ("text", "result"), [("红先胜", "1-0"), ("紅先和", "1/2-1/2"), ("黑胜", "0-1"), ("未知", "*")]
)
def test_results_of_saved_boards(text: str, result: str) -> None:
    game = one("xiangqi", "dhtmlxq", DHTML.replace("红胜", text).encode("gb18030"))
    assert game.result == result


def test_moves_in_the_script_of_a_page() -> None:
    page = '<html>\n<script>var MOVE_STR = "77477062796780708979102226256364";</script>\n</html>\n'
    assert reader("xiangqi", "dhtmlxq").sniff(page.encode())
    game = one("xiangqi", "dhtmlxq", page)
    assert (moves(game), game.result) == (RED_UCI, "*")


def test_a_saved_board_with_another_start() -> None:
    # Red: general e1, chariot a1; Black: general d10, to move
    men = ["99"] * 32
    men[0], men[4], men[20] = "09", "49", "30"
    text = (
        f"[DhtmlXQ]\n[DhtmlXQ_binit]{''.join(men)}[/DhtmlXQ_binit]\n"
        "[DhtmlXQ_movelist]30310900[/DhtmlXQ_movelist]\n"
    )
    game = one("xiangqi", "dhtmlxq", text)
    assert moves(game) == "d10d9 a1a10"
    assert game.start_fen is not None
    assert game.start_fen.startswith("3k5/9/9/9/9/9/9/9/9/R3K4 b")


TWO_BOARDS = [
    {"red": "Alice", "movelist": "77477062"},
    {"red": "Carol", "movelist": "17477062"},
]


def _board(tags: dict[str, str]) -> str:
    return "".join(f"[DhtmlXQ_{name}]{value}[/DhtmlXQ_{name}]" for name, value in tags.items())


@pytest.mark.parametrize(
    "text",
    [
        " <br>".join(f"[DhtmlXQ]{_board(tags)}[/DhtmlXQ]" for tags in TWO_BOARDS),
        "\n\n".join(map(_board, TWO_BOARDS)),
        "".join(map(_board, TWO_BOARDS)),
    ],
    ids=["one line", "no outer tags", "one line without outer tags"],
)
def test_saved_boards_beside_each_other_are_games_of_their_own(text: str) -> None:
    raws = raw_games(reader("xiangqi", "dhtmlxq"), text)
    assert [(raw.headers["White"], raw.moves) for raw in raws] == [
        ("Alice", ["h3e3", "h10g8"]),
        ("Carol", ["b3e3", "h10g8"]),
    ]


def test_a_list_of_moves_on_several_lines() -> None:
    text = DHTML.replace("70627967", "7062\n7967")
    assert moves(one("xiangqi", "dhtmlxq", text)) == RED_UCI


def test_a_list_of_moves_without_an_end_is_cut_off() -> None:
    board = "[DhtmlXQ]\n[DhtmlXQ_red]Alice[/DhtmlXQ_red]\n[DhtmlXQ_movelist]7747\n"
    raws = raw_games(reader("xiangqi", "dhtmlxq"), board + DHTML)
    assert [(raw.problem, len(raw.moves)) for raw in raws] == [("cut off", 0), ("", 8)]
    raws = raw_games(reader("xiangqi", "dhtmlxq"), DHTML + board)
    assert [(raw.problem, len(raw.moves)) for raw in raws] == [("", 8), ("cut off", 0)]
    (alone,) = raw_games(reader("xiangqi", "dhtmlxq"), "[DhtmlXQ]\n[DhtmlXQ_movelist]7747\n\n")
    assert (alone.problem, alone.line) == ("cut off", 2)


def test_cut_lists_of_saved_boards_are_skipped() -> None:
    raws = raw_games(reader("xiangqi", "dhtmlxq"), DHTML.replace("6364[", "636["))
    assert [raw.problem for raw in raws] == ["cut off"]
