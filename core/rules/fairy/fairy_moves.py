"""Moves as Fairy-Stockfish writes them, to move integers.

Going back is `notation.uci`: the integer of a legal move is written as it was read.
"""

from __future__ import annotations

import re

from variant_ai.core.errors import SpecError
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
    square_index,
    view,
)
from variant_ai.core.spec.betza import parse_betza
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.spec.zones import zone_squares

_MOVE = re.compile(
    r"(?:(?P<drop>\+?[A-Z])@|(?P<origin>[a-l][0-9]{1,2}))(?P<target>[a-l][0-9]{1,2})"
    r"(?P<suffix>[a-z+-]?)(?:,(?P=target)(?P<wall>[a-l][0-9]{1,2}))?"
)


def reads_as_move(text: str) -> bool:
    return _MOVE.fullmatch(text) is not None


def is_pass(text: str) -> bool:
    half = len(text) // 2
    return text[:half] == text[half:]


class FairyMoves:
    """Reads the legal moves of one variant."""

    def __init__(self, spec: VariantSpec, types: PieceTypes) -> None:
        self.spec, self.types = spec, types
        self._doubles = self._double_steps()

    def read(self, position: Position, text: str) -> int:
        """Move integer of a legal move as Fairy-Stockfish writes it."""
        match = _MOVE.fullmatch(text)
        if match is None:
            raise SpecError(
                f"{self.spec.fairy} has moves like {text!r}, which move integers cannot hold"
            )
        files, ranks = self.spec.board.files, self.spec.board.ranks
        target = square_index(match["target"], files, ranks)
        assert target is not None
        if match["drop"]:
            hand = self.spec.hands.order if self.spec.hands else ()
            if match["drop"] in hand:
                return make_move(0, target, DROP, hand.index(match["drop"]))
            if match["drop"][1:] in hand:
                return make_move(0, target, DROP, hand.index(match["drop"][1:]), TURNED)
            raise SpecError(
                f"{self.spec.fairy} drops {match['drop']!r}, which is not in hands.order"
            )
        origin = square_index(match["origin"], files, ranks)
        assert origin is not None
        if origin == target and not match["suffix"]:
            return make_move(origin, target, PASS)
        extra = 0
        if match["wall"]:
            wall = square_index(match["wall"], files, ranks)
            assert wall is not None
            extra = 1 + wall
        if match["suffix"] == "-":
            return make_move(origin, target, NORMAL, 0, TURNED)
        board = position["board"][0]
        mover = self.types.all[piece_type(int(board[origin]))]
        if match["suffix"]:
            return make_move(
                origin, target, PROMOTION, self._promoted(mover.base, match["suffix"]), extra
            )
        if mover.piece.royal:
            for right in self.types.castling_rights:
                held = int(position["castling"][0]) >> right.bit & 1
                if held and (right.king_from, right.king_to) == (origin, target):
                    return make_move(origin, target, CASTLING, right.bit, extra)
        if mover.piece.passant and board[target] == 0:
            if target == int(position["ep"][0]) and origin % files != target % files:
                return make_move(origin, target, EN_PASSANT, 0, extra)
            if abs(target - origin) == 2 * files and (int(board[origin]), origin) in self._doubles:
                return make_move(origin, target, DOUBLE_STEP, 0, extra)
        return make_move(origin, target, NORMAL, 0, extra)

    def _double_steps(self) -> frozenset[tuple[int, int]]:
        """Piece codes and the squares from which their double step may be taken en passant."""
        board, found = self.spec.board, set()
        everywhere = frozenset(range(board.files * board.ranks))
        for kind in self.types.all:
            places = [(everywhere, kind.piece.moves)]
            places += [
                (zone_squares(zone, board), moves) for zone, moves in kind.piece.from_.items()
            ]
            for squares, moves in places:
                steps = parse_betza(moves) if kind.piece.passant else ()
                if any(m.lame and m.quiet and (m.dx, abs(m.dy)) == (0, 2) for m in steps):
                    for colour in (0, 1):
                        code = piece_code(kind.index, colour)
                        for square in squares:
                            seen = view(square, colour, board.files, board.ranks, board.sides)
                            found.add((code, seen))
        return frozenset(found)

    def _promoted(self, base: str, suffix: str) -> int:
        """Type index of a promotion written `q` or `+`."""
        symbol = f"+{base}" if suffix == "+" else suffix.upper()
        if symbol not in self.types.by_symbol:
            raise SpecError(f"{self.spec.fairy} promotes {base} to {symbol}, not in the spec")
        return self.types.promoted(symbol)
