"""The report of a run: every picture of it, and one page with all of them and the numbers.

run/
  report.html     everything, in one file that needs no network
  pictures/       the same pictures as PNG
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from variant_ai.core.data.store.game_store import Store
from variant_ai.core.encoding import Encoder
from variant_ai.core.errors import VariantAIError
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import Position
from variant_ai.core.rules.text.notation import uci
from variant_ai.core.system.files import short_names, write_whole
from variant_ai.core.train.measure.evaluation import Predictor, TorchPredictor
from variant_ai.core.train.measure.metric_titles import MATES, TITLES, WDL, top_title
from variant_ai.core.train.pictures.activation_maps import (
    Candidate,
    features_picture,
    heads_picture,
    policy_picture,
)
from variant_ai.core.train.pictures.canvas import Picture, write_pictures
from variant_ai.core.train.pictures.data_set_pictures import DataSet, dataset_pictures
from variant_ai.core.train.pictures.plane_pictures import planes_picture
from variant_ai.core.train.pictures.quality_pictures import quality_pictures
from variant_ai.core.train.pictures.training_curves import (
    compared_curves,
    last_steps,
    learning_curves,
)
from variant_ai.core.train.report.activations import activations
from variant_ai.core.train.report.html_page import Chapter, Table, page
from variant_ai.core.train.report.model_card import number, percent, result_rows
from variant_ai.core.train.run.run_log import read_metrics
from variant_ai.core.train.run.training_data import Prepared
from variant_ai.core.train.run.training_settings import TrainConfig

REPORT, PICTURES = "report.html", "pictures"
SHOWN_PLY = 16
"""Ply from which a position is worth showing: pieces have met."""
LOOKED_AT = 64
"""Positions looked through for one to show."""


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
    say: Callable[[str], None] = lambda text: None,
) -> Path:
    """Draws a run's pictures into `folder/pictures` and writes its page; returns the page's path.

    Args:
        results: as in results.json, with what else was measured of the validation.
        prepared: the run's data, for pictures of it; None where the stores are gone.
        net: the trained net on the CPU, for its maps; None leaves them out.
        beside: other runs by name, whose curves are drawn beside this one's.
        out: where the page goes; `folder/report.html` by default.

    Raises OSError where something cannot be written.
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
        say("describing the games")
        chapters.append(_data(prepared, rules))
    chapters.append(_making(folder, config))
    every = [shown for chapter in chapters for shown in chapter.pictures]
    write_pictures(every, folder / PICTURES)
    target = out or folder / REPORT
    subtitle = (
        f"{config.net.title}, trained on {config.data.train_games:,} games in "
        f"{results.get('steps', 0):,} steps of {config.batch}; run directory {folder.name}."
    )
    text = page(f"{config.variant}: report of a training", subtitle, chapters)
    write_whole(target, text.encode())
    return target


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
            f"{results.get('steps', 0):,} of {config.steps:,}, {config.batch} positions each",
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
    title = f"{config.variant}, {config.net.title}, {config.data.train_games:,} games"
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
            continue  # nobody has a rating
        names = ("policy_accuracy", "value_accuracy_sign", "value_loss")
        heads = (title, "positions", *(TITLES[name] for name in names))
        tables.append(Table("", heads, [_class_row(*item) for item in classes.items()]))
    wdl = measured.get("wdl")
    if wdl:
        rows = [
            (WDL["log_loss"], f"{wdl['log_loss']:.4f}"),
            (WDL["brier"], f"{wdl['brier']:.4f}"),
            (WDL["accuracy"], percent(wdl["accuracy"])),
        ]
        tables.append(Table("Win, draw, loss", ("", ""), rows))
    mates = measured.get("mates")
    if mates:
        tables.append(Table("Mate in one", ("", ""), mate_rows(mates)))
    bins = (measured.get("calibration") or {}).get("bins") or []
    counted = sum(found["positions"] for found in bins)
    text = f"Intervals, calibration and curves are of {counted:,} positions." if counted else ""
    return Chapter("Quality on the validation games", text, tables=tables, pictures=pictures)


def _class_row(name: str, found: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        name,
        f"{found['positions']:,}",
        percent(found["policy_accuracy"]),
        percent(found["value_accuracy_sign"]),
        number("value_loss", found["value_loss"]),
    )


