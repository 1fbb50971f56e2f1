"""Limits of a position: squares on which a piece cannot stand, and numbers of pieces.

They follow from the rules and the start position, and keep a FEN from being read as a position that
no game can reach and the rules cannot play on.
"""

from __future__ import annotations

from collections import Counter

from variant_ai.core.rules.geometry import Geometry
from variant_ai.core.rules.kernel.move_programs import forced_squares
from variant_ai.core.rules.pieces import PieceType, PieceTypes
from variant_ai.core.rules.position import piece_code, piece_colour, piece_type
from variant_ai.core.spec.zones import square_name
from variant_ai.core.system.text_tables import counted

Hands = tuple[list[int], list[int]]
"""Hand indices of each side, one for each piece in hand."""
MAX_IN_HAND = 120
"""Pieces of a type in one hand, if nothing else limits them: the counts of a record are bytes."""


class PieceLimits:
    """Limits of one variant."""

    def __init__(self, types: PieceTypes, geometry: Geometry, home: list[int], hand: Hands) -> None:
        """home: piece codes of the start position by square. hand: its pieces in hand."""
        self.types, self.geometry = types, geometry
        royal = types.royal
        self.kings = [home.count(piece_code(royal, c)) if royal >= 0 else 0 for c in (0, 1)]
        self.total = sum(map(bool, home)) + sum(map(len, hand))
        hands = types.spec.hands
        leaves = hands is not None and hands.captured == "leaves the game"
        self.given = leaves and not any(hand)
        """True if pieces in hand can only come from outside of the game, as from bughouse's partner."""
        self.hand_limit = self._hand_limits(home, hand)
        self.forced = tuple(self._forced_squares(colour) for colour in (0, 1))
        """By colour and type: squares on which the type cannot stand, since it had to promote."""
        self.confined = tuple(
            {
                kind.index: geometry.zone(kind.piece.within, colour)
                for kind in types.all
                if kind.piece.within is not None
            }
            for colour in (0, 1)
        )
        """By colour and type: the only squares of types that cannot leave a zone."""

    def problem(self, board: list[int], hands: Hands) -> str:
        """Describe why a position cannot be played; empty if it can."""
        for colour, name in enumerate(("first", "second")):
            royal = self.types.royal
            found = board.count(piece_code(royal, colour)) if royal >= 0 else 0
            gone = found == 0 and self.types.spec.rules.explodes
            if found != self.kings[colour] and not gone:
                symbol = self.types.symbol(piece_code(royal, colour))
                needed = self.kings[colour]
                return f"the {name} player has {found} royal {symbol!r}, needs {needed}"
            for square, code in enumerate(board):
                if (
                    code
                    and piece_colour(code) == colour
                    and (reason := self._misplaced(square, code))
                ):
                    where = square_name(square, self.geometry.files)
                    return f"{self.types.symbol(code)!r} cannot stand on {where}: {reason}"
        for index, limit in enumerate(self.hand_limit):
            count = sum(side.count(index) for side in hands)
            if count > limit:
                return f"{count} {self._in_hand(index)!r} in hand; there are at most {limit}"
        total = sum(map(bool, board)) + sum(map(len, hands))
        if self.hand_limit and total > self.total and not self.given:
            return f"{counted(total, 'piece')} on board and in hand; the start position has {self.total}"
        return ""

    def overflow(self, hands: Hands) -> str:
        """Describe which hand does not fit into a record; empty if both do."""
        for index in range(len(self.types.hand_types)):
            if max(side.count(index) for side in hands) > MAX_IN_HAND:
                return f"more than {MAX_IN_HAND} {self._in_hand(index)!r} in a hand"
        return ""

    def _in_hand(self, index: int) -> str:
        return self.types.all[self.types.hand_types[index]].symbol

    def _misplaced(self, square: int, code: int) -> str:
        kind, colour = piece_type(code), piece_colour(code)
        if square in self.forced[colour][kind]:
            return "it had to promote"
        if square not in self.confined[colour].get(kind, (square,)):
            return "it cannot leave its zone"
        return ""

    def _hand_limits(self, home: list[int], hand: Hands) -> list[int]:
        """By hand index: pieces of the start position that can come into a hand as this type."""
        hands = self.types.spec.hands
        if hands is not None and hands.captured == "leaves the game":
            held = [index for side in hand for index in side]
            if self.given:
                return [MAX_IN_HAND] * len(self.types.hand_types)
            return [held.count(index) for index in range(len(self.types.hand_types))]
        counts = Counter(piece_type(code) for code in home if code)
        counts.update(self.types.hand_types[index] for side in hand for index in side)
        hand_of = {self._in_hand(index): index for index in range(len(self.types.hand_types))}
        limits = [0] * len(hand_of)
        for kind in self.types.all:
            if kind.hand >= 0:
                limits[kind.hand] += counts[kind.index]
            for symbol in self._may_become(kind):  # a FEN may have lost the marks of promotion
                if symbol in hand_of:
                    limits[hand_of[symbol]] += counts[kind.index]
        return limits

    def _may_become(self, kind: PieceType) -> set[str]:
        """Symbols that a piece may have promoted to, in one step or several."""
        found: set[str] = set()
        pending = [kind.piece]
        while pending:
            promotes = pending.pop().promotes
            if promotes is not None:
                more = set(promotes.of_both) - found
                found |= more
                pending += [self.types.by_symbol[symbol].piece for symbol in more]
        return found

    def _forced_squares(self, colour: int) -> dict[int, frozenset[int]]:
        found = {}
        for kind in self.types.all:
            squares = frozenset() if kind.twin else forced_squares(self.geometry, kind, colour)
            if kind.index in self.types.hand_types:
                squares -= self.geometry.drop_squares(kind.piece, colour)
            found[kind.index] = squares - self._arrivals(kind, colour)
        return found

    def _arrivals(self, kind: PieceType, colour: int) -> frozenset[int]:
        """Squares on which other pieces turn into this type, so that it is there without a move.

        A piece that may promote as it leaves a zone may do so on any square.
        """
        found: frozenset[int] = frozenset()
        for other in self.types.all:
            promotes = other.piece.promotes
            if promotes is None or other.twin or other is kind:
                continue
            captured = promotes.to == "captured pieces"
            choices = (self.types.promoted(symbol) for symbol in promotes.choices(colour))
            if captured or kind.index in choices:
                if promotes.on == "from or to":
                    return self.geometry.everywhere
                found |= self.geometry.zone(promotes.at, colour)
        return found
