"""Labels of the value of a position: the result of its game, the value of a search, or both.

Values are those of the player to move, in [-1, 1].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.data.game_record import MATE, TRAINS_VALUE
from variant_ai.core.data.store.columns import Floats
from variant_ai.core.errors import DataError
from variant_ai.core.search.report import MATE_RANGE

if TYPE_CHECKING:
    from variant_ai.core.data.store.game_store import Store

ACCEPTED = "result, root, mixed:SHARE, score, score:SCALE or score:SCALE:SHARE"
MIN_SCALE, MAX_SCALE = 1.0, 100_000.0
"""Bounds of a scale in centipawns."""
FLAT_SCALE = 1500.0
"""Scale above which values of scores are so small that a training warns."""
_HALVINGS = 60


@dataclass(frozen=True, slots=True)
class ValueLabels:
    """Value label of a position: (1 - share) · result + share · value of the search.

    Where only one of them is known, it is the label; where none is, the value is not learnt.
    """

    source: Literal["result", "root", "score"] = "result"
    """Value of the search: none, the root value, or the score through `value_of_scores` (the root value
    where there is no score)."""
    share: float = 0.0
    """λ, in [0, 1]."""
    scale: float | None = None
    """Centipawns of `value_of_scores`; None: not fitted yet, or no scores."""

    @staticmethod
    def parse(text: str) -> ValueLabels:
        """Read `result`, `root`, `mixed:SHARE` (of the root value, 0 to 1), `score`, `score:SCALE`
        (centipawns) or `score:SCALE:SHARE` (of the score). Raises DataError."""
        word, *rest = text.split(":")
        try:
            numbers = [float(number) for number in rest]
        except ValueError:
            numbers = [math.nan]
        match word, numbers:
            case "result", []:
                return ValueLabels()
            case ("root" | "score") as source, []:
                return ValueLabels(source, 1.0)
            case "mixed", [share] if 0 <= share <= 1:
                return ValueLabels("root", share)
            case "score", [scale] if MIN_SCALE <= scale <= MAX_SCALE:
                return ValueLabels("score", 1.0, scale)
            case "score", [scale, share] if MIN_SCALE <= scale <= MAX_SCALE and 0 <= share <= 1:
                return ValueLabels("score", share, scale)
        raise DataError(f"value labels {text!r}: accepted are {ACCEPTED}")

    def __str__(self) -> str:
        if self.source == "score":
            scale = [] if self.scale is None else [f"{self.scale:g}"]
            share = [] if self.share == 1 else [f"{self.share:g}"]
            return ":".join(["score", *scale, *share])
        if self.source == "root" and self.share < 1:
            return f"mixed:{self.share:g}"
        return self.source

    @property
    def description(self) -> str:
        """Text for reports."""
        if self.source == "score":
            scale = "" if self.scale is None else f" / {self.scale:g} centipawns"
            by_score = f"scores by the logistic curve of score{scale}"
            if self.share == 1:
                return by_score
            return f"{1 - self.share:.4g} of the result and {self.share:.4g} of {by_score}"
        if self.source == "result":
            return "results"
        if self.share == 1:
            return "root values"
        return f"{1 - self.share:.4g} of the result and {self.share:.4g} of the root value"


def value_of_scores(scores: Floats, scale: float) -> Floats:
    """Values of scores in centipawns: 2 / (1 + exp(-score / scale)) - 1; NaN stays NaN, mates are ±1."""
    values: Floats = np.tanh(scores / np.float32(2 * scale)).astype(np.float32)
    return np.where(is_mate(scores), np.sign(scores), values)


def is_mate(scores: Floats) -> NDArray[np.bool_]:
    """Mark the scores that are mates (`core/search/report.py`)."""
    return np.abs(scores) > MATE - MATE_RANGE


def fit_scale(scores: Floats, results: NDArray[np.int8]) -> float:
    """Scale of `value_of_scores` under which the results are most likely, to five digits.

    scores [N] in centipawns, NaN if unknown; results [N] 1 won, 0 drawn, -1 lost by the same player. A
    drawn game counts as half a win: its likelihood is that of one won and one lost game to the power
    of ½. Mates are left out. Raises DataError if no score is left.
    """
    used = ~np.isnan(scores) & ~is_mate(scores)
    values, index = np.unique(scores[used].astype(np.int64), return_inverse=True)
    if not np.any(values):
        raise DataError(
            "no position has a score and a result, from which the scale of the scores is fitted; "
            "name a scale (score:SCALE), or learn the results"
        )
    count = np.bincount(index)
    points = np.bincount(index, (results[used].astype(np.float64) + 1) / 2)

    def slope(scale: float) -> float:
        """Derivative of the log-likelihood by 1 / scale, which falls as 1 / scale grows."""
        expected = (1 + np.tanh(values / (2 * scale))) / 2
        return float((values * (points - count * expected)).sum())

    low, high = math.log(MIN_SCALE), math.log(MAX_SCALE)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if slope(math.exp(middle)) > 0:
            high = middle
        else:
            low = middle
    return float(f"{math.exp((low + high) / 2):.5g}")


def fit_scale_of(stores: Sequence[Store], games: Sequence[NDArray[np.integer]]) -> float:
    """Fit the scale to the chosen games of some stores, from their positions after the openings whose
    result may be learnt. The players move by turns. Raises DataError if none of them has a score."""
    scores, results = [np.zeros(0, np.float32)], [np.zeros(0, np.int8)]
    for store, chosen in zip(stores, games, strict=True):
        known, trains, openings = store.scores, store.trains, store.opening_plies
        if known is None:
            continue
        starts = store.starts["side"][store.start_of]
        for game in chosen.tolist():
            begin, end = int(store.offsets[game] + openings[game]), int(store.offsets[game + 1])
            if abs(int(store.results[game])) > 1 or np.isnan(known[begin:end]).all():
                continue
            side = (starts[game] + np.arange(openings[game], openings[game] + end - begin)) % 2
            learnt = slice(None) if trains is None else (trains[begin:end] & TRAINS_VALUE) > 0
            scores.append(known[begin:end][learnt])
            results.append(
                (np.where(side == 0, 1, -1) * store.results[game]).astype(np.int8)[learnt]
            )
    return fit_scale(np.concatenate(scores), np.concatenate(results))
