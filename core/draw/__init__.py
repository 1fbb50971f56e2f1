"""Boards as pictures and as text.

svg.py        a position with last move, arrows, pockets and coordinates as SVG
png.py        the same as PNG
text.py       a position for terminals
"""

from variant_ai.core.draw.png import png_bytes
from variant_ai.core.draw.svg import Arrow, board_svg
from variant_ai.core.draw.terminal import board_text

__all__ = ["Arrow", "board_svg", "board_text", "png_bytes"]
