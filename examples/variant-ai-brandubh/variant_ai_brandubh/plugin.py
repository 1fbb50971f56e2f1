"""Hooks of the plugin. It is imported before most commands, so it imports nothing heavy."""

from __future__ import annotations

from pathlib import Path

from variant_ai.plugins import RulesEntry, VariantEntry, hookimpl

variant_ai_api = 2


@hookimpl
def register_variants() -> list[VariantEntry]:
    return [VariantEntry("brandubh", Path(__file__).with_name("brandubh.yaml"))]


@hookimpl
def register_rules() -> list[RulesEntry]:
    return [RulesEntry("tafl", "variant_ai_brandubh.tafl:TaflRules", "Tafl games, in Python.")]
