"""The board without its pieces: the layout of a picture, and squares, lines, walls and coordinates.

┌──────────────────────────┐
│ hand of the upper player │  HAND, only if the variant has hands
├──────────────────────────┤
│ 8                        │
│ …  board, CELL a square  │
│ 1                        │
│   a b c …                │  MARGIN on all four sides
├──────────────────────────┤
│ hand of the lower player │
└──────────────────────────┘
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.spec.start_position import start_walls
from variant_ai.core.spec.zones import seen_by, square_of, zone_squares

CELL = 64.0
MARGIN = 26.0
HAND = 62.0
SLOT = 58.0
"""Width of a kind in a hand; less if the board is too narrow for all kinds."""


@dataclass(frozen=True)
class Layout:
    """Layout of one picture.

    flipped: the second player is at the bottom. mirrored: a flipped board is mirrored instead of
    turned, so that its files keep their order, as nets see the board of variants with `board.sides:
    mirror`.
    """

    files: int
    ranks: int
    hand_kinds: int
    flipped: bool
    mirrored: bool = False

    @classmethod
    def of(cls, spec: VariantSpec, flipped: bool, mirrored: bool = False) -> Layout:
        kinds = len(spec.hand_order)
        return cls(spec.board.files, spec.board.ranks, kinds, flipped, mirrored)

    @property
    def width(self) -> float:
        return self.files * CELL + 2 * MARGIN

    @property
    def height(self) -> float:
        return self.ranks * CELL + 2 * MARGIN + (2 * HAND if self.hand_kinds else 0)

    @property
    def left(self) -> float:
        """x of the board's left edge."""
        return MARGIN

    @property
    def top(self) -> float:
        """y of the board's upper edge."""
        return MARGIN + (HAND if self.hand_kinds else 0)

    def column_row(self, square: int) -> tuple[int, int]:
        """Column from the left and row from above, as seen in the picture."""
        file, rank = square % self.files, square // self.files
        if self.flipped:
            return file if self.mirrored else self.files - 1 - file, rank
        return file, self.ranks - 1 - rank

    def centre(self, square: int) -> tuple[float, float]:
        """Centre (x, y) of a square, or of an intersection of lines."""
        column, row = self.column_row(square)
        return self.left + (column + 0.5) * CELL, self.top + (row + 0.5) * CELL

    def is_below(self, colour: int) -> bool:
        """Return True if the player is at the lower edge."""
        return (colour == 1) == self.flipped

    @property
    def slot(self) -> float:
        """Width of a kind in a hand."""
        return min(SLOT, self.files * CELL / max(self.hand_kinds, 1))

    def hand_centre(self, colour: int, index: int) -> tuple[float, float]:
        """Centre (x, y) of a kind in a player's hand; index into hands.order."""
        x = self.left + (index + 0.5) * self.slot
        y = self.height - HAND / 2 - 3 if self.is_below(colour) else HAND / 2 + 3
        return x, y


FRAME = "#4a3524"
LIGHT, DARK = "#f1dfc0", "#b98b62"
PLAIN = "#f0cf8e"
PAPER = "#f3d9a4"
LABEL = "#6b5440"
FONT = "DejaVu Sans, Verdana, Arial, sans-serif"

MARK_GAP, MARK_LENGTH = 6.0, 11.0


def board_background(
    spec: VariantSpec,
    layout: Layout,
    shades: Sequence[str] | None = None,
    walls: Collection[int] | None = None,
) -> Iterator[str]:
    """SVG elements of the board. shades: a colour for each square, a1 first, which replaces the
    board's own. walls: squares with a wall; None: those of the start position."""
    if spec.drawing.board == "lines":
        yield from _lines(spec, layout, shades)
    else:
        yield from _squares(spec, layout, shades)
    walls = start_walls(spec) if walls is None else walls
    yield from _shaded(layout, [(square, FRAME) for square in sorted(walls)])


def coordinates(layout: Layout) -> Iterator[str]:
    """Letters of the files below and above, numbers of the ranks on both sides."""
    yield f'<g font-family="{FONT}" font-size="15" fill="{LABEL}" text-anchor="middle">'
    bottom = layout.top + layout.ranks * CELL
    right = layout.left + layout.files * CELL
    for file in range(layout.files):
        x, _ = layout.centre(file)
        for y in (layout.top - 8, bottom + 18):
            yield f'<text x="{x:g}" y="{y:g}">{chr(97 + file)}</text>'
    for rank in range(layout.ranks):
        _, y = layout.centre(rank * layout.files)
        for x in (layout.left - MARGIN / 2, right + MARGIN / 2):
            yield f'<text x="{x:g}" y="{y + 5:g}">{rank + 1}</text>'
    yield "</g>"


