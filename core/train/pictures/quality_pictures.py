"""Pictures of the quality of nets: calibration, and accuracy by ply and by rating, for several nets.

The input is that of `NetEvaluation.as_dict`, so that pictures can be made from the files of a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from variant_ai.core.train.measure.metric_tables import (
    CALIBRATION,
    WDL_CALIBRATION,
    axis_label,
    axis_scale,
)
from variant_ai.core.train.pictures.canvas import (
    GREY,
    Picture,
    new_figure,
    picture,
    printable,
    series,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Measured = Mapping[str, Any]
"""A net's evaluation as JSON."""
LEAST = 50
"""Smallest number of positions of a bin that is drawn: the mean of fewer is too uncertain."""


def quality_pictures(nets: Mapping[str, Measured]) -> list[Picture]:
    """Draw all pictures for which there are data; `nets` by their names."""
    made = (
        calibration_picture(nets),
        wdl_picture(nets),
        plies_picture(nets),
        ratings_picture(nets),
    )
    return [found for found in made if found is not None]


def calibration_picture(nets: Mapping[str, Measured]) -> Picture | None:
    """Predicted value against mean result, and the frequency of each predicted value."""
    known = {
        name: net["calibration"] for name, net in nets.items() if _is_finite(net.get("calibration"))
    }
    if not known:
        return None
    figure = new_figure(6.8, 7.4)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    above.plot([-1, 1], [-1, 1], color=GREY, linewidth=1, linestyle="--", label="perfect")
    for number, (name, found) in enumerate(known.items()):
        label = f"{name}: {CALIBRATION} {found['expected_error']:.3f}"
        _reliability(above, found["bins"], number, label)
        _frequencies(below, found["bins"], number)
    above.set(ylabel="mean result (1 won, 0 drawn, -1 lost)", ylim=(-1.03, 1.03))
    below.set(xlabel="value, for the player to move", ylabel="positions, %", xlim=(-1.03, 1.03))
    below.set_ylim(bottom=0)
    above.legend(frameon=True, framealpha=0.9, edgecolor="none", fontsize=9, loc="upper left")
    for axis in (above, below):
        tidy(axis)
    return picture(
        figure,
        "calibration",
        "Calibration of the value",
        "Top: the mean result of positions by the net's value; on the dashed line the value is right "
        "on average. Bottom: the frequency of such values.",
    )


def _is_finite(found: Measured | None) -> bool:
    """Return True for a calibration of finite predictions."""
    return found is not None and found.get("expected_error") is not None


def wdl_picture(nets: Mapping[str, Measured]) -> Picture | None:
    """The same for the probabilities of win, draw and loss; None if no net predicts them."""
    known = {
        name: net["wdl"]["classes"]
        for name, net in nets.items()
        if net.get("wdl") and all(map(_is_finite, net["wdl"]["classes"].values()))
    }
    if not known:
        return None
    classes = list(next(iter(known.values())))
    figure = new_figure(11, 4.6)
    for axis, kind in zip(figure.subplots(1, len(classes), sharey=True), classes, strict=True):
        axis.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--")
        for number, (name, found) in enumerate(known.items()):
            error = found[kind]["expected_error"]
            _reliability(axis, found[kind]["bins"], number, f"{name}: {error:.3f}")
        axis.set(xlabel=f"probability of a {kind}", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        axis.legend(frameon=False, fontsize=8, loc="upper left", title=WDL_CALIBRATION,
                    title_fontsize=8)  # fmt: skip
        tidy(axis)
    figure.axes[0].set_ylabel("share of positions")
    return picture(
        figure,
        "calibration-wdl",
        "Calibration of win, draw and loss",
        "The share of positions with this result, by the probability that the net gives it.",
    )


def plies_picture(nets: Mapping[str, Measured]) -> Picture | None:
    """Accuracies and losses over the course of a game ([CrazyAra-preprint] section 8)."""
    known = {}
    for name, net in nets.items():
        points = net.get("over_plies") or []
        known[name] = [point for point in points if point["positions"] >= LEAST] or points
    return _panels(
        known,
        "ply",
        "by-ply",
        "Over the game",
        "Each point is for ten plies, starting with its own.",
    )


def ratings_picture(nets: Mapping[str, Measured]) -> Picture | None:
    """The same by the rating of the player to move; None if no position has one."""
    known = {}
    for name, net in nets.items():
        points = [
            {"first": title, **metrics}
            for title, metrics in (net.get("by_rating") or {}).items()
            if metrics["positions"] >= LEAST
        ]
        if any(point["first"][0].isdigit() for point in points):
            known[name] = points
    return _panels(
        known,
        "rating of the player to move",
        "by-rating",
        "By rating",
        "Positions by the rating of the player to move.",
    )


def _panels(
    nets: Mapping[str, Sequence[Measured]],
    xlabel: str,
    name: str,
    title: str,
    caption: str,
) -> Picture | None:
    if not nets or not any(nets.values()):
        return None
    panels = ("policy_accuracy", "policy_loss", "value_accuracy_sign", "value_loss")
    figure = new_figure(10.5, 7)
    classes = list(dict.fromkeys(point["first"] for points in nets.values() for point in points))
    words = any(isinstance(value, str) for value in classes)
    at = {value: k if words else value for k, value in enumerate(classes)}
    axes = figure.subplots(2, 2, sharex=True)
    for axis, measure in zip(axes.flat, panels, strict=True):
        scale = axis_scale(measure)
        for number, (net, points) in enumerate(nets.items()):
            kept = [p for p in points if p.get(measure) is not None]
            axis.plot(
                [at[p["first"]] for p in kept], [p[measure] * scale for p in kept],
                **series(number), markersize=4, linewidth=1.5, label=printable(net, 50),
            )  # fmt: skip
        axis.set_ylabel(axis_label(measure))
        axis.margins(y=0.1)
        tidy(axis)
    for axis in axes[1]:
        axis.set_xlabel(xlabel)
        if words:
            axis.set_xticks(list(at.values()), list(at), rotation=35, ha="right", fontsize=8)
    if len(nets) > 1:
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False)
    return picture(figure, name, title, caption)


def _reliability(axis: Axes, bins: Sequence[Measured], number: int, label: str) -> None:
    kept = [b for b in bins if b["positions"] >= LEAST] or list(bins)
    axis.plot(
        [b["predicted"] for b in kept], [b["happened"] for b in kept], **series(number),
        markersize=5, linewidth=1.4, label=printable(label, 60),
    )  # fmt: skip


def _frequencies(axis: Axes, bins: Sequence[Measured], number: int) -> None:
    total = sum(b["positions"] for b in bins)
    edges = np.array([b["low"] for b in bins] + [bins[-1]["high"]])
    shares = [100 * b["positions"] / total for b in bins]
    filled = dict(zip(edges[:-1].round(6).tolist(), shares, strict=True))
    width = bins[0]["high"] - bins[0]["low"]
    every = np.arange(-1, 1 - width / 2, width)
    heights = [filled.get(round(float(low), 6), 0.0) for low in every]
    axis.stairs(heights, [*every, 1.0], color=series(number)["color"], linewidth=1.4)
