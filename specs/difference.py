"""Where two specs differ, for who keeps one in a file and meets another."""

from __future__ import annotations

from typing import Any


def spec_difference(ours: Any, theirs: Any, path: str = "") -> str:
    """Where two specs differ first, in words: `rules.no_progress.plies: 120 there, 100 here`."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in [*ours, *(key for key in theirs if key not in ours)]:
            if key in ("input", "policy", "search", "training", "protocols", "title") and not path:
                continue
            if ours.get(key) != theirs.get(key):
                inner = f"{path}.{key}" if path else str(key)
                return spec_difference(ours.get(key), theirs.get(key), inner)
        return "the order of pieces differs" if list(ours) != list(theirs) else "they look alike"
    there, here = ("nothing" if value is None else value for value in (ours, theirs))
    return f"{path}: {there} there, {here} here"
