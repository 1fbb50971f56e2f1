"""Dates, ratings, results and endings out of the words of headers."""

from __future__ import annotations

import pytest

from variant_ai.core.data.filters import ENDINGS, ending
from variant_ai.core.data.game_record import MATE, GameRecord
from variant_ai.core.data.read.game_reader import RawGame
from variant_ai.core.data.read.headers import (
    annotation,
    fill,
    game_date,
    game_result,
    normal_date,
    rating,
)


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("2008.12.19", "2008.12.19"),
        ("2008-5-3", "2008.05.03"),
        ("1955.5", "1955.05.??"),
        ("1996", "1996.??.??"),
        ("1996.??.??", "1996.??.??"),
        ("20081219", "2008.12.19"),
        ("20091123-09：00", "2009.11.23"),
        ("2000年4月15日", "2000.04.15"),
        ("1999年8月20日-25日", "1999.08.20"),
        ("１９９８年１０月１０日 ", "1998.10.10"),
        ("2001。2。10", "2001.02.10"),
        ("24-9-2009", "2009.09.24"),
        ("12/12/2001", "2001.12.12"),
        ("5/24/1994", "1994.05.24"),
        ("82-10-31", "1982.10.31"),
        ("2009-12-06 08:0", "2009.12.06"),
        ("1986年4月 日", "1986.04.??"),
        ("2001.13.40", "2001.??.??"),
        ("19500400楊官璘勝李志海", "1950.04.??"),
        ("張雄飛先負楊官璘(1955.5於北京)", "1955.05.??"),
        ("7.14", ""),
        ("日弈", ""),
        ("????.??.??", ""),
        ("", ""),
    ],
)
def test_dates(text: str, date: str) -> None:
    assert normal_date(text) == date


def test_a_date_may_stand_in_the_name_of_the_event() -> None:
    assert game_date({"Date": "", "Event": "1978年全國賽"}) == "1978.??.??"
    assert game_date({"Date": "1978.3", "Event": "1980"}) == "1978.03.??"
    assert game_date({"Date": "7.14", "Year": "2008"}) == "2008.??.??"
    assert game_date({"Date": "2007.7.14", "Year": "2008"}) == "2008.??.??"
    assert game_date({"Year": "?"}) == ""
    assert game_date({"Event": "第20届2008年全国赛"}) == "2008.??.??"
    for event, year in (
        ("U1800 Open 2001", "2001"),
        ("Under 2050 Cup 2019", "2019"),
        ("CCA2004", "2004"),
        ("Linares1994", "1994"),
        ("BGN2001世界赛", "2001"),
    ):
        assert game_date({"Event": event}) == f"{year}.??.??"
    for event in ("U1800 Open", "tournament a2017xyz", "Swiss 2150A", "round 1700"):
        assert game_date({"Event": event}) == ""
    assert game_date({}) == ""


@pytest.mark.parametrize(
    ("text", "value"),
    [("2470", 2470), (" 1566? ", 1566), ("2350.5", 2350), ("0", None), ("-", None), ("na", None)],
)
def test_ratings(text: str, value: int | None) -> None:
    assert rating(text) == value


@pytest.mark.parametrize(
    ("header", "written", "result"),
    [
        ("1-0", "1-0", "1-0"),
        ("*", "0-1", "0-1"),
        ("1/2-1/2", "", "1/2-1/2"),
        ("1-0", "*", "1-0"),
        ("1-0", "0-1", "*"),
        ("?", "", "*"),
        ("2-0", "", "*"),
        ("2-0", "1-0", "1-0"),
    ],
)
def test_results(header: str, written: str, result: str) -> None:
    raw = RawGame("a", 1, 1, {"Result": header}, result=written)
    assert game_result(raw) == result


