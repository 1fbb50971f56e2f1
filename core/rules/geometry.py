"""Board of a variant: steps, rays, and zones and movements as each player has them."""

from __future__ import annotations

from variant_ai.core.spec.betza import Movement, parse_betza
from variant_ai.core.spec.rule_words import Piece, Zone
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.spec.start_position import start_walls
from variant_ai.core.spec.zones import seen_by, zone_squares


class Geometry:
    """Board of a variant. Squares are absolute, colours 0 and 1."""

    def __init__(self, spec: VariantSpec) -> None:
        self.board = spec.board
        self.files, self.ranks = spec.board.files, spec.board.ranks
        self.squares = spec.board.squares
        self.walls = start_walls(spec)
        self.everywhere = frozenset(range(self.squares)) - self.walls
        self._rays: dict[tuple[int, int, int], tuple[int, ...]] = {}
        self._zones: dict[tuple[Zone, int], frozenset[int]] = {}

    def step(self, square: int, dx: int, dy: int) -> int | None:
        """Square at a displacement, None if it is not on the board, or a wall."""
        file, rank = square % self.files + dx, square // self.files + dy
        if 0 <= file < self.files and 0 <= rank < self.ranks:
            target = rank * self.files + file
            return None if target in self.walls else target
        return None

    def ray(self, square: int, dx: int, dy: int) -> tuple[int, ...]:
        """Squares reached by equal steps up to the edge, nearest first, without `square`."""
        found = self._rays.get((square, dx, dy))
        if found is None:
            after = self.step(square, dx, dy)
            found = () if after is None else (after, *self.ray(after, dx, dy))
            self._rays[(square, dx, dy)] = found
        return found

    def zone(self, zone: Zone, colour: int) -> frozenset[int]:
        """Squares of a zone of the player of `colour`, without walls."""
        found = self._zones.get((zone, colour))
        if found is None:
            found = self.everywhere & {
                seen_by(square, colour, self.board) for square in zone_squares(zone, self.board)
            }
            self._zones[(zone, colour)] = found
        return found

    def drop_squares(self, piece: Piece, colour: int) -> frozenset[int]:
        """Squares on which a piece may be dropped."""
        if isinstance(piece.drop, bool):
            found = self.everywhere if piece.drop else frozenset()
        else:
            found = self.zone(piece.drop, colour)
        return found if piece.within is None else found & self.zone(piece.within, colour)

    def movements(self, piece: Piece, colour: int, origin: int) -> list[Movement]:
        """Movements of a piece from a square, in the mover's view; `within` is not considered."""
        found = list(parse_betza(piece.moves))
        for zone, word in piece.from_.items():
            if origin in self.zone(zone, colour):
                found += parse_betza(word)
        return found
