"""Calibration: how close predictions are to mean results.

Predictions are sorted into bins of equal width; in each, the mean prediction is compared with the
mean result. The expected calibration error is the mean distance, weighted by positions
([Calibration] eq. 5). N positions, K bins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.train.measure.metrics import Scores

VALUE_BINS = 20
SHARE_BINS = 10
CLASSES = ("win", "draw", "loss")
"""Classes of a WDL output, in its order."""
TINY = 1e-7
"""Smallest probability in a logarithm."""


@dataclass(frozen=True)
class Bin:
    """Predictions from `low` to `high`; empty bins are left out."""

    low: float
    high: float
    positions: int
    predicted: float
    """Mean prediction."""
    happened: float
    """Mean result, in the same unit."""


@dataclass(frozen=True)
class Calibration:
    bins: tuple[Bin, ...]
    expected_error: float
    """Mean of |predicted - happened| over positions, in the prediction's unit."""


@dataclass(frozen=True)
class WdlQuality:
    """Quality of a net's probabilities of win, draw and loss for N results."""

    log_loss: float
    """Mean of -log p(result)."""
    brier: float
    """Mean of the squared distance from the result, summed over the three classes: 0 to 2."""
    accuracy: float
    """Share of positions whose most likely class is the result."""
    classes: dict[str, Calibration]
    """`win`, `draw`, `loss`."""


def calibration(
    predicted: NDArray[np.floating[Any]],
    happened: NDArray[np.floating[Any]],
    low: float,
    high: float,
    bins: int,
) -> Calibration:
    """Calibration of predictions [N] within [low, high] for results [N]; the last bin includes its upper
    end. Predictions that are not finite (if the training diverged) are in no bin, and the error is then
    NaN."""
    finite = np.isfinite(predicted)
    all_finite = bool(finite.all())
    predicted, happened = predicted[finite], happened[finite]
    width = (high - low) / bins
    number = np.clip(((predicted - low) / width).astype(np.int64), 0, bins - 1)
    count = np.bincount(number, minlength=bins)
    predictions = np.bincount(number, predicted.astype(np.float64), bins)
    results = np.bincount(number, happened.astype(np.float64), bins)
    made = tuple(
        Bin(
            low + k * width,
            low + (k + 1) * width,
            int(count[k]),
            float(predictions[k] / count[k]),
            float(results[k] / count[k]),
        )
        for k in np.flatnonzero(count)
    )
    known = all_finite and len(predicted)
    error = float(np.abs(predictions - results).sum() / count.sum()) if known else math.nan
    return Calibration(made, error)


def value_calibration(scores: Scores) -> Calibration:
    """Calibration of the value; value and result are from -1 (lost) to 1 (won) from the mover's side."""
    known = scores.teaches_value
    return calibration(scores.value[known], scores.outcome[known], -1.0, 1.0, VALUE_BINS)


def wdl_quality(wdl: NDArray[np.float32], outcome: NDArray[np.float32]) -> WdlQuality:
    """`wdl` [N, 3] probabilities of win, draw, loss; `outcome` [N] 1, 0, -1, mover's side."""
    result = (1 - outcome).astype(np.int64)
    happened = np.eye(3)[result]
    given = wdl.astype(np.float64)
    chosen = given[np.arange(len(given)), result]
    return WdlQuality(
        float(-np.log(np.maximum(chosen, TINY)).mean()),
        float(((given - happened) ** 2).sum(1).mean()),
        float((given.argmax(1) == result).mean()),
        {
            name: calibration(given[:, k], happened[:, k], 0.0, 1.0, SHARE_BINS)
            for k, name in enumerate(CLASSES)
        },
    )
