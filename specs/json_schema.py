"""The vocabulary as JSON schema, so that editors complete and check a spec while it is written.

`specs/schema.json` is what `schema_text` gives; `variant-ai spec schema` writes it anew.
"""

from __future__ import annotations

import json
from typing import Any

from variant_ai.specs.schema import VariantSpec

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """The schema of a spec file. Sizes and shapes are in it, what several words must agree on is
    not: `variant-ai spec check` looks at that."""
    schema = VariantSpec.model_json_schema(by_alias=True)
    return {"$schema": DIALECT, "title": "Variant spec", **_without_titles(schema)}


def schema_text() -> str:
    """The same as text, as it stands in `specs/schema.json`."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def _without_titles(node: Any, *, names: bool = False) -> Any:
    """pydantic titles every field with its own name in other letters; editors would show it.

    `names`: the keys of this mapping are names of fields, of which one may be `title`.
    """
    if isinstance(node, dict):
        return {
            key: _without_titles(value, names=key in ("properties", "$defs") and not names)
            for key, value in node.items()
            if names or key != "title"
        }
    if isinstance(node, list):
        return [_without_titles(item) for item in node]
    return node
