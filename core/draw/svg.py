"""A position as SVG or PNG: board, hands, last move, arrows, coordinates.

Figures and characters in `piece_images.py` are paths and look the same everywhere; letters, numbers and
other signs are text in the viewer's font.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from variant_ai.core.draw.board import CELL, FONT, LABEL, Layout, board_background, coordinates
from variant_ai.core.draw.piece_images import piece
from variant_ai.core.errors import VariantAIError
from variant_ai.core.rules.pieces import PieceTypes
from variant_ai.core.rules.position import (
    DROP,
    PASS,
    Position,
    move_argument,
    move_kind,
    move_origin,
    move_squares,
    move_target,
    piece_colour,
    piece_type,
)
from variant_ai.core.spec.schema import VariantSpec

BACKGROUND = "#fbf8f1"
LAST = "#f2d12e"
ARROWS = ("#1c6e8c", "#3f8f5f", "#7a6aa8", "#6b5b73")
"""Colours of the arrows in their order; the last one is used for all others."""
PIECE = 0.88
"""Size of a piece in squares."""
LABEL_HEIGHT = 17.0
"""Distance between labels at the same square, in units of the picture."""
DOTS_PER_INCH = 96
"""Of sizes in points or millimetres, as in CSS."""
THINNEST, WIDEST = 0.07, 0.2
"""Width of arrows in squares, for weights 0 and 1."""


@dataclass(frozen=True)
class Arrow:
    """A move to draw."""

    move: int
    weight: float = 1.0
    """Width and opacity of the arrow, 0 to 1; for example visits divided by those of the best
    move."""
    label: str = ""
    """Text at its end."""


def board_svg(
    spec: VariantSpec,
    position: Position,
    *,
    last_move: int | None = None,
    arrows: Sequence[Arrow] = (),
    flipped: bool = False,
    mirrored: bool = False,
    shades: Sequence[str] | None = None,
    walls: Collection[int] | None = None,
    show_coordinates: bool = True,
    size: int = 480,
) -> str:
    """Draw a position as SVG, `size` pixels wide; the height depends on the board.

    position: shape (1,). arrows: best first; drops point from the hand to the square. flipped: put
    the second player below. mirrored: if flipped, keep the order of files, as nets of some variants
    see the board. shades: a colour for each square, a1 first, which replaces the board's own.
    walls: squares with a wall (`walls_of_fen`); None: those of the start position.
    """
    layout = Layout.of(spec, flipped, mirrored)
    types = PieceTypes(spec)
    height = round(size * layout.height / layout.width)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{height}" '
        f'viewBox="0 0 {layout.width:g} {layout.height:g}">',
        f"<title>{escape(spec.title)}</title>",
        f'<rect width="100%" height="100%" fill="{BACKGROUND}"/>',
        *board_background(spec, layout, shades, walls),
    ]
    if show_coordinates:
        parts += coordinates(layout)
    if last_move is not None:
        parts += _last(spec, layout, last_move)
    parts += _pieces(spec, types, layout, position)
    if layout.hand_kinds:
        parts += _hands(spec, types, layout, position)
    mover = int(position["side"][0])
    # draw the best move on top
    for index, arrow in reversed(list(enumerate(arrows))):
        parts += _arrow(layout, arrow, ARROWS[min(index, len(ARROWS) - 1)], mover)
    parts += _labels(layout, arrows)
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def png_bytes(svg: str, *, width: int | None = None) -> bytes:
    """Convert SVG to PNG by resvg. width: in pixels, by default that of the SVG. Raises
    VariantAIError if the text is not SVG."""
    from resvg_py import svg_to_bytes

    try:
        return bytes(
            svg_to_bytes(
                svg_string=svg,
                width=width,
                dpi=DOTS_PER_INCH,
                font_files=_fonts(),
                font_family="DejaVu Sans",
            )
        )
    except ValueError as error:
        raise VariantAIError(f"cannot convert the SVG to PNG: {error}") from error


def _fonts() -> list[str]:
    """Font files of matplotlib, for machines without fonts."""
    from matplotlib import get_data_path

    return [f"{get_data_path()}/fonts/ttf/{name}.ttf" for name in ("DejaVuSans", "DejaVuSans-Bold")]


def _last(spec: VariantSpec, layout: Layout, move: int) -> Iterator[str]:
    for square in move_squares(move):
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
    """Draw a polygon from the origin (or the hand) to the target."""
    kind = move_kind(arrow.move)
    if kind == PASS:
        return
    if kind == DROP:
        x0, y0 = layout.hand_centre(mover, move_argument(arrow.move))
    else:
        x0, y0 = layout.centre(move_origin(arrow.move))
    x1, y1 = layout.centre(move_target(arrow.move))
    length = math.hypot(x1 - x0, y1 - y0)
    if length == 0:  # a promotion in place
        return
    weight = min(max(arrow.weight, 0.0), 1.0)
    half = CELL * (THINNEST + (WIDEST - THINNEST) * weight) / 2
    head, spread = CELL * 0.2 + 2.2 * half, CELL * 0.09 + 1.7 * half
    # start outside the piece, end at the centre of the target
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
    """Write labels at the arrows' ends, stacked if several arrows end at one square, the best
    lowest.

    Each is written twice, first its light outline: some SVG programs do not support `paint-order`,
    so that the outline would cover the letters.
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
