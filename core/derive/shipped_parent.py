"""Drafts that extend a shipped spec: a variant that begins with the same pieces and differs in rules.

Probing finds the moves of most pieces, but not those of a cannon that avoids cannons or of a palace with
diagonals. A shipped spec has the words for them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from typing import Any

from variant_ai.core.spec.catalogue import builtin_specs
from variant_ai.core.spec.loader import load_spec
from variant_ai.core.spec.rule_words import Model
from variant_ai.core.spec.schema import VariantSpec

PROBED = ("stalemate", "repetition", "no_progress")
"""Words of rules that are taken from the draft."""
COPIED = ("variant", "title", "fairy", "fairy_ini")
OPTIONAL = ("pass", "facing_kings", "points")
"""Words of the shipped spec that the variant may have or not; each is tried."""


def drafts_with_parents(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield drafts that extend a shipped spec with rules that probing cannot find, in every combination
    with and without each of these rules. tree: the draft that probing gave."""
    for name, path in builtin_specs().items():
        parent = load_spec(path)
        theirs = parent.rules.model_dump(by_alias=True, exclude_defaults=True)
        given = [word for word in OPTIONAL if word in theirs]
        if not given or not _begins_alike(parent, tree):
            continue
        for kept in product((True, False), repeat=len(given)):
            left_out = [word for word, keep in zip(given, kept, strict=True) if not keep]
            yield _child(name, parent, tree, left_out)


def _begins_alike(parent: VariantSpec, tree: dict[str, Any]) -> bool:
    """Return True if a variant has the board and the first position of a shipped one."""
    size = (tree["board"]["files"], tree["board"]["ranks"])
    home = tree["rules"]["start"].split()[0]
    return size == (parent.board.files, parent.board.ranks) and (
        parent.rules.start.split()[0] == home
    )


def _child(
    name: str, parent: VariantSpec, tree: dict[str, Any], left_out: list[str]
) -> dict[str, Any]:
    """A spec that extends the shipped one `name`, without some words of its rules."""
    rules: dict[str, Any] = dict.fromkeys(left_out)
    by_points = parent.rules.points is not None and "points" not in left_out
    for word in PROBED:
        mine, theirs = tree["rules"][word], getattr(parent.rules, word)
        if word == "repetition" and by_points:
            mine = {**mine, "otherwise": "draw"}  # which points decide
        if isinstance(theirs, Model):
            same = type(theirs).model_validate_json(json.dumps(mine)) == theirs
        else:
            same = mine == theirs
        if not same:
            rules[word] = mine
    tree = {word: tree[word] for word in COPIED if word in tree}
    return {"spec": 1, "extends": name, **tree, **({"rules": rules} if rules else {})}
