"""Types of the fields of entries. Entries are written by hand, and nothing checks dataclasses.

A field of another type would fail far from its plugin, in the first command that sorts, joins or
opens it.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, TypeVar

from variant_ai.plugins.hookspecs import EncoderEntry, Entry, LazyEntry, VariantEntry, VariantsEntry

E = TypeVar("E", bound=Entry)


def checked(entry: E) -> E:
    """The entry, paths given as text made paths. Raises TypeError: the field, what it is, what is
    accepted."""
    _text("name", entry.name)
    changes: dict[str, Any] = {}
    if isinstance(entry, VariantEntry):
        changes["path"] = _path("path", entry.path)
        for field in ("sample", "model"):
            if (value := getattr(entry, field)) is not None:
                changes[field] = _path(field, value)
    if isinstance(entry, LazyEntry):
        _target(entry.target)
        if not isinstance(entry.summary, str):
            raise _wrong("summary", entry.summary, "a text")
    if isinstance(entry, EncoderEntry) and entry.kind not in ("input", "labels"):
        raise _wrong("kind", entry.kind, "'input' or 'labels'")
    if isinstance(entry, VariantsEntry):
        changes["variants"] = _names("variants", entry.variants)
    return dataclasses.replace(entry, **changes)


def _wrong(field: str, value: object, accepted: str) -> TypeError:
    return TypeError(f"{field} = {value!r}; accepted: {accepted}")


def _text(field: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise _wrong(field, value, "a text that is not empty")


def _path(field: str, value: object) -> Path:
    if not isinstance(value, (str, Path)) or not str(value):
        raise _wrong(field, value, "a pathlib.Path, or its text")
    return Path(value)


def _target(value: object) -> None:
    module, _, name = value.partition(":") if isinstance(value, str) else ("", "", "")
    if not module or not name:
        raise _wrong("target", value, "'package.module:object'")


def _names(field: str, value: object) -> tuple[str, ...]:
    # A text would be taken for a set of letters, and "serve" every variant that is a part of it.
    if not isinstance(value, (tuple, list)) or not all(isinstance(name, str) for name in value):
        raise _wrong(field, value, "a tuple of names of variants")
    return tuple(value)
