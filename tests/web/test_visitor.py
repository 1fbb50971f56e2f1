"""One visitor with a room of the test's own: answers when something fails behind it."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from variant_ai.core.web.search_schedule import SearchSchedule
from variant_ai.core.web.visitor import SEARCHES, Visitor, choose_weakly
from variant_ai.core.web.web_settings import VisitorLimits, WebSettings
from variant_ai.core.web.work_room import WorkRoom


def room_with(searches: int = 4, **parts: Any) -> WorkRoom:
    """Return a room in which searches wait for ever, since no process takes them."""

    async def learn_net(name: str | None) -> None:
        """Know all nets."""

    found = SimpleNamespace(
        settings=WebSettings(limits=VisitorLimits(searches=searches)),
        schedule=SearchSchedule([], slice=1.0),
        net=lambda *_: "uniform",
        place_of=lambda name: name,
        learn_net=learn_net,
        **parts,
    )
    return cast(WorkRoom, found)


def answers_of(room: WorkRoom, messages: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Return the first `count` answers to messages that all arrive at once."""

    async def run() -> list[dict[str, Any]]:
        texts = [json.dumps(message) for message in messages]
        answers: list[dict[str, Any]] = []
        done = asyncio.Event()

        async def receive() -> str | None:
            if texts:
                return texts.pop(0)
            await asyncio.wait_for(done.wait(), 10)
            return None

        async def send(text: str) -> None:
            answers.append(json.loads(text))
            if len(answers) >= count:
                done.set()

        await Visitor(room, send).run(receive)
        return answers

    return asyncio.run(run())


def search(id: int, type: str = "search") -> dict[str, Any]:
    return {"id": id, "type": type, "variant": "chess"}


def stop(id: int) -> dict[str, Any]:
    return {"id": 0, "type": "stop", "search": id}


def test_a_fault_is_answered_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def add_spec(text: str) -> dict[str, Any]:
        raise OSError(28, "No space left on device", "/secret/place")

    room = room_with(add_spec=add_spec, greeting=None, variants=None, runs=None)
    (answer,) = answers_of(room, [{"id": 5, "type": "spec", "text": "spec: 1"}], 1)
    assert answer["id"] == 5
    assert "could not answer (OSError)" in answer["error"]
    assert "/secret" not in answer["error"]
    assert "No space left on device" in caplog.text


def test_a_stop_that_follows_at_once_is_not_lost() -> None:
    (answer,) = answers_of(room_with(), [search(1), stop(1)], 1)
    assert (answer["id"], answer["stopped_by"]) == (1, "stop")


def test_stopped_searches_leave_room_for_others() -> None:
    messages = [one for id in range(1, 6) for one in (search(id), stop(id))]
    answers = answers_of(room_with(searches=1), messages, 5)
    assert {answer["id"]: answer.get("stopped_by") for answer in answers} == dict.fromkeys(
        range(1, 6), "stop"
    )


def test_each_type_of_question_has_the_limit_for_itself() -> None:
    """A page that analyses asks for all of them after a step."""
    messages = [search(id, type) for id, type in enumerate(SEARCHES, start=1)]
    again = [search(id + 10, type) for id, type in enumerate(SEARCHES, start=1)]
    answers = answers_of(room_with(searches=1), [*messages, *again], len(SEARCHES))
    assert {answer["id"] for answer in answers} == {message["id"] for message in again}
    assert all("at most 1 " in answer["error"] for answer in answers)


def test_an_id_is_used_once_at_a_time() -> None:
    (answer,) = answers_of(room_with(), [search(1), search(1)], 1)
    assert "a search with the id 1 is open" in answer["error"]


@pytest.mark.parametrize("temperature", [1.2, 0.5, 0.006, 0.001])
def test_a_weak_move_of_many_visits(temperature: float) -> None:
    answer = {"lines": [{"move": "a1a2", "visits": 1}, {"move": "b1b2", "visits": 100_000}]}
    choose_weakly(answer, temperature)
    assert answer["best"] in ("a1a2", "b1b2")
    if temperature < 0.1:
        assert answer["best"] == "b1b2"