def mate_rows(mates: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The mate-in-one metrics (`MateMetrics.as_dict`) as table rows."""
    shown = {
        "positions": f"{mates['positions']:,}",
        "legal_moves": f"{mates['legal_moves']:.1f}",
        "mating_moves": f"{mates['mating_moves']:.2f}",
        "accuracy": percent(mates["accuracy"]),
        "top5_accuracy": percent(mates["top5_accuracy"]),
        "unmasked_accuracy": percent(mates["unmasked_accuracy"]),
        "value_loss": f"{mates['value_loss']:.4f}",
    }
    return [(MATES[name], text) for name, text in shown.items()]


def _position_chapter(
    net: nn.Module, encoder: Encoder, rules: Rules, position: Position, played: int | None
) -> Chapter:
    pictures = [planes_picture(encoder, rules, position)]
    with suppress(VariantAIError):  # a plugin's net of other parts: its policy can still be shown
        pictures += activation_pictures(net, encoder, rules, position)
    predictor = TorchPredictor(net, torch.device("cpu"))
    text = "" if played is None else uci(rules.types, rules.spec.board.files, played)
    with suppress(VariantAIError):  # a net whose training went wrong says no numbers
        pictures.append(policy_of(predictor, encoder, rules, position, played=text))
    return Chapter(
        "One position",
        "A position of the held-back games: what the net sees, what happens inside, what comes out.",
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
        "All games of the stores, those held back among them.",
        tables=(Table("", ("store", "games", "plies", "players"), rows),),
        pictures=dataset_pictures(sets, rules),
    )


def _making(folder: Path, config: TrainConfig) -> Chapter:
    folded = [("Configuration", config.model_dump_json(indent=2))]
    environment = folder / "environment.json"
    if environment.is_file():
        said = json.loads(environment.read_text())
        folded.append(("Environment", json.dumps(said, indent=2)))
    return Chapter("How it was made", folded=folded)


# --- pictures of a position ----------------------------------------------------------------------


def activation_pictures(
    net: nn.Module, encoder: Encoder, rules: Rules, position: Position
) -> list[Picture]:
    """Paper 000, figure 4, a to d. Raises VariantAIError where the net's parts are not known."""
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
    """Paper 000, figure 4, e and f, of any net. `write_move` turns a move into text; UCI by
    default. Raises VariantAIError where there is no legal move, or the net says what is no number."""
    moves = rules.legal_moves(position).tolist()
    if not moves:
        raise VariantAIError(f"there is no legal move in {rules.fen(position)}")
    said = predictor(encoder.planes(position))
    logits = said.policy[0][encoder.action_indices(position, moves)].astype(np.float64)
    value = float(said.value.reshape(-1)[0])
    if not np.isfinite([*logits, value]).all():
        raise VariantAIError(
            f"what the net says of {rules.fen(position)} is no number: its training went wrong"
        )
    shares = np.exp(logits - logits.max())
    shares /= shares.sum()
    files = rules.spec.board.files
    candidates = [
        Candidate(
            moves[k],
            write_move(moves[k]) if write_move else uci(rules.types, files, moves[k]),
            float(shares[k]),
        )
        for k in np.argsort(-shares, kind="stable").tolist()
    ]
    wdl = None if said.wdl is None else said.wdl[0].tolist()
    return policy_picture(rules, position, candidates, value, wdl, played)


def _shown_position(
    prepared: Prepared | None, rules: Rules, encoder: Encoder
) -> tuple[Position, int | None]:
    """A position of the held-back games (or of those trained on) and the move played in it; the
    start position where there are no games."""
    if prepared is None:
        return rules.position(), None
    source = prepared.validation or prepared.train
    found: tuple[Position, int] | None = None
    for samples in source.sweep(limit=LOOKED_AT):
        for k, ply in enumerate(samples.positions["ply"].tolist()):
            if found is None or ply >= SHOWN_PLY:
                position = samples.positions[k : k + 1].copy()
                found = position, encoder.move(position, int(samples.action[k]))
            if ply >= SHOWN_PLY:
                return found
    return (rules.position(), None) if found is None else found
