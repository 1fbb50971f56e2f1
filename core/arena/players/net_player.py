"""A network with search settings as a player, in this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from variant_ai.core.arena.match.time_control import Turn
from variant_ai.core.arena.players.player import Fault, Player, Reply
from variant_ai.core.data.game_record import MATE
from variant_ai.core.rules.game import Game
from variant_ai.core.search.move.clock import Clock, TimeManager
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.move.timed_search import run_on_clock
from variant_ai.core.search.report import Report
from variant_ai.core.search.settings import SearchParams


class Searcher(Protocol):
    """What a player needs of a search (`core/search/search.py`)."""

    params: SearchParams

    def set_game(self, game: Game) -> None: ...

    def run(self, limits: Limits, *, moves: Sequence[int] | None = None) -> Report: ...

    def report(self, multipv: int = 1, *, pv: bool = True) -> Report: ...

    def clear(self, seed: int | None = None) -> None: ...

    def warm_up(self) -> None: ...

    def root_visits(self) -> list[tuple[int, int]]: ...

    def stop(self) -> None: ...

    def close(self) -> None: ...


class SearchHolder:
    """Who plays by a search that is made when it is first needed."""

    def __init__(self, make_search: Callable[[], Searcher]) -> None:
        """make_search: loads the network and makes the search."""
        self._make_search = make_search
        self._search: Searcher | None = None

    def start(self) -> None:
        """Make the search, and have it warm before a clock runs. Does nothing where there is one."""
        if self._search is None:
            self._search = self._make_search()
            self._search.warm_up()

    def kill(self) -> None:
        """Stop at once, from any thread; a search under way ends with what it has."""
        search = self._search
        if search is not None:
            search.stop()

    def close(self) -> None:
        search, self._search = self._search, None
        if search is not None:
            search.stop()
            search.close()


class NetPlayer(SearchHolder, Player):
    """Searches with a network. On a clock it plays as an engine does (`TimeManager`)."""

    def __init__(self, make_search: Callable[[], Searcher], name: str, digest: str = "") -> None:
        """make_search: loads the network and makes the search, when the player starts. `digest`: of
        the network's file."""
        super().__init__(make_search)
        self.name = name
        self.digest = digest
        self._times = TimeManager()

    def new_game(self, game: Game, number: int = 0) -> None:
        self.start()
        assert self._search is not None
        self._search.clear(self._search.params.seed + number)
        self._times.forget()

    def play(self, game: Game, turn: Turn) -> Reply:
        assert self._search is not None
        started = time.monotonic()
        self._search.set_game(game)
        allowance = turn.allowance
        limits = Limits(
            simulations=allowance.nodes,
            movetime=None if allowance.movetime is None else allowance.movetime / 1000,
            depth=allowance.depth,
        )
        if allowance.base is None:
            report = self._search.run(limits)
        else:
            report = run_on_clock(
                self._search,
                self._times,
                Clock(turn.clock.left / 1000, allowance.increment / 1000, turn.clock.moves_to_go),
                limits,
                # The clock counts no moves of the opening, nor those before a start position.
                ply=int(game.position["ply"][0]),
                legal_moves=len(game.legal_moves()),
            )
        if report.best is None:
            raise Fault("no move", f"{self.name} has no move (FEN {game.fen()})")
        return Reply(
            report.best,
            score=score_of(report),
            depth=report.depth,
            nodes=report.visits,
            seconds=time.monotonic() - started,
        )


def score_of(report: Report) -> int | None:
    """Centipawns of the best move for the mover, mates as `GameRecord.scores` has them."""
    line = next((line for line in report.lines if line.move == report.best), None)
    if line is None:
        return None
    mate = line.mate_in
    if mate is None:
        return line.cp
    return MATE - mate if mate > 0 else -MATE - mate
