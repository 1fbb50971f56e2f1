"""What is said of a built-in spec that was changed for the worse."""

from __future__ import annotations

import pytest

from variant_ai.core.spec import SpecError, builtin_specs, parse_spec


def refusal(name: str, *changes: tuple[str, str]) -> str:
    """What is said of a built-in spec after some changes, each of which must be one."""
    text = builtin_specs()[name].read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text, f"the spec no longer says {old!r}"
        text = text.replace(old, new, 1)
    with pytest.raises(SpecError) as caught:
        parse_spec(text, "my.yaml")
    return str(caught.value)