def test_fields_and_tags() -> None:
    raw = RawGame(
        "a",
        1,
        1,
        {
            "Red": "許銀川",
            "Black": "呂欽",
            "RedTeam": "廣東",
            "BlackElo": "2580",
            "WhiteElo": "?",
            "Event": "?",
            "ECCO": "C84",
            "Date": "1999.1.2",
            "Result": "0-1",
            "FEN": "x",
        },
        ["a", "b"],
        comments={1: "White forfeits on time"},
    )
    record = GameRecord("any", [1, 2])
    fill(record, raw, True)
    assert (record.white, record.black, record.event, record.eco) == ("許銀川", "呂欽", "", "C84")
    assert (record.white_elo, record.black_elo) == (None, 2580)
    assert (record.date, record.year, record.result) == ("1999.01.02", 1999, "0-1")
    assert record.termination == "White forfeits on time"
    assert record.tags == {"RedTeam": "廣東"}


ENDED = [
    "Black resigns",
    "Ada resigns",
    "White forfeits on time",
    "Ada forfeits by disconnection",
    "Bob checkmated",
    "Game aborted on move 1",
    "White wins on time.",
    "Ada wins on time",
    "Ada Smith resigns",
    "White time out",
    "White checkmates",
    "Black forfeits on time 0-1",
    "Rules infraction",
    "White mates",
    "Game drawn by repetition",
    "Ada ran out of time and Bob has no material to mate",
]
REMARKED = [
    "and Black abandons the centre",
    "White was in time trouble",
    "a fine attack without a mate in the end",
    "Black should resign here",
    "White lost time with this move",
    "time for a break",
]


@pytest.mark.parametrize(
    ("text", "ends"), [*((text, True) for text in ENDED), *((text, False) for text in REMARKED)]
)
def test_terminations_are_read_from_comments_of_servers_only(text: str, ends: bool) -> None:
    record = GameRecord("any", [1, 2])
    fill(record, RawGame("a", 1, 1, {}, ["a", "b"], comments={1: text}), True)
    assert record.termination == (text if ends else "")
    if ends:
        assert ending(text) in ENDINGS and ending(text) not in ("other", "unknown")


def test_numbers_beyond_all_bounds_are_none() -> None:
    assert annotation("[%clk 99999999999999:00:00]", True).clock is None
    assert annotation(f"[%clk {'9' * 400}:00]", True).clock is None
    for digits in (20, 400):
        assert annotation(f"[%eval {'9' * digits}.0]", True).score == MATE - 1000
        assert annotation(f"[%eval #-{'9' * digits}]", True).score is not None
        assert annotation(f"+{'9' * digits}/12 1.2s", True).score == MATE - 1000


@pytest.mark.parametrize(
    ("comment", "first", "score", "clock", "text"),
    [
        ("[%eval 0.35]", True, 35, None, ""),
        ("[%eval 0.35]", False, -35, None, ""),
        ("[%eval #3] mates", True, MATE - 3, None, "mates"),
        ("[%eval #-3]", True, -(MATE - 3), None, ""),
        ("[%eval #-3]", False, MATE - 3, None, ""),
        ("[%eval -2.21,18] [%clk 0:03:00]", True, -221, 180_000, ""),
        ("[%clk 1:00:01.5]", False, None, 3_601_500, ""),
        ("+0.35/12 1.2s", False, 35, None, ""),
        ("-M4/20 0.5s, lost", True, -(MATE - 2), None, "lost"),  # plies, as cutechess counts
        ("+M5/20 0.5s", False, MATE - 3, None, ""),
        ("+M1/1 0.5s", True, MATE - 1, None, ""),
        ("[%csl Ga1] good", True, None, None, "good"),
        ("random", True, None, None, "random"),
        ("[%eval x]", True, None, None, ""),
    ],
)
def test_scores_and_clocks(
    comment: str, first: bool, score: int | None, clock: int | None, text: str
) -> None:
    found = annotation(comment, first)
    assert (found.score, found.clock, found.text) == (score, clock, text)
