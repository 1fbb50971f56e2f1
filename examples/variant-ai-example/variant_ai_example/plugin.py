"""Hooks of the plugin. It is imported before most commands, so it imports nothing heavy."""

from __future__ import annotations

from pathlib import Path

from variant_ai.plugins import EncoderEntry, SearchEntry, TrainerEntry, VariantEntry, hookimpl

variant_ai_api = 2


@hookimpl
def register_variants() -> list[VariantEntry]:
    spec = Path(__file__).with_name("attack-minixiangqi.yaml")
    return [VariantEntry("attack-minixiangqi", spec)]


@hookimpl
def register_encoders() -> list[EncoderEntry]:
    target = "variant_ai_example.attack_maps:AttackMaps"
    return [EncoderEntry("attack-maps", target, "Pieces, and how often each square is attacked.")]


@hookimpl
def register_searches() -> list[SearchEntry]:
    target = "variant_ai_example.one_ply:OnePlySearch"
    return [SearchEntry("one-ply", target, "Every move once: policy and the value after it.")]


@hookimpl
def register_trainers() -> list[TrainerEntry]:
    target = "variant_ai_example.plain_trainer:PlainTrainer"
    return [TrainerEntry("plain", target, "Stochastic gradient descent at a constant rate.")]
