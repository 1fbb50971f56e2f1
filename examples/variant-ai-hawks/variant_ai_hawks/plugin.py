"""Hooks of the plugin. It is imported before most commands, so it imports nothing heavy."""

from __future__ import annotations

from pathlib import Path

from variant_ai.plugins import ReaderEntry, VariantEntry, hookimpl

variant_ai_api = 2


@hookimpl
def register_variants() -> list[VariantEntry]:
    return [VariantEntry("hawks", Path(__file__).with_name("hawks.yaml"))]


@hookimpl
def register_readers() -> list[ReaderEntry]:
    target = "variant_ai_hawks.score_sheets:ScoreSheetReader"
    return [ReaderEntry("hawks-sheets", target, "score sheets of hawk chess", ("hawks",))]
