"""Moves and positions as an engine writes them: from which number ranks count, and which letters
stand for the pieces.

    UCI                  ranks from 1
    UCCI, UCI-cyclone    ranks from 0
    XBoard               ranks from 1, on boards of ten ranks and more from 0
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from variant_ai.core.errors import MoveError
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.text.notation import UciNotation, uci

XBOARD_TEN = 10
"""Ranks from which on XBoard counts from 0."""
_PAIR = re.compile(r"([a-l])([0-9]{1,2})([a-l])([0-9]{1,2})(.*)")
_DROP = re.compile(r"(\+?[A-Za-z])[@*]([a-l])([0-9]{1,2})")


class Coordinates:
    """Translates between our moves and an engine's texts."""

    def __init__(self, rules: Rules, *, first_rank: int = 1, other_letters: bool = False) -> None:
        """first_rank: number of the first rank, 0 or 1. other_letters: FENs with the letters that
        the spec reads besides its own (`also`)."""
        self.rules = rules
        self.first_rank = first_rank
        self._letters: dict[int, str] = {}
        if other_letters:
            for letter, piece in rules.spec.pieces.items():
                if piece.also:
                    self._letters[ord(letter)] = piece.also
                    self._letters[ord(letter.lower())] = piece.also.lower()

    def write(self, move: int) -> str:
        text = uci(self.rules.types, self.rules.spec.board.files, move)
        return text if self.first_rank == 1 else self._shifted(text, self.first_rank - 1)

    def write_all(self, moves: Sequence[int]) -> list[str]:
        return [self.write(move) for move in moves]

    def read(self, game: Game, text: str) -> int:
        """The legal move of the game's position that the engine means. Raises MoveError."""
        if self.first_rank == 1:
            return _UCI.read(self.rules, game.position, text)
        try:
            return _UCI.read(self.rules, game.position, self._shifted(text, 1 - self.first_rank))
        except MoveError as error:
            raise MoveError(
                f"{error}; the engine wrote {text!r}, with ranks from {self.first_rank}"
            ) from error

    def fen(self, fen: str) -> str:
        """A FEN with the engine's letters."""
        board, _, rest = fen.partition(" ")
        return f"{board.translate(self._letters)} {rest}".strip() if self._letters else fen

    @staticmethod
    def _shifted(text: str, by: int) -> str:
        """A move with its ranks shifted; what is no move stays as it is."""
        if pair := _PAIR.fullmatch(text.strip()):
            a, i, b, j, rest = pair.groups()
            return f"{a}{int(i) + by}{b}{int(j) + by}{rest}"
        if drop := _DROP.fullmatch(text.strip()):
            piece, file, rank = drop.groups()
            return f"{piece}@{file}{int(rank) + by}"
        return text


_UCI = UciNotation()
