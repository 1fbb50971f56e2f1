"""Pictures of ladders: Elo with its error over generations, CPU hours or evaluations."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from variant_ai.core.reinforce.ladder.ladder_record import LadderRecord
from variant_ai.core.system.files import write_whole
from variant_ai.core.train.pictures.canvas import GREY, new_figure, printable, series, tidy

Axis = Literal["generation", "cpu_hours", "evaluations"]
LABELS: dict[Axis, str] = {
    "generation": "generation",
    "cpu_hours": "CPU hours",
    "evaluations": "positions evaluated by self-play",
}


def draw_ladders(
    ladders: Mapping[str, LadderRecord], path: Path, *, axis: Axis = "generation", title: str = ""
) -> None:
    """Draw ladders, by their names, into one SVG file. Outside players are dotted lines at their Elo.

    axis: what the Elo is drawn over; generations without that number are left out.
    """
    import matplotlib

    figure = new_figure(8, 5)
    axes = figure.subplots()
    for number, (name, record) in enumerate(ladders.items()):
        points = ladder_points(record, axis)
        look = series(number)
        axes.errorbar(
            [x for x, _, _ in points],
            [elo for _, elo, _ in points],
            yerr=[error for _, _, error in points],
            label=printable(name, 40),
            linewidth=1.2,
            markersize=4,
            capsize=2,
            elinewidth=0.7,
            **look,
        )
        for player, (elo, _) in record.ratings().items():
            if isinstance(player, str):
                axes.axhline(elo, color=look["color"], linewidth=0.8, linestyle=":")
                axes.annotate(
                    printable(player, 50),
                    (0.01, elo),
                    xycoords=axes.get_yaxis_transform(),
                    va="bottom",
                    fontsize=7,
                    color=GREY,
                )
    axes.set_xlabel(LABELS[axis])
    axes.set_ylabel("Elo above generation 0, with 95 % interval")
    if title:
        axes.set_title(printable(title))
    if len(ladders) > 1:
        axes.legend(framealpha=0.8, edgecolor="none", fontsize=9)
    tidy(axes)
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "ladder"}):  # the same picture has the same bytes
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    write_whole(path, buffer.getvalue())


def ladder_points(record: LadderRecord, axis: Axis) -> list[tuple[float, float, float]]:
    """Place on the axis, Elo and error of each generation, in order."""
    points = []
    for generation, (elo, error) in record.elo().items():
        if axis == "generation":
            points.append((float(generation), elo, error))
            continue
        progress = record.progress.get(generation)
        spent = None if progress is None else getattr(progress, axis)
        if generation == 0 and spent is None:
            spent = 0.0
        if spent is not None:
            points.append((float(spent), elo, error))
    return points
