"""Measuring nets on the positions of a source: several nets, and a baseline, on the same positions.

The baseline plays, among the legal moves, the one most frequent in the training games; a net should
do better. N positions, B of them in a batch, A actions, G games.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from variant_ai.core.data.sample.sampler import Sampler
from variant_ai.core.data.store.game_store import NO_RATING, Store
from variant_ai.core.encoding import Encoder
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import Position
from variant_ai.core.train.loop.loss import SoftLabels
from variant_ai.core.train.loop.position_source import Samples, Source, loss_weights, soft_labels
from variant_ai.core.train.measure.calibration import (
    Calibration,
    WdlQuality,
    value_calibration,
    wdl_quality,
)
from variant_ai.core.train.measure.mate_set import MateMetrics
from variant_ai.core.train.measure.metrics import (
    Interval,
    Metrics,
    Scores,
    for_json,
    intervals,
    paired_differences,
    score,
)
from variant_ai.core.train.measure.prediction import Predictor

PLY_STEP = 20
"""Accuracy is reported for plies 0 to 19, 20 to 39, ..."""
LAST_PLIES = 100
"""Plies from here on are one class."""
CURVE_STEP = 10
"""Number of plies in one point of the curves over the game."""
CURVE_SHARE = 0.002
"""Smallest share of all positions that makes a point."""
TOPS = (1, 2, 3, 5, 10)
"""The k of top-k accuracy."""
RATING_STEPS = (100, 200, 400)
MOST_RATING_CLASSES = 10
UNRATED = "no rating"

Counts = NDArray[np.int64]
"""[A] number of times that each action was played in the training games."""


@dataclass
class NetEvaluation:
    """Measurements of one net on the positions."""

    metrics: Metrics
    legal_accuracy: float | None
    """Policy accuracy when the choice is among the legal moves; None if these were not computed."""
    by_ply: dict[str, Metrics]
    by_rating: dict[str, Metrics]
    """By the rating of the player to move; empty if there are no ratings."""
    unseen: Metrics | None
    """On positions after the moves shared with a training game."""
    top: dict[str, float]
    """Top-k accuracy by k."""
    intervals: dict[str, Interval]
    """95 % confidence intervals of the metrics."""
    differences: dict[str, Interval]
    """Metrics minus those of the first net, on the same positions; empty for the first."""
    calibration: Calibration
    """Calibration of the value."""
    wdl: WdlQuality | None
    """For nets that predict win, draw and loss."""
    mates: MateMetrics | None
    """On a mate-in-one set; set by callers that have one."""
    over_plies: list[dict[str, float | int | None]]
    """Metrics of every ten plies, with the first ply as `first`, for curves over the game."""

    def as_dict(self) -> dict[str, Any]:
        """All measurements as JSON has them, those of `metrics` not in an object of their own."""
        found = for_json(asdict(self))
        return {**found.pop("metrics"), **found}


DETAILS = (
    "by_ply", "by_rating", "unseen", "top", "intervals", "calibration", "wdl", "over_plies",
)  # fmt: skip
"""Entries of `NetEvaluation.as_dict` that are more than one number."""


@dataclass
class NetComparison:
    """Measurements of nets and of the baseline on the same N positions."""

    positions: int
    nets: dict[str, NetEvaluation]
    baseline_accuracy: float | None
    """Accuracy of the legal move most frequent in training; None if the training is not known."""
    legal_moves: float | None
    """Mean number of legal moves."""
    ply: NDArray[np.int32] = field(repr=False)
    """Ply of each position, [N] in the order of the sweep."""
    side: NDArray[np.int8] = field(repr=False)
    """Colour to move in each position, [N]."""
    unseen_share: float | None
    """Share of positions after the moves shared with a training game."""
    games: int | None
    """Number of games that the positions come from; None if unknown."""

    def as_dict(self) -> dict[str, Any]:
        return {
            "positions": self.positions,
            "games": self.games,
            "baseline_accuracy": self.baseline_accuracy,
            "legal_moves": self.legal_moves,
            "unseen_share": self.unseen_share,
            "nets": {name: net.as_dict() for name, net in self.nets.items()},
        }


@dataclass(frozen=True)
class Measured:
    """A net to measure on positions of a source."""

    predictor: Predictor
    actions: NDArray[np.int32] | None = None
    """[A] action of the net for each one of the source's encoder, if its policy head numbers actions
    differently."""
    encoder: Encoder | None = None
    """Its own encoder, if it sees other planes than those of the source."""

    def score(
        self, samples: Samples, legal: list[NDArray[np.int64]] | None
    ) -> tuple[Scores, NDArray[np.bool_] | None]:
        """Scores of a batch; and [B] True where the best of the legal actions was played, None without
        `legal`."""
        planes = samples.planes if self.encoder is None else self.encoder.planes(samples.positions)
        output = self.predictor(planes)
        played, cpu = self._own(samples.action), torch.device("cpu")
        soft = soft_labels(samples, cpu)
        if soft is not None and self.actions is not None:
            # padding is action 0, which another head need not have
            choices = np.maximum(self._own(samples.choices), 0)
            soft = SoftLabels(torch.from_numpy(choices), soft.shares)
        scores = score(
            torch.from_numpy(output.value),
            torch.from_numpy(output.policy),
            torch.from_numpy(played),
            torch.from_numpy(samples.value),
            None if output.wdl is None else torch.from_numpy(output.wdl),
            soft,
            loss_weights(samples, cpu),
        )
        if legal is None:
            return scores, None
        return scores, best_legal(output.policy, list(map(self._own, legal))) == played

    def _own(self, actions: NDArray[np.int64]) -> NDArray[np.int64]:
        """The net's numbers of the source's actions."""
        return actions if self.actions is None else self.actions[actions].astype(np.int64)


def evaluate(
    nets: Mapping[str, Measured],
    source: Source,
    encoder: Encoder,
    *,
    rules: Rules | None = None,
    counts: Counts | None = None,
    seen: NDArray[np.bool_] | None = None,
    origins: PositionOrigins | None = None,
    limit: int | None = None,
    value_weight: float = 0.01,
    advance: Callable[[int], None] = lambda n: None,
) -> NetComparison:
    """Run all nets, by name, over the source's positions.

    Args:
        encoder: the source's.
        rules: gives the legal moves, for the baseline and accuracy among legal moves; if None, both
            are skipped.
        counts: number of times each action was played in training, int64 [A], for the baseline.
        seen: True for positions that occurred in training with the same move, bool [P] in the order
            of a sweep without limit.
        origins: games and ratings of the positions in the order of the sweep (`position_origins`,
            with the same `limit`); without them, intervals take positions as independent.
        value_weight: α of the combined loss.
        advance: called with the number of positions done.
    """
    seen = sampled_seen(seen, source, limit)
    n = source.positions if limit is None else min(limit, source.positions)
    scores: dict[str, Scores] = {}
    legal_hits: Counter[str] = Counter()
    ply, side = np.zeros(n, np.int32), np.zeros(n, np.int8)
    at = 0
    baseline_hits = legal_moves = policies = 0
    for samples in source.sweep(limit=limit):
        here = slice(at, at + len(samples.value))
        ply[here], side[here] = samples.positions["ply"], samples.positions["side"]
        teaches = samples.policy_weight > 0
        policies += int(teaches.sum())
        legal = None if rules is None else legal_actions(rules, encoder, samples.positions)
        if legal is not None:
            legal_moves += sum(map(len, legal))
            if counts is not None:
                hits = most_frequent(counts, legal) == samples.action
                baseline_hits += int((hits & teaches).sum())
        for name, net in nets.items():
            found, best = net.score(samples, legal)
            if name not in scores:
                scores[name] = Scores.empty(n, wdl=found.wdl is not None)
            scores[name].put(at, found)
            if best is not None:
                legal_hits[name] += int((best & teaches).sum())
        at = here.stop
        advance(len(samples.value))
    measured = {
        name: summarise(
            found,
            ply,
            value_weight,
            side=side,
            seen=seen,
            origins=origins,
            legal_accuracy=None if rules is None else legal_hits[name] / max(policies, 1),
        )
        for name, found in scores.items()
    }
    game = np.arange(n) if origins is None else origins.game
    for name in list(scores)[1:]:
        first = next(iter(scores.values()))
        measured[name].differences = paired_differences(scores[name], first, game, value_weight)
    return NetComparison(
        n,
        measured,
        baseline_hits / max(policies, 1) if rules is not None and counts is not None else None,
        legal_moves / n if rules is not None else None,
        ply,
        side,
        None if seen is None else float((~seen).mean()),
        None if origins is None else len(np.unique(origins.game)),
    )


def sampled_seen(
    seen: NDArray[np.bool_] | None, source: Source, limit: int | None
) -> NDArray[np.bool_] | None:
    """`seen`, in the order of a sweep without limit, for the positions of `source.sweep(limit=limit)`;
    None if unknown."""
    if seen is None or limit is None or limit >= source.positions:
        return seen
    return seen[source.swept_rows(limit=limit)] if isinstance(source, Sampler) else None


def summarise(
    scores: Scores,
    ply: NDArray[np.int32],
    value_weight: float,
    *,
    side: NDArray[np.int8] | None = None,
    seen: NDArray[np.bool_] | None = None,
    origins: PositionOrigins | None = None,
    legal_accuracy: float | None = None,
) -> NetEvaluation:
    """All measurements of a net from its scores on N positions.

    `ply` [N]; `side` [N] and `origins` give the mover's rating; `seen` [N] is True for positions that
    occurred in training.
    """
    by_rating = {}
    if origins is not None and side is not None:
        classes = rating_classes(origins.mover_ratings(side))
        by_rating = {name: scores.metrics(value_weight, where) for name, where in classes.items()}
    game = np.arange(len(ply)) if origins is None else origins.game
    policy, known = scores.teaches_policy, scores.teaches_value
    return NetEvaluation(
        scores.metrics(value_weight),
        legal_accuracy,
        {title: scores.metrics(value_weight, where) for title, where in ply_classes(ply).items()},
        by_rating,
        None if seen is None or seen.all() else scores.metrics(value_weight, ~seen),
        {str(k): float(((scores.rank < k) & policy).sum() / max(policy.sum(), 1)) for k in TOPS},
        intervals(scores, game, value_weight),
        {},
        value_calibration(scores),
        None if scores.wdl is None else wdl_quality(scores.wdl[known], scores.outcome[known]),
        None,
        over_plies(scores, ply, value_weight),
    )


def over_plies(
    scores: Scores, ply: NDArray[np.int32], value_weight: float
) -> list[dict[str, float | int | None]]:
    """Metrics of every ten plies, as long as there are enough positions."""
    points: list[dict[str, float | int | None]] = []
    for first in range(0, int(ply.max(initial=0)) + 1, CURVE_STEP):
        where = (ply >= first) & (ply < first + CURVE_STEP)
        if where.sum() < max(1, CURVE_SHARE * len(ply)):
            if points:
                break
            continue  # games that begin after an opening
        points.append({"first": first, **scores.metrics(value_weight, where).as_dict()})
    return points


def ply_classes(ply: NDArray[np.int32]) -> dict[str, NDArray[np.bool_]]:
    """`0-19`, `20-39`, ... `100+` -> mask of the N positions in the class; empty ones are left out."""
    classes = {}
    for first in range(0, LAST_PLIES, PLY_STEP):
        classes[f"{first}-{first + PLY_STEP - 1}"] = (ply >= first) & (ply < first + PLY_STEP)
    classes[f"{LAST_PLIES}+"] = ply >= LAST_PLIES
    return {title: where for title, where in classes.items() if where.any()}


# --- legal moves and the baseline ----------------------------------------------------------------


def action_counts(source: Source, actions: int) -> Counts:
    """Count how often each action was played in the positions of a source, int64 [A]."""
    counts = np.zeros(actions, np.int64)
    for samples in source.sweep():
        counts += np.bincount(samples.action, minlength=actions)
    return counts


def legal_actions(rules: Rules, encoder: Encoder, positions: Position) -> list[NDArray[np.int64]]:
    """Actions of the legal moves of each of B positions, in ascending order."""
    return [
        np.sort(encoder.action_indices(position, rules.legal_moves(position).tolist()))
        for position in (positions[i : i + 1] for i in range(len(positions)))
    ]


def most_frequent(counts: Counts, legal: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The baseline's choice, int64 [B]: the legal move most frequent in training."""
    rows = np.broadcast_to(counts, (len(legal), len(counts)))
    return best_legal(rows, legal)


