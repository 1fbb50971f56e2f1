"""Training curves: losses, accuracies and schedules over the steps.

[CrazyAra-preprint]: figures 2 (several runs), 9 (schedules), 10 (learning progress) and 11 (the last
steps); [Xiangqi-thesis]: figures 4.4 to 4.7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from variant_ai.core.train.measure.metric_tables import axis_label, axis_scale
from variant_ai.core.train.pictures.canvas import (
    BLUE,
    GREY,
    VERMILION,
    Picture,
    new_figure,
    picture,
    printable,
    series,
    tidy,
)
from variant_ai.core.train.run.run_folder import Event, train_and_validation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANELS = ("policy_loss", "value_loss", "policy_accuracy", "value_accuracy_sign")
LAST_SHARE = 0.15
"""Share of the steps in the detailed view."""


def learning_curves(events: Sequence[Event], title: str) -> Picture:
    """Learning curves of one run (figure 10), from its log (`read_metrics`).

    Training is a thin line (each point the mean since the last), validation a line with points.
    Below are the schedules (figure 9).
    """
    train, validation = train_and_validation(events)
    figure = new_figure(11, 10.5)
    axes = figure.subplots(3, 2)
    figure.suptitle(printable(title), fontsize=12)
    for axis, name in zip(axes.flat, PANELS, strict=False):
        scale = axis_scale(name)
        _curve(axis, train, name, color=BLUE, linewidth=1, alpha=0.8, label="training")
        _curve(
            axis, validation, name,
            color=VERMILION, linewidth=1.5, marker="o", markersize=4, label="validation",
        )  # fmt: skip
        if validation and validation[-1].get(name) is not None:
            last = validation[-1]
            axis.annotate(
                f"{last[name] * scale:.2f}",
                (last["step"], last[name] * scale),
                xytext=(6, 0),
                textcoords="offset points",
                ha="left",
                va="center",
                color=VERMILION,
                fontsize=9,
            )
        axis.set_ylabel(axis_label(name))
        axis.margins(y=0.12)
        if axis.lines:
            axis.legend(framealpha=0.8, edgecolor="none", fontsize=9)
    _curve(axes[2][0], train, "lr", color=BLUE, linewidth=1.5)
    axes[2][0].set_ylabel("learning rate")
    _curve(axes[2][1], train, "momentum", color=BLUE, linewidth=1.5)
    axes[2][1].set_ylabel("momentum")
    last_step = max((e["step"] for e in (*train, *validation)), default=1)
    for axis in axes.flat:
        tidy(axis)
        axis.set_xlim(0, 1.1 * last_step)  # room for the last value
    for axis in axes[2]:
        axis.set_xlabel("step")
        axis.set_ylim(bottom=0 if axis is axes[2][0] else None)
    caption = (
        "Losses and accuracies over the steps, in training (thin line) and in validation "
        "(line with points), and below the learning rate and momentum of each step."
    )
    return picture(figure, "curves", "Learning curves and schedules", caption)


def last_steps(runs: Mapping[str, Sequence[Event]]) -> Picture | None:
    """Detailed view of the last steps (figure 11); None if there are too few lines."""
    return _several(
        runs,
        LAST_SHARE,
        "last-steps",
        "The last steps",
        f"The last {LAST_SHARE:.0%} of each run's steps. Dashed lines are training, solid lines "
        "with points validation.",
    )


def compared_curves(runs: Mapping[str, Sequence[Event]]) -> Picture | None:
    """Several runs, by name, in one picture (figures 2 and 10)."""
    return _several(
        runs,
        1,
        "compared-curves",
        "Learning curves of several runs",
        "Dashed lines are training, solid lines with points validation.",
    )


def _several(
    runs: Mapping[str, Sequence[Event]], share: float, name: str, title: str, caption: str
) -> Picture | None:
    figure = new_figure(11, 7.6)
    axes = figure.subplots(2, 2)
    drawn = False
    handles: dict[str, Any] = {}
    for number, (run, events) in enumerate(runs.items()):
        kinds = train_and_validation(events)
        last = max((e["step"] for kind in kinds for e in kind), default=0)
        train, validation = ([e for e in kind if e["step"] >= (1 - share) * last] for kind in kinds)
        if share < 1:  # runs of different lengths would be far apart
            train, validation = (
                [{**e, "step": 100 * e["step"] / last} for e in kind]
                for kind in (train, validation)
            )
        style = series(number)
        for axis, measure in zip(axes.flat, PANELS, strict=True):
            dashed = {"color": style["color"], "linestyle": (0, (4, 2)), "linewidth": 1}
            drawn |= _curve(axis, train, measure, **dashed, alpha=0.75)
            solid = {**style, "linewidth": 1.8, "markersize": 5}
            drawn |= _curve(axis, validation, measure, **solid)
            axis.set_ylabel(axis_label(measure))
        from matplotlib.lines import Line2D

        handles[printable(run, 60)] = Line2D([], [], **style, linewidth=1.8)
    if not drawn:
        return None
    for axis in axes.flat:
        tidy(axis)
        axis.margins(y=0.1)
    for axis in axes[1]:
        axis.set_xlabel("step" if share == 1 else "steps done, %")
    handles["training"] = Line2D([], [], color=GREY, linestyle=(0, (4, 2)), linewidth=1)
    figure.legend(
        handles.values(), handles.keys(), loc="outside upper center",
        ncols=min(3, len(handles)), frameon=False, fontsize=9,
    )  # fmt: skip
    return picture(figure, name, title, caption)


def _curve(axis: Axes, events: Sequence[Event], name: str, **style: Any) -> bool:
    """Draw one measure; return True if there was anything to draw."""
    scale = axis_scale(name)
    points = [(e["step"], e[name] * scale) for e in events if e.get(name) is not None]
    if len(points) == 1:
        style.setdefault("marker", "o")
    if points:
        axis.plot(*zip(*points, strict=True), **style)
    return bool(points)
