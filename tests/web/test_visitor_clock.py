"""A game with a clock on the page: the engine's own clock manager gives the time for a move."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from variant_ai.core.web.client_messages import ClientMessage
from variant_ai.core.web.visitor import OVERHEAD, Visitor
from variant_ai.core.web.web_settings import WebSettings
from variant_ai.core.web.work_room import WorkRoom


async def send(text: str) -> None:
    """Drop an answer."""


def seconds_for(clock: dict[str, float], plies: int = 0, **fields: Any) -> float:
    """Time that a visitor's search gets."""
    room = SimpleNamespace(
        settings=WebSettings(), net=lambda *_: "uniform", place_of=lambda name: name
    )
    given = {"variant": "chess", "moves": ["e2e4"] * plies, "clock": clock, **fields}
    visitor = Visitor(cast(WorkRoom, room), send)
    query, seconds = visitor._query(ClientMessage(1, "search", given))
    assert query["movetime"] == seconds
    return seconds


@pytest.mark.parametrize("left", [0.5, 1.0, 5.0, 60.0, 3600.0])
def test_a_move_leaves_time_on_the_clock(left: float) -> None:
    assert 0 < seconds_for({"left": left}) < left - OVERHEAD


def test_increment_and_length_of_the_game_count() -> None:
    assert seconds_for({"left": 60, "increment": 2}) > seconds_for({"left": 60}) + 1
    assert seconds_for({"left": 60}, plies=70) > seconds_for({"left": 60})


def test_no_time_left_is_a_move_at_once() -> None:
    assert seconds_for({"left": 0.0}) < 0.1
