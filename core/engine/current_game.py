"""The game on the table: positions as clients send them, with the history that they leave out.

A client repeats the whole game before every move. `set` plays only what is new, so that a long
game costs no more than a short one. UCCI and cyclone clients begin a new FEN after every capture,
without counters: where such a FEN continues the game on the table, the game goes on, or the
move number and the repetitions the net sees would start again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from variant_ai.core.engine.commands import SetPosition
from variant_ai.core.errors import MoveError

if TYPE_CHECKING:
    from variant_ai.core.rules.game import CycleJudge, Game
    from variant_ai.core.rules.interface import Outcome, Rules
    from variant_ai.core.rules.position import Position
    from variant_ai.core.rules.text.notation import Notation
    from variant_ai.core.spec.schema import VariantSpec

LOOK_BACK = 40
"""Positions of the game in which a FEN is looked for, counted from the last."""


class LateJudge:
    """Judges chases once it is loaded, and sees none before: a `CycleJudge`.

    Loading takes the better part of a second, which a clock may not have at the repetition that
    asks for it.
    """

    def __init__(self, spec: VariantSpec) -> None:
        self.spec = spec
        self._fairy: CycleJudge | None = None

    @property
    def is_loaded(self) -> bool:
        return self._fairy is not None

    def load(self) -> None:
        from variant_ai.core.rules.fairy.fairy_rules import FairyRules

        self._fairy = FairyRules(self.spec)

    def judge_cycle(self, fen: str, moves: list[str]) -> Outcome | None:
        return None if self._fairy is None else self._fairy.judge_cycle(fen, moves)


class Table:
    """A game of one variant. A command that cannot be followed leaves it as it was."""

    def __init__(self, rules: Rules, judge: CycleJudge | None = None) -> None:
        """judge: of perpetual chases, see `Game`."""
        from variant_ai.core.rules.game import Game
        from variant_ai.core.rules.text.notation import IccsNotation, UciNotation

        self.rules = rules
        self._judge = judge
        self.game: Game = Game(rules, judge=judge)
        self.banned: tuple[int, ...] = ()
        """Moves that may not be played from this position."""
        self._fen: str | None = None
        self._offset = 0
        """Moves of the game before the position of the client's FEN."""
        self._words: list[str] = []
        """The client's moves from its FEN on."""
        self._notations: dict[int, Notation] = {0: IccsNotation(), 1: UciNotation()}

    @property
    def key(self) -> int:
        """The same for equal positions."""
        return int(self.game.position["key"][0])

    def new_game(self) -> None:
        """What comes does not continue the game."""
        from variant_ai.core.rules.game import Game

        self.game = Game(self.rules, judge=self._judge)
        self.banned = ()
        self._fen, self._offset, self._words = None, 0, []

    def set(self, wanted: SetPosition, *, first_rank: int = 1, continues: bool = False) -> None:
        """Set up a position.

        first_rank: how the client numbers ranks. continues: a FEN that goes on from the game on
        the table keeps its history. Raises FenError, MoveError with the ply that cannot be played.
        """
        if wanted.fen == self._fen:
            self._follow(wanted.moves, first_rank)
        elif continues and wanted.fen is not None and self._go_on(wanted, first_rank):
            pass
        else:
            self._restart(wanted, first_rank)
        self.banned = ()

    def read_moves(self, words: Iterable[str], first_rank: int = 1) -> tuple[int, ...]:
        """Legal moves of the position on the table. Raises MoveError."""
        notation = self._notations[first_rank]
        return tuple(notation.read(self.rules, self.game.position, word) for word in words)

    def _restart(self, wanted: SetPosition, first_rank: int) -> None:
        from variant_ai.core.rules.game import Game

        game = Game(self.rules, wanted.fen, judge=self._judge)
        notation = self._notations[first_rank]
        self._push(game, notation, wanted.moves)
        self.game = game
        self._fen, self._offset, self._words = wanted.fen, 0, list(wanted.moves)

    def _follow(self, words: Sequence[str], first_rank: int) -> None:
        """Take back and play until the moves since the FEN are these."""
        same = 0
        for old, new in zip(self._words, words, strict=False):
            if old != new:
                break
            same += 1
        game, keep = self.game, self._offset + same
        taken = [game.pop() for _ in range(game.ply - keep)][::-1]
        try:
            self._push(game, self._notations[first_rank], words[same:])
        except MoveError:
            while game.ply > keep:
                game.pop()
            for move in taken:
                game.push(move)
            raise
        self._words[same:] = words[same:]

    def _push(self, game: Game, notation: Notation, words: Sequence[str]) -> None:
        for word in words:
            try:
                move = notation.read(self.rules, game.position, word)
            except MoveError as error:
                raise MoveError(f"ply {game.ply + 1}: {error}") from error
            game.push(move)

    # --- a FEN that goes on --------------------------------------------------------------------

    def _go_on(self, wanted: SetPosition, first_rank: int) -> bool:
        """Follow a FEN and its moves where the FEN continues the game; False where it does not.

        Raises FenError, and MoveError with the game as it was.
        """
        assert wanted.fen is not None
        before, was = list(self.game.moves), (self._fen, self._offset, self._words)
        if not self._continue(wanted.fen):
            return False
        self._fen, self._offset, self._words = wanted.fen, self.game.ply, []
        try:
            self._follow(wanted.moves, first_rank)
        except MoveError:
            while self.game.moves != before[: self.game.ply]:
                self.game.pop()
            for move in before[self.game.ply :]:
                self.game.push(move)
            self._fen, self._offset, self._words = was
            raise
        return True

    def _continue(self, fen: str) -> bool:
        """Bring the game to the position of the FEN, if it has been there or is at most two moves
        away from it; False leaves the game as it was. Raises FenError."""
        wanted = self.rules.position(fen)
        game = self.game
        for back, position in enumerate(reversed(game.positions[-LOOK_BACK:])):
            if _same(position, wanted):
                for _ in range(back):
                    game.pop()
                return True
        for moves in self._ways(game.position, wanted):
            for move in moves:
                game.push(move)
            return True
        return False

    def _ways(self, start: Position, wanted: Position) -> Iterable[tuple[int, ...]]:
        """One or two moves from a position to another; those that end there only."""
        from variant_ai.core.rules.position import DROP, move_kind, move_origin

        changed = (start["board"] != wanted["board"])[0]
        if not 0 < int(changed.sum()) <= 8:  # two moves, castling among them
            return
        rules = self.rules
        firsts = []
        for move in rules.legal_moves(start).tolist():
            after = rules.play(start, move)
            if _same(after, wanted):
                yield (move,)
                return
            if changed[move_origin(move)] or move_kind(move) == DROP:
                firsts.append((move, after))
        for move, after in firsts:
            for reply in rules.legal_moves(after).tolist():
                if _same(rules.play(after, reply), wanted):
                    yield (move, reply)
                    return


def _same(a: Position, b: Position) -> bool:
    """Whether two positions agree in all that moves depend on; the key is of just that."""
    return int(a["key"][0]) == int(b["key"][0])
