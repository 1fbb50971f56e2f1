"""Pictures of ladders: Elo with its error over generations."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

from variant_ai.core.reinforce.ladder.ladder_record import LadderRecord
from variant_ai.core.system.files import write_whole
from variant_ai.core.train.pictures.canvas import GREY, new_figure, printable, series, tidy


def draw_ladders(ladders: Mapping[str, LadderRecord], path: Path) -> None:
    """Draw ladders, by their names, into one SVG file. Outside players are dotted lines at their Elo."""
    import matplotlib

    figure = new_figure(8, 5)
    axes = figure.subplots()
    for number, (name, record) in enumerate(ladders.items()):
        measured = record.elo()
        look = series(number)
        axes.errorbar(
            list(measured),
            [elo for elo, _ in measured.values()],
            yerr=[error for _, error in measured.values()],
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
    axes.set_xlabel("generation")
    axes.set_ylabel("Elo above generation 0, with 95 % interval")
    if len(ladders) > 1:
        axes.legend(framealpha=0.8, edgecolor="none", fontsize=9)
    tidy(axes)
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "ladder"}):  # the same picture has the same bytes
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    write_whole(path, buffer.getvalue())
