"""What a finished run says of itself: the table of metrics and the model card."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from variant_ai.core.train.measure.intervals import Interval
from variant_ai.core.train.measure.metric_titles import BASELINE, SHARES, TITLES, UNSEEN
from variant_ai.core.train.run.training_settings import TrainConfig

Row = tuple[str, str]


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f} %"


def number(name: str, value: Any) -> str:
    """A metric as a table shows it: shares in per cent, losses with four digits."""
    if value is None:
        return "-"
    return percent(value) if name in SHARES else f"{value:.4f}"


def difference(name: str, found: Interval) -> str:
    """A difference of metrics with its 95 % interval: `+1.32 [+0.80, +1.84]`, shares in points."""
    scale, digits = (100, 2) if name in SHARES else (1, 4)
    if math.isnan(found.low):
        return f"{found.mean * scale:+.{digits}f}"
    low, high = (f"{end * scale:+.{digits}f}" for end in (found.low, found.high))
    return f"{found.mean * scale:+.{digits}f} [{low}, {high}]"


def metric_rows(metrics: Mapping[str, Any]) -> list[Row]:
    """Name and value of each metric there is, in the order of the papers' tables."""
    return [
        (title, number(name, metrics[name]))
        for name, title in TITLES.items()
        if name in metrics and metrics[name] is not None
    ]


def result_rows(results: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The table printed at the end of a training: metric, training, validation."""
    train, validation = results.get("train") or {}, results.get("validation") or {}
    rows = []
    for name, title in TITLES.items():
        if train.get(name) is not None or validation.get(name) is not None:
            rows.append((title, number(name, train.get(name)), number(name, validation.get(name))))
    unseen = validation.get("unseen") or {}
    if unseen:
        rows.append((UNSEEN, "", percent(unseen["policy_accuracy"])))
    if results.get("baseline_accuracy") is not None:
        rows.append((BASELINE, "", percent(results["baseline_accuracy"])))
    return rows


def _optimiser(config: TrainConfig) -> str:
    if config.optimiser == "adam":
        return f"Adam with the learning rate {config.lr_max:g}"
    name = "Muon" if config.optimiser == "muon" else "SGD"
    return (
        f"{name} with Nesterov momentum {config.momentum[0]:g} to {config.momentum[1]:g}, one cycle of "
        f"the learning rate up to {config.lr_max:g} and down to {config.lr_min:g}"
    )


def model_card(config: TrainConfig, results: Mapping[str, Any]) -> str:
    """Markdown: what the net is for, what it was made from, how well it does, what it is not."""
    data = config.data
    lines = [
        f"# {config.variant}: {config.net.title}",
        "",
        f"A value and policy network for {config.variant}, trained by supervised learning on "
        f"recorded games with variant-ai {results.get('version', '')}.".replace(" .", "."),
        "",
        "## Net",
        "",
        f"- {config.net.name}, {results['parameters']:,} parameters, {results['flops']:,} floating "
        "point operations a position",
        f"- size: {', '.join(f'{k} {v}' for k, v in config.net.size.items() if v is not None)}",
        f"- input: {config.net.planes} planes of {config.net.board[0]} x {config.net.board[1]}"
        f"{', counts not normalised' if config.net.input_scale else ''}; "
        f"policy: {config.net.actions} actions ({config.net.head})",
        f"- spec hash {config.spec_hash}, encoding hash {config.encoding_hash}",
        "",
        "## Data",
        "",
        f"- training: {data.train_games:,} games, {data.train_positions:,} positions"
        + (", each also mirrored" if data.mirror else ""),
        *(
            [f"- labels: visits of a search, in {data.searched_positions:,} of these positions"]
            if data.labels == "visits"
            else []
        ),
        f"- validation: {data.validation_games:,} games, {data.validation_positions:,} positions",
        f"- split: {data.split}, seed {data.seed}",
        f"- content hashes of the stores: {', '.join(data.hashes)}",
        "",
        "## Training",
        "",
        f"- {results['steps']:,} of {config.steps:,} steps of {config.batch} positions: "
        f"{_optimiser(config)}, weight decay {config.weight_decay:g}, value weight "
        f"{config.value_weight:g}, seed {config.seed}",
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
