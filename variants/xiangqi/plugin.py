"""The plugin of xiangqi: what it registers with the host."""

from __future__ import annotations

from pathlib import Path

from variant_ai.plugins import API_VERSION, VariantEntry, hookimpl
from variant_ai.specs import builtin_specs

variant_ai_api = API_VERSION


@hookimpl
def register_variants() -> list[VariantEntry]:
    sample = Path(__file__).with_name("sample.store")
    return [VariantEntry("xiangqi", builtin_specs()["xiangqi"], sample=sample)]
