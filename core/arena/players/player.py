"""A player: whoever can be asked for a move, a program, a net, or the toss of a coin.

A player serves one game at a time. What it does wrong is a `Fault`, which names the reason a game
is lost for; the player can be asked for another game after it.
"""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

from variant_ai.core.arena.match.time_control import Allowance, Turn
from variant_ai.core.errors import EngineError
from variant_ai.core.rules.game import Game

Reason = Literal[
    "crash", "hang", "time forfeit", "illegal move", "no move", "false claim", "resignation"
]
ACCIDENTS = ("crash", "hang", "time forfeit")
"""Reasons that may strike in one game and not in another of the same moves."""


class Fault(EngineError):  # noqa: N818  (what it is called at the board)
    """Something by which a player loses its game."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason: Reason = reason
        self.side: int | None = None
        """Whose fault it is (0 or 1), where that is not the side to move."""


@dataclass(frozen=True)
class Reply:
    """A player's move and what it said of it."""

    move: int
    """A legal move integer."""
    score: int | None = None
    """Centipawns from the player's own view, mates as in `GameRecord.scores`; None: not told."""
    depth: int = 0
    """Plies."""
    nodes: int = 0
    seconds: float = 0.0
    """Time taken, as close to the player as it can be measured."""
    draw_offered: bool = False


class Player(ABC):
    """One player of a match. Used by one thread; `kill` may come from another."""

    name: str
    digest: str = ""
    """Of the file that decides its play, where there is one: a match goes on only with the same."""

    @abstractmethod
    def start(self) -> None:
        """Be ready to play. Does nothing where it is. Raises EngineError where it cannot be."""

    @abstractmethod
    def new_game(self, game: Game, number: int = 0) -> None:
        """A new game, at its opening. Nothing of earlier games may be remembered. `number`: of the
        game in its match; what is drawn by lot depends on it."""

    @abstractmethod
    def play(self, game: Game, turn: Turn) -> Reply:
        """A move in the position of `game`, whose moves before it are known from the game.

        Raises Fault where the player loses by what it did.
        """

    def ponder(self, game: Game, turn: Turn) -> None:  # noqa: B027  (few can)
        """The player has moved, and may think while the other side does; returns at once. `turn`
        has the clocks as they stand. Raises Fault."""

    def refuse(self, allowance: Allowance) -> str:
        """Why the player cannot play under these limits; empty: it can."""
        return ""

    def game_over(self, result: str, reason: str) -> None:  # noqa: B027  (few care)
        """The game has ended (`1-0`, `0-1`, `1/2-1/2`, `*`). Never raises."""

    @property
    def last_lines(self) -> tuple[str, ...]:
        """Last lines of a program, for the error that says it cannot play."""
        return ()

    @abstractmethod
    def close(self) -> None:
        """Leave in good order."""

    def kill(self) -> None:
        """Stop at once, from any thread; a `play` under way raises."""
        self.close()


class RandomPlayer(Player):
    """Plays any legal move with equal chance: the weakest of yardsticks."""

    def __init__(self, name: str = "random", seed: int = 0) -> None:
        self.name, self.seed = name, seed
        self._chance = random.Random(seed)

    def start(self) -> None:
        pass

    def new_game(self, game: Game, number: int = 0) -> None:
        # Games of one opening differ, and the same game is the same again.
        self._chance = random.Random(f"{self.seed} {number} {game.fen()} {game.side}")

    def play(self, game: Game, turn: Turn) -> Reply:
        started = time.monotonic()
        move = self._chance.choice(sorted(int(move) for move in game.legal_moves()))
        return Reply(move, nodes=1, seconds=time.monotonic() - started)

    def close(self) -> None:
        pass
