"""Pictures of one position: its planes, a net's activation maps, and a net's policy on the board.

Planes: [CrazyAra-preprint] figure 3, [Xiangqi-thesis] figure 4.3; maps and policy: [CrazyAra-preprint]
figure 4. K channels of H x W; everything in the mover's view, with the mover's first rank at the bottom.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.draw import Arrow
from variant_ai.core.encoding import Encoder
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import Position
from variant_ai.core.train.pictures.canvas import (
    BLUE,
    GREY,
    VERMILION,
    Picture,
    draw_board,
    height_of_width,
    mover,
    new_figure,
    picture,
    printable,
    shares_axis,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Maps = NDArray[np.floating[Any]]
MOST_CHANNELS = 256
CANDIDATES = 10
COLUMNS = 7
CELL = 1.3
"""Width of a plane in inches."""
GAP = 0.12
"""Space between planes in inches."""
HEAD = 0.33
"""Space above a plane for its name of two lines, in inches."""
TITLE = 0.4
"""Space at the top, in inches."""
LINE = 22
"""Characters in a line of a name."""


@dataclass(frozen=True)
class Candidate:
    """A legal move and its probability."""

    move: int
    text: str
    probability: float
    """Softmax over the legal moves."""


def features_picture(maps: Maps, name: str, title: str) -> Picture:
    """Figures 4a and 4b: maps [K, H, W], one small picture a channel, each in its own range."""
    count = min(len(maps), MOST_CHANNELS)
    height, width = maps.shape[1:]
    columns = min(count, max(4, round(math.sqrt(count * 1.6 * height / width))))
    rows = math.ceil(count / columns)
    gap = 1
    sheet = np.full(
        (rows * (height + gap) - gap, columns * (width + gap) - gap), np.nan, np.float64
    )
    for k in range(count):
        least, most = float(maps[k].min()), float(maps[k].max())
        shown = (maps[k] - least) / (most - least) if most > least else np.zeros_like(maps[k])
        # The sheet is drawn from the bottom, and channels are counted from the top.
        y = (rows - 1 - k // columns) * (height + gap)
        x = k % columns * (width + gap)
        sheet[y : y + height, x : x + width] = shown
    inches = 10.0
    figure = new_figure(inches, inches * sheet.shape[0] / sheet.shape[1] + 0.6)
    axis = figure.subplots()
    axis.imshow(sheet, cmap="cividis", origin="lower", interpolation="nearest")
    axis.set_axis_off()
    dead = int((np.ptp(maps.reshape(len(maps), -1), axis=1) == 0).sum())
    counts = f"{len(maps)} channels" + (f", the first {count} shown" if count < len(maps) else "")
    if dead:
        counts += f", {dead} of them the same on every square"
    figure.suptitle(f"{title}: {counts}", fontsize=11)
    caption = (
        f"{title}: {counts}, from left to right and from the top; each from its least (dark blue) to "
        "its greatest value (yellow), the mover's first rank below."
    )
    return picture(figure, name, title, caption)


def heads_picture(
    rules: Rules, position: Position, value_map: Maps, policy_map: Maps, value: float
) -> Picture:
    """Figures 4c and 4d: the last maps [K, H, W] of the two heads, summed over the channels."""
    figure = new_figure(10, _board_height(rules, 5.0) + 0.5)
    for axis, maps, title in zip(
        figure.subplots(1, 2),
        (value_map, policy_map),
        (f"value head, v = {value:+.2f}", "policy head"),
        strict=True,
    ):
        draw_board(axis, rules, position, heat=maps.sum(0))
        axis.set_title(title, fontsize=10)
    figure.suptitle(mover(rules, position), fontsize=9, color=GREY)
    return picture(
        figure,
        "heads",
        "Where the heads look",
        "The last spatial maps of the value head and of the policy head, summed over their "
        "channels, on the board: the darker a square, the more active.",
    )


def policy_picture(
    rules: Rules,
    position: Position,
    candidates: Sequence[Candidate],
    value: float,
    wdl: Sequence[float] | None,
    played: str,
) -> Picture:
    """Figures 4e and 4f: the likeliest moves on the board, and their probabilities as bars.

    `candidates` best first; `played` is the move of the game, marked where it is among them.
    """
    shown = list(candidates)[:CANDIDATES]
    figure = new_figure(11, _board_height(rules, 5.2) + 0.5)
    board, bars = figure.subplots(1, 2, width_ratios=[1.25, 1])
    best = max((c.probability for c in shown), default=1.0) or 1.0
    draw_board(board, rules, position, arrows=[Arrow(c.move, c.probability / best) for c in shown])
    at = np.arange(len(shown))
    colours = [VERMILION if c.text == played else BLUE for c in shown]
    bars.barh(at, [100 * c.probability for c in shown], color=colours, height=0.7)
    for k, candidate in enumerate(shown):
        mark = "  played" if candidate.text == played else ""
        bars.text(
            100 * candidate.probability, k, f" {100 * candidate.probability:.1f} %{mark}",
            va="center", fontsize=9,
        )  # fmt: skip
    bars.set_yticks(at, [printable(c.text) for c in shown], fontsize=10)
    bars.invert_yaxis()
    shares_axis(bars, 130 * best)
    bars.set_xlabel("probability among the legal moves, %")
    tidy(bars, "x")
    outputs = f"v = {value:+.2f}"
    if wdl is not None:
        outputs += "   win {:.0%}, draw {:.0%}, loss {:.0%}".format(*wdl)
    bars.set_title(outputs, fontsize=10)
    figure.suptitle(printable(f"{rules.fen(position)}   ({mover(rules, position)})"), fontsize=9)
    return picture(
        figure,
        "policy",
        "Policy of a position",
        f"The {len(shown)} likeliest moves in {rules.fen(position)}, wider and darker the likelier, "
        f"and their probabilities; the net's value is {value:+.2f} for the player to move.",
    )


def _board_height(rules: Rules, width: float) -> float:
    """Height in inches of a board of that width, within limits."""
    return min(7.5, max(3.2, width * height_of_width(rules.spec)))


# --- planes --------------------------------------------------------------------------------------


def planes_picture(encoder: Encoder, rules: Rules, position: Position) -> Picture:
    """All input planes of a position with number and name, next to the board.

    Planes are shown as the net gets them, divided by their maxima. The number in a constant plane is
    shown before the division.
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
    # Arranging dozens of axes automatically takes ten seconds, so positions are given in inches.
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
        f"The net's input for {rules.fen(position)}: {len(planes)} planes of {height} x {width}, "
        "from the side of the player to move, whose first rank is at the bottom; 0 is white, 1 dark "
        "blue.",
    )


def _draw_plane(
    sheet: Axes, plane: NDArray[np.floating[Any]], place: tuple[float, float, float, float]
) -> None:
    """Draw a plane with its grid at (left, bottom, width, height) in inches."""
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
