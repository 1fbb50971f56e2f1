"""What all pictures share: figures without a display, colours, and text that can be shown."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from variant_ai.core.system.files import write_whole

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
    """A PNG and what to say of it."""

    name: str
    """File name without `.png`."""
    title: str
    caption: str
    """What is to be seen, in a sentence or two; also read out to who cannot see it."""
    png: bytes


def new_figure(width: float, height: float, *, arranged: bool = True) -> Any:
    """A figure of so many inches; needs no display.

    Its parts keep out of each other's way, which is slow where they are many; unless `arranged`
    is False and their places are given.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # Text takes its font when it is made, deep inside matplotlib: there is no other place to say.
    matplotlib.rcParams["font.family"] = list(_fonts())
    figure = Figure(figsize=(width, height), layout="constrained" if arranged else None)
    FigureCanvasAgg(figure)
    return figure


def picture(figure: Any, name: str, title: str, caption: str) -> Picture:
    """The figure drawn, under its title."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI, metadata={"Software": None})
    return Picture(name, title, caption, buffer.getvalue())


def write_pictures(pictures: Iterable[Picture], folder: Path) -> list[Path]:
    """Writes each as `folder/NAME.png`, whole; makes the folder. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for drawn in pictures:
        paths.append(folder / f"{drawn.name}.png")
        write_whole(paths[-1], drawn.png)
    return paths


def tidy(axis: Any, grid: str = "both") -> None:
    """Light grid lines behind the data (`x`, `y`, `both`), no frame above and to the right."""
    axis.grid(axis=grid, color=GRID, linewidth=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)


def shares_axis(axis: Any, right: float) -> None:
    """An x axis of per cents with room for labels up to `right`, without ticks beyond 100."""
    axis.set_xlim(0, right)
    axis.set_xticks([tick for tick in axis.get_xticks() if tick <= min(100.0, right)])
    axis.set_xlim(0, right)


def series(number: int) -> dict[str, Any]:
    """Colour and marker of the n-th of several things; of the first 49 no two have both alike."""
    again = number // len(SERIES)
    return {
        "color": SERIES[number % len(SERIES)],
        "marker": MARKERS[(number + again) % len(MARKERS)],
    }


def printable(text: str, most: int | None = None) -> str:
    """The text as the fonts of the pictures can show it, at most so many characters.

    Characters they lack become `?`; a `$` starts no formula.
    """
    known = _characters()
    shown = "".join(c if ord(c) in known else "?" for c in text)
    if most is not None and len(shown) > most:
        shown = shown[: most - 1] + "…"
    return shown.replace("$", r"\$")


def is_printable(text: str) -> bool:
    """Whether the fonts have every character of it."""
    return all(ord(c) in _characters() for c in text)


@cache
def _fonts() -> tuple[str, ...]:
    """matplotlib's own font, then one with Chinese characters where this machine has one."""
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
