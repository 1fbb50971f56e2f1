"""The protocol of the page as an AsyncAPI document, for programs that ask the same questions."""

from __future__ import annotations

from typing import Any

from variant_ai.core.web.client_messages import MESSAGES, MODELS
from variant_ai.core.web.web_settings import VisitorLimits

ASYNCAPI = "3.0.0"
ABOUT = (
    "JSON objects over a WebSocket. Each message has a number `id` of the program's choice, which its "
    "answers repeat, and a `type`. Every question about a game has the whole game: a FEN (by default "
    "the start position) and the moves since, in UCI. An answer with `error` is the last one; so is "
    "any other without `final: false`. Values are those of the side to move."
)


def protocol_document(limits: VisitorLimits) -> dict[str, Any]:
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


def _schema(name: str, limits: VisitorLimits) -> dict[str, Any]:
    """Return the JSON schema of a type of message. limits: those of the server."""
    schema: dict[str, Any] = MODELS[name].model_json_schema()
    fields = schema["properties"]
    for field, most in (("nodes", limits.nodes), ("seconds", limits.seconds)):
        if field in fields:
            fields[field]["description"] = f"more than {most:.12g} counts as {most:.12g}"
    return schema
