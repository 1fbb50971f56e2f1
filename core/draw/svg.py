"""A position as an SVG picture: board, hands, last move, arrows, coordinates.

Figures and drawn characters are paths and look the same everywhere; letters, numbers and signs
that nobody has drawn are text in whatever font the viewer has.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from variant_ai.core.draw.background import FONT, LABEL, coordinates, ground
from variant_ai.core.draw.layout import CELL, Layout
from variant_ai.core.draw.piece_images import piece
from variant_ai.core.rules.pieces import PieceTypes
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
)
from variant_ai.core.spec.schema import VariantSpec

BACKGROUND = "#fbf8f1"
LAST = "#f2d12e"
ARROWS = ("#1c6e8c", "#3f8f5f", "#7a6aa8", "#6b5b73")
"""Colours of the first arrow, the second, and so on; the last is used again."""
PIECE = 0.88
"""Size of a piece in squares."""
LABEL_HEIGHT = 17.0
"""Between labels that stand at the same square, in units of the picture."""
THINNEST, WIDEST = 0.07, 0.2
"""Width of arrows in squares, for weights 0 and 1."""


@dataclass(frozen=True)
class Arrow:
    """A move to be shown."""

    move: int
    weight: float = 1.0
    """0 to 1: the arrow's width, and its strength; e.g. visits over those of the best move."""
    label: str = ""
    """Written at its end."""


def board_svg(
    spec: VariantSpec,
    position: Position,
    *,
    last_move: int | None = None,
    arrows: Sequence[Arrow] = (),
    flipped: bool = False,
    mirrored: bool = False,
    shades: Sequence[str] | None = None,
    show_coordinates: bool = True,
    size: int = 480,
) -> str:
    """The picture of a position, `size` pixels wide; its height follows from the board.

    position: shape (1,). arrows: best first. flipped: the second player sits below; mirrored: the
    files keep their order then, as a net sees the board. shades: a colour for each square, a1
    first, instead of the board's own. Drops point from the hand to the square.
    """
    layout = Layout.of(spec, flipped, mirrored)
    types = PieceTypes(spec)
    height = round(size * layout.height / layout.width)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{height}" '
        f'viewBox="0 0 {layout.width:g} {layout.height:g}">',
        f"<title>{escape(spec.title)}</title>",
        f'<rect width="100%" height="100%" fill="{BACKGROUND}"/>',
        *ground(spec, layout, shades),
    ]
    if show_coordinates:
        parts += coordinates(layout)
    if last_move is not None:
        parts += _last(spec, layout, last_move)
    parts += _pieces(spec, types, layout, position)
    if layout.hand_kinds:
        parts += _hands(spec, types, layout, position)
    mover = int(position["side"][0])
    # the best move lies on top
    for index, arrow in reversed(list(enumerate(arrows))):
        parts += _arrow(layout, arrow, ARROWS[min(index, len(ARROWS) - 1)], mover)
    parts += _labels(layout, arrows)
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _last(spec: VariantSpec, layout: Layout, move: int) -> Iterator[str]:
    if move_kind(move) == PASS:
        return
    squares = [move_target(move)]
    if move_kind(move) != DROP:
        squares.append(move_origin(move))
    for square in squares:
        x, y = layout.centre(square)
        if spec.drawing.board == "lines":
            yield (
                f'<circle cx="{x:g}" cy="{y:g}" r="{CELL * 0.485:g}" fill="{LAST}" opacity="0.75"/>'
            )
        else:
            yield (
                f'<rect x="{x - CELL / 2:g}" y="{y - CELL / 2:g}" width="{CELL:g}" '
                f'height="{CELL:g}" fill="{LAST}" opacity="0.6"/>'
            )


def _pieces(
    spec: VariantSpec, types: PieceTypes, layout: Layout, position: Position
) -> Iterator[str]:
    board = position["board"][0]
    for square in range(layout.files * layout.ranks):
        code = int(board[square])
        if code == 0:
            continue
        x, y = layout.centre(square)
        colour = piece_colour(code)
        yield from piece(
            spec.drawing,
            types.all[piece_type(code)],
            colour,
            x,
            y,
            CELL * PIECE,
            points_up=layout.is_below(colour),
        )


