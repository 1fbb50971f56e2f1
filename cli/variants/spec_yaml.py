"""Specs as YAML text, and the lines of a comparison of two."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from variant_ai.core.spec.schema import VariantSpec

IN_LINES = ("pieces", "rules", "input", "policy", "drawing")
"""Keys whose items have a line each."""
WIDTH = 120


def written_out(spec: VariantSpec, path: Path) -> dict[str, Any]:
    """The words of a spec and of those it extends."""
    from variant_ai.core.spec.inheritance import read_spec_tree
    from variant_ai.core.spec.yaml_reader import plain_values, read_text

    tree = plain_values(read_spec_tree(read_text(path, "a variant spec"), str(path), path.parent))
    assert isinstance(tree, dict)
    return {"spec": 1, "variant": spec.variant, **tree}


def as_yaml(tree: dict[str, Any]) -> str:
    """A spec as YAML text: a line for each piece, rule and plane, as the shipped specs are written."""
    from ruamel.yaml import YAML
    from ruamel.yaml.comments import CommentedMap, CommentedSeq

    def flow(value: Any) -> Any:
        found: CommentedMap | CommentedSeq
        if isinstance(value, dict):
            found = CommentedMap({key: flow(inner) for key, inner in value.items()})
        elif isinstance(value, list):
            found = CommentedSeq([flow(inner) for inner in value])
        else:
            return value
        found.fa.set_flow_style()
        return found

    def block(value: Any) -> Any:
        if isinstance(value, dict):
            return CommentedMap({key: flow(inner) for key, inner in value.items()})
        return CommentedSeq([flow(inner) for inner in value])

    top = {}
    for key, value in tree.items():
        in_lines = key in IN_LINES and isinstance(value, dict | list)
        top[key] = block(value) if in_lines else flow(value)
    yaml = YAML()
    yaml.width = WIDTH
    yaml.indent(mapping=2, sequence=4, offset=2)
    text = io.StringIO()
    yaml.dump(top, text)
    return text.getvalue()


def difference_lines(found: Iterable[tuple[str, Any, Any]]) -> Iterator[str]:
    """`word`, then `- value` of the one spec and `+ value` of the other."""
    before = ""
    for path, one, other in found:
        if path != before:
            yield path
        before = path
        for mark, value in (("-", one), ("+", other)):
            if value is not None:
                yield f"  {mark} {_in_line(value)}"


def _in_line(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
