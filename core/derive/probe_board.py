"""Crafted positions of a variant of Fairy-Stockfish, and its answers about them.

Pieces are put on otherwise empty boards. Fairy-Stockfish accepts such positions: it looks at what
stands there, not at whether a game could lead to it. So that kings, forced captures and wins do not
get in the way of a piece's moves, these are asked of a copy of the variant without them (`NEUTRAL`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from variant_ai.core.rules.fairy.fairy_stockfish import FairyVariant
from variant_ai.core.spec.start_position import board_cells, board_size
from variant_ai.core.spec.zones import square_name

NEUTRAL = {
    "checking": "false",
    "castling": "false",
    "mustCapture": "false",
    "mustDrop": "false",
    "flyingGeneral": "false",
    "bikjangRule": "false",
    "extinctionValue": "none",
    "extinctionPseudoRoyal": "false",
    "checkCounting": "false",
    "flagRegionWhite": "-",
    "flagRegionBlack": "-",
    "connectN": "0",
    "materialCounting": "none",
}
"""Settings under which pieces move without regard to checks and ends of the game."""

VariantWith = Callable[[Mapping[str, str]], FairyVariant]
"""The variant with some settings changed."""
Words = dict[str, Any]
"""A part of a spec as data: words and their values."""
Pieces = Mapping[int, str]
"""Square -> symbol as in a FEN, capital letters for the first player: `N`, `+P`, `q~`."""
_MOVE = re.compile(
    r"(?:(?P<drop>\+?[A-Z])@|(?P<origin>[a-l][0-9]{1,2}))(?P<target>[a-l][0-9]{1,2})(?P<rest>.*)"
)


class FairyMove(NamedTuple):
    """A legal move as Fairy-Stockfish writes it, taken apart."""

    text: str
    drop: str
    """Symbol dropped; empty for a move on the board."""
    origin: int
    """-1 for a drop."""
    target: int
    rest: str
    """Text that follows the squares: `q`, `+`, `-`, `,e4e5`."""

    @property
    def change(self) -> str:
        """Mark of a promotion or demotion; empty without one. A wall that the move places is not part
        of it."""
        return self.rest.partition(",")[0]

    @property
    def is_plain(self) -> bool:
        """True if the move only takes a piece from a square to another, or drops it. It may place a
        wall."""
        return not self.change and self.origin != self.target


class ProbeBoard:
    """Board of one variant, and the moves in positions on it. Squares are rank * files + file."""

    def __init__(self, variant: FairyVariant, neutral: FairyVariant) -> None:
        self.variant, self.neutral = variant, neutral
        self.start = variant.start_fen()
        self.files, self.ranks = board_size(self.start.split()[0])
        self.squares = self.files * self.ranks

    def fen(
        self, pieces: Pieces, *, black: bool = False, hand: str = "", rest: str = "- - 0 1"
    ) -> str:
        """FEN of pieces on an empty board. hand: symbols in hand. rest: fields after the side."""
        rows = []
        for rank in reversed(range(self.ranks)):
            row, empty = "", 0
            for square in range(rank * self.files, (rank + 1) * self.files):
                if square in pieces:
                    row += f"{empty or ''}{pieces[square]}"
                    empty = 0
                else:
                    empty += 1
            rows.append(row + f"{empty or ''}")
        pocket = f"[{hand}]" if hand else ""
        return f"{'/'.join(rows)}{pocket} {'b' if black else 'w'} {rest}"

    def pieces(self, fen: str) -> dict[int, str]:
        """Pieces on the board of a FEN; walls are `*`."""
        return board_cells(fen.split(maxsplit=1)[0], self.files, self.ranks)

    def moves(
        self, pieces: Pieces, *, hand: str = "", black: bool = False, neutral: bool = True
    ) -> list[FairyMove]:
        """Legal moves in a crafted position."""
        asked = self.neutral if neutral else self.variant
        return self.read(asked.legal_moves(self.fen(pieces, hand=hand, black=black)))

    def read(self, texts: Sequence[str]) -> list[FairyMove]:
        """Take moves apart; those of an unknown form are left out."""
        found = []
        for text in texts:
            match = _MOVE.fullmatch(text)
            if match:
                origin = self.square(match["origin"]) if match["origin"] else -1
                target = self.square(match["target"])
                found.append(FairyMove(text, match["drop"] or "", origin, target, match["rest"]))
        return found

    def after(self, pieces: Pieces, move: str, *, rest: str = "- - 0 1") -> str:
        """FEN after a move in a crafted position."""
        return self.neutral.fen_after(self.fen(pieces, rest=rest), [move])

    def square(self, name: str) -> int:
        return (int(name[1:]) - 1) * self.files + ord(name[0]) - ord("a")

    def name(self, square: int) -> str:
        return square_name(square, self.files)

    def step(self, square: int, dx: int, dy: int) -> int | None:
        """Square at a displacement, None if it is not on the board."""
        file, rank = square % self.files + dx, square // self.files + dy
        if 0 <= file < self.files and 0 <= rank < self.ranks:
            return rank * self.files + file
        return None

    def displacement(self, origin: int, target: int) -> tuple[int, int]:
        return (
            target % self.files - origin % self.files,
            target // self.files - origin // self.files,
        )

    def zone(self, squares: frozenset[int]) -> str | list[str]:
        """Write a set of squares as a zone of a spec: ranks, files, a rectangle, or a list."""
        ranks = sorted({s // self.files for s in squares})
        files = sorted({s % self.files for s in squares})
        box = len(ranks) * len(files) == len(squares)
        together = box and ranks[-1] - ranks[0] < len(ranks) and files[-1] - files[0] < len(files)
        if together and len(files) == self.files:
            first, last = ranks[0] + 1, ranks[-1] + 1
            return f"rank {first}" if first == last else f"rank {first}-{last}"
        if together and len(ranks) == self.ranks:
            first_file, last_file = chr(97 + files[0]), chr(97 + files[-1])
            return f"file {first_file}" if len(files) == 1 else f"file {first_file}-{last_file}"
        if together and len(squares) > 1:
            return f"{self.name(min(squares))}-{self.name(max(squares))}"
        return [self.name(square) for square in sorted(squares)]
