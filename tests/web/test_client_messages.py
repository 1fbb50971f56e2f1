"""Messages of the page: every kind of field, and any JSON at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from variant_ai.cli.play.web import _listen
from variant_ai.core.errors import DataError, SettingError
from variant_ai.core.web.client_messages import MESSAGES, MessageError, read_message
from variant_ai.core.web.web_settings import VisitorLimits, is_loopback

LIMITS = VisitorLimits()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
NAMES = sorted({name for kind in MESSAGES.values() for name in kind.fields})


@settings(max_examples=50)
@given(
    st.sampled_from(sorted(MESSAGES)),
    st.integers(),
    st.dictionaries(st.sampled_from(NAMES), JSON, max_size=5),
)
def test_any_message_is_read_or_refused(type: str, id: int, fields: dict[str, Any]) -> None:
    try:
        message = read_message(json.dumps({"id": id, "type": type, **fields}), LIMITS)
    except DataError:
        return
    assert message.type == type
    assert set(message.fields) <= set(MESSAGES[type].fields)


@given(st.text())
def test_any_text_is_refused(text: str) -> None:
    try:
        read_message(text, LIMITS)
    except DataError:
        return
    raise AssertionError(text)


def test_a_whole_message() -> None:
    given = {
        "id": 7, "type": "search", "variant": "chess", "fen": "startpos", "moves": ["e2e4"],
        "net": "uniform", "nodes": 100, "seconds": 1, "clock": {"left": 30, "increment": 0.5},
        "elo": 1200, "multipv": 3, "report": 0.5, "notation": None,
    }  # fmt: skip
    message = read_message(json.dumps(given), LIMITS)
    assert message.id == 7
    assert message.fields["seconds"] == 1.0
    assert "notation" not in message.fields


def test_more_seconds_than_allowed_are_no_mistake() -> None:
    given = {"id": 7, "type": "search", "variant": "chess", "seconds": 900}
    assert read_message(json.dumps(given), VisitorLimits(seconds=2)).fields["seconds"] == 900


LONG = "x" * 1_000


@pytest.mark.parametrize(
    ("text", "id"),
    [
        (json.dumps({"id": 7, "type": "read", "text": LONG}), 7),
        (json.dumps({"type": "read", "text": LONG, "id": 8}), 8),
        (json.dumps({"type": "read", "text": LONG, "id": 8}, indent=1) + "\n", 8),
        (json.dumps({"type": "read", "text": LONG}), None),
        (json.dumps({"type": "read", "text": LONG + ',"id":9}'}), None),
        (json.dumps({"type": "read", "text": LONG, "tags": {"id": 9}}), None),
        (json.dumps({"type": "read", "text": LONG, "id": "9"}), None),
        (json.dumps({"type": "read", "text": LONG, "id": 2**54}), None),
        (LONG, None),
    ],
)
def test_a_message_that_is_too_long_keeps_its_id(text: str, id: int | None) -> None:
    with pytest.raises(DataError, match="at most 500 characters, this one has") as caught:
        read_message(text, VisitorLimits(message=500))
    assert (caught.value.id if isinstance(caught.value, MessageError) else None) == id


@pytest.mark.parametrize(
    ("host", "local"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("[::1]", True), ("127.9.9.9", True),
     ("0.0.0.0", False), ("192.168.1.2", False), ("::", False), ("example.org", False)],
)  # fmt: skip
def test_addresses_of_this_machine(host: str, local: bool) -> None:
    assert is_loopback(host) == local


def test_a_host_that_is_no_name() -> None:
    with pytest.raises(SettingError, match=r"'a..b': it is not a name of a machine"):
        _listen("a..b", 0)
