"""The rules that a test needs which asks nothing of the variant."""

from __future__ import annotations

import pytest

from variant_ai.core.rules import make_rules
from variant_ai.core.rules.interface import Rules
from variant_ai.plugins import registry


@pytest.fixture(scope="module")
def one_rules() -> Rules:
    found = registry().variants
    return make_rules(registry().variant(min(n for n, e in found.items() if e.plugin == n)))
