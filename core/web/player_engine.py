"""A player of matches as an engine of the JSON service: other programs play on the page too.

It answers searches with one line, the move that the player makes, and has no net to look into.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from variant_ai.core.arena.players.player import Allowance, Fault, Player, PlayerClock, Turn
from variant_ai.core.errors import EngineError
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.report import Line, Report

LEAST_SECONDS, GRACE = 30.0, 10.0
"""Seconds that a player has for a move with a limit of nodes, and those after which it counts as
hung."""


class PlayerEngine:
    """One player for one variant. Used by the thread that answers; `stop` by any."""

    def __init__(self, rules: Rules, player: Player) -> None:
        self.rules = rules
        self._player = player
        self._game: Game | None = None
        self._played: list[int] = []

    @property
    def search(self) -> Any:
        """The search of this engine: itself."""
        return self

    def set_game(self, game: Game) -> None:
        """Set the game to play in; one that does not continue the last one is a new game."""
        self._game = game

    def run(
        self,
        limits: Limits,
        *,
        moves: Sequence[int] | None = None,
        multipv: int = 1,
        on_report: Callable[[Report], None] | None = None,
        interval: float = 0.5,
    ) -> Report:
        """Let the player make its move. Raises EngineError if it fails; it starts again for the next
        one."""
        game = self._game
        assert game is not None
        if game.outcome() is not None:
            return Report(None, stopped_by="game over")
        nodes = limits.simulations if limits.simulations is not None else limits.nodes
        seconds = limits.movetime
        allowance = Allowance(
            movetime=None if seconds is None else max(1, round(1000 * seconds)), nodes=nodes
        )
        clocks = PlayerClock(allowance), PlayerClock(allowance)
        wait = LEAST_SECONDS if seconds is None else seconds + GRACE
        try:
            self._player.start()
            if self._played != game.moves[: len(self._played)] or not self._played:
                self._player.new_game(game)
            reply = self._player.play(game, Turn(clocks, game.side, wait, GRACE))
        except (Fault, EngineError) as error:
            self._played = []
            raise EngineError(f"{self._player.name}: {error}") from error
        self._played = [*game.moves, reply.move]
        value = 0.0 if reply.value is None else reply.value
        line = Line(reply.move, (reply.move,), reply.nodes, 0.0, value, cp=reply.score or 0)
        return Report(
            reply.move,
            lines=(line,),
            visits=reply.nodes,
            depth=reply.depth,
            seconds=reply.seconds,
            stopped_by="player",
        )

    def stop(self) -> None:
        """End the player's move; it loses its game for that."""
        self._player.kill()

    def clear(self) -> None:
        """Forget the game."""
        self._played = []

    def close(self) -> None:
        """End the player."""
        self._player.close()