def _hands(
    spec: VariantSpec, types: PieceTypes, layout: Layout, position: Position
) -> Iterator[str]:
    for colour in (0, 1):
        for index, kind in enumerate(types.hand_types):
            count = int(position["hands"][0, colour, index])
            x, y = layout.hand_centre(colour, index)
            side = min(layout.slot * 0.86, CELL * 0.78)
            yield from piece(
                spec.drawing,
                types.all[kind],
                colour,
                x,
                y,
                side,
                points_up=layout.is_below(colour),
                opacity=1.0 if count else 0.16,
            )
            if count > 1:
                bx, by = x + side * 0.4, y + side * 0.34
                yield (
                    f'<circle cx="{bx:g}" cy="{by:g}" r="11" fill="{LABEL}" '
                    f'stroke="{BACKGROUND}" stroke-width="1.5"/>'
                    f'<text x="{bx:g}" y="{by + 5:g}" font-family="{FONT}" font-size="14" '
                    f'font-weight="bold" text-anchor="middle" fill="{BACKGROUND}">{count}</text>'
                )


def _arrow(layout: Layout, arrow: Arrow, colour: str, mover: int) -> Iterator[str]:
    """A polygon from the origin (or the hand) to the target."""
    kind = move_kind(arrow.move)
    if kind == PASS:
        return
    if kind == DROP:
        x0, y0 = layout.hand_centre(mover, move_argument(arrow.move))
    else:
        x0, y0 = layout.centre(move_origin(arrow.move))
    x1, y1 = layout.centre(move_target(arrow.move))
    length = math.hypot(x1 - x0, y1 - y0)
    weight = min(max(arrow.weight, 0.0), 1.0)
    half = CELL * (THINNEST + (WIDEST - THINNEST) * weight) / 2
    head, spread = CELL * 0.2 + 2.2 * half, CELL * 0.09 + 1.7 * half
    # clear of the piece it starts from, and short of the target's centre by nothing
    start = min(CELL * 0.3, max(length - head, 0) / 2)
    along, across = (
        ((x1 - x0) / length, (y1 - y0) / length),
        (-(y1 - y0) / length, (x1 - x0) / length),
    )

    def at(distance: float, offset: float) -> str:
        x = x0 + along[0] * distance + across[0] * offset
        y = y0 + along[1] * distance + across[1] * offset
        return f"{x:.1f},{y:.1f}"

    neck = length - head
    corners = (
        at(start, -half), at(neck, -half), at(neck, -spread), at(length, 0.0),
        at(neck, spread), at(neck, half), at(start, half),
    )  # fmt: skip
    yield (
        f'<polygon points="{" ".join(corners)}" fill="{colour}" stroke="#ffffff" '
        f'stroke-width="1.6" stroke-linejoin="round" opacity="{0.5 + 0.35 * weight:.2f}"/>'
    )


def _labels(layout: Layout, arrows: Sequence[Arrow]) -> Iterator[str]:
    """Labels at the arrows' ends, above one another where several arrows end, the best lowest.

    Each is written twice, its light rim below its letters: `paint-order`, which says the same in
    one element, is not known to every program that draws SVG, and the rim then covers the letters.
    """
    written: Counter[int] = Counter()
    for arrow in arrows:
        if not arrow.label or move_kind(arrow.move) == PASS:
            continue
        target = move_target(arrow.move)
        x, y = layout.centre(target)
        y += CELL * 0.42 - LABEL_HEIGHT * written[target]
        written[target] += 1
        place = (
            f'x="{x:g}" y="{y:g}" font-family="{FONT}" font-size="15" font-weight="bold" '
            'text-anchor="middle"'
        )
        text = escape(arrow.label)
        yield (
            f'<text {place} fill="#ffffff" stroke="#ffffff" stroke-width="3.5" '
            f'stroke-linejoin="round">{text}</text>'
        )
        yield f'<text {place} fill="#111111">{text}</text>'
