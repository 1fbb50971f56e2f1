"""The current game: positions as clients send them, with the history that they leave out.

A client repeats the whole game before every move. `set` plays only the new moves, so that a long
game costs no more than a short one. UCCI and cyclone clients send a new FEN after every capture,
without counters. If such a FEN continues the current game, its history is kept; otherwise the move
number and the repetitions that the net sees would start again.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from variant_ai.core.engine.commands import SetPosition
from variant_ai.core.errors import MoveError, VariantAIError

if TYPE_CHECKING:
    from variant_ai.core.rules.chase_judge import CycleJudge
    from variant_ai.core.rules.game import Game
    from variant_ai.core.rules.interface import Outcome, Rules
    from variant_ai.core.rules.position import Position
    from variant_ai.core.rules.text.notation import Notation

NOTATIONS = {
    "iccs": "variant_ai.core.rules.text.notation:IccsNotation",
    "usi": "variant_ai.core.rules.text.usi_notation:UsiNotation",
}
LOOK_BACK = 40
"""Number of last positions in which a FEN is looked for."""
DEEPEST_PERFT = 200
"""Plies. Even counting fewer takes hours."""
INTERRUPTIBLE = 3
"""Depth of perft that is counted between two checks of `stop`."""


class LazyChaseJudge:
    """A `CycleJudge` that detects chases once it is loaded, and none before.

    Loading takes most of a second, which the clock may not have when a repetition needs it.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._judge: CycleJudge | None = None

    @property
    def is_loaded(self) -> bool:
        return self._judge is not None

    def load(self, warn: Callable[[str], object]) -> bool:
        """Load it; return False if Fairy-Stockfish cannot judge this variant, after a warning."""
        from variant_ai.core.rules.chase_judge import chase_judge

        judge = chase_judge(self._rules)
        if judge.load(warn):
            self._judge = judge
        return self.is_loaded

    def judge_cycle(self, fen: str, moves: list[str]) -> Outcome | None:
        return None if self._judge is None else self._judge.judge_cycle(fen, moves)


