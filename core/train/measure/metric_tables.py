"""Titles and formats of the metrics, in tables, reports, pictures and on the command line.

Keys are the names in `metrics.jsonl`, `results.json` and every `--json`. Does not import torch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from variant_ai.core.train.measure.metrics import Interval

Row = tuple[str, str]

TITLES = {
    "policy_accuracy": "policy accuracy",
    "legal_accuracy": "policy accuracy among legal moves",
    "top5_accuracy": "top-5 accuracy",
    "policy_loss": "policy loss",
    "value_accuracy_sign": "value accuracy sign",
    "value_loss": "value loss",
    "combined_loss": "combined loss",
}
"""In the order of the papers' tables."""
SHARES = ("policy_accuracy", "legal_accuracy", "top5_accuracy", "value_accuracy_sign")
"""Metrics shown in per cent."""
UNSEEN = f"{TITLES['policy_accuracy']}, unseen moves"
BASELINE = "baseline: most frequent legal move"
CALIBRATION = "value calibration error"
WDL_CALIBRATION = "calibration error"
"""The same for the probability of a win, a draw or a loss."""
WDL = {
    "log_loss": "win-draw-loss log loss",
    "brier": "win-draw-loss Brier score",
    "accuracy": "win-draw-loss accuracy",
}
MATES = {
    "positions": "positions",
    "legal_moves": "legal moves a position",
    "mating_moves": "mating moves a position",
    "accuracy": "mate-in-one accuracy",
    "top5_accuracy": "mate-in-one top-5 accuracy",
    "unmasked_accuracy": "mate-in-one accuracy among all actions",
    "value_loss": "mate-in-one value loss",
}


def top_title(k: int) -> str:
    """Title of the share of positions whose move is among the first k."""
    return TITLES["policy_accuracy"] if k == 1 else f"top-{k} accuracy"


def axis_label(name: str) -> str:
    """Title of a metric for an axis, with its unit."""
    return TITLES[name] + (", %" if name in SHARES else "")


def axis_scale(name: str) -> int:
    """Factor of a metric on such an axis."""
    return 100 if name in SHARES else 1


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f} %"


def number(name: str, value: Any) -> str:
    """A metric as text: shares in per cent, losses with four digits."""
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
    """Title and value of each known metric, in the order of the papers' tables."""
    return [
        (title, number(name, metrics[name]))
        for name, title in TITLES.items()
        if metrics.get(name) is not None
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


def wdl_rows(wdl: Mapping[str, Any]) -> list[Row]:
    """The quality of probabilities of win, draw and loss (`WdlQuality` as a mapping) as table rows."""
    return [
        (title, percent(wdl[name]) if name == "accuracy" else f"{wdl[name]:.4f}")
        for name, title in WDL.items()
    ]


def mate_rows(mates: Mapping[str, Any]) -> list[Row]:
    """The mate-in-one metrics (`MateMetrics` as a mapping) as table rows."""
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
