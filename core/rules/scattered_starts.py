"""Positions to begin games from: the pieces of the start on random squares.

Where random moves hardly ever end a game (a king that has to cross the board), a net that knows nothing
finds no result to learn from. With the pieces scattered, mates and goals are near.
"""

from __future__ import annotations

import numpy as np

from variant_ai.core.errors import FenError
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.geometry import Geometry
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.kernel.move_programs import forced_squares, piece_paths
from variant_ai.core.rules.pieces import PieceTypes
from variant_ai.core.rules.position import Position, piece_colour, piece_type

ATTEMPTS = 200
LEAST_KEPT = 0.2
"""Smallest share of the pieces that stay on the board, of those that may leave it."""


class ScatteredStarts:
    """Makes scattered positions of one variant."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.types = PieceTypes(rules.spec)
        self.geometry = Geometry(rules.spec)
        home = rules.position()[0]["board"][: self.geometry.squares]
        self._codes = home[home != 0]
        self._squares = {
            code: self._squares_of(code, np.flatnonzero(home == code).tolist())
            for code in set(self._codes.tolist())
        }

    def sample(self, random: np.random.Generator) -> str | None:
        """FEN of a position that is not over, with no side in check; None if none was found.

        A random share of the pieces is missing, or in a random player's hand; royal ones stay. The
        side to move is random, and nobody may castle.
        """
        for _ in range(ATTEMPTS):
            fen = self.rules.fen(self._scattered(random))
            try:
                game = Game(self.rules, fen)
            except FenError:
                continue
            if not self.rules.in_check(game.position) and game.outcome() is None:
                return fen
        return None

    def _scattered(self, random: np.random.Generator) -> Position:
        position = self.rules.position()
        record = position[0]
        record["board"] = 0
        record["castling"], record["ep"] = 0, -1
        record["side"] = record["ply"] = random.integers(2)
        kept = random.uniform(LEAST_KEPT, 1.0)
        for code in random.permutation(self._codes):
            kind = self.types.all[piece_type(code)]
            if kind.index != self.types.royal and random.random() >= kept:
                if kind.hand >= 0:
                    record["hands"][random.integers(2), kind.hand] += 1
                continue
            squares = [s for s in self._squares[int(code)] if record["board"][s] == 0]
            if squares:
                record["board"][random.choice(squares)] = code
        return position

    def _squares_of(self, code: int, home: list[int]) -> list[int]:
        """Squares that a piece can reach from its first ones, or by a drop, without having to promote."""
        kind, colour = self.types.all[piece_type(code)], piece_colour(code)
        forced = forced_squares(self.geometry, kind, colour)
        found = set(home)
        if kind.index in self.types.hand_types:
            found |= self.geometry.drop_squares(kind.piece, colour)
        ahead = list(found)
        while ahead:
            for path in piece_paths(self.geometry, kind, colour, ahead.pop()):
                new = set(path.targets) - found
                found |= new
                ahead += new
        return sorted(found - forced)
