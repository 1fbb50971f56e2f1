"""The planes of a position: what the net sees (paper 000, figure 3; thesis, figure 4.3)."""

from __future__ import annotations

import math
import textwrap
from typing import Any

import numpy as np

from variant_ai.core.encoding import Encoder
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import Position
from variant_ai.core.train.pictures.board_picture import draw_board, height_of_width, mover
from variant_ai.core.train.pictures.canvas import Picture, new_figure, picture, printable

COLUMNS = 7
CELL = 1.3
"""Inches of the width of a plane."""
GAP = 0.12
"""Inches between planes."""
HEAD = 0.33
"""Inches above a plane for its name, two lines."""
TITLE = 0.4
"""Inches above everything."""
LINE = 22
"""Characters of a line of a name."""


def planes_picture(encoder: Encoder, rules: Rules, position: Position) -> Picture:
    """Every input plane of a position with its number and name, beside the board.

    Planes are as the net gets them, divided by their maxima, the mover's first rank below. A plane
    filled with one number says it, before the division.
    """
    planes = encoder.planes(position)[0]
    raw = encoder.planes(position, raw=True)[0]
    rows = math.ceil(len(planes) / COLUMNS)
    height, width = planes.shape[1:]
    tall = min(2.4, CELL * height / width)
    wide = tall * width / height
    side = max(2.4, min(4.4, 0.5 * width))
    board = (side, side * height_of_width(rules.spec))
    across = board[0] + 0.7 + COLUMNS * (wide + GAP)
    down = TITLE + max(rows * (tall + HEAD), board[1] + 0.75)
    # Dozens of axes that arrange themselves take ten seconds; everything has its place in inches.
    figure = new_figure(across, down, arranged=False)
    axis = figure.add_axes(
        (
            0.3 / across,
            (down - TITLE - 0.25 - board[1]) / down,
            board[0] / across,
            board[1] / down,
        )
    )
    draw_board(axis, rules, position)
    sheet = figure.add_axes((0, 0, 1, 1), facecolor="none")
    sheet.set_axis_off()
    for index, (plane, before, name) in enumerate(
        zip(planes, raw, encoder.plane_names, strict=True)
    ):
        row, column = divmod(index, COLUMNS)
        left = board[0] + 0.6 + column * (wide + GAP)
        below = down - TITLE - (row + 1) * (tall + HEAD) + 0.05
        _draw_plane(sheet, plane, (left, below, wide, tall))
        title = textwrap.wrap(printable(f"{index}: {name}"), LINE)[:2]
        sheet.text(
            left + wide / 2, below + tall + 0.03, "\n".join(title), ha="center", va="bottom",
            fontsize=7,
        )  # fmt: skip
        if plane.size > 1 and np.ptp(before) == 0 and before.flat[0] != 0:
            sheet.text(
                left + wide / 2, below + tall / 2, f"{float(before.flat[0]):g}", ha="center",
                va="center", fontsize=11, color="white" if plane.flat[0] > 0.5 else "black",
            )  # fmt: skip
    sheet.set(xlim=(0, across), ylim=(0, down), aspect="auto")
    sheet.text(
        across / 2, down - 0.08, printable(f"{rules.fen(position)}   ({mover(rules, position)})"),
        ha="center", va="top", fontsize=10,
    )  # fmt: skip
    return picture(
        figure,
        "planes",
        "Planes of a position",
        f"What the net sees of {rules.fen(position)}: {len(planes)} planes of {height} x {width}, "
        "from the side of the player to move, whose first rank is below; 0 is white, 1 dark blue.",
    )


def _draw_plane(sheet: Any, plane: Any, place: tuple[float, float, float, float]) -> None:
    """The plane with its grid, at (left, below, width, height) in inches."""
    from matplotlib.collections import LineCollection

    left, below, wide, tall = place
    height, width = plane.shape
    right, above = left + wide, below + tall
    sheet.imshow(
        plane, cmap="Blues", vmin=0, vmax=1, origin="lower", extent=(left, right, below, above),
        interpolation="nearest",
    )  # fmt: skip
    lines = [[(left + wide * k / width, y) for y in (below, above)] for k in range(width + 1)]
    lines += [[(x, below + tall * k / height) for x in (left, right)] for k in range(height + 1)]
    sheet.add_collection(LineCollection(lines, colors=[(0, 0, 0, 0.15)], linewidths=0.4))
    frame = [[(left, below), (right, below), (right, above), (left, above), (left, below)]]
    sheet.add_collection(LineCollection(frame, colors=["#333333"], linewidths=0.8))
