"""A board of `core.draw` within a figure: squares shaded by how much they matter, moves as arrows.

The player to move sits below and the board is turned as the net sees it, so that squares lie where
they lie in the planes and maps drawn beside it. H ranks, W files.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.draw import Arrow, board_svg, png_bytes
from variant_ai.core.draw.layout import Layout
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import Position, view
from variant_ai.core.spec.schema import VariantSpec

PIXELS = 900
"""Width of the board before it is fitted into the figure."""
PALEST, DARKEST = 0.03, 0.8
"""Part of the colour map that heat uses: pieces can be seen on its darkest shade."""


def draw_board(
    axis: Any,
    rules: Rules,
    position: Position,
    *,
    heat: NDArray[np.floating[Any]] | None = None,
    arrows: Sequence[Arrow] = (),
) -> None:
    """Draw the position into an axis of matplotlib, which shows nothing else.

    `heat` [H, W] in the mover's view shades the squares in oranges, the greatest darkest (paper
    000, figures 4c and 4d). `arrows` are moves of the position, best first.
    """
    from PIL import Image

    spec, side = rules.spec, int(position[0]["side"])
    svg = board_svg(
        spec,
        position,
        arrows=arrows,
        flipped=side == 1,
        mirrored=spec.board.sides == "mirror",
        shades=None if heat is None else _shades(spec, heat, side),
    )
    with Image.open(io.BytesIO(png_bytes(svg, width=PIXELS))) as image:
        axis.imshow(np.asarray(image.convert("RGB")), interpolation="hanning")
    axis.set_axis_off()


def height_of_width(spec: VariantSpec) -> float:
    """Height of a drawn board, with its hands, over its width."""
    layout = Layout.of(spec, flipped=False)
    return layout.height / layout.width


def mover(rules: Rules, position: Position) -> str:
    """The player to move, as text."""
    return f"{rules.spec.players[int(position[0]['side'])]} to move"


def _shades(spec: VariantSpec, heat: NDArray[np.floating[Any]], side: int) -> list[str]:
    """A colour `#rrggbb` for each square, a1 first. Equal heat everywhere is pale everywhere."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    files, ranks = spec.board.files, spec.board.ranks
    least, span = float(heat.min()), float(np.ptp(heat))
    seen = [view(square, side, files, ranks, spec.board.sides) for square in range(files * ranks)]
    shares = (heat.reshape(-1)[seen] - least) / (span or 1.0)
    oranges = colormaps["Oranges"]
    return [to_hex(oranges(PALEST + (DARKEST - PALEST) * float(share))) for share in shares]
