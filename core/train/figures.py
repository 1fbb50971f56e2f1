"""The picture of a training: losses, accuracies and schedules over the steps (paper 000, figures
2, 9 and 10)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from variant_ai.core.train.files import write_whole

BLUE, ORANGE, GREY = "#0b5fa5", "#d1600a", "#777777"

Event = dict[str, Any]


def draw_curves(events: Sequence[Event], path: Path, title: str) -> None:
    """Draws the record of a run (`record.read_metrics`) into a PNG, written whole.

    Training is a thin line (each point the mean since the last), validation a line with points.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    train = [e for e in _without_undone(events) if e["kind"] == "train"]
    validation = [e for e in _without_undone(events) if e["kind"] in ("validation", "final")]
    figure = Figure(figsize=(11, 10.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(3, 2)
    figure.suptitle(title, fontsize=12)
    panels = [
        (axes[0][0], "policy_loss", "policy loss", 1),
        (axes[0][1], "value_loss", "value loss", 1),
        (axes[1][0], "policy_accuracy", "policy accuracy, %", 100),
        (axes[1][1], "value_accuracy_sign", "value accuracy sign, %", 100),
    ]
    for axis, name, label, scale in panels:
        _curve(axis, train, name, scale, color=BLUE, linewidth=1, alpha=0.8, label="training")
        _curve(
            axis, validation, name, scale,
            color=ORANGE, linewidth=1.5, marker="o", markersize=4, label="validation",
        )  # fmt: skip
        if validation and validation[-1].get(name) is not None:
            last = validation[-1]
            axis.annotate(
                f"{last[name] * scale:.2f}",
                (last["step"], last[name] * scale),
                xytext=(-4, 8),
                textcoords="offset points",
                ha="right",
                color=ORANGE,
                fontsize=9,
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1},
            )
        axis.set_ylabel(label)
        axis.margins(y=0.12)
        axis.legend(framealpha=0.8, edgecolor="none", fontsize=9)
    _curve(axes[2][0], train, "lr", 1, color=BLUE, linewidth=1.5)
    axes[2][0].set_ylabel("learning rate")
    _curve(axes[2][1], train, "momentum", 1, color=BLUE, linewidth=1.5)
    axes[2][1].set_ylabel("momentum")
    for axis in axes.flat:
        axis.grid(color="#dddddd", linewidth=0.6)
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_xlim(left=0)
    for axis in axes[2]:
        axis.set_xlabel("step")
        axis.set_ylim(bottom=0 if axis is axes[2][0] else None)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    write_whole(path, buffer.getvalue())


def _curve(axis: Any, events: Sequence[Event], name: str, scale: float, **style: Any) -> None:
    points = [(e["step"], e[name] * scale) for e in events if e.get(name) is not None]
    if len(points) == 1:
        style.setdefault("marker", "o")
    if points:
        axis.plot(*zip(*points, strict=True), **style)


def _without_undone(events: Sequence[Event]) -> list[Event]:
    """Events without those that a return to a checkpoint undid."""
    kept: list[Event] = []
    for event in events:
        if event["kind"] == "recovery":
            kept = [e for e in kept if e["step"] <= event["step"]]
        else:
            kept.append(event)
    return kept
