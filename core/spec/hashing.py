"""Hashes of a spec, which a game store, a checkpoint and an ONNX file must agree on, and the words
in which two specs differ.

A hash is the first 16 hex digits of the SHA-256 of canonical JSON, so comments, order of keys and
spelling of numbers in the YAML do not change it. The order of pieces does: it is the order of
planes. Words left at their default are omitted, so that a word added to the vocabulary later does
not change the hashes of older specs, or of the stores and nets that carry them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from variant_ai.core.spec.schema import VariantSpec

_RULE_FIELDS = ("board", "pieces", "castling", "hands", "rules")
_ENCODING_FIELDS = (*_RULE_FIELDS, "input", "policy")
_ADDED_FIELDS = ("encoder",)
"""Of the encoding, too, but newer: left out of the hash if the spec does not use them."""
_NOT_RULES = ("input", "policy", "encoder", "search", "settings", "training", "protocols", "title")


def spec_hash(spec: VariantSpec) -> str:
    """Hash of the whole spec except `drawing:`, `players:`, `names:` and `rules: engine:`."""
    return _digest(spec, None)


def rules_hash(spec: VariantSpec) -> str:
    """Hash of board, pieces, castling, hands and rules: all that recorded games depend on."""
    return _digest(spec, _RULE_FIELDS)


def encoding_hash(spec: VariantSpec) -> str:
    """Hash of rules, input and policy: all that a trained net depends on."""
    return _digest(spec, _ENCODING_FIELDS)


def _digest(spec: VariantSpec, fields: tuple[str, ...] | None) -> str:
    data: dict[str, Any] = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    if fields is not None:
        for piece in data["pieces"].values():
            piece.pop("name")  # names of pieces do not change a game
    for name in (
        "drawing",
        "players",
        "names",
    ):  # nor do these, and no net or store depends on them
        data.pop(name, None)
    # JSON objects are sorted; the order of pieces and castling sides has a meaning
    data["pieces"] = list(data["pieces"].items())
    data["castling"] = list(data.get("castling", {}).items())
    data["rules"].pop("engine", None)  # kernel and fairy play the same game
    data["policy"] = _ordered(data.get("policy", "derived"))
    chosen = data if fields is None else {name: data.get(name) for name in fields}
    if "fairy_ini" in data:
        chosen |= {"fairy_ini": data["fairy_ini"], "fairy": data.get("fairy")}
    if fields is _ENCODING_FIELDS:
        chosen |= {name: data[name] for name in _ADDED_FIELDS if name in data}
    text = json.dumps(chosen, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _ordered(policy: Any) -> Any:
    """Return the policy with slides as lists: the order of directions is the order of planes."""
    if isinstance(policy, str):
        return policy
    return [
        {"slides": list(item["slides"].items())}
        if isinstance(item, dict) and "slides" in item
        else item
        for item in policy
    ]


def spec_difference(ours: Any, theirs: Any) -> str:
    """Describe the first difference in rules: `rules.no_progress.plies: 120 there, 100 here`."""
    for path, *values in spec_differences(ours, theirs):
        if path.replace(" ", ".").split(".")[0] not in _NOT_RULES:
            there, here = ("nothing" if value is None else value for value in values)
            return f"{path}: {there} there, {here} here"
    return "they look alike"


def spec_differences(one: Any, other: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield dotted path and both values of every word in which two specs differ, in the order of
    the first; None stands for a missing word."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            inner = f"{path}.{key}" if path else str(key)
            yield from spec_differences(one.get(key), other.get(key), inner)
        shared = [key for key in one if key in other]
        if shared != [key for key in other if key in one]:
            yield f"{path} (order)" if path else "order", list(one), list(other)
    elif isinstance(one, list) and isinstance(other, list):
        for item in (*one, *(item for item in other if item not in one)):
            if (item in one) != (item in other):
                yield f"{path} (item)", *((item, None) if item in one else (None, item))
        if [item for item in one if item in other] != [item for item in other if item in one]:
            yield f"{path} (order)", one, other
    elif one != other:
        yield path, one, other
