"""Plugin of xiangqi: its spec, sample games, readers and notations."""

from __future__ import annotations

from pathlib import Path

from variant_ai.core.spec.catalogue import builtin_specs
from variant_ai.plugins.hookspecs import (
    API_VERSION,
    NotationEntry,
    ReaderEntry,
    VariantEntry,
    hookimpl,
)

variant_ai_api = API_VERSION

_SERVES = ("xiangqi",)


@hookimpl
def register_variants() -> list[VariantEntry]:
    folder, spec = Path(__file__).parent, builtin_specs()["xiangqi"]
    sample, model = folder / "sample.store", folder / "model.onnx"
    return [VariantEntry("xiangqi", spec, sample=sample, model=model)]


@hookimpl
def register_readers() -> list[ReaderEntry]:
    return [
        ReaderEntry(
            "xiangqi-pgn",
            "variant_ai.variants.xiangqi.readers:xiangqi_pgn",
            "PGN whose moves are Chinese, WXF or ICCS, in UTF-8, UTF-16, Big5 or GB18030",
            _SERVES,
        ),
        ReaderEntry(
            "dhtmlxq",
            "variant_ai.variants.xiangqi.readers:DhtmlXqReader",
            "games saved from web pages as [DhtmlXQ] blocks",
            _SERVES,
        ),
    ]


@hookimpl
def register_notations() -> list[NotationEntry]:
    return [
        NotationEntry(
            "chinese",
            "variant_ai.variants.xiangqi.notation:chinese",
            "Chinese, traditional characters: 炮二平五",
            _SERVES,
        ),
        NotationEntry(
            "chinese-simplified",
            "variant_ai.variants.xiangqi.notation:chinese_simplified",
            "Chinese, simplified characters: 马８进７",
            _SERVES,
        ),
        NotationEntry(
            "wxf",
            "variant_ai.variants.xiangqi.notation:WxfNotation",
            "World Xiangqi Federation: C2=5",
            _SERVES,
        ),
    ]
