"""Picture of a ladder: Elo with its error over generations."""

from __future__ import annotations

import io
from pathlib import Path

from variant_ai.core.reinforce.ladder.ladder_record import LadderRecord
from variant_ai.core.system.files import write_whole
from variant_ai.core.train.pictures.canvas import (
    GREY,
    generations_axis,
    new_figure,
    printable,
    series,
    tidy,
)


def draw_ladder(record: LadderRecord, path: Path) -> None:
    """Draw a ladder into an SVG file. Outside players are dotted lines at their Elo."""
    import matplotlib

    figure = new_figure(8, 5)
    axes = figure.subplots()
    look = series(0)
    measured = record.elo()
    axes.errorbar(
        list(measured),
        [elo for elo, _ in measured.values()],
        yerr=[error for _, error in measured.values()],
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
    generations_axis(axes)
    axes.set_ylabel("Elo above generation 0, with 95 % interval")
    tidy(axes)
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "ladder"}):  # the same picture has the same bytes
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    write_whole(path, buffer.getvalue())
