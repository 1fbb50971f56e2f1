"""Conditions on games: each keeps and drops what its words say, alone and together."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_args

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from variant_ai.cli.common.store_options import filter_options, game_filter
from variant_ai.core.arena.match.referee import DRAW_RULE, RESIGN_RULE
from variant_ai.core.arena.players.player import Reason
from variant_ai.core.data.filters import ENDINGS, GameFilter, ending, parse_date
from variant_ai.core.data.game_record import CAPPED, MOVE_LIMIT, RESULTS, GameRecord
from variant_ai.core.errors import DataError, UnknownNameError
from variant_ai.core.rules.interface import END_REASONS


def game(**facts: Any) -> GameRecord:
    return GameRecord("chess", **facts)


PLAIN = game(
    moves=[0] * 30,
    result="1-0",
    white="Hu Ronghua",
    black="Lü Qin",
    white_elo=2400,
    black_elo=2300,
    date="2008.05.31",
    event="Wuyang Cup",
    source="masters.tar!1.pgn",
    termination="Time forfeit",
)


@pytest.mark.parametrize(
    ("conditions", "reason"),
    [
        ({}, None),
        ({"min_rating": 2300}, None),
        ({"min_rating": 2301}, "rating below 2301"),
        ({"max_rating": 2400}, None),
        ({"max_rating": 2399}, "rating above 2399"),
        ({"min_plies": 30, "max_plies": 30}, None),
        ({"min_plies": 31}, "under 31 plies"),
        ({"max_plies": 29}, "over 29 plies"),
        ({"since": "2008", "until": "2008"}, None),
        ({"since": "2008.05.31", "until": "2008-05-31"}, None),
        ({"since": "2008.06"}, "before 2008.06"),
        ({"until": "2008.05.30"}, "after 2008.05.30"),
        ({"until": "2008.05"}, None),
        ({"known_result": True}, None),
        ({"results": ("1-0", "0-1")}, None),
        ({"results": ("1/2-1/2",)}, "result 1-0"),
        ({"endings": ("time",)}, None),
        ({"endings": ("checkmate", "draw")}, "ending: time"),
        ({"not_endings": ("time",)}, "ending: time"),
        ({"not_endings": ("aborted",)}, None),
        ({"players": ("lü qin",)}, None),
        ({"players": ("x", "Hu *")}, None),
        ({"players": ("Hu",)}, "other players"),
        ({"not_players": ("*Qin",)}, "excluded player"),
        ({"events": ("*cup",)}, None),
        ({"events": ("League",)}, "other event"),
        ({"sources": ("masters.tar*",)}, None),
        ({"sources": ("masters.tar",)}, "other source"),
        ({"standard_start": True}, None),
    ],
)
def test_a_condition_keeps_a_game_or_gives_a_reason(
    conditions: dict[str, Any], reason: str | None
) -> None:
    assert GameFilter(**conditions).reason(PLAIN) == reason


@pytest.mark.parametrize(
    ("conditions", "facts", "reason"),
    [
        ({"min_rating": 0}, {"white_elo": 2000}, "rating missing"),
        ({"max_rating": 9999}, {"black_elo": 2000}, "rating missing"),
        ({"since": "1900"}, {}, "date missing"),
        ({"since": "1900"}, {"date": "????.??.??"}, "date missing"),
        ({"known_result": True}, {}, "result unknown"),
        ({"results": ("*",)}, {}, None),
        ({"endings": ("unknown",)}, {}, None),
        ({"players": ("?*",)}, {}, "other players"),
        ({"standard_start": True}, {"start_fen": "8/8"}, "other start position"),
        # Known in part only: kept where it may lie in the range.
        ({"since": "2008.06"}, {"date": "2008.??.??"}, None),
        ({"until": "2008.06"}, {"date": "2008.??.??"}, None),
        ({"until": "2008.06.15"}, {"date": "2008.06.??"}, None),
        ({"until": "2007"}, {"date": "2008.??.??"}, "after 2007"),
        ({"since": "2008.06"}, {"date": "2008.05.??"}, "before 2008.06"),
    ],
)
def test_what_a_game_does_not_say(
    conditions: dict[str, Any], facts: dict[str, Any], reason: str | None
) -> None:
    assert GameFilter(**conditions).reason(game(**facts)) == reason


def test_plies_can_be_given_without_moves() -> None:
    conditions = GameFilter(min_plies=5)
    assert conditions.reason(game(), plies=5) is None
    assert conditions.reason(game(), plies=4) == "under 5 plies"


@given(
    st.lists(st.sampled_from([None, 1500, 1614, 1615, 2000]), min_size=2, max_size=2),
    st.integers(0, 25),
    st.sampled_from(RESULTS),
    st.sampled_from(["", "Normal", "Abandoned", "Time forfeit"]),
)
def test_together_they_keep_what_each_keeps(
    ratings: list[int | None], plies: int, result: Any, termination: str
) -> None:
    record = game(
        white_elo=ratings[0], black_elo=ratings[1], result=result, termination=termination
    )
    asked: dict[str, Any] = {
        "min_rating": 1615,
        "min_plies": 20,
        "known_result": True,
        "not_endings": ("aborted",),
    }
    each = [GameFilter(**{name: value}).reason(record, plies) for name, value in asked.items()]
    together = GameFilter(**asked).reason(record, plies)
    assert (together is None) == all(reason is None for reason in each)
    assert together in each


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "unknown"),
        ("?", "unknown"),
        ("Normal", "normal"),
        ("normal", "normal"),
        ("Time forfeit", "time"),
        ("White forfeits on time", "time"),
        ("Black ran out of time and White has no material to mate", "time"),
        ("Abandoned", "aborted"),
        ("Game aborted on move 1", "aborted"),
        ("White won - game abandoned", "disconnection"),
        ("Black wins by abandonment", "disconnection"),
        ("Rules infraction", "rules"),
        ("perpetual check", "rules"),
        ("Black checkmated", "checkmate"),
        ("checkmate", "checkmate"),
        ("White resigns", "resignation"),
        ("stalemate", "stalemate"),
        ("Game drawn by repetition", "draw"),
        ("Game drawn by mutual agreement", "draw"),
        ("repetition", "draw"),
        ("move count", "draw"),
        ("Black forfeits by disconnection", "disconnection"),
        ("unterminated", "unfinished"),
        ("Game adjourned", "unfinished"),
        ("adjudication", "adjudication"),
        ("variant win", "variant"),
        ("adjudicated: resign rule", "adjudication"),
        ("adjudicated: draw rule", "adjudication"),
        ("max plies", "adjudication"),
        ("illegal move", "rules"),
        ("crash", "disconnection"),
        ("bughouse is over", "other"),
    ],
)
def test_endings_of_other_programs(text: str, kind: str) -> None:
    assert ending(text) == kind and kind in ENDINGS


def test_endings_of_our_own_games_have_kinds() -> None:
    """Of the rules, of faults in matches, of adjudication and of self-play."""
    for text in (*END_REASONS, *get_args(Reason), RESIGN_RULE, DRAW_RULE, MOVE_LIMIT, CAPPED):
        assert ending(text) not in ("other", "unknown"), text


def test_the_help_lists_the_endings() -> None:
    """It names them itself: importing them would slow down every `--help`."""
    command = filter_options(click.Command("any", callback=lambda **_: None))
    (option,) = [one for one in command.params if one.name == "endings"]
    assert isinstance(option, click.Option) and option.help is not None
    assert f"this ending: {', '.join(ENDINGS)}." in option.help


@given(st.text())
def test_every_ending_has_a_kind(text: str) -> None:
    assert ending(text) in ENDINGS


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("2008.05.31", (2008, 5, 31)),
        ("2008-5", (2008, 5, None)),
        ("1955.05.??", (1955, 5, None)),
        ("1955.??.??", (1955, None, None)),
        ("1955.??.12", (1955, None, None)),
        ("2008", (2008, None, None)),
        ("????.??.??", None),
        ("", None),
        ("May 2008", None),
    ],
)
def test_dates(text: str, date: tuple[int, int | None, int | None] | None) -> None:
    assert parse_date(text) == date


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        ({"min_plies": -1}, "min plies -1 is negative"),
        ({"min_rating": 2000, "max_rating": 1900}, "no game fits"),
        ({"since": "2018", "until": "2017.12.31"}, "since 2018 is after until 2017.12.31"),
        ({"since": "yesterday"}, "'yesterday' is not a date; accepted: 2016"),
        ({"since": "2016.13"}, "'2016.13' is not a date"),
        ({"since": "2016 May"}, "not a date"),
        ({"until": "2016.02.40"}, "'2016.02.40' is not a date"),
    ],
)
def test_invalid_conditions(conditions: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        GameFilter(**conditions)


def test_names_that_do_not_exist() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'checkmate'"):
        GameFilter(endings=("chekmate",))
    with pytest.raises(UnknownNameError, match="unknown result '1:0'"):
        GameFilter(results=("1:0",))


def test_conditions_as_text_and_as_data() -> None:
    conditions = GameFilter(min_rating=2000, known_result=True, not_endings=("aborted", "time"))
    assert str(conditions) == "min rating 2000, known result, not endings aborted | time"
    assert GameFilter(**conditions.as_dict()) == GameFilter(
        min_rating=2000,
        known_result=True,
        not_endings=["aborted", "time"],  # type: ignore[arg-type]
    )
    assert str(GameFilter()) == "none" and GameFilter().as_dict() == {}


def test_every_condition_has_an_option() -> None:
    caught: list[GameFilter] = []

    @click.command()
    @filter_options
    @click.option("--other")
    def command(other: str, **options: Any) -> None:
        caught.append(game_filter(options))
        assert options == {}

    names = {parameter.name for parameter in command.params} - {"other"}
    assert names == {item.name for item in fields(GameFilter)}
    args = ["--min-rating", "2000", "--player", "a", "--player", "b", "--known-result", "--other=1"]
    assert CliRunner().invoke(command, args, catch_exceptions=False).exit_code == 0
    assert CliRunner().invoke(command, ["--no-ending", "time"]).exit_code == 0
    assert caught == [
        GameFilter(min_rating=2000, players=("a", "b"), known_result=True),
        GameFilter(not_endings=("time",)),
    ]
