"""The model card of a finished run (`model_card.md.jinja`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from variant_ai.core.data.sample.value_labels import ValueLabels
from variant_ai.core.system.templates import rendered
from variant_ai.core.system.text_tables import counted
from variant_ai.core.train.loop.optimisers import find_optimiser
from variant_ai.core.train.measure.metric_tables import result_rows
from variant_ai.core.train.run.training_settings import DataChoice, Recipe, TrainConfig

DESCRIBED = frozenset(
    {"optimiser", "momentum", "weight_decay", "value_weight", "seed", "final_limit"}
    | {"split", "mirror", "labels"}
)
"""Settings that the card has lines of its own for; the others are listed if they were changed."""


def model_card(config: TrainConfig, results: Mapping[str, Any]) -> str:
    """The model card in Markdown: purpose, data, training, metrics and limits of the net."""
    data = config.data
    values = None
    if data.value_labels != "result":
        values = ValueLabels.parse(data.value_labels).description
    return rendered(
        Path(__file__).parent / "model_card.md.jinja",
        config=config,
        data=data,
        results=results,
        tool=f"variant-ai {results.get('version', '')}".rstrip(),
        counted=counted,
        value_labels=values,
        data_settings=_others(data, DataChoice),
        optimiser=find_optimiser(config.optimiser).describe(config),
        settings=_others(config, Recipe),
        rows=result_rows(results),
    )


def _others(settings: BaseModel, model: type[BaseModel]) -> str:
    """Settings of `model` that differ from their defaults, as text."""
    return "; ".join(
        f"{name} {getattr(settings, name)}"
        for name, field in model.model_fields.items()
        if name not in DESCRIBED and getattr(settings, name) != field.default
    )
