"""Analysis as JSON lines: order, limits, stops, mistakes."""

from __future__ import annotations

import json
import math
import os
import threading
from typing import Any, NamedTuple

import pytest
from protocol_client import FakeSearch, _rules

from variant_ai.core.engine.json_service import JsonService, check
from variant_ai.core.engine.line_io import LineWriter, read_lines
from variant_ai.core.errors import UnknownNameError
from variant_ai.core.rules.interface import Rules
from variant_ai.core.search.settings import SearchParams
from variant_ai.plugins import registry


class FakeEngine(NamedTuple):
    rules: Rules
    search: FakeSearch

    def close(self) -> None: ...


class FakeEngines:
    """Makes engines with searches that the test can reach."""

    def __init__(self, gate: threading.Event | None = None) -> None:
        self.gate = gate
        self.made: dict[str, FakeSearch] = {}

    def __call__(self, name: str) -> FakeEngine:
        if self.gate is not None:
            self.gate.wait(60)
        if name not in ("crazyhouse", "xiangqi"):
            raise UnknownNameError("variant", name, ["crazyhouse", "xiangqi"])
        self.made[name] = FakeSearch(SearchParams.of(registry().variant(name)))
        return FakeEngine(_rules(name), self.made[name])


def answers(*queries: Any, engines: FakeEngines | None = None) -> list[dict[str, Any]]:
    """What comes for the queries; text is sent as it is."""
    to_read, to = os.pipe()
    back, to_write = os.pipe()
    texts = [query if isinstance(query, str) else json.dumps(query) for query in queries]
    with os.fdopen(to, "wb") as pipe:
        pipe.write("".join(f"{text}\n" for text in texts).encode())
    engines = engines or FakeEngines()
    service = JsonService(engines, LineWriter(to_write), default_variant="crazyhouse", version="1")
    if engines.gate is not None:  # everything is read before the first query is answered
        threading.Timer(0.5, engines.gate.set).start()
    service.run(read_lines(to_read))
    os.close(to_read)
    os.close(to_write)
    with os.fdopen(back, "rb") as pipe:
        return [json.loads(line) for line in pipe]


def test_a_query_and_its_answer() -> None:
    (found,) = answers({"id": "a", "moves": ["e2e4"], "nodes": 20, "multipv": 2})
    assert found["id"] == "a" and found["final"] is True
    assert found["best"] == "a7a5" and found["ponder"] == "a2a3"
    assert [line["move"] for line in found["lines"]] == ["a7a5", "a7a6"]
    assert found["lines"][0]["pv"] == ["a7a5", "a2a3"]
    assert found["lines"][0]["cp"] == 75 and found["lines"][0]["value"] == pytest.approx(0.12916)
    assert found["visits"] == 20 and found["stopped_by"] == "simulations"


def test_variants_and_limits_of_each_query() -> None:
    engines = FakeEngines()
    found = answers(
        {"id": 1, "variant": "xiangqi", "nodes": 5},
        {"id": 2, "movetime": 0.01},
        {"id": 3, "nodes": 4, "search_moves": ["b1c3"]},
        {"id": 4},
        {"id": 5, "fen": "startpos", "moves": ["e2e4"], "nodes": 2},
        engines=engines,
    )
    assert [one["id"] for one in found] == [1, 2, 3, 4, 5]
    assert found[4]["best"] == "a7a5"
    assert found[1]["stopped_by"] == "movetime"
    assert found[2]["best"] == "b1c3"
    assert engines.made["crazyhouse"].limits[-2].nodes == 800


def test_greater_priorities_first_then_the_order_in_which_they_came() -> None:
    queries = [{"id": n, "nodes": 2, "priority": p} for n, p in enumerate([0, 0, 5, -1, 5])]
    found = answers(
        {"id": "first", "nodes": 2, "priority": 9}, *queries, engines=FakeEngines(threading.Event())
    )
    assert [one["id"] for one in found if one["id"] != "first"] == [2, 4, 0, 1, 3]


def test_a_stopped_query_still_gets_its_answer() -> None:
    found = answers(
        {"id": "long", "nodes": 10**9},
        {"id": "short", "nodes": 3},
        {"action": "stop", "id": "long"},
        engines=FakeEngines(threading.Event()),
    )
    assert [one["id"] for one in found] == ["long", "short"]
    assert found[0]["final"] and found[0]["visits"] < 10**6


