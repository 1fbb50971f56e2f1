"""Messages of the page, checked: an object with `type`, a number `id`, and the fields of its type.

`web_protocol` describes them for other programs, from the table in this module.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from variant_ai.core.errors import DataError, unknown
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


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("one line of printable text is expected")
    return text


_PRINTABLE = AfterValidator(_printable)
Name = Annotated[str, Field(max_length=MAX_WORD), _PRINTABLE]
Move = Annotated[str, Field(max_length=20), _PRINTABLE]
Line = Annotated[list[Move], Field(max_length=64)]
_STRICT = ConfigDict(strict=True, extra="forbid")


class Clock(BaseModel):
    """Seconds."""

    model_config = _STRICT

    left: float = Field(0.0, ge=0, le=1e6)
    increment: float = Field(0.0, ge=0, le=1e6)


class Tags(BaseModel):
    """Headers of a PGN."""

    model_config = _STRICT

    Event: Name = ""
    White: Name = ""
    Black: Name = ""
    Date: Name = ""
    Result: Literal["1-0", "0-1", "1/2-1/2", "*"] = "*"
    Termination: Name = ""


@cache
def field_types(limits: VisitorLimits) -> dict[str, TypeAdapter[Any]]:
    """Types of fields by the kinds in `MESSAGES`."""
    from_0 = Annotated[int, Field(ge=0, le=MAX_ID)]
    types: dict[str, Any] = {
        "name": Name,
        "text": Annotated[str, Field(max_length=MAX_TEXT), _PRINTABLE],
        "long": Annotated[str, Field(max_length=limits.spec, pattern=r"^[^\x00]*$")],
        "moves": Annotated[list[Move], Field(max_length=limits.moves)],
        "lines": Annotated[list[Line], Field(max_length=64)],
        "tags": Tags,
        "clock": Clock,
        "seconds": Annotated[float, Field(ge=0, le=limits.seconds)],
        "count": Annotated[int, Field(ge=1, le=MAX_ID)],
        "number": from_0,
        "id": from_0,
    }
    return {kind: TypeAdapter(type) for kind, type in types.items()}


@dataclass(frozen=True)
class ClientMessage:
    """A message that was checked."""

    id: int
    type: str
    fields: dict[str, Any]


class MessageError(DataError):
    """A message with an id that cannot be answered."""

    def __init__(self, id: int, message: str) -> None:
        super().__init__(message)
        self.id = id


def read_message(text: str, limits: VisitorLimits) -> ClientMessage:
    """Parse and check a message of the page. Raises DataError that names what is wrong."""
    if len(text) > limits.message:
        raise DataError(f"a message has at most {limits.message} characters")
    try:
        given = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise DataError("a message is a JSON object, and this is no JSON") from None
    if not isinstance(given, dict):
        raise DataError(f"a message is a JSON object, not {str(given)[:40]}")
    id = given.pop("id", None)
    if not isinstance(id, int) or isinstance(id, bool) or not 0 <= id <= MAX_ID:
        raise DataError("id: a whole number from 0 is expected")
    name = str(given.pop("type", None))
    if name not in MESSAGES:
        raise MessageError(id, unknown("type", name[:40], sorted(MESSAGES)))
    try:
        return ClientMessage(id, name, _checked(given, FIELDS[name], limits))
    except DataError as error:
        raise MessageError(id, str(error)) from None


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
            continue
        type = field_types(limits)[kind.rstrip("!")]
        try:
            found[name] = type.dump_python(
                type.validate_python(value, strict=True), exclude_unset=True
            )
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, (name, *first["loc"])))
            raise DataError(f"{where}: {first['msg']}") from None
    return found


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is no JSON")
