"""Piece types of a variant: the spec's pieces, then their promoted twins.

If captured promoted pieces return as the piece they promoted from (`hands: {promoted: returns as
P}`), a promoted queen is a type of its own, `Q~`: it moves as a queen and is captured as a pawn.
This makes a mask of promoted squares unnecessary.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from variant_ai.core.rules.position import Position, piece_colour, piece_type
from variant_ai.core.spec.rule_words import Piece
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.spec.start_position import (
    CastlingRight,
    castling_rights,
    royal_letters,
    start_array,
)


@dataclass(frozen=True)
class PieceType:
    """One type of piece."""

    index: int
    symbol: str
    """Symbol in the FEN of the first player: `N`, `+P`, `Q~`."""
    base: str
    """Symbol of the spec's piece with the same movement (`Q` for `Q~`)."""
    piece: Piece
    twin: bool
    """True for a promoted twin (`Q~`)."""
    hand: int
    """Index into hands.order of the piece that the captor gains, -1 if none."""


class PieceTypes:
    """All piece types of a variant in the order of their codes: the spec's pieces, then twins."""

    def __init__(self, spec: VariantSpec) -> None:
        self.spec = spec
        hand_order = spec.hand_order
        leaves = spec.hands is not None and spec.hands.captured == "leaves the game"
        returns = "reverts" if spec.hands is None else spec.hands.promoted
        origin_of = {
            target: letter
            for letter, piece in spec.pieces.items()
            if piece.promotes is not None
            for target in piece.promotes.of_both
        }

        def hand_index(symbol: str, twin: bool) -> int:
            if leaves:
                return -1
            if returns.startswith("returns as "):
                symbol = returns.removeprefix("returns as ") if twin else symbol
            elif returns == "reverts" and symbol not in hand_order:
                symbol = origin_of.get(symbol, symbol)
            return hand_order.index(symbol) if symbol in hand_order else -1

        types = [
            PieceType(i, letter, letter, piece, False, hand_index(letter, False))
            for i, (letter, piece) in enumerate(spec.pieces.items())
        ]
        if returns.startswith("returns as "):
            for letter in spec.pieces:
                if letter in origin_of:
                    types.append(
                        PieceType(
                            len(types),
                            f"{letter}~",
                            letter,
                            spec.pieces[letter],
                            True,
                            hand_index(letter, True),
                        )
                    )
        self.all: tuple[PieceType, ...] = tuple(types)
        self.by_symbol = {t.symbol: t for t in types}
        self.hand_types = tuple(self.by_symbol[s].index for s in hand_order)

    def __len__(self) -> int:
        return len(self.all)

    def promoted(self, symbol: str) -> int:
        """Type index of a pawn that promotes to `symbol`: the twin if there is one."""
        return self.by_symbol.get(f"{symbol}~", self.by_symbol[symbol]).index

    def symbol(self, code: int) -> str:
        """Symbol of a piece code as in FEN: lower case for the second player."""
        symbol = self.all[piece_type(code)].symbol
        return symbol.lower() if piece_colour(code) else symbol

    def points(self) -> list[float]:
        """Points of each type by `points:` of the rules; zeros without it."""
        points = self.spec.rules.points
        return [points.pieces.get(t.base, 0.0) if points else 0.0 for t in self.all]

    def mask(self, *symbols: str) -> int:
        """Bit mask of the types that are one of these pieces, including promoted twins."""
        return sum(1 << t.index for t in self.all if t.base in symbols)

    @cached_property
    def royal(self) -> int:
        """Type index of the royal piece (`royal_letters`), -1 if the variant has none."""
        letters = royal_letters(self.spec)
        return next((t.index for t in self.all if t.base in letters and not t.twin), -1)

    @cached_property
    def castling_types(self) -> frozenset[int]:
        """Type indices of the pieces that castle as kings: the royal one; without one, those that stand
        where castling begins."""
        if not self.spec.castling or self.royal >= 0:
            return frozenset({self.royal} if self.spec.castling else ())
        home = start_array(self.spec)
        kings = {home[r.king_from][1] for r in self.castling_rights if r.king_from in home}
        return frozenset(self.by_symbol[symbol].index for symbol in kings)

    @cached_property
    def castling_rights(self) -> tuple[CastlingRight, ...]:
        """Rights of both players, with the squares of the start position."""
        return castling_rights(self.spec)

    @cached_property
    def castling_walks(self) -> tuple[CastlingRight, ...]:
        """All squares from which the rights may be used, those of one right after those of another.

        With `shuffle:` king and rook may begin on any squares of their rank, the king between two
        rooks; otherwise each right has one walk.
        """
        if self.spec.rules.shuffle == "none":
            return self.castling_rights
        files = self.spec.board.files
        walks: list[CastlingRight] = []
        for right in self.castling_rights:
            first = right.king_from - right.king_from % files
            for king in range(first + 1, first + files - 1):
                right_of_king = range(king + 1, first + files)
                left_of_king = range(first, king)
                for rook in right_of_king if right.is_right_of_king else left_of_king:
                    walks.append(replace(right, king_from=king, rook_from=rook))
        return tuple(walks)

    @cached_property
    def first_walks(self) -> tuple[int, ...]:
        """Index of the first walk of each right in `castling_walks`."""
        bits = [walk.bit for walk in self.castling_walks]
        return tuple(bits.index(right.bit) for right in self.castling_rights)

    def castling_walk(self, position: Position, bit: int) -> CastlingRight:
        """Squares of a right that is held in a position."""
        return self.castling_walks[self.first_walks[bit] + int(position[0]["homes"][bit])]
