"""One piece as SVG: a figure, a disc or a wedge, with its sign.

Figures of western pieces and Chinese characters are shapes of this module, so that pictures need no font.
Every shape is in a box of 100 by 100, y downwards. A figure is a list of SVG paths that are drawn
twice, first with a thick outline, then filled, which gives the outline of their union. Characters
are pen strokes (polylines); many are composed of parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from xml.sax.saxutils import escape

from variant_ai.core.draw.board import FONT
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


# --- shapes of figures and characters -------------------------------------------------------------

Point = tuple[float, float]
Stroke = tuple[Point, ...]


@dataclass(frozen=True)
class Figure:
    """A silhouette, and lines on it in the colour of its outline."""

    shapes: tuple[str, ...]
    details: tuple[str, ...] = ()


def _circle(x: float, y: float, r: float) -> str:
    return f"M{x - r:g} {y:g}a{r:g} {r:g} 0 1 0 {2 * r:g} 0a{r:g} {r:g} 0 1 0 {-2 * r:g} 0z"


_FOOT = "M22 90q-1-9 8-11h40q9 2 8 11z"

FIGURES: dict[str, Figure] = {
    "♟": Figure(
        (
            _circle(50, 31, 14),
            "M33 49q17-9 34 0l-6 5h-22z",
            "M42 50c0 14-7 20-12 30h40c-5-10-12-16-12-30z",
            _FOOT,
        )
    ),
    "♜": Figure(
        (
            "M25 15h12v8h8v-8h10v8h8v-8h12v20l-9 9h-32l-9-9z",
            "M35 42h30l4 34h-38z",
            "M27 72h46v8h-46z",
            _FOOT,
        ),
        ("M34 44h32", "M31 72h38"),
    ),
    "♝": Figure(
        (
            _circle(50, 14, 6),
            "M50 19c17 12 22 25 12 39h-24c-10-14-5-27 12-39z",
            "M33 57h34v7h-34z",
            "M41 62c0 8-6 12-12 18h42c-6-6-12-10-12-18z",
            _FOOT,
        ),
        ("M50 33v17", "M42.5 41h15"),
    ),
    "♞": Figure(
        (
            "M30 81c-1-14 8-21 14-28 2-3 3-5 3-8-5 5-11 7-16 7l-7 6c-4 2-8 0-8-5 3-10 8-18 13-25"
            " 3-5 6-8 10-10l-1-10 10 7c19 1 31 16 32 39 0 11-1 19-2 27z",
            _FOOT,
        ),
        ("M36 30l4 1", "M51 20c14 3 20 15 21 33", "M20 52l3 1"),
    ),
    "♛": Figure(
        (
            _circle(15, 32, 6),
            _circle(32, 21, 6),
            _circle(50, 16, 6),
            _circle(68, 21, 6),
            _circle(85, 32, 6),
            "M15 32l15 40h40l15-40-16 20-1-31-11 29-7-34-7 34-11-29-1 31z",
            "M28 68h44l-3 12h-38z",
            _FOOT,
        ),
        ("M31 71q19-5 38 0",),
    ),
    "♚": Figure(
        (
            "M46.5 5h7v7h7v7h-7v9h-7v-9h-7v-7h7z",
            "M50 50c-8-12-8-20 0-28 8 8 8 16 0 28z",
            "M50 44c4-14 16-20 25-16 11 5 13 17 7 27-4 7-9 11-10 17h-44c-1-6-6-10-10-17-6-10-4-22"
            " 7-27 9-4 21 2 25 16z",
            "M28 68h44l-2 12h-40z",
            _FOOT,
        ),
        ("M30 71q20-6 40 0", "M50 44v20"),
    ),
}
"""Figures by their signs; the fill shows the player."""

FIGURE_OF_NAME = {
    "king": "♚",
    "queen": "♛",
    "rook": "♜",
    "bishop": "♝",
    "knight": "♞",
    "pawn": "♟",
}


_PARTS = {
    "person": "70,4 52,30 16,56; 48,36 48,98",
    "towel": "12,96 12,30 88,30 88,86 70,90; 50,2 50,98",
    "scholar": "8,36 92,36; 50,4 50,90; 18,90 82,90",
    "tree": "6,30 94,30; 50,2 50,98; 48,34 34,56 8,72; 54,40 88,62",
    "eye": "14,8 14,96; 14,8 86,8 86,96; 14,36 86,36; 14,64 86,64; 14,92 86,92",
    "fire": "20,30 28,48; 82,26 66,46; 50,4 50,40 40,66 8,96; 52,54 66,76 96,96",
    "stone": "4,10 96,10; 48,10 34,42 4,66; 26,52 26,94; 26,52 88,52 88,92; 26,88 88,88",
    "wrap": (
        "34,2 22,24 4,40; 28,20 88,20 88,58 82,66 70,64; 20,38 62,38 62,58; 20,58 62,58; "
        "20,38 20,86 28,94 92,94 94,78"
    ),
    "horse": (
        "22,6 22,64; 22,6 80,6; 52,6 52,62; 22,25 76,25; 22,44 76,44; "
        "22,63 88,63 86,90 78,97 68,92; 12,74 6,94; 28,74 32,90; 45,73 50,88; 61,72 68,85"
    ),
    "cart": (
        "8,14 92,14; 20,30 20,66; 20,30 80,30 80,66; 20,48 80,48; 20,66 80,66; 4,82 96,82; "
        "50,2 50,99"
    ),
    "bed": "24,4 24,36 4,38; 66,0 66,98; 2,56 66,56; 40,56 34,78 10,96",
    # left of the marshal: two stacked mouths on a stem
    "pile": (
        "44,0 28,16; 18,14 18,96; 18,16 82,16 82,48; 18,46 82,46; 18,62 82,62 82,94; 18,92 82,92"
    ),
    # upper right of the general
    "meat": "44,0 30,22 8,36; 40,10 88,10 62,38 14,54; 34,24 42,34; 54,22 60,30",
    "inch": "6,66 94,66; 66,50 66,92 58,97 46,90; 26,74 36,86",
    "elephant": (
        "42,0 34,12 16,26; 36,8 64,8 56,20; 24,22 24,42; 24,22 78,22 78,42; 24,40 78,40; "
        "50,22 46,40 10,58; 40,46 56,60 58,86 50,97 38,90; 48,56 10,76; 56,68 12,94; "
        "84,46 60,60; 60,58 74,80 96,92"
    ),
    "soldier": (
        "70,2 52,10 28,12; 28,12 28,66; 28,34 84,34; 64,34 64,66; 4,66 96,66; "
        "36,74 28,86 10,98; 62,74 88,96"
    ),
    "foot soldier": (
        "50,0 54,10; 10,16 90,16; 34,20 26,38 12,52; 32,32 46,46; 68,20 58,38 48,50; "
        "66,32 86,50; 4,66 96,66; 50,50 50,100"
    ),
}
"""Parts of characters, each in its own box: points `x,y` of strokes, which `; ` separates."""

_COMPOSED: dict[str, tuple[tuple[str, int, int, int, int], ...]] = {
    "帥": (("pile", 4, 6, 44, 96), ("towel", 48, 4, 98, 98)),
    "將": (("bed", 2, 4, 42, 98), ("meat", 42, 2, 98, 60), ("inch", 42, 2, 98, 98)),
    "仕": (("person", 0, 2, 40, 100), ("scholar", 34, 4, 100, 98)),
    "士": (("scholar", 4, 4, 96, 96),),
    "相": (("tree", 0, 2, 52, 98), ("eye", 52, 6, 98, 96)),
    "傌": (("person", 0, 2, 36, 100), ("horse", 28, 4, 102, 98)),
    "馬": (("horse", 4, 2, 98, 98),),
    "俥": (("person", 0, 2, 36, 100), ("cart", 32, 2, 100, 98)),
    "車": (("cart", 4, 2, 96, 98),),
    "炮": (("fire", 0, 2, 48, 98), ("wrap", 42, 2, 100, 98)),
    "砲": (("stone", 0, 6, 46, 98), ("wrap", 42, 2, 100, 98)),
    "象": (("elephant", 0, 0, 100, 100),),
    "兵": (("soldier", 0, 0, 100, 100),),
    "卒": (("foot soldier", 0, 0, 100, 100),),
}


@cache
def strokes(sign: str) -> tuple[Stroke, ...] | None:
    """Pen strokes of a character; None if it is not in this module."""
    if sign not in _COMPOSED:
        return None
    return tuple(
        tuple(_placed(point, *box) for point in stroke.split())
        for part, *box in _COMPOSED[sign]
        for stroke in _PARTS[part].split("; ")
    )


def _placed(point: str, x0: float, y0: float, x1: float, y1: float) -> Point:
    x, y = map(float, point.split(","))
    return x0 + x * (x1 - x0) / 100, y0 + y * (y1 - y0) / 100
