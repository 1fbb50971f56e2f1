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
from torch import nn

from variant_ai.core.encoding import Encoder
from variant_ai.core.rules.interface import Rules
from variant_ai.core.train.baseline import Counts, best_legal, legal_actions, most_frequent
from variant_ai.core.train.metrics import Metrics, Scores, score
from variant_ai.core.train.source import Source
from variant_ai.core.train.trainer import autocast, place

PLY_STEP = 20
"""Accuracy is told for plies 0 to 19, 20 to 39, ..."""
LAST_PLIES = 100
"""Plies from here on are one class."""


class Predictor(Protocol):
    """planes float32 [B, C, H, W] -> (value float32 [B], policy logits float32 [B, A])."""

    def __call__(
        self, planes: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]: ...


class TorchPredictor:
    """A torch net as a predictor."""

    def __init__(self, net: nn.Module, device: torch.device, precision: str = "fp32") -> None:
        place(net, device)
        self.net, self.device, self.precision = net.eval(), device, precision

    def __call__(
        self, planes: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        with torch.inference_mode(), autocast(self.device, self.precision):
            batch = torch.from_numpy(planes).to(self.device)
            value, logits = self.net(batch.contiguous(memory_format=torch.channels_last))
        return value.float().cpu().numpy(), logits.float().cpu().numpy()


@dataclass
class NetEvaluation:
    """What one net did on the positions."""

    metrics: Metrics
    legal_accuracy: float | None
    """Policy accuracy when the choice is among the legal moves; None where they were not asked."""
    by_ply: dict[str, Metrics] = field(default_factory=dict)
    unseen: Metrics | None = None
    """On positions behind the moves shared with a training game."""

    def as_dict(self) -> dict[str, Any]:
        return {
            **self.metrics.as_dict(),
            "legal_accuracy": self.legal_accuracy,
            "by_ply": {name: metrics.as_dict() for name, metrics in self.by_ply.items()},
            "unseen": self.unseen.as_dict() if self.unseen else None,
        }


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
    unseen_share: float | None = None
    """Share of positions behind the moves shared with a training game."""

    def as_dict(self) -> dict[str, Any]:
        return {
            "positions": self.positions,
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
    rules: Rules | None = None,
    counts: Counts | None = None,
    seen: NDArray[np.bool_] | None = None,
    limit: int | None = None,
    value_weight: float = 0.01,
    advance: Callable[[int], None] = lambda n: None,
) -> Evaluation:
    """Runs every predictor over the source's positions.

    Args:
        rules: gives the legal moves, for the baseline and accuracy among legal moves; None does
            without both.
        counts: of the training's actions, int64 [A], for the baseline.
        seen: True where the position and its move were met in training, bool [N] in the order of
            the sweep; only without `limit`.
        value_weight: α of the combined loss.
        advance: told how many positions were done.
    """
    if seen is not None and limit is not None:
        raise ValueError("`seen` follows the order of a whole sweep; leave `limit` out")
    n = source.positions if limit is None else min(limit, source.positions)
    rows = {name: _Row(Scores.room(n)) for name in predictors}
    ply = np.zeros(n, np.int32)
    at = 0
    baseline_hits = legal_moves = 0
    for samples in source.sweep(limit=limit):
        action, outcome = torch.from_numpy(samples.action), torch.from_numpy(samples.value)
        ply[at : at + len(action)] = samples.positions["ply"]
        legal = None if rules is None else legal_actions(rules, encoder, samples.positions)
        if legal is not None:
            legal_moves += sum(map(len, legal))
            if counts is not None:
                baseline_hits += int((most_frequent(counts, legal) == samples.action).sum())
        for name, predictor in predictors.items():
            value, logits = predictor(samples.planes)
            scores = score(torch.from_numpy(value), torch.from_numpy(logits), action, outcome)
            rows[name].scores.put(at, scores)
            if legal is not None:
                rows[name].legal_hits += int((best_legal(logits, legal) == samples.action).sum())
        at += len(action)
        advance(len(action))
    return Evaluation(
        n,
        {
            name: break_down(
                row.scores,
                ply,
                value_weight,
                seen=seen,
                legal_accuracy=None if rules is None else row.legal_hits / n,
            )
            for name, row in rows.items()
        },
        baseline_hits / n if rules is not None and counts is not None else None,
        legal_moves / n if rules is not None else None,
        ply,
        None if seen is None else float((~seen).mean()),
    )


def break_down(
    scores: Scores,
    ply: NDArray[np.int32],
    value_weight: float,
    *,
    seen: NDArray[np.bool_] | None = None,
    legal_accuracy: float | None = None,
) -> NetEvaluation:
    """Metrics of all N positions, by ply [N], and of those not `seen` [N] in training."""
    return NetEvaluation(
        scores.metrics(value_weight),
        legal_accuracy,
        {title: scores.metrics(value_weight, where) for title, where in ply_classes(ply).items()},
        None if seen is None or seen.all() else scores.metrics(value_weight, ~seen),
    )


def ply_classes(ply: NDArray[np.int32]) -> dict[str, NDArray[np.bool_]]:
    """`0-19`, `20-39`, ... `100+` -> which of N positions belong there; empty ones are left out."""
    classes = {}
    for first in range(0, LAST_PLIES, PLY_STEP):
        classes[f"{first}-{first + PLY_STEP - 1}"] = (ply >= first) & (ply < first + PLY_STEP)
    classes[f"{LAST_PLIES}+"] = ply >= LAST_PLIES
    return {title: where for title, where in classes.items() if where.any()}
