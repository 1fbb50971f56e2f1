"""The basis of all pictures: figures without a display, colours, printable text, and boards.

Boards are those of `core.draw`, with squares shaded and moves as arrows. The player to move is at the
bottom and the board is turned as the net sees it, so that squares are in the same place as in planes
and maps next to it. H ranks, W files.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.draw import Arrow, board_svg, png_bytes
from variant_ai.core.draw.board import Layout
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import Position
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.spec.zones import seen_by
from variant_ai.core.system.files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
SKY, ORANGE, BLACK, GREY = "#56B4E9", "#E69F00", "#000000", "#6f6f6f"
SERIES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
GRID = "#dddddd"
DPI = 110
FONT = "DejaVu Sans"
CHINESE_FONTS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Source Han Sans SC", "PingFang SC",
    "Microsoft YaHei", "SimHei", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Droid Sans Fallback",
    "Arial Unicode MS",
)  # fmt: skip


@dataclass(frozen=True)
class Picture:
    """A PNG with its title and caption."""

    name: str
    """File name without `.png`."""
    title: str
    caption: str
    """Description in a sentence or two, also for screen readers."""
    png: bytes


def new_figure(width: float, height: float, *, arranged: bool = True) -> Figure:
    """A figure of this size in inches, which needs no display.

    Its parts are arranged so that they do not overlap, which is slow if there are many; with
    `arranged=False` the caller gives their positions.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # matplotlib reads the font when text is made, so it can be set only here.
    matplotlib.rcParams["font.family"] = list(_fonts())
    figure = Figure(figsize=(width, height), layout="constrained" if arranged else None)
    FigureCanvasAgg(figure)
    return figure


def picture(figure: Figure, name: str, title: str, caption: str) -> Picture:
    """Draw the figure."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI, metadata={"Software": None})
    return Picture(name, title, caption, buffer.getvalue())


def write_pictures(pictures: Iterable[Picture], folder: Path) -> list[Path]:
    """Write each picture as `folder/NAME.png`; make the folder. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for drawn in pictures:
        paths.append(folder / f"{drawn.name}.png")
        write_whole(paths[-1], drawn.png)
    return paths


def tidy(axis: Axes, grid: Literal["both", "x", "y"] = "both") -> None:
    """Draw light grid lines behind the data (`x`, `y`, `both`) and remove the frame above and right."""
    axis.grid(axis=grid, color=GRID, linewidth=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)


def shares_axis(axis: Axes, right: float) -> None:
    """Make an x axis in per cent with room for labels up to `right`, without ticks above 100."""
    axis.set_xlim(0, right)
    axis.set_xticks([tick for tick in axis.get_xticks() if tick <= min(100.0, right)])
    axis.set_xlim(0, right)


def generations_axis(axis: Axes) -> None:
    """Make the x axis one of generations, with ticks at whole numbers."""
    axis.set_xlabel("generation")
    axis.locator_params("x", integer=True)


def by_thousands(axis: Axis) -> None:
    """Write ticks as 20,000, without fractions."""
    from matplotlib.ticker import StrMethodFormatter

    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def series(number: int) -> dict[str, Any]:
    """Colour and marker of the n-th series; the first 49 pairs are all different."""
    again = number // len(SERIES)
    return {
        "color": SERIES[number % len(SERIES)],
        "marker": MARKERS[(number + again) % len(MARKERS)],
    }


def printable(text: str, most: int | None = None) -> str:
    """The text as the fonts of the pictures can show it, cut to `most` characters.

    Missing characters become `?`; a `$` does not start a formula.
    """
    known = _characters()
    shown = "".join(c if ord(c) in known else "?" for c in text)
    if most is not None and len(shown) > most:
        shown = shown[: most - 1] + "…"
    return shown.replace("$", r"\$")


def is_printable(text: str) -> bool:
    """Return True if the fonts have every character of the text."""
    return all(ord(c) in _characters() for c in text)


@cache
def _fonts() -> tuple[str, ...]:
    """matplotlib's own font, then one with Chinese characters if this machine has one."""
    from matplotlib import font_manager

    installed = {font.name for font in font_manager.fontManager.ttflist}
    return (FONT, *[name for name in CHINESE_FONTS if name in installed][:1])


@cache
def _characters() -> frozenset[int]:
    from matplotlib import font_manager

    known: set[int] = set()
    for name in _fonts():
        known |= font_manager.get_font(font_manager.findfont(name)).get_charmap().keys()
    return frozenset(known)


# --- boards --------------------------------------------------------------------------------------

PIXELS = 900
"""Width of the board in pixels before it is fitted into the figure."""
PALEST, DARKEST = 0.03, 0.8
"""Part of the colour map used for heat: pieces are visible on its darkest shade."""


def draw_board(
    axis: Axes,
    rules: Rules,
    position: Position,
    *,
    heat: NDArray[np.floating[Any]] | None = None,
    arrows: Sequence[Arrow] = (),
) -> None:
    """Draw the position into an axis of matplotlib, which shows nothing else.

    `heat` [H, W] in the mover's view shades the squares in orange, the greatest darkest
    ([CrazyAra-preprint] figures 4c and 4d). `arrows` are moves of the position, best first.
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

    least, span = float(heat.min()), float(np.ptp(heat))
    seen = [seen_by(square, side, spec.board) for square in range(heat.size)]
    shares = (heat.reshape(-1)[seen] - least) / (span or 1.0)
    oranges = colormaps["Oranges"]
    return [to_hex(oranges(PALEST + (DARKEST - PALEST) * float(share))) for share in shares]
