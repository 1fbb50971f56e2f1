"""Players without a process, for tests of referees and matches."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Sequence
from typing import Any

from variant_ai.core.arena.players.player import Fault, Player, Reply, Turn
from variant_ai.core.arena.players.player_spec import PlayerSpec
from variant_ai.core.arena.programs.program_player import program_player
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules


class ToyPlayer(Player):
    """Plays the move with the least or greatest number, takes 10 ms, and errs on demand."""

    def __init__(
        self,
        name: str,
        *,
        greatest: bool = False,
        score: int | None = 0,
        seconds: float = 0.01,
        fault: Fault | Exception | None = None,
        at: int = 0,
        line: tuple[str, ...] = (),
    ) -> None:
        """fault: raised at the own move numbered `at`. line: UCI moves played by game ply."""
        self.name = name
        self.greatest, self.score, self.seconds = greatest, score, seconds
        self.fault, self.at, self.line = fault, at, line
        self.games = self.made = 0
        self.ended: list[tuple[str, str]] = []
        self.up = False
        self.turns: list[Turn] = []

    def start(self) -> None:
        self.up = True

    def new_game(self, game: Game, number: int = 0) -> None:
        self.start()
        self.games += 1
        self.made = 0

    def play(self, game: Game, turn: Turn) -> Reply:
        assert self.up
        self.turns.append(turn)
        if self.fault is not None and self.made == self.at:
            raise self.fault
        self.made += 1
        if game.ply < len(self.line):
            copy = game.copy()
            copy.push_uci(self.line[game.ply])
            move = copy.moves[-1]
        else:
            moves = game.legal_moves()
            move = int(moves.max() if self.greatest else moves.min())
        return Reply(move, self.score, 1, 10, self.seconds)

    def game_over(self, result: str, reason: str) -> None:
        self.ended.append((result, reason))

    def close(self) -> None:
        self.up = False


class WaitingPlayer(ToyPlayer):
    """Waits at its second move until it is killed."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.killed, self.waiting = threading.Event(), threading.Event()

    def play(self, game: Game, turn: Turn) -> Reply:
        if self.made == 1:
            self.waiting.set()
            assert self.killed.wait(30)
            raise Fault("crash", "killed")
        return super().play(game, turn)

    def kill(self) -> None:
        self.killed.set()


def program(rules: Rules, protocol: str, command: Sequence[str], **fields: Any) -> Player:
    """A program as a player."""
    spec = PlayerSpec.model_validate(
        {"protocol": protocol, "command": shlex.join(command), **fields}
    )
    return program_player(spec, rules)
