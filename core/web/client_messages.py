"""Messages of the page, checked: an object with `type`, a number `id`, and the fields of its type.

From the same models comes an AsyncAPI document, for programs that ask the same questions.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    create_model,
)

from variant_ai.core.errors import DataError, SettingError, unknown
from variant_ai.core.system.checked_models import checked
from variant_ai.core.web import Json
from variant_ai.core.web.web_settings import VisitorLimits

MAX_ID = 2**53
MAX_MOVES = 1_500
"""Moves of a game."""
GAME = {"variant": "name!", "fen": "text", "moves": "moves", "notation": "name"}
"""Fields of a game: a variant, a FEN and the moves since; `!` marks a field that must be given."""
NET = {"net": "name"}
ID_FIRST = re.compile(r'\s*\{\s*"id"\s*:\s*([0-9]{1,16})\s*,')
ID_LAST = re.compile(r'[,{]\s*"id"\s*:\s*([0-9]{1,16})\s*\}\s*$')
ID_WITHIN = 200
"""Characters at either end of a message that is too long, among which its id is looked for."""


@dataclass(frozen=True)
class MessageKind:
    """A type of message: what it asks for, what the answer has, and its fields with their kinds."""

    about: str
    answer: str
    fields: dict[str, str]


MESSAGES: dict[str, MessageKind] = {
    "hello": MessageKind(
        "The server's variants, nets, players and limits.",
        "`version`, `variants`, `nets`, `net_variants`, `players`, `runs`, `limits`",
        {},
    ),
    "variants": MessageKind("The variants of this installation.", "`variants`", {}),
    "describe": MessageKind(
        "All that is needed to draw a variant.",
        "`name`, `title`, `players`, `files`, `ranks`, `hand`, `names`, `letters`, `boards`, `lines`, "
        "`wall` and `pieces` (SVG), `style`, `styles`, `notations`, `start`, `starts`, `net`",
        {"variant": "name!", "style": "name"},
    ),
    "position": MessageKind(
        "The position after moves.",
        "`fen`, `turn`, `ply`, `legal` (UCI), `passes`, `check`, `hands`, `outcome`, `written` (the moves in "
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
        "`best`, `lines` (`move`, `pv`, `value`, `cp`, `mate` in full moves, `wdl`, `visits`, `prior`), `visits`, "
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
        "`moves` (`move`, `visits`, `prior`, `value`, `mate` in full moves, `open`)",
        {**GAME, **NET, "line": "moves"},
    ),
    "stop": MessageKind(
        "End a search early; it still gets its final answer.",
        "none of its own",
        {"search": "number!"},
    ),
    "runs": MessageKind("The run folders.", "`runs`", {}),
    "run": MessageKind(
        "Facts and curves of a run.",
        "`facts`, `curves`, `ladder`, `generations`, `spec` (its text, if the variant may be that of a file)",
        {"run": "name!"},
    ),
    "games": MessageKind(
        "Games of a generation of self-play, from number `first` on.",
        "`games`, `count`",
        {"run": "name!", "generation": "number", "first": "number"},
    ),
}


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("one line of printable text is expected")
    return text


def _without_null(text: str) -> str:
    if "\0" in text:
        raise ValueError("text without null characters is expected")
    return text


def _line(most: int) -> Any:
    """Return the type of a line of text of at most `most` characters."""
    return Annotated[str, Field(max_length=most), AfterValidator(_printable)]


def _at_most(most: int, least: int = 0) -> Any:
    """Check the length of a list or a mapping first: pydantic would look for every fault in all of it."""

    def check(value: Any) -> Any:
        if isinstance(value, list | dict) and not least <= len(value) <= most:
            raise ValueError(f"{len(value)} entries where {least} to {most} are accepted")
        return value

    return BeforeValidator(check)


def _moves(most: int) -> Any:
    return Annotated[list[_line(20)], Field(max_length=most), _at_most(most)]  # type: ignore[misc]


Name: Any = _line(200)
Tag = Literal["Event", "White", "Black", "Date", "Result", "Termination"]
RESULTS = ("1-0", "0-1", "1/2-1/2", "*")
Seconds = Annotated[float, Field(ge=0, le=1e6)]


def _with_result(tags: dict[str, str]) -> dict[str, str]:
    if tags.get("Result", "*") not in RESULTS:
        raise ValueError(f"as Result, {', '.join(RESULTS)} are accepted")
    return tags


KINDS: dict[str, Any] = {
    "name": Name,
    "text": _line(4_000),
    "long": Annotated[str, Field(max_length=100_000), AfterValidator(_without_null)],
    "moves": _moves(MAX_MOVES),
    "lines": Annotated[list[_moves(64)], Field(max_length=64), _at_most(64)],  # type: ignore[misc]
    "tags": Annotated[dict[Tag, Name], AfterValidator(_with_result), _at_most(len(get_args(Tag)))],
    "clock": Annotated[dict[Literal["left", "increment"], Seconds], _at_most(2, 1)],
    "seconds": Seconds,
    "count": Annotated[int, Field(ge=1, le=MAX_ID)],
    "number": Annotated[int, Field(ge=0, le=MAX_ID)],
}
"""Types of the fields."""


def _model(name: str, kinds: dict[str, str]) -> type[BaseModel]:
    """Return the model of a type of message."""
    fields: dict[str, Any] = {"id": KINDS["number"], "type": Literal[name]}
    for field, kind in kinds.items():
        is_needed = kind.endswith("!")
        fields[field] = KINDS[kind[:-1]] if is_needed else (KINDS[kind] | None, None)
    return create_model(name, __config__=ConfigDict(strict=True, extra="forbid"), **fields)


MODELS = {name: _model(name, kind.fields) for name, kind in MESSAGES.items()}


@dataclass(frozen=True)
class ClientMessage:
    """A message that was checked."""

    id: int
    type: str
    fields: Json


class MessageError(DataError):
    """A message with an id that cannot be answered."""

    def __init__(self, id: int, message: str) -> None:
        super().__init__(message)
        self.id = id


def read_message(text: str, limits: VisitorLimits) -> ClientMessage:
    """Parse and check a message of the page. Raises MessageError, which has the id of the message, for a
    mistake in it; DataError if no id can be read."""
    if len(text) > limits.message:
        reason = f"a message has at most {limits.message} characters, this one has {len(text)}"
        id = _id_of_long(text)
        raise DataError(reason) if id is None else MessageError(id, reason)
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        raise DataError("a message is a JSON object, and this is no JSON") from None
    if not isinstance(given, dict):
        raise DataError(f"a message is a JSON object, not {text[:40]}")
    id, name = given.get("id"), given.get("type")
    if not isinstance(id, int) or isinstance(id, bool) or not 0 <= id <= MAX_ID:
        raise DataError("id: a whole number from 0 is expected")
    if name is None:
        raise MessageError(id, f"type: a value is needed; accepted: {', '.join(sorted(MODELS))}")
    if not isinstance(name, str) or name not in MODELS:
        raise MessageError(id, unknown("type", str(name)[:40], sorted(MODELS)))
    for field in given:
        if field not in MODELS[name].model_fields:
            raise MessageError(id, unknown("field", field[:40], sorted(MODELS[name].model_fields)))
    try:
        message = checked(MODELS[name], given, name)
    except (SettingError, RecursionError) as error:  # lists in lists cannot be shown
        raise MessageError(id, str(error)) from None
    return ClientMessage(id, name, message.model_dump(exclude_none=True, exclude={"id", "type"}))


def _id_of_long(text: str) -> int | None:
    """Return the id of a message that is too long to be parsed: its first or last field. Quotation
    marks inside of texts are escaped, so that no text looks like it."""
    found = ID_FIRST.match(text[:ID_WITHIN]) or ID_LAST.search(text[-ID_WITHIN:])
    return int(found[1]) if found is not None and int(found[1]) <= MAX_ID else None


# --- the protocol for other programs ---------------------------------------------------------------

ASYNCAPI = "3.0.0"
ABOUT = (
    "JSON objects over a WebSocket. Each message has a number `id` of the program's choice, which its "
    "answers repeat, and a `type`. Every question about a game has the whole game: a FEN (by default "
    "the start position) and the moves since, in UCI. An answer with `error` is the last one; so is "
    "any other without `final: false`. Values are those of the side to move."
)


def protocol_document(limits: VisitorLimits) -> Json:
    """Return the AsyncAPI document of a server with these limits."""
    messages = {
        name: {
            "name": name,
            "summary": kind.about,
            "description": f"The answer has {kind.answer}.",
            "payload": _schema(name, limits),
        }
        for name, kind in MESSAGES.items()
    }
    answer = {
        "name": "answer",
        "summary": "An answer: its other fields are described beside the question.",
        "payload": {
            "type": "object",
            "required": ["id"],
            "properties": {
                "id": {"type": ["integer", "null"]},
                "final": {"type": "boolean", "description": "false: more answers follow"},
                "error": {"type": "string", "description": "why there is no other answer"},
            },
        },
    }
    reference = "#/channels/talk/messages"
    return {
        "asyncapi": ASYNCAPI,
        "info": {"title": "variant-ai web", "version": "1", "description": ABOUT},
        "channels": {"talk": {"address": "/talk", "messages": {**messages, "answer": answer}}},
        "operations": {
            "ask": {
                "action": "receive",
                "channel": {"$ref": "#/channels/talk"},
                "messages": [{"$ref": f"{reference}/{name}"} for name in messages],
                "reply": {
                    "channel": {"$ref": "#/channels/talk"},
                    "messages": [{"$ref": f"{reference}/answer"}],
                },
            }
        },
    }


def _schema(name: str, limits: VisitorLimits) -> Json:
    """Return the JSON schema of a type of message. limits: those of the server."""
    schema: Json = MODELS[name].model_json_schema()
    fields = schema["properties"]
    for field, most in (("nodes", limits.nodes), ("seconds", limits.seconds)):
        if field in fields:
            fields[field]["description"] = f"more than {most:.12g} counts as {most:.12g}"
    return schema
