"""A variant's board and pieces as SVG, for the page: the same drawings as those of commands.

A piece's `role` is chessgroundx's name of it, which becomes a CSS class: `n-piece` for `N`, and
`pn-piece` for `+N`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from variant_ai.core.draw.board import CELL, Layout, board_background
from variant_ai.core.draw.piece_images import FIGURE_OF_NAME, piece
from variant_ai.core.errors import UnknownNameError
from variant_ai.core.rules.pieces import PieceTypes
from variant_ai.core.spec.schema import Drawing, VariantSpec

OWN, LETTERS, WESTERN = "own", "letters", "western"
STYLES = {
    OWN: "The variant's own",
    LETTERS: "Letters",
    WESTERN: "Western figures",
}
"""Piece styles: their names in messages, and those on the page."""
WESTERN_FIGURES = {
    **FIGURE_OF_NAME,
    "general": "♚",
    "lion": "♚",
    "chariot": "♜",
    "dragon": "♜",
    "horse": "♞",
    "soldier": "♟",
    "chick": "♟",
}
"""Figures of chess, also for pieces of other families that move in the same way or nearly so; the
others keep their letters."""
PIECE = 92.0
"""Size of a piece in a picture of 100 by 100."""
WALL = '<rect x="8" y="8" width="84" height="84" rx="10" fill="#5d5348"/>'


def picture_of_board(spec: VariantSpec, *, flipped: bool) -> str:
    """Return the empty board without hands and coordinates, as SVG without a size of its own."""
    layout = Layout.of(spec, flipped)
    parts = "".join(board_background(spec, layout))
    width, height = layout.files * CELL, layout.ranks * CELL
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" preserveAspectRatio="none" '
        f'viewBox="{layout.left:g} {layout.top:g} {width:g} {height:g}">{parts}</svg>'
    )


def role_of(symbol: str) -> str:
    """Return chessgroundx's role of a piece symbol: `n-piece`, `pn-piece` for `+N`."""
    return f"{symbol.replace('+', 'p').lower()}-piece"


def pictures_of_pieces(spec: VariantSpec, style: str) -> list[dict[str, Any]]:
    """Return pictures of all pieces: `role`, `twin` (a promoted piece that reverts), `colour` (0, 1),
    `up` (the player moves towards the upper edge; None: looks alike both ways) and `svg`.

    Raises UnknownNameError for a style that does not exist.
    """
    drawing = styled(spec, style)
    found = []
    for kind in PieceTypes(spec).all:
        for colour in (0, 1):
            for up in (True, False) if drawing.pieces == "wedges" else (None,):
                found.append(
                    {
                        "role": role_of(kind.base),
                        "twin": kind.twin,
                        "colour": colour,
                        "up": up,
                        "svg": _whole(
                            piece(drawing, kind, colour, 50, 50, PIECE, points_up=up is not False)
                        ),
                    }
                )
    return found


def picture_of_wall() -> str:
    """Return the picture of a square that is no longer part of the board."""
    return _whole(WALL)


def styled(spec: VariantSpec, style: str) -> Drawing:
    """Return the spec's drawing in another style. Raises UnknownNameError."""
    if style not in STYLES:
        raise UnknownNameError("style", style, tuple(STYLES))
    if style == OWN:
        return spec.drawing
    changes: dict[str, Any] = {
        "pieces": "discs",
        "glyphs": {letter: letter for letter in spec.pieces},
    }
    if style == WESTERN:
        glyphs = {
            letter: WESTERN_FIGURES.get(one.name.lower(), letter)
            for letter, one in spec.pieces.items()
        }
        changes = {"pieces": "figures", "glyphs": glyphs}
    return spec.drawing.model_copy(update=changes)


def _whole(parts: Iterable[str]) -> str:
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100">{"".join(parts)}</svg>'
