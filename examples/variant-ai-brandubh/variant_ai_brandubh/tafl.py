"""Rules of tafl games: all pieces move like rooks and capture by surrounding; the king escapes to a corner.

- Only the king may stand on the throne, the square in the middle, and on the corners; the others may
  pass the empty throne.
- A piece is captured when an opponent's move puts it between two hostile squares, on a file or on a
  rank. Hostile are pieces of the opponent, corners, and the empty throne.
- The king helps to capture. He himself is captured like the others, except that on the throne he must be
  surrounded on all four sides, and beside it on the three others.
- The king wins on a corner, the attackers win by capturing him, and who cannot move loses.

The king may be of either colour: who has him is the defender.
"""

from __future__ import annotations

from collections.abc import Iterator

from variant_ai.core.rules.interface import Outcome
from variant_ai.core.rules.plain_rules import PlainRules
from variant_ai.core.rules.position import (
    Position,
    make_move,
    move_target,
    piece_code,
    piece_colour,
)
from variant_ai.core.spec.schema import VariantSpec


class TaflRules(PlainRules):
    """A tafl game on a board with an odd number of files and ranks; the king is the piece `K`."""

    name = "tafl"

    def __init__(self, spec: VariantSpec) -> None:
        super().__init__(spec)
        files, ranks = spec.board.files, spec.board.ranks
        king = self.types.by_symbol["K"].index
        self.kings = (piece_code(king, 0), piece_code(king, 1))
        self.throne = ranks // 2 * files + files // 2
        self.corners = {0, files - 1, (ranks - 1) * files, ranks * files - 1}
        self.rays = [self._rays(square) for square in range(files * ranks)]
        """By square: the squares in each of the four directions, near ones first."""

    def _rays(self, square: int) -> list[list[int]]:
        files, ranks = self.spec.board.files, self.spec.board.ranks
        rank, file = divmod(square, files)
        return [
            list(range(square + 1, (rank + 1) * files)),
            list(range(square - 1, rank * files - 1, -1)),
            list(range(square + files, ranks * files, files)),
            list(range(file, square, files))[::-1],
        ]

    # --- what PlainRules asks for ----------------------------------------------------------------

    def moves_of(self, position: Position) -> Iterator[int]:
        if self.end_of(position) is not None:
            return
        side, board = int(position["side"][0]), position["board"][0].tolist()
        for origin, code in enumerate(board):
            if not code or piece_colour(code) != side:
                continue
            is_king = code in self.kings
            for ray in self.rays[origin]:
                for target in ray:
                    if board[target]:
                        break
                    if is_king or (target != self.throne and target not in self.corners):
                        yield make_move(origin, target)

    def change(self, position: Position, move: int) -> None:
        super().change(position, move)
        board, side = position["board"][0], int(position["side"][0])
        target = move_target(move)
        for ray in self.rays[target]:
            if ray and self._is_captured(board.tolist(), target, ray, side):
                board[ray[0]] = 0

    def end_of(self, position: Position) -> Outcome | None:
        side, board = int(position["side"][0]), position["board"][0].tolist()
        king = next((code for code in self.kings if code in board), 0)
        if not king:  # captured by the move before
            return Outcome(1 - side, "variant win", "the king is captured")
        if board.index(king) in self.corners:
            return Outcome(piece_colour(king), "variant win", "the king has escaped")
        return None

    def problem(self, position: Position) -> str:
        board = position["board"][0].tolist()
        if sum(map(board.count, self.kings)) > 1:  # none: he has been captured
            return "there is one king at most"
        mine = [square for square in (self.throne, *self.corners) if board[square]]
        if any(board[square] not in self.kings for square in mine):
            return "only the king may stand on the throne and on corners"
        return ""

    # --- captures --------------------------------------------------------------------------------

    def _is_captured(self, board: list[int], by: int, ray: list[int], side: int) -> bool:
        """Return True if a piece of `side` that has moved to `by` captures the next one on a ray."""
        captured = ray[0]
        code = board[captured]
        if not code or piece_colour(code) == side:
            return False
        around = [near[0] for near in self.rays[captured] if near]
        if code in self.kings and (captured == self.throne or self.throne in around):
            return all(
                square == self.throne or self._is_of(board, square, side) for square in around
            )
        if len(ray) < 2:
            return False
        beyond = ray[1]
        if beyond in self.corners or (beyond == self.throne and not board[beyond]):
            return True
        return self._is_of(board, beyond, side)

    @staticmethod
    def _is_of(board: list[int], square: int, side: int) -> bool:
        return board[square] != 0 and piece_colour(board[square]) == side
