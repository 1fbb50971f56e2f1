"""Titles of the metrics: one for each, in tables, reports, pictures and on the command line.

Keys are the names of `metrics.jsonl`, `results.json` and every `--json`. No torch here.
"""

from __future__ import annotations

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
"""Of the probability of a win, a draw or a loss."""
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
    """Title of the share of positions whose move is among the k first."""
    return TITLES["policy_accuracy"] if k == 1 else f"top-{k} accuracy"


def axis_label(name: str) -> str:
    """Title of a metric beside an axis, with its unit."""
    return TITLES[name] + (", %" if name in SHARES else "")
