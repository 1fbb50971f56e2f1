"""Hashes of a spec: what a game store, a checkpoint and an ONNX file must agree on.

Each is the first 16 hex digits of the SHA-256 of canonical JSON, so comments, order of keys and
spelling of numbers in the YAML do not change it. Order of pieces does: it is the order of planes.
What a spec leaves at its default is left out, so that a word added to the vocabulary later leaves
the hashes of older specs, and the stores and nets that carry them, as they are.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from variant_ai.core.spec.schema import VariantSpec

_RULE_FIELDS = ("board", "pieces", "castling", "hands", "rules")
_ENCODING_FIELDS = (*_RULE_FIELDS, "input", "policy")
_ADDED_FIELDS = ("encoder",)
"""Of the encoding, too, but newer: left out of the hash if the spec does not use them."""


def _digest(spec: VariantSpec, fields: tuple[str, ...] | None) -> str:
    data: dict[str, Any] = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    if fields is not None:
        for piece in data["pieces"].values():
            piece.pop("name")  # how a piece is called changes no game
    # nor does how it is drawn or who is called what, and no net or store depends on it
    data.pop("drawing", None)
    data.pop("players", None)
    data.pop("names", None)
    # JSON objects are unordered once sorted; the order of pieces and castling sides is meaning.
    data["pieces"] = list(data["pieces"].items())
    data["castling"] = list(data.get("castling", {}).items())
    data["rules"].pop("engine", None)  # kernel and fairy play the same game
    data["policy"] = _ordered(data.get("policy", "derived"))
    chosen = data if fields is None else {name: data.get(name) for name in fields}
    if fields is _ENCODING_FIELDS:
        chosen |= {name: data[name] for name in _ADDED_FIELDS if name in data}
    text = json.dumps(chosen, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _ordered(policy: Any) -> Any:
    """Slides as lists: the order of directions is the order of planes."""
    if isinstance(policy, str):
        return policy
    return [
        {"slides": list(item["slides"].items())}
        if isinstance(item, dict) and "slides" in item
        else item
        for item in policy
    ]


def spec_hash(spec: VariantSpec) -> str:
    """All of the spec but `drawing:` and `players:`: changes with any word of it that is not
    layout."""
    return _digest(spec, None)


def rules_hash(spec: VariantSpec) -> str:
    """Board, pieces, castling, hands and rules: what recorded games depend on."""
    return _digest(spec, _RULE_FIELDS)


def encoding_hash(spec: VariantSpec) -> str:
    """Rules, input and policy: what a trained net depends on."""
    return _digest(spec, _ENCODING_FIELDS)
