"""The protocol of the page as an AsyncAPI document, for programs that ask the same questions."""

from __future__ import annotations

from typing import Any

from variant_ai.core.web.client_messages import MAX_ID, MAX_TEXT, MAX_WORD, MESSAGES, RESULTS, TAGS
from variant_ai.core.web.web_settings import VisitorLimits

ASYNCAPI = "3.0.0"
ABOUT = (
    "JSON objects over a WebSocket. Each message has a number `id` of the program's choice, which its "
    "answers repeat, and a `type`. Every question about a game has the whole game: a FEN (by default "
    "the start position) and the moves since, in UCI. An answer with `error` is the last one; so is "
    "any other without `final: false`. Values are those of the side to move."
)


def protocol_document(limits: VisitorLimits | None = None) -> dict[str, Any]:
    """Return the AsyncAPI document. limits: those of a server; None: the usual ones."""
    bounds = limits or VisitorLimits()
    messages = {
        name: {
            "name": name,
            "summary": kind.about,
            "description": f"The answer has {kind.answer}.",
            "payload": {
                "type": "object",
                "additionalProperties": False,
                "required": [
                    "id",
                    "type",
                    *(field for field, one in kind.fields.items() if one.endswith("!")),
                ],
                "properties": {
                    "id": {"type": "integer", "minimum": 0, "maximum": MAX_ID},
                    "type": {"const": name},
                    **{
                        field: _schema(one.rstrip("!"), bounds)
                        for field, one in kind.fields.items()
                    },
                },
            },
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


def _schema(kind: str, limits: VisitorLimits) -> dict[str, Any]:
    """Return the JSON schema of a kind of field."""
    move = {"type": "string", "maxLength": 20}
    schemas: dict[str, dict[str, Any]] = {
        "name": {"type": "string", "maxLength": MAX_WORD},
        "text": {"type": "string", "maxLength": MAX_TEXT},
        "long": {"type": "string", "maxLength": limits.spec},
        "moves": {"type": "array", "items": move, "maxItems": limits.moves},
        "lines": {"type": "array", "items": {"type": "array", "items": move, "maxItems": 64}},
        "tags": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                tag: {"enum": list(RESULTS)} if tag == "Result" else {"type": "string"}
                for tag in TAGS
            },
        },
        "clock": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "left": {"type": "number", "minimum": 0},
                "increment": {"type": "number", "minimum": 0},
            },
        },
        "seconds": {"type": "number", "minimum": 0, "maximum": limits.seconds},
        "count": {"type": "integer", "minimum": 1},
        "number": {"type": "integer", "minimum": 0},
        "id": {"type": "integer", "minimum": 0},
    }
    return schemas[kind]
