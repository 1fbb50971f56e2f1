"""The report of a training: its pictures, one HTML page with pictures and numbers, and the model card
(`model_card.md.jinja`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel
from torch import nn

from variant_ai.core.data.sample.value_labels import ValueLabels
from variant_ai.core.data.store.game_store import Store
from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import VariantAIError
from variant_ai.core.inference.interface import softmax
from variant_ai.core.nets.description import activations
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import Position
from variant_ai.core.system.files import short_names
from variant_ai.core.system.templates import rendered
from variant_ai.core.system.text_tables import counted
from variant_ai.core.train.loop.optimisers import find_optimiser
from variant_ai.core.train.measure.metric_tables import (
    TITLES,
    mate_rows,
    number,
    percent,
    result_rows,
    top_title,
    wdl_rows,
)
from variant_ai.core.train.measure.prediction import Predictor, TorchPredictor
from variant_ai.core.train.pictures.canvas import Picture
from variant_ai.core.train.pictures.data_set_pictures import DataSet, dataset_pictures
from variant_ai.core.train.pictures.position_pictures import (
    Candidate,
    features_picture,
    heads_picture,
    planes_picture,
    policy_picture,
)
from variant_ai.core.train.pictures.quality_pictures import quality_pictures
from variant_ai.core.train.pictures.training_curves import (
    compared_curves,
    last_steps,
    learning_curves,
)
from variant_ai.core.train.report.report_page import (
    Chapter,
    Table,
    WrittenReport,
    making,
    write_page,
)
from variant_ai.core.train.run.run_folder import read_metrics
from variant_ai.core.train.run.training_data import Prepared
from variant_ai.core.train.run.training_settings import DataChoice, Recipe, TrainConfig

SHOWN_PLY = 16
"""First ply of a position that is worth showing: pieces are in contact by then."""
SEARCHED_POSITIONS = 64
"""Positions searched for one to show."""
DESCRIBED = frozenset(
    {"optimiser", "momentum", "weight_decay", "value_weight", "seed", "final_limit"}
    | {"split", "mirror", "labels"}
)
"""Settings that the card has lines of its own for; the others are listed if they were changed."""


def write_report(
    folder: Path,
    config: TrainConfig,
    results: Mapping[str, Any],
    rules: Rules,
    *,
    prepared: Prepared | None = None,
    net: nn.Module | None = None,
    beside: Mapping[str, Path] | None = None,
    out: Path | None = None,
    report: Callable[[str], None] = lambda text: None,
) -> WrittenReport:
    """Draw a run's pictures into `folder/pictures` and write its page; return the paths of all.

    Args:
        results: as in results.json, with further measurements of the validation.
        prepared: the run's data, for pictures of it; None if the stores are missing.
        net: the trained net on the CPU, for its maps; None leaves them out.
        beside: other runs by name, whose curves are drawn next to this one's.
        out: the page to write; `folder/report.html` by default.

    Raises OSError if something cannot be written.
    """
    chapters = [
        _summary(config, results),
        _training(folder, config, beside or {}),
    ]
    measured = results.get("validation") or {}
    pictures = quality_pictures({config.net.title: measured})
    if pictures or measured.get("top"):
        chapters.append(_quality(measured, pictures))
    if net is not None:
        encoder = Encoder(rules.spec, config.net.head)
        position, played = _shown_position(prepared, rules, encoder)
        chapters.append(_position_chapter(net, encoder, rules, position, played))
    if prepared is not None:
        report("describing the games")
        chapters.append(_data(prepared, rules))
    chapters.append(making(folder, "Configuration", config.model_dump_json(indent=2)))
    subtitle = (
        f"{config.net.title}, trained on {counted(config.data.train_games, 'game')} in "
        f"{counted(results.get('steps', 0), 'step')} of {config.batch}; run directory {folder.name}."
    )
    return write_page(folder, f"{config.variant}: report of a training", subtitle, chapters, out)


# --- chapters ------------------------------------------------------------------------------------


def _summary(config: TrainConfig, results: Mapping[str, Any]) -> Chapter:
    validation = results.get("validation") or {}
    between = {
        TITLES[name]: f"{number(name, found['low'])} to {number(name, found['high'])}"
        for name, found in (validation.get("intervals") or {}).items()
        if found["low"] is not None
    }
    rows = [(*row, between.get(row[0], "")) for row in result_rows(results)]
    data = config.data
    facts = [
        ("net", config.net.title),
        ("parameters", f"{results.get('parameters', 0):,}"),
        ("floating point operations a position", f"{results.get('flops', 0):,}"),
        ("training games", f"{data.train_games:,}"),
        ("training positions", f"{data.train_positions:,}"),
        ("validation games", f"{data.validation_games:,}"),
        ("validation positions", f"{data.validation_positions:,}"),
        ("split", f"{data.split}, seed {data.seed}"),
        (
            "steps",
            f"{results.get('steps', 0):,} of {config.steps:,}, {counted(config.batch, 'position')} each",
        ),
        ("minutes", f"{results.get('seconds', 0) / 60:.1f}"),
    ]
    return Chapter(
        "Summary",
        tables=(
            Table("Metrics", ("metric", "training", "validation", "95 % interval"), rows),
            Table("Run", ("", ""), facts, numbers=False),
        ),
    )


def _training(folder: Path, config: TrainConfig, beside: Mapping[str, Path]) -> Chapter:
    events = read_metrics(folder)
    title = f"{config.variant}, {config.net.title}, {counted(config.data.train_games, 'game')}"
    runs = {config.net.title: events}
    runs |= {name: read_metrics(path) for name, path in beside.items()}
    pictures: list[Picture | None] = [learning_curves(events, title)]
    if beside:
        pictures.append(compared_curves(runs))
    pictures.append(last_steps(runs))
    return Chapter("Training", pictures=[shown for shown in pictures if shown is not None])


def _quality(measured: Mapping[str, Any], pictures: Sequence[Picture]) -> Chapter:
    tables = []
    top = measured.get("top") or {}
    if top:
        rows = [(top_title(int(k)), percent(share)) for k, share in top.items()]
        tables.append(Table("", ("metric", "validation"), rows))
    for key, title in (("by_ply", "plies"), ("by_rating", "mover's rating")):
        classes = measured.get(key) or {}
        if not any(name[0].isdigit() for name in classes):
            continue  # no player has a rating
        names = ("policy_accuracy", "value_accuracy_sign", "value_loss")
        heads = (title, "positions", *(TITLES[name] for name in names))
        tables.append(Table("", heads, [_class_row(*item) for item in classes.items()]))
    if wdl := measured.get("wdl"):
        tables.append(Table("Win, draw, loss", ("", ""), wdl_rows(wdl)))
    if mates := measured.get("mates"):
        tables.append(Table("Mate in one", ("", ""), mate_rows(mates)))
    bins = (measured.get("calibration") or {}).get("bins") or []
    measured_on = sum(found["positions"] for found in bins)
    text = ""
    if measured_on:
        text = f"Intervals, calibration and curves are of {counted(measured_on, 'position')}."
    return Chapter("Quality on the validation games", text, tables=tables, pictures=pictures)


def _class_row(name: str, found: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        name,
        f"{found['positions']:,}",
        percent(found["policy_accuracy"]),
        percent(found["value_accuracy_sign"]),
        number("value_loss", found["value_loss"]),
    )


def _position_chapter(
    net: nn.Module, encoder: Encoder, rules: Rules, position: Position, played: int | None
) -> Chapter:
    pictures = [planes_picture(encoder, rules, position)]
    with suppress(VariantAIError):  # a plugin's net with other parts: its policy can still be shown
        pictures += activation_pictures(net, encoder, rules, position)
    predictor = TorchPredictor(net, torch.device("cpu"))
    text = "" if played is None else rules.uci(played)
    with suppress(VariantAIError):  # a net whose training diverged gives no numbers
        pictures.append(policy_of(predictor, encoder, rules, position, played=text))
    return Chapter(
        "One position",
        "A position of the validation games: the net's input, its activations, and its outputs.",
        pictures=pictures,
    )


def _data(prepared: Prepared, rules: Rules) -> Chapter:
    data = prepared.config.data
    paths = list(dict.fromkeys(map(Path, (*data.stores, *data.validation_stores))))
    sets = {
        name.removesuffix(".store"): DataSet.of(Store(path, rules.spec))
        for path, name in zip(paths, short_names(paths), strict=True)
    }
    rows = [
        (
            name,
            f"{shown.statistics.games:,}",
            f"{shown.statistics.plies_in_all:,}",
            f"{shown.statistics.players:,}",
        )
        for name, shown in sets.items()
    ]
    return Chapter(
        "Data",
        "All games of the stores, including those held back.",
        tables=(Table("", ("store", "games", "plies", "players"), rows),),
        pictures=dataset_pictures(sets, rules),
    )


# --- pictures of a position ----------------------------------------------------------------------


def activation_pictures(
    net: nn.Module, encoder: Encoder, rules: Rules, position: Position
) -> list[Picture]:
    """[CrazyAra-preprint] figure 4, a to d. Raises VariantAIError if the net's parts are unknown."""
    found = activations(net, encoder.planes(position))
    return [
        features_picture(found.stem, "maps-first", "After the first convolution"),
        features_picture(found.tower, "maps-last", "After the last block"),
        heads_picture(rules, position, found.value_map, found.policy_map, found.value),
    ]


