"""A player of matches as an engine of the JSON service: other programs play on the page too.

It answers searches with one line, the move that the player makes, and has no net to look into. Its own
limits, if it has any, count instead of those of the page.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from variant_ai.core.arena.players.player import Allowance, Fault, Player, PlayerClock, Turn
from variant_ai.core.errors import EngineError
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.report import Line, Report, centipawns, moves_to_mate, value_of

LEAST_SECONDS, GRACE = 30.0, 10.0
"""Seconds that a player has for a move with a limit of nodes, and those after which it counts as
hung."""
WITHOUT_NODES = 5.0
"""Seconds at most of a move of a program that knows no limit of nodes."""


class PlayerEngine:
    """One player for one variant. Used by the thread that answers; `stop` by any."""

    def __init__(self, rules: Rules, player: Player, own: Allowance | None = None) -> None:
        """own: limits of the player's description; a clock among them has no meaning here."""
        self.rules = rules
        self._player = player
        self._own = replace(own or Allowance(), base=None, increment=0, moves=None)
        self._game: Game | None = None
        self._hurried = threading.Event()
        """Set by `stop`; each game that is set has a new one, so that no later search is stopped."""
        self._start: str | None = None
        self._played: list[int] = []
        """The game that the player has: its first position as FEN, and its moves; empty: none."""

    @property
    def search(self) -> Any:
        """The search of this engine: itself."""
        return self

    def set_game(self, game: Game) -> None:
        """Set the game to play in; one that does not continue the last one is a new game."""
        self._game, self._hurried = game, threading.Event()

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
        seconds = limits.movetime
        wait = LEAST_SECONDS if seconds is None else seconds + GRACE
        try:
            self._player.start()
            allowance = self._allowance(limits)
            clocks = PlayerClock(allowance), PlayerClock(allowance)
            if not self._continues(game):
                self._player.new_game(game)
            turn = Turn(clocks, game.side, wait, GRACE, self._hurried)
            reply = self._player.play(game, turn)
        except (Fault, EngineError) as error:
            self._played = []
            raise EngineError(f"{self._player.name}: {error}") from error
        self._start, self._played = game.start_fen, [*game.moves, reply.move]
        score = reply.score or 0
        value = value_of(score) if reply.value is None else reply.value
        mate = moves_to_mate(score)
        plies = None if mate is None else 2 * mate - 1 if mate > 0 else 2 * mate
        cp = score if mate is None else centipawns(value)
        line = Line(reply.move, (reply.move,), reply.nodes, 0.0, value, cp=cp, mate=plies)
        return Report(
            reply.move,
            lines=(line,),
            visits=reply.nodes,
            depth=reply.depth,
            seconds=reply.seconds,
            stopped_by="player",
        )

    def _allowance(self, limits: Limits) -> Allowance:
        """Limits of a move that the player's protocol can express."""
        seconds, own = limits.movetime, self._own
        movetime = None if seconds is None else max(1, round(1000 * seconds))
        if own.given:
            times = [time for time in (movetime, own.movetime) if time is not None]
            wanted = replace(own, movetime=min(times, default=None))
        else:
            wanted = Allowance(movetime=movetime, nodes=limits.nodes)
        whole = max(1, math.ceil(min(WITHOUT_NODES if seconds is None else seconds, WITHOUT_NODES)))
        for allowance in (wanted, replace(wanted, movetime=None), Allowance(movetime=1000 * whole)):
            if allowance.given and not self._player.rejection(allowance):
                return allowance
        raise EngineError(self._player.rejection(wanted))

    def _continues(self, game: Game) -> bool:
        """True if the game continues the one that the player has."""
        played = self._played
        return (
            bool(played) and game.start_fen == self._start and game.moves[: len(played)] == played
        )

    def stop(self) -> None:
        """Let the player move at once in the game that is set, also if its search has not begun."""
        self._hurried.set()

    def clear(self) -> None:
        """Forget the game."""
        self._played = []

    def close(self) -> None:
        """End the player."""
        self._player.close()
