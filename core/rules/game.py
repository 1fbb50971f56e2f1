"""Game: a sequence of positions, and the ends that depend on it.

A position alone shows mate, stalemate, the move count, wins of the variant and dead positions.
Repetition, and who gave check or chased meanwhile, needs the game. Code that plays or replays moves
must therefore use the outcome of a `Game`, never that of a position.

    position repeated `fold` times, and between the first and the last occurrence
      every move of one side was a check   that side loses if the spec wants it; both: draw
      else one side always chased          that side loses if the spec wants it
      else                                 the spec's `otherwise`
    draws are decided by `points`, if the spec has them
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.errors import MoveError, SpecError
from variant_ai.core.rules.chase_judge import CycleJudge, chase_judge
from variant_ai.core.rules.interface import Outcome, Rules
from variant_ai.core.rules.position import Position
from variant_ai.core.rules.text.notation import UciNotation
from variant_ai.core.rules.verdicts import (
    PLAYERS,
    draw_detail,
    idle_winner,
    ordinal,
    winner_of_draw,
)

IDENTITY = ("board", "hands", "side", "castling", "homes", "ep", "wins_left")
"""Fields in which repeated positions agree: all except counters and derived fields."""
MAX_REPETITIONS = 127


class Game:
    """Moves played from a start position, and the outcome after the last one.

    `push` costs one `Rules.play` and a dictionary entry; checks and chases are examined only when a
    position has occurred often enough. Captures do not end the search for repetitions: with hands,
    positions recur across captures.
    """

    def __init__(
        self, rules: Rules, fen: str | None = None, *, judge: CycleJudge | None = None
    ) -> None:
        """fen None: the spec's start position. judge: of perpetual chases; None: the rules engine
        if it can, else Fairy-Stockfish, used only at a repetition.

        Raises FenError; SpecError if the spec forbids chases and there is no judge for them.
        """
        self.rules = rules
        self.moves: list[int] = []
        """Move integers, in order."""
        self.positions: list[Position] = [rules.position(fen)]
        """The start position and the one after each move; `repetitions` is filled in."""
        self._seen: dict[int, list[int]] = {int(self.position["key"][0]): [0]}
        self._legal: NDArray[np.int32] | None = None
        self._outcome: Outcome | None = None
        self._outcome_known = False
        self.judge = judge
        if rules.spec.rules.repetition.forbids_chases and judge is None:
            _require_judge(rules)

    @classmethod
    def from_uci(cls, rules: Rules, fen: str | None, moves: Iterable[str]) -> Game:
        """Replay UCI moves. Raises FenError, or MoveError with the ply of the illegal move."""
        game = cls(rules, fen)
        for text in moves:
            game.push_uci(text)
        return game

    def copy(self, rules: Rules | None = None) -> Game:
        """Return an independent game with the same moves. rules: those of another spec of the same
        game, whose positions then hold what that spec's planes show."""
        if rules is None or rules is self.rules:
            same = copy.copy(self)
            same.moves = self.moves.copy()
            same.positions = self.positions.copy()  # they do not change: both games may have them
            same._seen = {key: seen.copy() for key, seen in self._seen.items()}
            return same
        game = Game(rules, self.rules.fen(self.positions[0]), judge=self.judge)
        for move in self.moves:
            game.push(move)
        return game

    def without_history(self) -> Game:
        """Return a game from the position alone, with no moves counted: for play that goes on after a draw
        which nobody claimed."""
        position = self.position.copy()
        position["clock"] = 0
        alone = Game(self.rules, self.rules.fen(position), judge=self.judge)
        alone.position["passes"] = position["passes"]
        return alone

    @cached_property
    def start_fen(self) -> str | None:
        """FEN of the first position; None: the variant's start position."""
        first = self.positions[0]
        if first.tobytes() == self.rules.position().tobytes():
            return None  # most games: writing a FEN takes longer
        fen = self.rules.fen(first)
        return None if fen == self.rules.fen(self.rules.position()) else fen

    @property
    def position(self) -> Position:
        """The position after the last move, shape (1,)."""
        return self.positions[-1]

    @property
    def ply(self) -> int:
        """Number of moves played in this game (`position['ply']` counts from the FEN's move
        number)."""
        return len(self.moves)

    @property
    def own_moves(self) -> int:
        """Moves that the side to move has made before; those before a FEN by its move number."""
        return int(self.position["ply"][0]) // 2

    @property
    def side(self) -> int:
        """Colour to move."""
        return int(self.position["side"][0])

    def fen(self) -> str:
        return self.rules.fen(self.position)

    def uci_moves(self) -> list[str]:
        return [self.rules.uci(move) for move in self.moves]

    def legal_moves(self) -> NDArray[np.int32]:
        """Legal moves of the position, without regard to repetitions, shape (n,); read only."""
        if self._legal is None:
            self._legal = self.rules.legal_moves(self.position)
        return self._legal

    def times_seen(self, key: int) -> int:
        """Number of occurrences of a key in the game, including the last position."""
        return len(self._seen.get(key, ()))

    def lost_at_once(self) -> list[int]:
        """Legal moves that lose the game at once by the rules of repetition."""
        fold = self.rules.spec.rules.repetition.fold
        often = {key for key, seen in self._seen.items() if len(seen) >= fold - 1}
        lost = []
        for move in self.legal_moves().tolist() if often else ():
            if int(self.rules.play(self.position, move)["key"][0]) in often:
                self.push(move)
                outcome = self.outcome()
                self.pop()
                if outcome is not None and outcome.winner == 1 - self.side:
                    lost.append(move)
        return lost

    def push(self, move: int) -> None:
        """Play a legal move; the caller must ensure that it is legal (`push_uci` checks)."""
        position = self.rules.play(self.position, move)
        occurrences = self._seen.setdefault(int(position["key"][0]), [])
        position["repetitions"] = min(len(occurrences), MAX_REPETITIONS)
        occurrences.append(len(self.positions))
        self.positions.append(position)
        self.moves.append(move)
        self._forget()

    def push_uci(self, text: str) -> int:
        """Play a move given as UCI text and return it. Raises MoveError if it is illegal."""
        move = self.read_uci(text)
        self.push(move)
        return move

    def read_uci(self, text: str) -> int:
        """Read the legal move of a UCI text. Raises MoveError."""
        try:
            return _UCI.read(self.rules, self.position, text)
        except MoveError as error:
            raise MoveError(f"ply {self.ply + 1}: {error}") from error

    def pop(self) -> int:
        """Take the last move back and return it. Raises MoveError at the start of the game."""
        if not self.moves:
            raise MoveError(f"no move to take back (FEN {self.fen()})")
        position = self.positions.pop()
        key = int(position["key"][0])
        self._seen[key].pop()
        if not self._seen[key]:
            del self._seen[key]
        self._forget()
        return self.moves.pop()

    def outcome(self) -> Outcome | None:
        """Return the outcome of the game, None while it goes on. Mate, stalemate and move count
        take precedence over repetition."""
        if not self._outcome_known:
            self._outcome = self.rules.outcome(self.position) or self._repetition()
            self._outcome_known = True
        return self._outcome

    def _forget(self) -> None:
        self._legal = None
        self._outcome = None
        self._outcome_known = False

    def _repetition(self) -> Outcome | None:
        rule = self.rules.spec.rules.repetition
        indices = self._seen[int(self.position["key"][0])]
        if len(indices) < rule.fold:
            return None
        same = [i for i in indices if _same(self.positions[i], self.position)]
        if len(same) < rule.fold:  # two positions share a key
            return None
        first = same[-rule.fold]
        occurrence = f"{ordinal(rule.fold)} occurrence"
        if rule.perpetual_check == "loss":
            verdict = self._perpetual_check(first, occurrence)
            if verdict is not None:
                return verdict
        idle = "" if rule.perpetual_check == "draw" else ", nobody gives check each time"
        if rule.forbids_chases:
            verdict = self._perpetual_chase(first)
            if verdict is not None:
                return verdict
            idle = f", no one-sided perpetual check or chase ({rule.perpetual_chase})"
        return Outcome(
            idle_winner(self.rules.types, self.position),
            "repetition",
            f"{occurrence}{idle}: {self._drawn() if rule.otherwise == 'draw' else rule.otherwise}",
        )

    def _perpetual_check(self, first: int, occurrence: str) -> Outcome | None:
        """Return the outcome if every move of a side since position `first` gave check."""
        last = len(self.positions) - 1
        # the side to move is in check: the opponent gave it
        opponent_checks = self._all_in_check(last, first)
        mover_checks = self._all_in_check(last - 1, first)
        if not (opponent_checks or mover_checks):
            return None
        if opponent_checks and mover_checks:
            winner = winner_of_draw(self.rules.types, self.position)
            detail = f"{occurrence}, both sides give check: {self._drawn()}"
            return Outcome(winner, "perpetual check", detail)
        winner = self.side if opponent_checks else 1 - self.side
        detail = f"{occurrence}, the {PLAYERS[1 - winner]} gives check each time: loss"
        return Outcome(winner, "perpetual check", detail)

    def _drawn(self) -> str:
        return draw_detail(self.rules.types, self.position)

    def _all_in_check(self, last: int, first: int) -> bool:
        return all(self.rules.in_check(p) for p in self.positions[first : last + 1][::-1][::2])

    def _perpetual_chase(self, first: int) -> Outcome | None:
        """Return the judge's verdict on the moves since position `first` if it is a perpetual chase, else
        None. Fairy-Stockfish judges where the rules do not know.

        The judge gets only the moves of the cycle, which the rule is about: Fairy-Stockfish would
        not see a chase if the move that entered the cycle was no chase.
        """
        moves = [self.rules.uci(move) for move in self.moves[first:]]
        fen = self.rules.fen(self.positions[first])
        verdict = (self.judge or self.rules).judge_cycle(fen, moves)
        if verdict is None and self.judge is None and self.rules.spec.fairy is not None:
            verdict = chase_judge(self.rules).judge_cycle(fen, moves)
        return verdict if verdict is not None and verdict.reason == "perpetual chase" else None


_UCI = UciNotation()


def _require_judge(rules: Rules) -> None:
    """Raise SpecError if there is no judge of chases, before a game needs it."""
    spec = rules.spec
    if spec.fairy is None and type(rules).judge_cycle is Rules.judge_cycle:
        raise SpecError(
            f"variant {spec.variant!r} has `perpetual_chase: {spec.rules.repetition.perpetual_chase}`"
            " but no `fairy:` name for a judge of chases; add one or use `none`"
        )


def _same(a: Position, b: Position) -> bool:
    return all(np.array_equal(a[field], b[field]) for field in IDENTITY)
