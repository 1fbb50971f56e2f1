"""Boards as pictures and as text.

| module | content |
| --- | --- |
| `board` | the empty board; coordinates of squares, hands and labels in a picture |
| `piece_images` | one piece; figures and characters as paths |
| `svg` | a position with last move, arrows, hands and coordinates, as SVG and PNG |
| `terminal` | a position for terminals |
"""

from variant_ai.core.draw.svg import Arrow, board_svg, png_bytes
from variant_ai.core.draw.terminal import board_text

__all__ = ["Arrow", "board_svg", "board_text", "png_bytes"]
