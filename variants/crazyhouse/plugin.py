"""Plugin of crazyhouse: its spec, sample games and reader; its notations are in core."""

from __future__ import annotations

from pathlib import Path

from variant_ai.core.spec.catalogue import builtin_specs
from variant_ai.plugins.hookspecs import API_VERSION, ReaderEntry, VariantEntry, hookimpl

variant_ai_api = API_VERSION


@hookimpl
def register_variants() -> list[VariantEntry]:
    folder, spec = Path(__file__).parent, builtin_specs()["crazyhouse"]
    sample, model = folder / "sample.store", folder / "model.onnx"
    return [VariantEntry("crazyhouse", spec, sample=sample, model=model)]


@hookimpl
def register_readers() -> list[ReaderEntry]:
    return [
        ReaderEntry(
            "crazyhouse-pgn",
            "variant_ai.variants.crazyhouse.readers:crazyhouse_pgn",
            "PGN of chess servers, with or without a Variant tag",
            ("crazyhouse",),
        )
    ]
