"""From a YAML file to a checked `VariantSpec`, with the file:line:column of every mistake."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from variant_ai.specs.checks import check
from variant_ai.specs.errors import SpecError, unknown
from variant_ai.specs.schema import VariantSpec

MAX_FILE_BYTES = 1_000_000
MAX_DEPTH = 30
"""Open brackets at once; the parser's time grows with the square of it."""


def load_spec(path: str | Path) -> VariantSpec:
    """Read and check a spec. Raises SpecError: a line per mistake, each with its place."""
    path = Path(path)
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise SpecError(f"over {MAX_FILE_BYTES} bytes: not a variant spec", str(path))
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SpecError(f"cannot be read: {error.strerror}", str(path)) from None
    except UnicodeDecodeError:
        raise SpecError("is not UTF-8 text", str(path)) from None
    return parse_spec(text, str(path))


def parse_spec(text: str, where: str = "<spec>") -> VariantSpec:
    """As `load_spec`, from YAML text; `where` stands before line and column in messages."""
    tree = _parse_yaml(text, where)
    try:
        spec = VariantSpec.model_validate_json(json.dumps(_plain(tree)))
    except ValidationError as error:
        lines = (
            _line(tree, where, _yaml_path(tree, item["loc"]), _message(item))
            for item in error.errors(include_url=False)
        )
        raise _error(lines, where) from None
    issues = check(spec)
    if issues:
        raise _error((_line(tree, where, i.path, i.message) for i in issues), where)
    return spec


def _parse_yaml(text: str, where: str) -> CommentedMap:
    depth = deepest = 0
    for bracket in re.findall(r"[][{}]", text):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    if deepest > MAX_DEPTH:
        raise SpecError(f"brackets nested {deepest} deep; a spec needs no more than 5", where)
    yaml = YAML(typ="rt", pure=True)
    yaml.allow_duplicate_keys = False
    try:
        tree = yaml.load(text)
    except DuplicateKeyError as error:
        mark = error.problem_mark
        key = str(error.problem).split("found duplicate key ")[-1].split(" with value")[0]
        raise SpecError(f"duplicate key {key}; each key stands once", _mark(where, mark)) from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise SpecError(f"not YAML: {error.problem or error.context}", _mark(where, mark)) from None
    except (YAMLError, ValueError, RecursionError) as error:
        raise SpecError(f"not YAML: {str(error).splitlines()[0]}", where) from None
    if not isinstance(tree, CommentedMap):
        raise SpecError("a spec is a mapping of keys (spec, variant, board, pieces, …)", where)
    return tree


def _mark(where: str, mark: Any) -> str:
    return where if mark is None else f"{where}:{mark.line + 1}:{mark.column + 1}"


def _plain(node: Any) -> Any:
    """The same tree in the types of `json`; what JSON has no word for becomes text."""
    if isinstance(node, Mapping):
        return {str(key): _plain(value) for key, value in node.items()}
    if isinstance(node, Sequence) and not isinstance(node, str):
        return [_plain(value) for value in node]
    if node is None or isinstance(node, bool):
        return node
    if isinstance(node, int):
        return int(node)
    if isinstance(node, float):
        return float(node)
    return str(node)


def _yaml_path(tree: Any, loc: Iterable[str | int]) -> tuple[str | int, ...]:
    """pydantic's location without the tags of unions, ending at the deepest word that exists."""
    path: list[str | int] = []
    node = tree
    for part in loc:
        if (isinstance(node, CommentedMap) and part in node) or (
            isinstance(node, CommentedSeq) and isinstance(part, int) and part < len(node)
        ):
            path.append(part)
            node = node[part]
    return tuple(path)


def _line(tree: Any, where: str, path: Sequence[str | int], message: str) -> str:
    """`file:line:column: a.b.c: message`; a path too long for the tree ends where the tree does."""
    node: Any = tree
    line, column = 0, 0
    for part in path:
        if isinstance(node, CommentedMap) and part in node:
            line, column = node.lc.key(part)
        elif isinstance(node, CommentedSeq) and isinstance(part, int) and part < len(node):
            line, column = node.lc.item(part)
        else:
            break
        node = node[part]
    dotted = ".".join(str(part) for part in path)
    return f"{where}:{line + 1}:{column + 1}: {dotted + ': ' if dotted else ''}{message}"


def _error(lines: Iterable[str], where: str) -> SpecError:
    error = SpecError("\n".join(dict.fromkeys(lines)))
    error.where = where
    return error


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
