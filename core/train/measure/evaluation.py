"""Measuring nets on the positions of a source: several nets on the very same positions.

N positions, B of them in a batch, A actions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from variant_ai.core.encoding import Encoder
from variant_ai.core.inference.interface import Evaluation as Prediction
from variant_ai.core.nets.network import outputs_of
from variant_ai.core.rules.interface import Rules
from variant_ai.core.train.loop.placement import place_net, soft_of
from variant_ai.core.train.loop.position_source import Source
from variant_ai.core.train.measure.calibration import (
    Calibration,
    WdlQuality,
    value_calibration,
    wdl_quality,
)
from variant_ai.core.train.measure.frequency_baseline import (
    Counts,
    best_legal,
    legal_actions,
    most_frequent,
)
from variant_ai.core.train.measure.intervals import Interval, intervals, paired_differences
from variant_ai.core.train.measure.mate_set import MateMetrics
from variant_ai.core.train.measure.metrics import Metrics, Scores, Soft, score
from variant_ai.core.train.measure.positions_by_rating import Places, rating_classes
from variant_ai.core.train.measure.prediction import autocast

PLY_STEP = 20
"""Accuracy is told for plies 0 to 19, 20 to 39, ..."""
LAST_PLIES = 100
"""Plies from here on are one class."""
CURVE_STEP = 10
"""Plies of one point of the curves over the game."""
CURVE_SHARE = 0.002
"""Of all positions, the least that make a point."""
TOPS = (1, 2, 3, 5, 10)
"""The k of top-k accuracy."""


class Predictor(Protocol):
    """planes float32 [B, C, H, W] -> value [B], policy logits [B, A], and, where the net has them,
    probabilities of win, draw and loss [B, 3] and plies left [B]."""

    def __call__(self, planes: NDArray[np.float32]) -> Prediction: ...


class TorchPredictor:
    """A torch net as a predictor."""

    def __init__(self, net: nn.Module, device: torch.device, precision: str = "fp32") -> None:
        place_net(net, device)
        self.net, self.device, self.precision = net.eval(), device, precision

    def __call__(self, planes: NDArray[np.float32]) -> Prediction:
        with torch.inference_mode(), autocast(self.device, self.precision):
            batch = torch.from_numpy(planes).to(self.device)
            said = outputs_of(self.net, batch.contiguous(memory_format=torch.channels_last))
            wdl = None if said.wdl is None else torch.softmax(said.wdl.float(), 1)
        return Prediction(
            _array(said.value),
            _array(said.policy),
            None if wdl is None else _array(wdl),
            None if said.plies_left is None else _array(said.plies_left),
        )


def _array(output: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = output.float().cpu().numpy()
    return array


@dataclass
class NetEvaluation:
    """What one net did on the positions."""

    metrics: Metrics
    legal_accuracy: float | None
    """Policy accuracy when the choice is among the legal moves; None where they were not asked."""
    by_ply: dict[str, Metrics] = field(default_factory=dict)
    by_rating: dict[str, Metrics] = field(default_factory=dict)
    """By the rating of the player to move; empty where ratings were not given."""
    unseen: Metrics | None = None
    """On positions behind the moves shared with a training game."""
    top: dict[str, float] = field(default_factory=dict)
    """Top-k accuracy by k."""
    intervals: dict[str, Interval] = field(default_factory=dict)
    """95 % confidence intervals of the metrics."""
    differences: dict[str, Interval] = field(default_factory=dict)
    """Metrics less those of the first net, on the same positions; empty for the first."""
    calibration: Calibration | None = None
    """Of the value."""
    wdl: WdlQuality | None = None
    """Of nets that tell win, draw and loss."""
    mates: MateMetrics | None = None
    """On a mate-in-one set; added by who has one."""
    over_plies: list[dict[str, float | int | None]] = field(default_factory=list)
    """Metrics of every ten plies, with `first`, for curves over the game."""

    def as_dict(self) -> dict[str, Any]:
        return {
            **self.metrics.as_dict(),
            "legal_accuracy": self.legal_accuracy,
            "top": self.top,
            "intervals": {name: found.as_dict() for name, found in self.intervals.items()},
            "differences": {name: found.as_dict() for name, found in self.differences.items()},
            "by_ply": {name: metrics.as_dict() for name, metrics in self.by_ply.items()},
            "by_rating": {name: metrics.as_dict() for name, metrics in self.by_rating.items()},
            "unseen": self.unseen.as_dict() if self.unseen else None,
            "calibration": self.calibration.as_dict() if self.calibration else None,
            "wdl": self.wdl.as_dict() if self.wdl else None,
            "mates": self.mates.as_dict() if self.mates else None,
            "over_plies": self.over_plies,
        }


DETAILS = (
    "by_ply", "by_rating", "unseen", "top", "intervals", "calibration", "wdl", "over_plies",
)  # fmt: skip
"""Entries of `NetEvaluation.as_dict` that are more than a number."""


@dataclass
class Evaluation:
    """Nets, and the baseline, on the same N positions."""

    positions: int
    nets: dict[str, NetEvaluation]
    baseline_accuracy: float | None
    """Of the legal move most frequent in training; None where the training is not known."""
    legal_moves: float | None
    """Mean number of legal moves."""
    ply: NDArray[np.int32] = field(repr=False, default_factory=lambda: np.zeros(0, np.int32))
    """Ply of each position, [N] in the order of the sweep."""
    side: NDArray[np.int8] = field(repr=False, default_factory=lambda: np.zeros(0, np.int8))
    """Colour to move in each position, [N]."""
    unseen_share: float | None = None
    """Share of positions behind the moves shared with a training game."""
    games: int | None = None
    """Games the positions come from; None where that is not known."""

    def as_dict(self) -> dict[str, Any]:
        return {
            "positions": self.positions,
            "games": self.games,
            "baseline_accuracy": self.baseline_accuracy,
            "legal_moves": self.legal_moves,
            "unseen_share": self.unseen_share,
            "nets": {name: net.as_dict() for name, net in self.nets.items()},
        }


@dataclass
class _Row:
    scores: Scores
    legal_hits: int = 0


def evaluate(
    predictors: Mapping[str, Predictor],
    source: Source,
    encoder: Encoder,
    *,
    actions: Mapping[str, NDArray[np.int32]] | None = None,
    sights: Mapping[str, Encoder] | None = None,
    rules: Rules | None = None,
    counts: Counts | None = None,
    seen: NDArray[np.bool_] | None = None,
    places: Places | None = None,
    limit: int | None = None,
    value_weight: float = 0.01,
    advance: Callable[[int], None] = lambda n: None,
) -> Evaluation:
    """Runs every predictor over the source's positions.

    Args:
        actions: for nets whose policy head numbers actions otherwise than `encoder` (which is the
            source's): their action for each of its actions, int32 [A].
        sights: for nets that see other planes than `encoder` makes: what makes theirs.
        rules: gives the legal moves, for the baseline and accuracy among legal moves; None does
            without both.
        counts: of the training's actions, int64 [A], for the baseline.
        seen: True where the position and its move were met in training, bool [N] in the order of
            the sweep; only without `limit`.
        places: games and ratings of the positions in the order of the sweep (`places_of`, with the
            same `limit`); without them, intervals take positions as independent.
        value_weight: α of the combined loss.
        advance: told how many positions were done.
    """
    if seen is not None and limit is not None:
        raise ValueError("`seen` follows the order of a whole sweep; leave `limit` out")
    n = source.positions if limit is None else min(limit, source.positions)
    rows: dict[str, _Row] = {}
    ply, side = np.zeros(n, np.int32), np.zeros(n, np.int8)
    at = 0
    baseline_hits = legal_moves = 0
    for samples in source.sweep(limit=limit):
        outcome = torch.from_numpy(samples.value)
        here = slice(at, at + len(outcome))
        ply[here], side[here] = samples.positions["ply"], samples.positions["side"]
        legal = None if rules is None else legal_actions(rules, encoder, samples.positions)
        if legal is not None:
            legal_moves += sum(map(len, legal))
            if counts is not None:
                baseline_hits += int((most_frequent(counts, legal) == samples.action).sum())
        for name, predictor in predictors.items():
            sight = (sights or {}).get(name)
            said = predictor(samples.planes if sight is None else sight.planes(samples.positions))
            if name not in rows:
                rows[name] = _Row(Scores.room(n, wdl=said.wdl is not None))
            value, logits = torch.from_numpy(said.value), torch.from_numpy(said.policy)
            wdl = None if said.wdl is None else torch.from_numpy(said.wdl)
            table = (actions or {}).get(name)
            played = samples.action if table is None else table[samples.action].astype(np.int64)
            own = torch.from_numpy(played)
            soft = soft_of(samples, torch.device("cpu"))
            if soft is not None and table is not None:
                own_choices = torch.from_numpy(table[samples.choices].astype(np.int64))
                soft = Soft(own_choices, soft.shares)
            rows[name].scores.put(at, score(value, logits, own, outcome, wdl, soft))
            if legal is not None:
                choices = legal if table is None else [table[k].astype(np.int64) for k in legal]
                rows[name].legal_hits += int((best_legal(said.policy, choices) == played).sum())
        at += len(outcome)
        advance(len(outcome))
    nets = {
        name: break_down(
            row.scores,
            ply,
            value_weight,
            side=side,
            seen=seen,
            places=places,
            legal_accuracy=None if rules is None else row.legal_hits / n,
        )
        for name, row in rows.items()
    }
    first, *others = rows.values() if rows else [None]
    for net, row in zip(list(nets.values())[1:], others, strict=True):
        assert first is not None and row is not None
        game = np.arange(n) if places is None else places.game
        net.differences = paired_differences(row.scores, first.scores, game, value_weight)
    return Evaluation(
        n,
        nets,
        baseline_hits / n if rules is not None and counts is not None else None,
        legal_moves / n if rules is not None else None,
        ply,
        side,
        None if seen is None else float((~seen).mean()),
        None if places is None else len(np.unique(places.game)),
    )


def break_down(
    scores: Scores,
    ply: NDArray[np.int32],
    value_weight: float,
    *,
    side: NDArray[np.int8] | None = None,
    seen: NDArray[np.bool_] | None = None,
    places: Places | None = None,
    legal_accuracy: float | None = None,
) -> NetEvaluation:
    """Everything that N positions say of a net.

    `ply` [N]; `side` [N] and `places` give the mover's rating; `seen` [N] what was met in training.
    """
    by_rating = {}
    if places is not None and side is not None:
        classes = rating_classes(places.mover_ratings(side))
        by_rating = {name: scores.metrics(value_weight, where) for name, where in classes.items()}
    game = np.arange(len(ply)) if places is None else places.game
    return NetEvaluation(
        scores.metrics(value_weight),
        legal_accuracy,
        {title: scores.metrics(value_weight, where) for title, where in ply_classes(ply).items()},
        by_rating,
        None if seen is None or seen.all() else scores.metrics(value_weight, ~seen),
        {str(k): float((scores.rank < k).mean()) for k in TOPS},
        intervals(scores, game, value_weight),
        {},
        value_calibration(scores),
        None if scores.wdl is None else wdl_quality(scores.wdl, scores.outcome),
        None,
        over_plies(scores, ply, value_weight),
    )


def over_plies(
    scores: Scores, ply: NDArray[np.int32], value_weight: float
) -> list[dict[str, float | int | None]]:
    """Metrics of every ten plies, as far as there are enough positions."""
    points: list[dict[str, float | int | None]] = []
    for first in range(0, int(ply.max(initial=0)) + 1, CURVE_STEP):
        where = (ply >= first) & (ply < first + CURVE_STEP)
        if where.sum() < max(1, CURVE_SHARE * len(ply)):
            if points:
                break
            continue  # games that begin behind an opening
        points.append({"first": first, **scores.metrics(value_weight, where).as_dict()})
    return points


def ply_classes(ply: NDArray[np.int32]) -> dict[str, NDArray[np.bool_]]:
    """`0-19`, `20-39`, ... `100+` -> which of N positions belong there; empty ones are left out."""
    classes = {}
    for first in range(0, LAST_PLIES, PLY_STEP):
        classes[f"{first}-{first + PLY_STEP - 1}"] = (ply >= first) & (ply < first + PLY_STEP)
    classes[f"{LAST_PLIES}+"] = ply >= LAST_PLIES
    return {title: where for title, where in classes.items() if where.any()}
