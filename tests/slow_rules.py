"""Variants of the kernel, played by Fairy-Stockfish."""

from __future__ import annotations

from variant_ai.core.spec.schema import VariantSpec


def on_fairy(spec: VariantSpec) -> VariantSpec:
    return spec.model_copy(update={"rules": spec.rules.model_copy(update={"engine": "fairy"})})
