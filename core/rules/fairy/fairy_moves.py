"""Moves in Fairy-Stockfish's text as move integers; `notation.uci` converts them back."""

from __future__ import annotations

import re

from variant_ai.core.errors import SpecError
from variant_ai.core.rules.geometry import Geometry
from variant_ai.core.rules.pieces import PieceTypes
from variant_ai.core.rules.position import (
    CASTLING,
    DOUBLE_STEP,
    DROP,
    EN_PASSANT,
    NORMAL,
    PASS,
    PROMOTION,
    TURNED,
    Position,
    make_move,
    piece_code,
    piece_type,
)

_MOVE = re.compile(
    r"(?:(?P<drop>\+?[A-Z])@|(?P<origin>[a-l][0-9]{1,2}))(?P<target>[a-l][0-9]{1,2})"
    r"(?P<suffix>[a-z+-]?)(?:,(?P=target)(?P<wall>[a-l][0-9]{1,2}))?"
)


def is_move_text(text: str) -> bool:
    """Return True if a text has the form of a move."""
    return _MOVE.fullmatch(text) is not None


def is_pass(text: str) -> bool:
    """Return True if a move's origin is its target."""
    half = len(text) // 2
    return text[:half] == text[half:]


class FairyMoves:
    """Converts the legal moves of one variant."""

    def __init__(self, types: PieceTypes) -> None:
        self.spec, self.types = types.spec, types
        self._double_steps = _double_steps(types)

    def read(self, position: Position, text: str) -> int:
        """Convert a legal move from Fairy-Stockfish's text to a move integer.

        Raises SpecError if the move does not fit into one, or needs a word that the spec does not have.
        """
        match = _MOVE.fullmatch(text)
        if match is None:
            raise SpecError(
                f"{self.spec.fairy} has moves like {text!r}, which move integers cannot hold"
            )
        target, suffix = self._square(match["target"]), match["suffix"]
        if match["drop"]:
            return self._drop(match["drop"], target)
        origin = self._square(match["origin"])
        if origin == target and not suffix:
            return make_move(origin, target, PASS)
        if suffix == "-":
            return make_move(origin, target, NORMAL, 0, TURNED)
        extra = 1 + self._square(match["wall"]) if match["wall"] else 0
        code = int(position["board"][0, origin])
        kind, argument = NORMAL, 0
        if suffix:
            base = self.types.all[piece_type(code)].base
            kind, argument = PROMOTION, self._promoted(base, suffix)
        else:
            kind, argument = self._quiet_kind(position, code, origin, target)
        return make_move(origin, target, kind, argument, extra)

    def _square(self, name: str) -> int:
        """Square number of a name on the board."""
        return (int(name[1:]) - 1) * self.spec.board.files + ord(name[0]) - ord("a")

    def _drop(self, piece: str, target: int) -> int:
        hand = self.spec.hand_order
        if piece in hand:
            return make_move(0, target, DROP, hand.index(piece))
        if piece[1:] in hand:
            return make_move(0, target, DROP, hand.index(piece[1:]), TURNED)
        raise SpecError(f"{self.spec.fairy} drops {piece!r}, which is not in hands.order")

    def _promoted(self, base: str, suffix: str) -> int:
        """Type index of a promotion written `q` or `+`."""
        symbol = f"+{base}" if suffix == "+" else suffix.upper()
        if symbol not in self.types.by_symbol:
            raise SpecError(
                f"{self.spec.fairy} promotes {base} to {symbol}, which is not in the spec"
            )
        return self.types.promoted(symbol)

    def _quiet_kind(
        self, position: Position, code: int, origin: int, target: int
    ) -> tuple[int, int]:
        """Kind and argument of a move without a suffix."""
        piece = self.types.all[piece_type(code)].piece
        if piece_type(code) in self.types.castling_types:
            for right in self.types.castling_rights:
                held = int(position["castling"][0]) >> right.bit & 1
                if held and (right.king_from, right.king_to) == (origin, target):
                    return CASTLING, right.bit
        if piece.passant and position["board"][0, target] == 0:
            files = self.spec.board.files
            if target == int(position["ep"][0]) and origin % files != target % files:
                return EN_PASSANT, 0
            if abs(target - origin) == 2 * files and (code, origin) in self._double_steps:
                return DOUBLE_STEP, 0
        return NORMAL, 0


def _double_steps(types: PieceTypes) -> frozenset[tuple[int, int]]:
    """Piece codes, and squares from which they have a double step that allows en passant."""
    geometry = Geometry(types.spec)
    return frozenset(
        (piece_code(kind.index, colour), origin)
        for kind in types.all
        if kind.piece.passant
        for colour in (0, 1)
        for origin in range(geometry.squares)
        if any(m.is_double_step for m in geometry.movements(kind.piece, colour, origin))
    )
