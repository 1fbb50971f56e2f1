"""Activation maps of a net and its policy on the board (paper 000, figure 4).

K channels of H x W; everything in the mover's view, their first rank below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.draw import Arrow
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import Position
from variant_ai.core.train.pictures.board_picture import draw_board, height_of_width, mover
from variant_ai.core.train.pictures.canvas import (
    BLUE,
    GREY,
    VERMILION,
    Picture,
    new_figure,
    picture,
    printable,
    shares_axis,
    tidy,
)

Maps = NDArray[np.floating[Any]]
MOST_CHANNELS = 256
CANDIDATES = 10


@dataclass(frozen=True)
class Candidate:
    """A legal move and what a net thinks of it."""

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
        # The sheet is drawn from below, and channels are counted from above.
        y = (rows - 1 - k // columns) * (height + gap)
        x = k % columns * (width + gap)
        sheet[y : y + height, x : x + width] = shown
    inches = 10.0
    figure = new_figure(inches, inches * sheet.shape[0] / sheet.shape[1] + 0.6)
    axis = figure.subplots()
    axis.imshow(sheet, cmap="cividis", origin="lower", interpolation="nearest")
    axis.set_axis_off()
    dead = int((np.ptp(maps.reshape(len(maps), -1), axis=1) == 0).sum())
    said = f"{len(maps)} channels" + (f", the first {count} shown" if count < len(maps) else "")
    if dead:
        said += f", {dead} of them the same on every square"
    figure.suptitle(f"{title}: {said}", fontsize=11)
    caption = (
        f"{title}: {said}, from left to right and from above; each from its least (dark blue) to "
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
    wdl: Sequence[float] | None = None,
    played: str = "",
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
    said = f"v = {value:+.2f}"
    if wdl is not None:
        said += "   win {:.0%}, draw {:.0%}, loss {:.0%}".format(*wdl)
    bars.set_title(said, fontsize=10)
    figure.suptitle(printable(f"{rules.fen(position)}   ({mover(rules, position)})"), fontsize=9)
    return picture(
        figure,
        "policy",
        "Policy of a position",
        f"The {len(shown)} likeliest moves in {rules.fen(position)}, wider and darker the likelier, "
        f"and their probabilities; the net's value is {value:+.2f} for the player to move.",
    )


def _board_height(rules: Rules, width: float) -> float:
    """Inches for a board so many inches wide, within reason."""
    return min(7.5, max(3.2, width * height_of_width(rules.spec)))