class CurrentGame:
    """A game of one variant. A command with an error leaves it unchanged."""

    def __init__(self, rules: Rules, judge: CycleJudge | None = None) -> None:
        """judge: detects perpetual chases, see `Game`."""
        from variant_ai.core.rules.game import Game
        from variant_ai.core.rules.text.notation import UciNotation

        self.rules = rules
        self._judge = judge
        self.game: Game = Game(rules, judge=judge)
        self.banned: tuple[int, ...] = ()
        """Moves that may not be played from this position."""
        self._fen: str | None = None
        self._offset = 0
        """Plies of the game before the position of the client's FEN."""
        self._words: list[str] = []
        """The client's moves since its FEN."""
        self._notations: dict[str, Notation] = {"uci": UciNotation()}

    @property
    def key(self) -> int:
        """Key of the position, the same for equal positions."""
        return int(self.game.position["key"][0])

    def new_game(self) -> None:
        """Start a new game: the next position does not continue this one."""
        self._restart(SetPosition(None), "uci")
        self.banned = ()

    def set(self, command: SetPosition, *, notation: str = "uci", continues: bool = False) -> None:
        """Set up a position.

        notation: that of the client's moves, see `Dialect.notation`. continues: a FEN that continues the
        current game keeps its history. Raises FenError, and MoveError with the illegal ply.
        """
        before, state = list(self.game.moves), (self._fen, self._offset, self._words)
        try:
            is_continued = command.fen == self._fen
            if not is_continued and continues and command.fen is not None:
                is_continued = self._reach(command.fen)
                if is_continued:
                    self._fen, self._offset, self._words = command.fen, self.game.ply, []
            if is_continued:
                self._update_moves(command.moves, notation)
            else:
                self._restart(command, notation)
        except VariantAIError:
            while self.game.moves != before[: self.game.ply]:
                self.game.pop()
            for move in before[self.game.ply :]:
                self.game.push(move)
            self._fen, self._offset, self._words = state
            raise
        self.banned = ()

    def text(self, move: int) -> str:
        """UCI text of a move."""
        return self._notations["uci"].write(self.rules, self.game.position, move)

    def read_moves(self, words: Iterable[str], notation: str = "uci") -> tuple[int, ...]:
        """Read moves that are legal in the current position. Raises MoveError."""
        reader = self._notation(notation)
        return tuple(reader.read(self.rules, self.game.position, word) for word in words)

    def _notation(self, name: str) -> Notation:
        """The notation of a dialect, loaded when it is first used."""
        if name not in self._notations:
            self._notations[name] = pkgutil.resolve_name(NOTATIONS.get(name, name))()
        return self._notations[name]

    def perft(self, depth: int, stopped: Callable[[], bool]) -> Iterator[tuple[str, int]]:
        """Yield each legal move (UCI text) and the number of leaves below it, until stopped."""
        from variant_ai.core.rules.kernel.perft import perft

        game, rules = self.game, self.rules
        depth = min(depth, DEEPEST_PERFT)

        def leaves(position: Position, left: int) -> int:
            if left <= INTERRUPTIBLE:
                return perft(rules, position, left)
            total = 0
            for move in rules.legal_moves(position).tolist():
                if stopped():
                    break
                total += leaves(rules.play(position, move), left - 1)
            return total

        moves = game.legal_moves().tolist() if depth > 0 else []
        named = sorted((self.text(move), move) for move in moves)
        for text, move in named:
            count = leaves(rules.play(game.position, move), depth - 1)
            if stopped():  # the count is of a part of the leaves
                return
            yield text, count

    @property
    def is_over(self) -> bool:
        """True if the position itself ends the game although there may be moves (a king in the
        centre). Draws and move counts, which must be claimed, do not count."""
        outcome = self.rules.outcome(self.game.position)
        return outcome is not None and outcome.reason != "move count" and outcome.winner is not None

    @property
    def result(self) -> int:
        """Result for the side to move: 1 won, as in antichess without a move; 0 drawn; -1 lost: mated,
        stalemated if that loses, or all moves banned."""
        outcome = self.rules.outcome(self.game.position)
        return -1 if outcome is None else outcome.value(self.game.side)

    def searchable(self) -> Game:
        """Return the game, or its position alone after an end that nobody claimed: the client plays on."""
        game = self.game
        return game if game.outcome() is None else game.without_history()

    def _restart(self, command: SetPosition, notation: str) -> None:
        from variant_ai.core.rules.game import Game

        game = Game(self.rules, command.fen, judge=self._judge)
        self._push(game, self._notation(notation), command.moves)
        self.game = game
        self._fen, self._offset, self._words = command.fen, 0, list(command.moves)

    def _update_moves(self, words: Sequence[str], notation: str) -> None:
        """Take back and play moves until those since the FEN are these."""
        same = 0
        for old, new in zip(self._words, words, strict=False):
            if old != new:
                break
            same += 1
        while self.game.ply > self._offset + same:
            self.game.pop()
        self._push(self.game, self._notation(notation), words[same:])
        self._words = list(words)

    def _push(self, game: Game, notation: Notation, words: Sequence[str]) -> None:
        for word in words:
            try:
                move = notation.read(self.rules, game.position, word)
            except MoveError as error:
                raise MoveError(f"ply {game.ply + 1}: {error}") from error
            game.push(move)

    # --- a FEN that continues the game ---------------------------------------------------------

    def _reach(self, fen: str) -> bool:
        """Bring the game to the position of the FEN, if it is a former position or at most two moves
        away; otherwise return False with the game unchanged. Raises FenError."""
        target = self.rules.position(fen)
        game = self.game
        for back, position in enumerate(reversed(game.positions[-LOOK_BACK:])):
            if _same(position, target):
                for _ in range(back):
                    game.pop()
                return True
        moves = self._path(game.position, target)
        for move in moves:
            game.push(move)
        return bool(moves)

    def _path(self, start: Position, target: Position) -> tuple[int, ...]:
        """Return one or two moves that lead from a position to another; none if there are no such."""
        from variant_ai.core.rules.position import DROP, move_kind, move_origin

        changed = (start["board"] != target["board"])[0]
        if not 0 < int(changed.sum()) <= 8:  # two moves, castling among them
            return ()
        rules = self.rules
        firsts = []
        for move in rules.legal_moves(start).tolist():
            after = rules.play(start, move)
            if _same(after, target):
                return (move,)
            if changed[move_origin(move)] or move_kind(move) == DROP:
                firsts.append((move, after))
        for move, after in firsts:
            for reply in rules.legal_moves(after).tolist():
                if _same(rules.play(after, reply), target):
                    return (move, reply)
        return ()


def _same(a: Position, b: Position) -> bool:
    """True if two positions agree in everything that moves depend on, which the key covers."""
    return int(a["key"][0]) == int(b["key"][0])