def best_legal(logits: NDArray[Any], legal: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The legal move with the greatest logit, int64 [B], from logits [B, A]; the lowest action among
    equals, -1 if there is no legal move."""
    return np.array(
        [
            actions[np.argmax(row[actions])] if len(actions) else -1
            for row, actions in zip(logits, legal, strict=True)
        ],
        np.int64,
    )


# --- games and ratings of positions --------------------------------------------------------------


@dataclass(frozen=True)
class PositionOrigins:
    """Game and ratings of each of N positions."""

    game: NDArray[np.int64]
    """[N] number among the games sampled."""
    ratings: NDArray[np.int32]
    """[G, 2] of the first and the second player, NO_RATING if missing."""

    def mover_ratings(self, side: NDArray[np.integer]) -> NDArray[np.int32]:
        """[N] rating of the player to move, `side` [N] being the colour to move."""
        return self.ratings[self.game, np.asarray(side, np.int64)]


def position_origins(
    source: Sampler, stores: Sequence[Store], *, limit: int | None = None
) -> PositionOrigins:
    """Origins of the positions of `source.sweep(limit=limit)`; `stores` are the source's, in order."""
    ratings = np.full((len(source.origins), 2), NO_RATING, np.int32)
    for number, store in enumerate(stores):
        here = source.origins[:, 0] == number
        ratings[here] = store.ratings[source.origins[here, 1]]
    return PositionOrigins(source.swept(limit=limit).games, ratings)


def rating_classes(rating: NDArray[np.int32]) -> dict[str, NDArray[np.bool_]]:
    """`2200-2299`, ... and `no rating` -> mask of the N positions in the class; empty ones are
    left out.

    Classes are 100, 200 or 400 points wide, the narrowest that gives at most ten.
    """
    known = rating != NO_RATING
    classes: dict[str, NDArray[np.bool_]] = {}
    if known.any():
        low, high = int(rating[known].min()), int(rating[known].max())
        step = next(
            (s for s in RATING_STEPS if high // s - low // s < MOST_RATING_CLASSES),
            RATING_STEPS[-1],
        )
        for first in range(low // step * step, high + 1, step):
            classes[f"{first}-{first + step - 1}"] = known & (rating // step == first // step)
    classes[UNRATED] = ~known
    return {title: where for title, where in classes.items() if where.any()}
