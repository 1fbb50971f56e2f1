"""Where two specs differ, for who keeps one in a file and meets another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

NOT_RULES = ("input", "policy", "search", "settings", "training", "protocols", "title")


def spec_difference(ours: Any, theirs: Any, path: str = "") -> str:
    """Where two specs differ first, in words: `rules.no_progress.plies: 120 there, 100 here`."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in [*ours, *(key for key in theirs if key not in ours)]:
            if key in NOT_RULES and not path:
                continue
            if ours.get(key) != theirs.get(key):
                inner = f"{path}.{key}" if path else str(key)
                return spec_difference(ours.get(key), theirs.get(key), inner)
        return "the order of pieces differs" if list(ours) != list(theirs) else "they look alike"
    there, here = ("nothing" if value is None else value for value in (ours, theirs))
    return f"{path}: {there} there, {here} here"


def spec_differences(one: Any, other: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Dotted path and both values of every word in which two specs differ, in the order of the first;
    None stands for a word that one of them has not."""
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
