"""YAML files read as checked `VariantSpec`s, with the file:line:column of every mistake."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from variant_ai.core.errors import SpecError, unknown
from variant_ai.core.factories import (
    DIALECTS,
    INPUT_ENCODERS,
    LABEL_ENCODERS,
    RULES_ENGINES,
    Factories,
)
from variant_ai.core.spec.consistency import check
from variant_ai.core.spec.files.yaml_reader import (
    YamlNode,
    located_error,
    located_message,
    location_of,
    plain_values,
    yaml_path,
)
from variant_ai.core.spec.inheritance import EXTENDS, is_inherited, read_spec_file, read_spec_tree
from variant_ai.core.spec.issues import unknown_words
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.spec.zones import ACCEPTED as ZONES
from variant_ai.core.system.checked_models import reason_of

_NAMING: dict[tuple[str, ...], Factories[Any]] = {
    ("rules", "engine"): RULES_ENGINES,
    ("encoder", "input"): INPUT_ENCODERS,
    ("encoder", "labels"): LABEL_ENCODERS,
    ("protocols",): DIALECTS,
}
"""Words of a spec that name something registered."""


def load_spec(
    path: str | Path,
    *,
    check_names: bool = False,
    on_file: Callable[[Path], object] = lambda _: None,
) -> VariantSpec:
    """Read and check a spec. Raises SpecError: a line per mistake, each with its location.

    With `check_names`, names that are not registered are among the mistakes; without it, the
    error appears where the name is first used. on_file: called with each file of the spec, those that it
    extends among them, before it is read.
    """
    return _parsed_spec(read_spec_file(Path(path), on_file), str(path), check_names)


def parse_spec(text: str, where: str = "<spec>") -> VariantSpec:
    """`load_spec` from YAML text; messages begin with `where`, then line and column."""
    return _parsed_spec(read_spec_tree(text, where), where, False)


def _parsed_spec(tree: YamlNode, where: str, check_names: bool) -> VariantSpec:
    try:
        spec = VariantSpec.model_validate_json(json.dumps(plain_values(tree)))
    except ValidationError as error:
        found = _mistakes(tree, error.errors(include_url=False))
        raise located_error((located_message(tree, *one) for one in found), where) from None
    issues = check(spec)
    if issues and "symmetry" in tree and is_inherited(tree, "symmetry"):
        # a spec that makes its parent's game asymmetric need not know the word
        spec = spec.model_copy(update={"symmetry": ()})
        issues = check(spec)
    for path, registered in _NAMING.items() if check_names else ():
        given, names = attrgetter(".".join(path))(spec), sorted(registered.names)
        if isinstance(given, tuple):
            issues += unknown_words(path, registered.kind, given, names)
        elif given not in names:
            issues.append((path, unknown(registered.kind, given, names)))
    if issues:
        raise located_error((located_message(tree, *issue) for issue in issues), where)
    return spec


def _mistakes(tree: YamlNode, errors: Iterable[Any]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield path and message of each mistake.

    pydantic reports a word that may have several types once per type. That is one mistake, and none
    if a deeper word has one.
    """
    by_path: dict[tuple[str | int, ...], list[Any]] = {}
    for item in errors:
        by_path.setdefault(yaml_path(tree, item["loc"]), []).append(item)
    for path, items in by_path.items():
        plain_types = all(item["type"] in _TYPE_ERRORS for item in items)
        if plain_types and any(p[: len(path)] == path != p for p in by_path):
            continue
        types = [item for item in items if item["type"] in _TYPE_ERRORS]
        of_union = len(items) > 1 and types
        if of_union or (types and path and items[0]["type"] != "literal_error"):
            yield path, _wrong_type(path, items)
        else:
            yield from ((path, _message(item)) for item in items)


def in_file(error: SpecError, path: Path) -> SpecError:
    """Add the location in the file to an error that was found after the spec was read."""
    if error.where:
        return error
    return SpecError(str(error), location_of(read_spec_file(path), error.keys), error.keys)


_TYPE_ERRORS = {
    "string_type",
    "tuple_type",
    "bool_type",
    "int_type",
    "float_type",
    "dict_type",
    "model_type",
    "model_attributes_type",
    "literal_error",
}
"""pydantic's names of errors for values of a wrong type."""
_POLICY_FORMS = {
    "slides": "{slides: {N: 7, NE: 7}}, directions with the longest distance",
    "leaps": "{leaps: [2N1E]}",
    "promotions": "{promotions: {to: Q, steps: [N, NE, NW]}}",
}
"""An example of each item of `policy:` that needs more than its name."""
_ZONE_WORDS = {"at", "must", "within", "drop", "reaches", "palace"}