def _shaded(layout: Layout, shades: Iterable[tuple[int, str]]) -> Iterator[str]:
    """Squares in colours."""
    for square, shade in shades:
        x, y = layout.centre(square)
        yield _rectangle(x - CELL / 2, y - CELL / 2, CELL, CELL, shade)


def _own_shades(spec: VariantSpec) -> dict[int, str]:
    """Colours of squares that the spec gives, by square; later zones count."""
    board, shades = spec.board, {}
    for zone, shade in spec.drawing.squares.items():
        for square in zone_squares(zone, board):
            for player in (0, 1):
                shades[seen_by(square, player, board)] = shade
    return shades


def _squares(spec: VariantSpec, layout: Layout, shades: Sequence[str] | None) -> Iterator[str]:
    width, height = layout.files * CELL, layout.ranks * CELL
    chequered = spec.drawing.board == "chequered" and shades is None
    base = LIGHT if chequered else PLAIN
    yield _rectangle(layout.left, layout.top, width, height, base)
    if chequered:
        squares = range(layout.files * layout.ranks)
        # a1 is dark on every board
        dark = [s for s in squares if (s % layout.files + s // layout.files) % 2 == 0]
        yield from _shaded(layout, [(square, DARK) for square in dark])
    if shades is None:
        yield from _shaded(layout, _own_shades(spec).items())
    else:
        yield from _shaded(layout, enumerate(shades))
    if not chequered:
        yield f'<g stroke="{FRAME}" stroke-width="1.5">'
        for column in range(1, layout.files):
            x = layout.left + column * CELL
            yield _line(x, layout.top, x, layout.top + height)
        for row in range(1, layout.ranks):
            y = layout.top + row * CELL
            yield _line(layout.left, y, layout.left + width, y)
        yield "</g>"
    yield (
        f'<rect x="{layout.left:g}" y="{layout.top:g}" width="{width:g}" height="{height:g}" '
        f'fill="none" stroke="{FRAME}" stroke-width="2.5"/>'
    )


def _lines(spec: VariantSpec, layout: Layout, shades: Sequence[str] | None) -> Iterator[str]:
    files, ranks = layout.files, layout.ranks
    yield _rectangle(layout.left, layout.top, files * CELL, ranks * CELL, PAPER, radius=6)
    yield from _shaded(layout, enumerate(shades or ()))
    yield f'<g stroke="{FRAME}" stroke-width="1.8" stroke-linecap="round" fill="none">'
    for rank in range(ranks):
        yield _between(layout, rank * files, rank * files + files - 1)
    river = spec.drawing.river
    for file in range(files):
        last = (ranks - 1) * files + file
        if river is None or file in (0, files - 1):
            yield _between(layout, file, last)
        else:
            yield _between(layout, file, (river - 1) * files + file)
            yield _between(layout, river * files + file, last)
    if spec.drawing.palace is not None:
        squares = zone_squares(spec.drawing.palace, spec.board)
        low, high = min(squares), max(squares)
        for side in (0, 1):
            a, b = (seen_by(s, side, spec.board) for s in (low, high))
            yield _between(layout, a, b)
            corner = b // files * files + a % files, a // files * files + b % files
            yield _between(layout, *corner)
    for name in spec.drawing.marks:
        for side in (0, 1):
            square = seen_by(square_of(name, spec.board), side, spec.board)
            yield from _mark(layout, square)
    left, top = layout.left + CELL / 2 - 6, layout.top + CELL / 2 - 6
    yield (
        f'<rect x="{left:g}" y="{top:g}" width="{(files - 1) * CELL + 12:g}" '
        f'height="{(ranks - 1) * CELL + 12:g}" stroke-width="3"/>'
    )
    yield "</g>"


def _mark(layout: Layout, square: int) -> Iterator[str]:
    """Draw four corners around an intersection, as far as they are on the board."""
    x, y = layout.centre(square)
    column, _ = layout.column_row(square)
    for h in (-1, 1):
        if (column == 0 and h < 0) or (column == layout.files - 1 and h > 0):
            continue
        for v in (-1, 1):
            a, b = x + h * MARK_GAP, y + v * MARK_GAP
            yield (
                f'<path d="M{a:g} {b + v * MARK_LENGTH:g}V{b:g}H{a + h * MARK_LENGTH:g}" '
                'stroke-width="1.4"/>'
            )


def _between(layout: Layout, a: int, b: int) -> str:
    return _line(*layout.centre(a), *layout.centre(b))


def _line(x0: float, y0: float, x1: float, y1: float) -> str:
    return f'<line x1="{x0:g}" y1="{y0:g}" x2="{x1:g}" y2="{y1:g}"/>'


def _rectangle(
    x: float, y: float, width: float, height: float, fill: str, radius: float = 0
) -> str:
    corners = f' rx="{radius:g}"' if radius else ""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"{corners} fill="{fill}"/>'
    )
