"""Error messages of built-in specs after a change."""

from __future__ import annotations

import pytest

from variant_ai.core.errors import SpecError
from variant_ai.core.spec import builtin_specs, parse_spec


def error_message(name: str, *changes: tuple[str, str]) -> str:
    """Return the error message of a built-in spec after changes, each of which must change it."""
    text = builtin_specs()[name].read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text, f"the spec no longer has {old!r}"
        text = text.replace(old, new, 1)
    with pytest.raises(SpecError) as caught:
        parse_spec(text, "my.yaml")
    return str(caught.value)
