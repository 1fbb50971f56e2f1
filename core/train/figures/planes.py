"""The planes of a position: what the net sees (paper 000, figure 3; thesis, figure 4.3)."""

from __future__ import annotations

import math
import textwrap
from typing import Any

import numpy as np

from variant_ai.core.encoding import Encoder
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import Position
from variant_ai.core.train.figures.board import draw_board, mover
from variant_ai.core.train.figures.canvas import Picture, new_figure, picture, printable

COLUMNS = 7
CELL = 1.4
"""Inches of the width of a plane."""


def planes_picture(encoder: Encoder, rules: Rules, position: Position) -> Picture:
    """Every input plane of a position with its number and name, beside the board.

    Planes are as the net gets them, divided by their maxima, the mover's first rank below. A plane
    filled with one number says it, before the division.
    """
    planes = encoder.planes(position)[0]
    raw = encoder.planes(position, raw=True)[0]
    rows = math.ceil(len(planes) / COLUMNS)
    height, width = planes.shape[1:]
    cell = min(2.4, CELL * height / width)
    board = min(4.6, 0.52 * width)
    tall = max((cell + 0.42) * rows, board * height / width + 0.8) + 0.35
    figure = new_figure(board + CELL * COLUMNS + 0.8, tall)
    left, right = figure.subfigures(1, 2, width_ratios=[board + 0.5, CELL * COLUMNS + 0.3])
    axis = left.subplots()
    draw_board(axis, rules, position)
    axis.set_anchor("N")
    axes = right.subplots(rows, COLUMNS, squeeze=False)
    for axis in axes.flat[len(planes) :]:
        axis.set_axis_off()
    for axis, plane, before, known in zip(
        axes.flat, planes, raw, encoder.input_planes, strict=False
    ):
        _draw_plane(axis, plane, before, f"{known.index}: {known.name}")
    figure.suptitle(printable(f"{rules.fen(position)}   ({mover(position)})"), fontsize=10)
    return picture(
        figure,
        "planes",
        "Planes of a position",
        f"What the net sees of {rules.fen(position)}: {len(planes)} planes of {height} x {width}, "
        "from the side of the player to move, whose first rank is below; 0 is white, 1 dark blue.",
    )


def _draw_plane(axis: Any, plane: Any, raw: Any, title: str) -> None:
    height, width = plane.shape
    axis.imshow(plane, cmap="Blues", vmin=0, vmax=1, origin="lower")
    axis.set_xticks(np.arange(width + 1) - 0.5, minor=True)
    axis.set_yticks(np.arange(height + 1) - 0.5, minor=True)
    axis.grid(which="minor", color=(0, 0, 0, 0.12), linewidth=0.4)
    axis.tick_params(which="both", length=0, labelbottom=False, labelleft=False)
    axis.set_title("\n".join(textwrap.wrap(printable(title), 20)[:2]), fontsize=7.5, pad=2)
    if plane.size > 1 and np.ptp(raw) == 0 and raw.flat[0] != 0:
        shade = float(plane.flat[0])
        axis.text(
            (width - 1) / 2, (height - 1) / 2, f"{float(raw.flat[0]):g}", ha="center",
            va="center", fontsize=11, color="white" if shade > 0.5 else "black",
        )  # fmt: skip
