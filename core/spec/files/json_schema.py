"""JSON schema of the vocabulary, with which editors complete and check a spec as it is written.

`specs/schema.json` is the output of `schema_text`; `variant-ai spec schema` writes it.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from variant_ai.core.spec.schema import VariantSpec

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """Schema of a spec file. It does not cover what several words must agree on; `variant-ai spec
    check` does."""
    schema = _inheritable(
        VariantSpec.model_json_schema(by_alias=True, schema_generator=_WithoutTitles)
    )
    extends = {
        "type": "string",
        "description": "Spec that this one modifies: the name of a variant, or the path of a "
        "file. Mappings are merged, `null` removes a key, and in lists the item `inherited` stands "
        "for the items of that spec",
    }
    for name, inner in schema["$defs"].items():
        inner.pop("title", None)
        if not name.endswith(("Plane", "Planes")):  # these are distinguished by their required keys
            inner.pop("required", None)
    schema["properties"] = {"extends": extends, **schema["properties"]}
    schema["anyOf"] = [{"required": schema.pop("required")}, {"required": ["extends", "variant"]}]
    return {"$schema": DIALECT, **schema, "title": "Variant spec"}


def schema_text() -> str:
    """Text of the schema, as in `specs/schema.json`."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


class _WithoutTitles(GenerateJsonSchema):
    """Leaves out the titles that pydantic derives from the names of fields."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _inheritable(node: Any) -> Any:
    """Adapt the schema to specs that extend another: any key may be null, and any list may contain
    `inherited`."""
    if isinstance(node, list):
        return [_inheritable(item) for item in node]
    if not isinstance(node, dict):
        return node
    found = {key: _inheritable(value) for key, value in node.items()}
    if "properties" in found:
        found["properties"] = {key: _or_null(value) for key, value in found["properties"].items()}
    if isinstance(found.get("additionalProperties"), dict):
        found["additionalProperties"] = _or_null(found["additionalProperties"])
    if isinstance(found.get("items"), dict):
        found["items"] = {"anyOf": [found["items"], {"const": "inherited"}]}
    return found


def _or_null(node: Any) -> Any:
    if {"type": "null"} in node.get("anyOf", []):
        return node
    kept = {key: node[key] for key in ("description", "default") if key in node}
    rest = {key: value for key, value in node.items() if key not in kept}
    return {"anyOf": [rest, {"type": "null"}], **kept}