def test_actions() -> None:
    engines = FakeEngines()
    found = answers(
        {"action": "version", "id": 7}, {"id": 1, "nodes": 2}, {"action": "clear"}, engines=engines
    )
    assert {"id": 7, "action": "version", "version": "1"} in found
    assert {"action": "clear"} in found
    assert engines.made["crazyhouse"].cleared == 1


def test_null_fields_are_left_out_of_queries() -> None:
    found = answers(
        {"action": "clear", "priority": None}, {"id": 1, "nodes": 5, "fen": None, "depth": None}
    )
    assert {"action": "clear"} in found
    assert [one["best"] for one in found if one.get("id") == 1] == ["a2a3"]


def test_priorities_that_are_no_numbers() -> None:
    found = answers(
        {"id": 1, "action": "clear", "priority": "high"},
        '{"id": 2, "nodes": 5, "priority": 1%s}' % ("0" * 400),
        '{"id": 3, "action": "clear", "priority": 1%s}' % ("0" * 400),
        '{"id": 4, "nodes": 5, "priority": NaN}',
        {"id": 5, "nodes": 5},
    )
    errors = {one["id"] for one in found if one.get("error", "").startswith("query: priority: ")}
    assert errors == {1, 2, 3, 4}
    assert any(one["id"] == 5 and one["final"] for one in found)


def test_a_finished_game_says_how_it_ended() -> None:
    fen = "rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR[] w KQkq - 1 3"
    (found,) = answers({"fen": fen, "nodes": 3})
    assert found["outcome"] == {"result": "0-1", "reason": "checkmate"}
    assert found["best"] is None


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("no json", "the line is not JSON"),
        ("[" * 30_000, "is not JSON"),
        ([1], "a query is a JSON object"),
        ({"id": 1, "node": 3}, "unknown key 'node'"),
        ({"id": 1, "nodes": "many"}, "nodes: a whole number is expected, given 'many'"),
        ({"id": 1, "nodes": True}, "nodes: a whole number is expected, given True"),
        ({"id": 1, "movetime": math.inf}, "movetime: a finite number is expected"),
        ({"id": 1, "report_every": math.nan}, "report_every: a finite number is expected"),
        ({"id": 1, "nodes": -3}, "limit nodes = -3"),
        ({"id": 1, "moves": [1]}, "moves.0: text is expected"),
        ({"id": 1, "multipv": 0}, "at least 1 is expected"),
        ({"id": 1, "moves": ["e2e5"]}, "ply 1: illegal uci move 'e2e5'"),
        ({"id": 1, "fen": "nonsense"}, "in FEN"),
        ({"id": 1, "variant": "draughts"}, "unknown variant 'draughts'"),
        ({"action": "dance"}, "unknown action 'dance'"),
    ],
)
def test_errors_are_reported_and_the_next_query_works(query: Any, problem: str) -> None:
    first, second = answers(
        query, {"id": "next", "nodes": 2}, engines=FakeEngines(threading.Event())
    )
    assert problem in first["error"] and first["final"] is True
    assert first.get("id") == (query.get("id") if isinstance(query, dict) else None)
    assert second["id"] == "next" and second["best"] == "a2a3"


def test_null_counts_as_missing() -> None:
    assert check({"movetime": None, "nodes": 3}) == {"nodes": 3}


@pytest.mark.parametrize(
    "text",
    [
        '{"id": 1e400}',
        '{"id": -1e400, "action": "version"}',
        '{"id": 1e400, "action": "stop"}',
        '{"id": 1e400, "action": "clear"}',
        '{"id": [1e400], "nodes": 1}',
        '{"id": {"a": 1e400}, "fen": 3}',
        '{"id": NaN}',
        '{"id": 1.5}',
        '{"id": true}',
        '{"id": "a", "nodes": Infinity}',
        '{"id": "\\ud800", "nodes": 1}',
    ],
)
def test_answers_are_json_for_any_id(text: str) -> None:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    found = answers(text, {"id": "next", "nodes": 20})
    json.loads(json.dumps(found), parse_constant=refuse)
    assert found[-1]["id"] == "next" and found[-1]["final"] is True
    assert len(found) == 2
    assert found[0].get("id") not in (math.inf, -math.inf)
    if '"id": "' not in text:
        assert "error" in found[0] and "id" not in found[0] and found[0]["final"]


def test_an_empty_list_of_moves_to_search_is_an_error() -> None:
    (found,) = answers({"id": 1, "nodes": 4, "search_moves": []})
    assert "error" in found