def policy_of(
    predictor: Predictor,
    encoder: Encoder,
    rules: Rules,
    position: Position,
    *,
    played: str = "",
    write_move: Callable[[int], str] | None = None,
) -> Picture:
    """[CrazyAra-preprint] figure 4, e and f, for any net. `write_move` turns a move into text; UCI by
    default. Raises VariantAIError if there is no legal move, or if an output is not a number."""
    moves = rules.legal_moves(position).tolist()
    if not moves:
        raise VariantAIError(f"there is no legal move in {rules.fen(position)}")
    output = predictor(encoder.planes(position))
    logits = output.policy[0][encoder.action_indices(position, moves)].astype(np.float64)
    value = float(output.value.reshape(-1)[0])
    if not np.isfinite([*logits, value]).all():
        raise VariantAIError(
            f"an output of the net for {rules.fen(position)} is not a number: its training diverged"
        )
    shares = softmax(logits)
    candidates = [
        Candidate(
            moves[k],
            (write_move or rules.uci)(moves[k]),
            float(shares[k]),
        )
        for k in np.argsort(-shares, kind="stable").tolist()
    ]
    wdl = None if output.wdl is None else output.wdl[0].tolist()
    return policy_picture(rules, position, candidates, value, wdl, played)


def _shown_position(
    prepared: Prepared | None, rules: Rules, encoder: Encoder
) -> tuple[Position, int | None]:
    """A position of the validation games (or else of the training games) and the move played in it, None
    if samples have the move visited most instead; the start position if there are no games."""
    if prepared is None:
        return rules.position(), None
    source = prepared.validation or prepared.train
    has_played = prepared.config.data.labels == "move"
    found: tuple[Position, int | None] | None = None
    for samples in source.sweep(limit=SEARCHED_POSITIONS):
        for k, ply in enumerate(samples.positions["ply"].tolist()):
            if found is None or ply >= SHOWN_PLY:
                position = samples.positions[k : k + 1].copy()
                move = encoder.move(position, int(samples.action[k]))
                found = position, move if has_played else None
            if ply >= SHOWN_PLY:
                return found
    return (rules.position(), None) if found is None else found


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
