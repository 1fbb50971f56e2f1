"""Coordinates of squares, hands and labels in a picture, in units of the picture.

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

from dataclasses import dataclass

from variant_ai.core.spec.schema import VariantSpec

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
