"""Write what follows from declarations in the source: tables of the manual, and specs/schema.json.

    python docs/tables.py

A table in a page stands between `<!-- table: NAME -->` and `<!-- end -->`. A test fails if a page
is not up to date.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel

from variant_ai.core.arena.match.match_settings import MatchSettings
from variant_ai.core.arena.players.player_spec import PlayerSpec
from variant_ai.core.engine.protocols.chosen_options import OptionSet
from variant_ai.core.engine.protocols.engine_options import NO_EFFECT, UCCI_OPTIONS, VARIANT, Option
from variant_ai.core.reinforce.reinforce_settings import ReinforceSettings
from variant_ai.core.spec.declared_setting import Setting
from variant_ai.core.spec.files.json_schema import schema_text
from variant_ai.core.spec.search_settings import SEARCH_SETTINGS
from variant_ai.core.web.client_messages import MESSAGES

DOCS = Path(__file__).resolve().parent
_TABLE = re.compile(r"(<!-- table: (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def option_row(option: Option) -> tuple[str, ...]:
    """Name, kind, accepted values, default and meaning of a protocol option."""
    accepted, default = "", str(option.default)
    if option.kind == "check":
        accepted, default = "true, false", default.lower()
    elif option.kind == "spin":
        accepted = f"{option.low} – {option.high}"
    elif option.name == VARIANT:  # those of the installation
        default = ""
    elif option.kind == "combo":
        accepted = ", ".join(option.choices)
    return f"`{option.name}`", option.kind, accepted, default, option.about


def place_of(option: Option) -> int:
    """Place of an option in the table: the variant first, last those without effect."""
    return 0 if option.name == VARIANT else 2 if option.about.startswith(NO_EFFECT) else 1


def setting_row(row: Setting) -> tuple[str, ...]:
    """Name, accepted values, default, spec, option, meaning and source of a search setting."""
    default = f"{row.default:g}" if isinstance(row.default, float) else str(row.default).lower()
    accepted = row.accepted.removeprefix("a whole number from ").removeprefix("a number from ")
    accepted = accepted.replace(" to ", " – ")
    unit = "" if row.unit in ("", "value", "probability") else f" {row.unit}"
    spec = "yes" if row.spec else ""
    names = f"`{row.name}`", f"{accepted}{unit}", default, spec, f"`{row.option}`"
    return *names, row.meaning, row.source


def model_rows(model: type[BaseModel]) -> Iterator[tuple[str, ...]]:
    """Key, accepted values, default and meaning of each field of a pydantic model."""
    schema = model.model_json_schema()
    for key, value in schema["properties"].items():
        inner = schema.get("$defs", {}).get(value.get("$ref", "").rpartition("/")[2], {})
        default = value.get("default", "")
        if isinstance(default, bool):
            default = str(default).lower()
        elif default in (None, [], {}) or inner:
            default = ""
        yield f"`{key}`", _accepted(value), str(default), _meaning(value)
        for name, part in inner.get("properties", {}).items():
            default = part.get("default") or ""
            yield f"`{key}: {name}`", _accepted(part), str(default), _meaning(part)


def _meaning(part: dict[str, Any]) -> str:
    """Description of a field, on one line."""
    return " ".join(str(part.get("description", "")).split())


def section_rows(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, ...]]:
    """Dotted name, accepted values, default and meaning of every setting of a model and its sections."""
    properties = model.model_json_schema()["properties"]
    for name, field in model.model_fields.items():
        kinds = [field.annotation, *get_args(field.annotation)]
        section = next((k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)), None)
        if section is not None:
            yield from section_rows(section, f"{prefix}{name}.")
            continue
        default = field.get_default(call_default_factory=True)
        if field.is_required() or default is None:
            text = ""
        elif isinstance(default, dict):
            text = ", ".join(f"{key}: {value}" for key, value in default.items())
        else:
            text = default if isinstance(default, str) else json.dumps(default)
        meaning = (field.description or "").replace("\n", " ")
        yield f"`{prefix}{name}`", _accepted(properties[name]), text, meaning


def _accepted(part: dict[str, Any]) -> str:
    """Accepted values of a field, from its JSON schema."""
    if "anyOf" in part:
        return " or ".join(dict.fromkeys(filter(None, map(_accepted, part["anyOf"]))))
    if "enum" in part:
        return ", ".join(map(str, part["enum"]))
    kinds = {"string": "text", "array": "list", "boolean": "true, false", "null": ""}
    kind: str = kinds.get(part.get("type", "object"), part.get("type", "mapping"))
    if kind == "object":
        return "mapping"
    limits = [
        f"{word} {part[key]:g}"
        for key, word in (
            ("minimum", "from"),
            ("exclusiveMinimum", "above"),
            ("maximum", "to"),
            ("exclusiveMaximum", "below"),
        )
        if key in part
    ]
    return " ".join([kind, *limits])


def _field(field: tuple[str, str]) -> str:
    """Name of a field of a message; bold if it must be given."""
    name, kind = field
    return f"**`{name}`**" if kind.endswith("!") else f"`{name}`"


def table(head: Iterable[str], rows: Iterable[tuple[str, ...]]) -> str:
    """A table in Markdown."""
    head = tuple(head)
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def tables() -> Mapping[str, str]:
    """Every table by name."""
    options = ("option", "kind", "accepted", "default", "meaning")
    settings = ("setting", "accepted", "default", "in specs", "option", "meaning", "source")
    keys = ("key", "accepted", "default", "meaning")
    return {
        "match settings": table(keys, model_rows(MatchSettings)),
        "player settings": table(keys, model_rows(PlayerSpec)),
        "options": table(options, map(option_row, sorted(OptionSet(["a"], "a").uci, key=place_of))),
        "UCCI options": table(options, map(option_row, UCCI_OPTIONS)),
        "self-play settings": table(keys, section_rows(ReinforceSettings)),
        "web messages": table(
            ("type", "fields", "what it asks for", "the answer has"),
            (
                (f"`{name}`", ", ".join(map(_field, kind.fields.items())), kind.about, kind.answer)
                for name, kind in MESSAGES.items()
            ),
        ),
        "search settings": table(settings, map(setting_row, SEARCH_SETTINGS.values())),
    }


def current(page: str) -> str:
    """The text of a page with its tables up to date."""
    found = tables()
    return _TABLE.sub(lambda match: match[1] + found[match[2]] + match[3], page)


def main() -> None:
    """Bring all pages and the schema up to date."""
    for path in DOCS.glob("*.md"):
        text = path.read_text(encoding="utf-8")
        if (new := current(text)) != text:
            path.write_text(new, encoding="utf-8")
            print(f"changed: {path}")
    schema = DOCS.parent / "specs" / "schema.json"
    schema.write_text(schema_text(), encoding="utf-8")


if __name__ == "__main__":
    main()
