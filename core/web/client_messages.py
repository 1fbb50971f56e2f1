"""Messages of the page, checked: an object with `type`, a number `id`, and the fields of its type.

`web_protocol` describes them for other programs, from the table in this module.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from variant_ai.core.errors import DataError, unknown
from variant_ai.core.system.text_tables import counted
from variant_ai.core.web.web_settings import VisitorLimits

MAX_ID = 2**53
MAX_WORD = 200
"""Characters of a name."""
MAX_TEXT = 4_000
"""Characters of a FEN, a move, a tag."""
GAME = {"variant": "name!", "fen": "text", "moves": "moves", "notation": "name"}
"""Fields of a game: a variant, a FEN and the moves since; `!` marks a field that must be given."""
NET = {"net": "name"}


@dataclass(frozen=True)
class MessageKind:
    """A type of message: what it asks for, what the answer has, and its fields with their kinds."""

    about: str
    answer: str
    fields: dict[str, str]


MESSAGES: dict[str, MessageKind] = {
    "hello": MessageKind(
        "What the server offers.", "`version`, `variants`, `nets`, `runs`, `limits`", {}
    ),
    "variants": MessageKind("The variants of this installation.", "`variants`", {}),
    "describe": MessageKind(
        "All that is needed to draw a variant.",
        "`title`, `players`, `files`, `ranks`, `hand`, `names`, `letters`, `boards` and `pieces` "
        "(SVG), `styles`, `notations`, `start`, `net`",
        {"variant": "name!", "style": "name"},
    ),
    "position": MessageKind(
        "The position after moves.",
        "`fen`, `turn`, `legal` (UCI), `passes`, `check`, `hands`, `outcome`, `written` (the moves in "
        "`notation`)",
        GAME,
    ),
    "line": MessageKind(
        "A typed move (`text`) as UCI, or `lines` of moves in a notation.",
        "`move`, or `lines`",
        {**GAME, "text": "text", "lines": "lines"},
    ),
    "pgn": MessageKind("A game as PGN.", "`pgn`", {**GAME, "tags": "tags"}),
    "read": MessageKind(
        "A pasted game, in any format that `import` reads.",
        "`fen`, `moves`, `result`, `white`, `black`, `comments`",
        {"variant": "name!", "text": "long!"},
    ),
    "spec": MessageKind(
        "Check a spec; without mistakes it can be played.",
        "`mistakes` (`line`, `column`, `message`), or what `describe` answers and the name `variant`",
        {"text": "long!"},
    ),
    "source": MessageKind("The text of a spec.", "`text`", {"variant": "name!"}),
    "search": MessageKind(
        "A search. It has several answers if `report` (seconds between them) is given; the last one "
        "has `final: true`.",
        "`best`, `lines` (`move`, `pv`, `value`, `cp`, `mate`, `wdl`, `visits`, `prior`), `visits`, "
        "`depth`, `seconds`, `stopped_by`, `shared`",
        {
            **GAME,
            **NET,
            "nodes": "count",
            "seconds": "seconds",
            "clock": "clock",
            "elo": "count",
            "multipv": "count",
            "report": "seconds",
        },
    ),
    "policy": MessageKind(
        "What the net says without a search.",
        "`value`, `policy`: moves and shares",
        {**GAME, **NET},
    ),
    "planes": MessageKind(
        "The input planes of the net.", "`names`, `planes`, `files`, `ranks`", {**GAME, **NET}
    ),
    "layer": MessageKind(
        "What a layer of the net computes, by its number from 0.",
        "`layers` (`name`, `channels`), `layer`, `maps`, `most`, `files`, `ranks`",
        {**GAME, **NET, "layer": "number"},
    ),
    "tree": MessageKind(
        "The tree of the last search of a position, below a line of moves.",
        "`moves` (`move`, `visits`, `prior`, `value`, `mate`, `open`)",
        {**GAME, **NET, "line": "moves"},
    ),
    "stop": MessageKind(
        "End a search early; it still gets its final answer.",
        "none of its own",
        {"search": "id!"},
    ),
    "runs": MessageKind("The run folders.", "`runs`", {}),
    "run": MessageKind(
        "Facts and curves of a run.",
        "`facts`, `curves`, `ladder`, `generations`",
        {"run": "name!"},
    ),
    "games": MessageKind(
        "Games of a generation of self-play, from number `first` on.",
        "`games`, `count`",
        {"run": "name!", "generation": "number", "first": "number"},
    ),
}
FIELDS = {name: kind.fields for name, kind in MESSAGES.items()}
"""Fields of each type of message with their kinds."""
TAGS = ("Event", "White", "Black", "Date", "Result", "Termination")
RESULTS = ("1-0", "0-1", "1/2-1/2", "*")


@dataclass(frozen=True)
class ClientMessage:
    """A message that was checked."""

    id: int
    type: str
    fields: dict[str, Any]


def read_message(text: str, limits: VisitorLimits) -> ClientMessage:
    """Parse and check a message of the page. Raises DataError that names what is wrong."""
    if len(text) > limits.message:
        raise DataError(f"a message has at most {limits.message} characters")
    try:
        given = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise DataError("a message is a JSON object, and this is no JSON") from None
    if not isinstance(given, dict):
        raise DataError(f"a message is a JSON object, not a {_kind(given)}")
    id = given.pop("id", None)
    if not isinstance(id, int) or isinstance(id, bool) or not 0 <= id <= MAX_ID:
        raise DataError("id: a whole number from 0 is expected")
    name = given.pop("type", None)
    if not isinstance(name, str) or name not in FIELDS:
        shown = name[:40] if isinstance(name, str) else _kind(name)
        raise MessageError(id, unknown("type", shown, sorted(FIELDS)))
    try:
        return ClientMessage(id, name, _checked(given, FIELDS[name], limits))
    except DataError as error:
        raise MessageError(id, str(error)) from None


class MessageError(DataError):
    """A message with an id that cannot be answered."""

    def __init__(self, id: int, message: str) -> None:
        super().__init__(message)
        self.id = id


def _checked(given: dict[str, Any], kinds: dict[str, str], limits: VisitorLimits) -> dict[str, Any]:
    for name in given:
        if name not in kinds:
            raise DataError(unknown("field", name[:40], sorted(kinds)))
    found = {}
    for name, kind in kinds.items():
        value = given.get(name)
        if value is None:
            if kind.endswith("!"):
                raise DataError(f"{name}: this field is missing")
        else:
            found[name] = _value(name, kind.rstrip("!"), value, limits)
    return found


def _value(name: str, kind: str, value: Any, limits: VisitorLimits) -> Any:
    """Return a value if it is of its kind. Raises DataError."""
    if kind in ("name", "text", "long"):
        most = {"name": MAX_WORD, "text": MAX_TEXT, "long": limits.spec}[kind]
        return _text(name, value, most, lines=kind == "long")
    if kind == "moves":
        return _moves(name, value, limits.moves)
    if kind == "lines":
        if not isinstance(value, list) or len(value) > 64:
            raise DataError(f"{name}: a list of at most 64 lines is expected")
        return [_moves(name, line, 64) for line in value]
    if kind == "tags":
        return _tags(name, value)
    if kind == "clock":
        if not isinstance(value, dict) or set(value) - {"left", "increment"} or not value:
            raise DataError(f"{name}: {{left: seconds, increment: seconds}} is expected")
        return {key: _number(f"{name}.{key}", one, 0, 1e6) for key, one in value.items()}
    if kind == "seconds":
        return _number(name, value, 0.0, limits.seconds)
    if kind in ("count", "id", "number"):
        least = 1 if kind == "count" else 0
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MAX_ID:
            raise DataError(f"{name}: a whole number from {least} is expected")
        return value
    raise AssertionError(kind)


def _text(name: str, value: Any, most: int, *, lines: bool = False) -> str:
    if not isinstance(value, str):
        raise DataError(f"{name}: text is expected, not a {_kind(value)}")
    if len(value) > most:
        raise DataError(f"{name}: {len(value)} characters where at most {most} are accepted")
    if "\0" in value or (not lines and not value.isprintable()):
        raise DataError(f"{name}: one line of printable text is expected")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise DataError(f"{name}: half a character (a lone surrogate)") from None
    return value


def _moves(name: str, value: Any, most: int) -> list[str]:
    if not isinstance(value, list):
        raise DataError(f"{name}: a list of moves is expected, not a {_kind(value)}")
    if len(value) > most:
        raise DataError(f"{name}: {counted(len(value), 'move')}; at most {most} are accepted")
    return [_text(name, move, 20) for move in value]


def _tags(name: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or any(key not in TAGS for key in value):
        raise DataError(f"{name}: an object with {', '.join(TAGS)} is expected")
    found = {key: _text(f"{name}.{key}", text, MAX_WORD) for key, text in value.items()}
    if found.get("Result", "*") not in RESULTS:
        raise DataError(f"{name}.Result: {', '.join(RESULTS)} are accepted")
    return found


def _number(name: str, value: Any, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"{name}: a number is expected, not a {_kind(value)}")
    if not math.isfinite(value) or not least <= value <= most:
        raise DataError(f"{name}: a number from {least:g} to {most:g} is expected")
    return float(value)


def _kind(value: Any) -> str:
    names = {dict: "object", list: "list", str: "text", bool: "truth value", type(None): "null"}
    return names.get(type(value), "number")


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is no JSON")
