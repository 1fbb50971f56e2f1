"""The model card of a finished run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from variant_ai.core.data.sample.value_labels import ValueLabels
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
    lines = [
        f"# {config.variant}: {config.net.title}",
        "",
        f"A value and policy network for {config.variant}, trained by supervised learning on "
        f"recorded games with variant-ai {results.get('version', '')}.".replace(" .", "."),
        "",
        "## Net",
        "",
        f"- {config.net.name}, {counted(results['parameters'], 'parameter')}, {results['flops']:,} floating "
        "point operations a position",
        f"- size: {', '.join(f'{k} {v}' for k, v in config.net.size.items() if v is not None)}",
        f"- input: {counted(config.net.planes, 'plane')} of {config.net.board[0]} x {config.net.board[1]}"
        f"{', counts not normalised' if config.net.input_scale else ''}; "
        f"policy: {config.net.actions} actions ({config.net.head})",
        f"- spec hash {config.spec_hash}, encoding hash {config.encoding_hash}",
        "",
        "## Data",
        "",
        f"- training: {counted(data.train_games, 'game')}, {counted(data.train_positions, 'position')}"
        + (", each also mirrored" if data.mirror else ""),
        *(
            [f"- labels: visits of a search, in {data.searched_positions:,} of these positions"]
            if data.labels == "visits"
            else []
        ),
        *(
            [
                f"- value labels: {ValueLabels.parse(data.value_labels).description}, known in "
                f"{data.valued_positions:,} of these positions; validation is against results"
            ]
            if data.value_labels != "result"
            else []
        ),
        f"- validation: {counted(data.validation_games, 'game')}, {counted(data.validation_positions, 'position')}",
        f"- split: {data.split}, seed {data.seed}",
        *_others(data, DataChoice),
        f"- content hashes of the stores: {', '.join(data.hashes)}",
        "",
        "## Training",
        "",
        f"- {results['steps']:,} of {counted(config.steps, 'step')} of {counted(config.batch, 'position')}: "
        f"{find_optimiser(config.optimiser).describe(config)}, weight decay {config.weight_decay:g}, value weight "
        f"{config.value_weight:g}, seed {config.seed}",
        *_others(config, Recipe),
        f"- {results['seconds'] / 60:.1f} minutes on {config.device} in {config.precision}",
        "",
        "## Metrics",
        "",
        "| metric | training (last steps) | validation |",
        "| --- | ---: | ---: |",
        *(f"| {' | '.join(row)} |" for row in result_rows(results)),
        "",
        "Policy accuracy is the share of positions whose greatest logit is the move "
        f"{'visited most' if data.labels == 'visits' else 'played'}; value "
        "accuracy sign leaves out drawn games; combined loss is (1 - α) · policy loss + α · value "
        f"loss with α = {config.value_weight:g}.",
        "",
        "## Limits",
        "",
        "The net imitates the games it was trained on, with their players' habits and errors. Its "
        "policy is not masked: take the softmax over the legal moves. Its value is the expected "
        "result between such players, not the truth about the position.",
        "",
    ]
    return "\n".join(lines)


def _others(settings: BaseModel, model: type[BaseModel]) -> list[str]:
    """The line of the settings of `model` that differ from their defaults; empty if none does."""
    texts = [
        f"{name} {getattr(settings, name)}"
        for name, field in model.model_fields.items()
        if name not in DESCRIBED and getattr(settings, name) != field.default
    ]
    return [f"- other settings: {'; '.join(texts)}"] if texts else []