def _wrong_type(path: Sequence[str | int], items: Sequence[Any]) -> str:
    """Message with the given value and every form that would be accepted."""
    given = items[-1]["input"]
    options = [node for item in items for node in _subschemas(item["loc"])]
    zone = bool(path) and (path[-1] in _ZONE_WORDS or "zones" in path[-2:-1])
    square = not zone and (bool(_ZONE_WORDS & {*path[-2:-1]}) or "zones" in path[-3:-2])
    loc = items[-1]["loc"]
    bare = loc[0] in ("input", "policy") and loc[2:] == (given,)
    forms: list[str] = []
    for option in options:
        if loc[0] == "policy" and isinstance(given, str) and given in _POLICY_FORMS:
            forms.append(_POLICY_FORMS[given])
        elif bare:  # the key of a plane item without its value
            values = option.get("enum") or [_form(option, None)]
            forms += [f"{{{given}: {value}}}" for value in values]
        elif zone and "const" not in option and option.get("type") in ("string", "array"):
            number = isinstance(given, int) and not isinstance(given, bool)
            forms.append(f"a zone: `rank {given}`, …" if number else f"a zone: {ZONES}")
        elif square:
            forms.append("a square such as e4")
        elif option.get("type") != "null":
            forms.append(_form(option, given))
    listed = list(dict.fromkeys(forms))
    return f"given {_short(given)}; accepted: {', or '.join(listed)}"


def _form(node: Mapping[str, Any], given: Any) -> str:
    """Describe a JSON subschema."""
    if "const" in node:
        return f"`{node['const']}`"
    if "enum" in node:
        return ", ".join(f"`{word}`" for word in node["enum"])
    kind = node.get("type")
    if "properties" in node:
        keys = node.get("required") or list(node["properties"])
        number = isinstance(given, int | float) and not isinstance(given, bool)
        value = given if number and len(keys) == 1 else "…"
        more = ", …" if len(keys) < len(node["properties"]) else ""
        return f"{{{', '.join(f'{key}: {value}' for key in keys)}{more}}}"
    if kind in ("integer", "number"):
        low, high = node.get("minimum"), node.get("maximum")
        limits = f" from {low} to {high}" if low is not None and high is not None else ""
        return ("a whole number" if kind == "integer" else "a number") + limits
    words = {"string": "text", "boolean": "true or false", "array": "a list in [ ]"}
    return words.get(str(kind), "a mapping of keys")


def _message(item: Any) -> str:
    kind, given, context = item["type"], item["input"], item.get("ctx", {})
    last = str(item["loc"][-1]) if item["loc"] else ""
    if kind == "extra_forbidden":
        return unknown("key", last, sorted(_accepted_keys(item["loc"][:-1])))
    if kind == "missing" and isinstance(item["loc"][-1], int):
        return f"a list of {item['loc'][-1]} is too short"
    if kind == "missing":
        return f"the key {last!r} is missing"
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return _unknown_plane(given, item["loc"])
    if kind in ("literal_error", "enum"):
        return f"given {given!r}; accepted: {context['expected']}"
    if kind == "string_pattern_mismatch":
        marks = ", `-` and `_`" if "_" in context["pattern"] else " and `-`"
        return f"given {_short(given)}; accepted: small letters, digits{marks}"
    return f"{reason_of(item)}, given {_short(given)}"


def _unknown_plane(given: Any, loc: Sequence[str | int]) -> str:
    kinds = sorted(set(_union_tags(loc)))
    if isinstance(given, dict) and len(given) != 1:
        return f"one key per item, given {len(given)}; accepted: {', '.join(kinds)}"
    word = next(iter(given)) if isinstance(given, dict) else str(given)
    return unknown("plane item", str(word), kinds)


def _short(value: Any) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _subschemas(loc: Sequence[str | int]) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON subschemas that a location of pydantic may refer to."""
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
        nodes = deeper or nodes  # the tag of a union is no level of the schema
    yield from nodes


def _accepted_keys(loc: Sequence[str | int]) -> set[str]:
    keys = {key for node in _subschemas(loc) for key in node.get("properties", {})}
    return keys if loc else {*keys, EXTENDS}


def _union_tags(loc: Sequence[str | int]) -> Iterator[str]:
    for node in _subschemas(loc):
        if "const" in node:
            yield str(node["const"])
        yield from node.get("properties", {})
