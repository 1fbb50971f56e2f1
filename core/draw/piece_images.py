"""One piece as SVG: a figure, a disc or a wedge, with its sign."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape

from variant_ai.core.draw.background import FONT
from variant_ai.core.draw.shapes import FIGURE_OF_NAME, FIGURES, Figure, strokes
from variant_ai.core.rules.pieces import PieceType
from variant_ai.core.spec.schema import Drawing

WHITE, BLACK = "#fbf7ee", "#2b2623"
OUTLINES = ("#2b2623", "#14110f")
"""Colours around the figures of the two players."""
DETAILS = ("#2b2623", "#d9cfc0")
DISC, DISC_EDGE = "#f8e3b3", "#8a5a2b"
WEDGE, WEDGE_EDGE = "#fbe5b0", "#6d4a22"
PROMOTED = "#c0392b"


def sign(drawing: Drawing, kind: PieceType, colour: int) -> str:
    """Sign on a piece: the spec's glyph, the figure of its name, or its letter."""
    given = drawing.glyphs.get(kind.base)
    if isinstance(given, tuple):
        return given[colour]
    if given is not None:
        return given
    if drawing.pieces == "figures":
        return FIGURE_OF_NAME.get(kind.piece.name.lower(), kind.base)
    return kind.base


def piece(
    drawing: Drawing,
    kind: PieceType,
    colour: int,
    x: float,
    y: float,
    size: float,
    *,
    points_up: bool,
    opacity: float = 1.0,
) -> Iterator[str]:
    """SVG elements of a piece centred on (x, y) in a square of `size`.

    points_up: the player moves towards the upper edge of the picture; wedges point that way.
    """
    shown = sign(drawing, kind, colour)
    scale = size / 100
    faint = f' opacity="{opacity:g}"' if opacity < 1 else ""
    yield f'<g transform="translate({x - size / 2:g} {y - size / 2:g}) scale({scale:g})"{faint}>'
    if drawing.pieces == "wedges":
        turn = "" if points_up else ' transform="rotate(180 50 50)"'
        yield f"<g{turn}>"
        yield (
            f'<path d="M50 6L78 20L90 93H10L22 20Z" fill="{WEDGE}" stroke="{WEDGE_EDGE}" '
            'stroke-width="3" stroke-linejoin="round"/>'
        )
        ink = PROMOTED if kind.base.startswith("+") else BLACK
        yield from _sign(shown, ink, 50, 60, 46)
        yield "</g>"
    elif kind.base in drawing.figures:
        yield from _figure(Figure((drawing.figures[kind.base],)), colour)
    elif drawing.pieces == "figures" and shown in FIGURES:
        yield from _figure(FIGURES[shown], colour)
    else:
        yield from _disc(drawing, shown, colour)
    if kind.twin:
        yield f'<circle cx="82" cy="18" r="9" fill="{PROMOTED}" stroke="{WHITE}" stroke-width="3"/>'
    yield "</g>"


def _figure(figure: Figure, colour: int) -> Iterator[str]:
    fill, edge = (WHITE, BLACK)[colour], OUTLINES[colour]
    path = "".join(figure.shapes)
    rim = DETAILS[1] if colour else edge
    if colour:  # a light outline separates dark figures from dark squares
        yield f'<path d="{path}" fill="none" stroke="{rim}" stroke-width="9" stroke-linejoin="round" opacity="0.55"/>'
    yield f'<path d="{path}" fill="{edge}" stroke="{edge}" stroke-width="6" stroke-linejoin="round"/>'
    for shape in figure.shapes:
        yield f'<path d="{shape}" fill="{fill}"/>'
    if figure.details:
        yield (
            f'<path d="{"".join(figure.details)}" fill="none" stroke="{DETAILS[colour]}" '
            'stroke-width="3" stroke-linecap="round" stroke-linejoin="round"/>'
        )


def _disc(drawing: Drawing, shown: str, colour: int) -> Iterator[str]:
    if drawing.inks is not None:
        ink = drawing.inks[colour]
        fill, edge, ring = DISC, DISC_EDGE, ink
    else:
        ink, fill = ((BLACK, WHITE), (WHITE, BLACK))[colour]
        edge, ring = BLACK, ink
    yield (
        '<ellipse cx="51" cy="54" rx="45" ry="44" fill="#000000" opacity="0.25"/>'
        f'<circle cx="50" cy="50" r="44" fill="{fill}" stroke="{edge}" stroke-width="3"/>'
        f'<circle cx="50" cy="50" r="37.5" fill="none" stroke="{ring}" stroke-width="2"/>'
    )
    yield from _sign(shown, ink, 50, 50, 56)


def _sign(shown: str, ink: str, x: float, y: float, size: float) -> Iterator[str]:
    drawn = strokes(shown)
    if drawn is None:
        height = size * (1.0 if len(shown) == 1 else 0.8)
        yield (
            f'<text x="{x:g}" y="{y + 0.36 * height:g}" font-family="{FONT}" font-weight="bold" '
            f'font-size="{height:g}" text-anchor="middle" fill="{ink}">{escape(shown)}</text>'
        )
        return
    k = size / 100
    path = "".join(
        "M" + "L".join(f"{x + (a - 50) * k:.1f} {y + (b - 50) * k:.1f}" for a, b in stroke)
        for stroke in drawn
    )
    yield (
        f'<path d="{path}" fill="none" stroke="{ink}" stroke-width="{8.5 * k:g}" '
        'stroke-linecap="round" stroke-linejoin="round"/>'
    )
