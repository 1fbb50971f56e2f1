"""From a YAML file to a checked `VariantSpec`, with the file:line:column of every mistake."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from variant_ai.specs.checks import check
from variant_ai.specs.errors import unknown
from variant_ai.specs.located import line_of, located_error, parse_yaml, plain, read_text, yaml_path
from variant_ai.specs.schema import VariantSpec


def load_spec(path: str | Path) -> VariantSpec:
    """Read and check a spec. Raises SpecError: a line per mistake, each with its place."""
    text = read_text(Path(path), "a variant spec")
    return parse_spec(text, str(path))


def parse_spec(text: str, where: str = "<spec>") -> VariantSpec:
    """As `load_spec`, from YAML text; `where` stands before line and column in messages."""
    tree = parse_yaml(text, where, "a spec", "spec, variant, board, pieces, …")
    try:
        spec = VariantSpec.model_validate_json(json.dumps(plain(tree)))
    except ValidationError as error:
        lines = (
            line_of(tree, where, yaml_path(tree, item["loc"]), _message(item))
            for item in error.errors(include_url=False)
        )
        raise located_error(lines, where) from None
    issues = check(spec)
    if issues:
        raise located_error((line_of(tree, where, i.path, i.message) for i in issues), where)
    return spec


def _message(item: Any) -> str:
    kind, given, context = item["type"], item["input"], item.get("ctx", {})
    last = str(item["loc"][-1]) if item["loc"] else ""
    if kind == "extra_forbidden":
        return unknown("key", last, sorted(_accepted_keys(item["loc"][:-1])))
    if kind == "missing":
        return f"the key {last!r} is missing"
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return _unknown_plane(given, item["loc"])
    if kind in ("literal_error", "enum"):
        return f"given {given!r}; accepted: {context['expected']}"
    message = item["msg"][0].lower() + item["msg"][1:]
    return f"{message}, given {_short(given)}"


def _unknown_plane(given: Any, loc: Sequence[str | int]) -> str:
    kinds = sorted(set(_union_tags(loc)))
    if isinstance(given, dict) and len(given) != 1:
        return f"one key per item, given {len(given)}; accepted: {', '.join(kinds)}"
    word = next(iter(given)) if isinstance(given, dict) else str(given)
    return unknown("plane item", str(word), kinds)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _subschemas(loc: Sequence[str | int]) -> Iterator[Mapping[str, Any]]:
    """JSON subschemas that pydantic's location can stand for."""
    root = VariantSpec.model_json_schema(by_alias=True)

    def flat(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        if "$ref" in node:
            yield from flat(root["$defs"][node["$ref"].rsplit("/", 1)[-1]])
        elif "oneOf" in node or "anyOf" in node:
            for option in node.get("oneOf", node.get("anyOf", ())):
                yield from flat(option)
        else:
            yield node

    nodes = list(flat(root))
    for part in loc:
        deeper: list[Mapping[str, Any]] = []
        for node in nodes:
            if isinstance(part, int) and isinstance(node.get("items"), dict):
                deeper += flat(node["items"])
            elif part in node.get("properties", {}):
                deeper += flat(node["properties"][part])
            elif isinstance(node.get("additionalProperties"), dict):
                deeper += flat(node["additionalProperties"])
        nodes = deeper or nodes  # a union's tag leads nowhere: stay
    yield from nodes


def _accepted_keys(loc: Sequence[str | int]) -> set[str]:
    return {key for node in _subschemas(loc) for key in node.get("properties", {})}


def _union_tags(loc: Sequence[str | int]) -> Iterator[str]:
    for node in _subschemas(loc):
        if "const" in node:
            yield str(node["const"])
        yield from node.get("properties", {})
