"""A position as a board: squares shaded by how much they matter, moves as arrows.

The board is seen by the player to move, as the net sees it: row 0, their own first rank, is below.
H ranks, W files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import (
    DROP,
    PASS,
    Position,
    move_argument,
    move_kind,
    move_origin,
    move_target,
    piece_colour,
    piece_type,
    view,
)
from variant_ai.core.train.figures.canvas import BLUE, FONT
from variant_ai.specs.zones import square_name

LIGHT, DARK = "#f4f1ea", "#e3ddd0"
FIRST, SECOND, INK = "#ffffff", "#3a3a3a", "#1a1a1a"


@dataclass(frozen=True)
class Arrow:
    """A move to be drawn."""

    move: int
    share: float
    """Between 0 and 1: how wide and how opaque it is."""


def draw_board(
    axis: Any,
    rules: Rules,
    position: Position,
    *,
    heat: NDArray[np.floating[Any]] | None = None,
    arrows: Sequence[Arrow] = (),
    colour: str = BLUE,
) -> None:
    """Draws the position into an axis of matplotlib.

    `heat` [H, W] in the mover's view shades the squares in oranges, the greatest darkest (paper
    000, figures 4c and 4d). `arrows` are moves of the position.
    """
    board, side = rules.spec.board, int(position[0]["side"])
    files, ranks = board.files, board.ranks
    if heat is None:
        chequered = np.indices((ranks, files)).sum(0) % 2
        from matplotlib.colors import ListedColormap

        axis.imshow(chequered, cmap=ListedColormap([DARK, LIGHT]), origin="lower", vmin=0, vmax=1)
    else:
        axis.imshow(heat, cmap="Oranges", origin="lower")
    axis.set_xticks(np.arange(files + 1) - 0.5, minor=True)
    axis.set_yticks(np.arange(ranks + 1) - 0.5, minor=True)
    axis.grid(which="minor", color="#b9b2a3", linewidth=0.6)
    axis.tick_params(which="both", length=0)
    seen = [view(square, side, files, ranks, board.sides) for square in range(files * ranks)]
    names = {at: square_name(square, files) for square, at in enumerate(seen)}
    axis.set_xticks(range(files), [names[x][0] for x in range(files)], fontsize=8)
    axis.set_yticks(range(ranks), [names[y * files][1:] for y in range(ranks)], fontsize=8)
    for square, code in enumerate(position[0]["board"][: files * ranks].tolist()):
        if code:
            _draw_piece(axis, rules, code, seen[square] % files, seen[square] // files)
    for arrow in sorted(arrows, key=lambda a: a.share):
        _draw_arrow(axis, rules, arrow, seen, side, colour)
    axis.set_xlim(-0.5, files - 0.5)
    axis.set_ylim(-0.5, ranks - 0.5)
    axis.set_xlabel(f"in hand: {_hand(rules, position, side)}", fontsize=9)
    axis.set_title(f"in hand: {_hand(rules, position, 1 - side)}", fontsize=9)
    if rules.spec.hands is None:
        axis.set(xlabel="", title="")


def mover(position: Position) -> str:
    """Who is to move, in words."""
    return ("first", "second")[int(position[0]["side"])] + " player to move"


def _draw_piece(axis: Any, rules: Rules, code: int, x: int, y: int) -> None:
    from matplotlib.patches import Circle

    symbol = rules.types.all[piece_type(code)].symbol
    second = piece_colour(code) == 1
    axis.add_patch(
        Circle((x, y), 0.4, facecolor=SECOND if second else FIRST, edgecolor=INK, linewidth=0.9)
    )
    axis.text(
        x, y, symbol.lower() if second else symbol, ha="center", va="center_baseline",
        fontsize=10 if len(symbol) == 1 else 8, fontfamily=FONT, fontweight="bold",
        color="white" if second else INK,
    )  # fmt: skip


def _draw_arrow(
    axis: Any, rules: Rules, arrow: Arrow, seen: Sequence[int], side: int, colour: str
) -> None:
    from matplotlib.patches import FancyArrowPatch, Rectangle

    files = rules.spec.board.files
    kind = move_kind(arrow.move)
    if kind == PASS:
        return
    target = seen[move_target(arrow.move)]
    x, y = target % files, target // files
    strength = 0.35 + 0.6 * min(1.0, arrow.share)
    if kind == DROP:
        assert rules.spec.hands is not None
        width = 1.5 + 2.5 * arrow.share
        axis.add_patch(
            Rectangle(
                (x - 0.45, y - 0.45), 0.9, 0.9, fill=False, edgecolor=colour, linewidth=width,
                alpha=strength,
            )
        )  # fmt: skip
        dropped = rules.spec.hands.order[move_argument(arrow.move)]
        text = f"{dropped.lower() if side else dropped}@"
        axis.text(
            x, y, text, ha="center", va="center_baseline", fontsize=9, fontfamily=FONT, fontweight="bold",
            color=colour,
        )  # fmt: skip
        return
    origin = seen[move_origin(arrow.move)]
    axis.add_patch(
        FancyArrowPatch(
            (origin % files, origin // files), (x, y),
            arrowstyle="simple,head_length=0.6,head_width=0.6,tail_width=0.2",
            mutation_scale=10 + 12 * arrow.share, shrinkA=6, shrinkB=2,
            facecolor=colour, edgecolor="white", linewidth=0.5, alpha=strength, zorder=3,
        )
    )  # fmt: skip


def _hand(rules: Rules, position: Position, colour: int) -> str:
    if rules.spec.hands is None:
        return ""
    counts = position[0]["hands"][colour].tolist()
    letters = [
        f"{letter.lower() if colour else letter}×{count}"
        for letter, count in zip(rules.spec.hands.order, counts, strict=False)
        if count
    ]
    return " ".join(letters) or "nothing"
