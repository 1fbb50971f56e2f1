"""A network with search settings as a player, in this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from variant_ai.core.arena.players.player import Fault, Player, Reply, Turn
from variant_ai.core.rules.game import Game
from variant_ai.core.search.move.clock import Clock, TimeManager
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.move.timed_search import run_on_clock, stop_until

if TYPE_CHECKING:
    from variant_ai.core.search.interface import BaseSearch
    from variant_ai.core.search.report import Report

LOOK_EVERY = 0.2
"""Seconds between two checks of `hurried`, which counts in a search without a clock."""


class NetPlayer(Player):
    """Searches with a network. On a clock it plays like the engine (`TimeManager`).

    If the settings keep the tree from move to move, the visits it reports are those of the tree,
    not of the last search alone.
    """

    def __init__(
        self,
        make_search: Callable[[], BaseSearch],
        name: str,
        digest: str = "",
        *,
        kept_visits: int = 0,
        evaluations: int | None = None,
    ) -> None:
        """make_search: loads the network and makes the search, when the player starts. digest: of
        the network's file. kept_visits: moves of each search reported with their visits.
        evaluations: greatest number of positions that a search evaluates, beside the limits of the
        match; None: any."""
        self.name = name
        self.digest = digest
        self.kept_visits = kept_visits
        self.evaluations = evaluations
        self._make_search = make_search
        self._search: BaseSearch | None = None
        self._times = TimeManager()
        self._killed = threading.Event()
        self._idle = threading.Event()
        """Set while it chooses no move."""
        self._idle.set()

    def start(self) -> None:
        """Make the search if there is none, and warm it up before a clock runs. It plays again after
        `kill`."""
        self._killed.clear()
        if self._search is None:
            self._search = self._make_search()
            self._search.warm_up()

    def new_game(self, game: Game, number: int = 0) -> None:
        self.start()
        assert self._search is not None
        self._search.clear(self._search.params.seed + number)
        self._times.forget()

    def play(self, game: Game, turn: Turn) -> Reply:
        self._idle.clear()
        try:
            return self._play(game, turn)
        finally:
            self._idle.set()

    def _play(self, game: Game, turn: Turn) -> Reply:
        search = self._search
        if search is None or self._killed.is_set():
            raise Fault("crash", f"{self.name} was stopped")
        started = time.monotonic()
        search.set_game(game)
        allowance = turn.allowance
        limits = Limits(
            simulations=allowance.nodes,
            evaluations=self.evaluations,
            movetime=None if allowance.movetime is None else allowance.movetime / 1000,
            depth=allowance.depth,
        )
        if allowance.base is None:

            def look(_: Report) -> None:
                if turn.hurried.is_set():
                    search.stop()

            report = search.run(limits, on_report=look, interval=LOOK_EVERY)
        else:
            report = run_on_clock(
                search,
                self._times,
                Clock(turn.clock.left / 1000, allowance.increment / 1000, turn.clock.moves_to_go),
                limits,
                # The clock does not count moves of the opening or before the start position.
                ply=int(game.position["ply"][0]),
                legal_moves=len(game.legal_moves()),
            )
        if report.best is None:
            raise Fault("no move", f"{self.name} has no move (FEN {game.fen()})")
        kept, line = self.kept_visits, report.best_line
        return Reply(
            report.best,
            score=line.score if line else None,
            depth=report.depth,
            nodes=report.visits,
            seconds=time.monotonic() - started,
            visits=tuple(search.root_visits()[:kept]) if kept else (),
            value=line.q if line else None,
        )

    def kill(self) -> None:
        """Stop the search, which returns its best move so far. May be called from any thread."""
        self._killed.set()
        search = self._search
        if search is not None:
            arguments = self._idle, search
            threading.Thread(target=stop_until, args=arguments, name="kill", daemon=True).start()

    def close(self) -> None:
        search, self._search = self._search, None
        if search is not None:
            search.stop()
            search.close()
