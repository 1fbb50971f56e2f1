"""`PlainRules`: the base of rules engines in plain Python.

It has what every engine needs and no game differs in: FENs, keys, copies, counters, the move-count rule
and the stalemate rule of the spec. A game adds its moves, their effects other than moving a piece, and
its ends:

    class Tafl(PlainRules):
        name = "tafl"

        def moves_of(self, position): ...            # the legal moves
        def change(self, position, move): ...        # captures; `super().change` moves the piece
        def end_of(self, position): ...              # who has won, or None

Plugins register such a class with `register_rules`, and specs choose it by `rules: {engine: tafl}`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.errors import FenError
from variant_ai.core.rules.interface import Outcome, Rules
from variant_ai.core.rules.position import (
    DROP,
    MAX_CLOCK,
    PASS,
    POSITION,
    PROMOTION,
    Position,
    add_last_move,
    move_argument,
    move_kind,
    move_origin,
    move_target,
    piece_code,
    piece_colour,
    position_key,
)
from variant_ai.core.rules.text.fen import format_fen, parse_fen, shorten
from variant_ai.core.rules.verdicts import (
    checkmate_detail,
    move_count_end,
    mover_resets,
    stalemate_detail,
)
from variant_ai.core.spec.plane_layout import last_moves_shown
from variant_ai.core.spec.schema import VariantSpec


class PlainRules(Rules):
    """Rules of a game in Python. Objects keep no game, so they may serve several threads."""

    def __init__(self, spec: VariantSpec) -> None:
        super().__init__(spec)
        self._kept = last_moves_shown(spec)

    # --- the rules of the game ---------------------------------------------------------------

    @abstractmethod
    def moves_of(self, position: Position) -> Iterable[int]:
        """Legal moves in a fixed order, made by `make_move`; none if the game has ended."""

    def change(self, position: Position, move: int) -> None:
        """Make a move on the board and the hands of a copy of the position, in place.

        Moves, promotes or drops the piece. A piece on its target is removed, and goes to no hand. Override it for anything else. Side, counters and key follow by themselves.
        """
        record, side = position[0], int(position["side"][0])
        kind, board = move_kind(move), record["board"]
        if kind == PASS:
            return
        if kind == DROP:
            code = piece_code(self.types.hand_types[move_argument(move)], side)
            record["hands"][side, move_argument(move)] -= 1
        else:
            code = int(board[move_origin(move)])
            board[move_origin(move)] = 0
            if kind == PROMOTION:
                code = piece_code(move_argument(move), side)
        board[move_target(move)] = code

    @abstractmethod
    def end_of(self, position: Position) -> Outcome | None:
        """Outcome by the game's own rules, such as `Outcome(winner, "variant win", "the king has
        escaped")`; None if the game goes on as far as these are concerned."""

    def problem(self, position: Position) -> str:
        """Describe why a position of a FEN cannot be played; empty if it can."""
        return ""

    # --- the interface -----------------------------------------------------------------------

    def position(self, fen: str | None = None) -> Position:
        text = self.spec.rules.start if fen is None else fen
        position = parse_fen(self.types, text)
        problem = self.problem(position)
        if problem:
            raise FenError(f"{problem}, in FEN {shorten(text)}")
        position["key"] = position_key(position)
        return position

    def fen(self, position: Position) -> str:
        return format_fen(self.types, position)

    def legal_moves(self, position: Position) -> NDArray[np.int32]:
        return np.fromiter(self.moves_of(position), np.int32)

    def play(self, position: Position, move: int) -> Position:
        # position.copy() copies records field by field and takes ten times as long
        after: Position = np.frombuffer(bytearray(position.tobytes()), POSITION)
        move = int(move)
        resets = mover_resets(self.types, position, move)
        self.change(after, move)
        record = after[0]
        if (
            self._captured(position, after, move)
            and "captures" in self.spec.rules.no_progress.reset
        ):
            resets = True
        record["clock"] = 0 if resets else min(int(record["clock"]) + 1, MAX_CLOCK)
        record["side"] = 1 - record["side"]
        record["ply"] += 1
        record["ep"] = -1
        record["repetitions"] = 0
        add_last_move(after, position, move, self._kept)
        royal = self.types.royal
        for colour in (0, 1) if royal >= 0 else ():
            at = np.flatnonzero(record["board"] == piece_code(royal, colour))
            record["kings"][colour] = at[0] if len(at) else -1
        after["key"] = position_key(after)
        return after

    def in_check(self, position: Position) -> bool:
        """False: override it if the game knows check."""
        return False

    def outcome(self, position: Position) -> Outcome | None:
        ended = self.end_of(position)
        if ended is not None:
            return ended
        if next(iter(self.moves_of(position)), None) is None:
            return self._stuck(position)
        return move_count_end(self.types, position)

    def _stuck(self, position: Position) -> Outcome:
        """Return the outcome for a side to move that has no legal move."""
        rules, side = self.spec.rules, int(position["side"][0])
        winners = {"draw": None, "loss": 1 - side, "win": side}
        if self.in_check(position):
            return Outcome(winners[rules.checkmate], "checkmate", checkmate_detail(self.spec))
        if rules.stalemate == "fewer pieces win":
            owners = [piece_colour(int(code)) for code in position["board"][0] if code]
            first, second = owners.count(0), owners.count(1)
            winner = None if first == second else int(second < first)
        else:
            winner = winners[rules.stalemate]
        return Outcome(winner, "stalemate", stalemate_detail(self.spec))

    # --- counters ----------------------------------------------------------------------------

    @staticmethod
    def _captured(before: Position, after: Position, move: int) -> bool:
        """Return True if there are fewer pieces on the board, a dropped one aside."""
        dropped = move_kind(move) == DROP
        counts = [np.count_nonzero(position["board"]) for position in (before, after)]
        return bool(counts[1] < counts[0] + dropped)
