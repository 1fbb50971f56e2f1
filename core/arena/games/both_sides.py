"""Who plays both sides of a generated game: a program that speaks UCI, or a network in this process.

Only a search in this process tells how often it visited each move of the root: protocols have no
word for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from variant_ai.core.arena.players.net_player import Searcher, SearchHolder
from variant_ai.core.arena.players.net_player import score_of as score_of_report
from variant_ai.core.arena.programs.program_player import score_of
from variant_ai.core.arena.programs.uci_client import UciClient
from variant_ai.core.data.game_record import PlyVisits
from variant_ai.core.errors import EngineError
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.text.notation import UciNotation
from variant_ai.core.search.move.limits import Limits

KEPT_MOVES = 32
"""Moves kept of each search by default: with 800 visits and noise, all but a per cent of the visits."""


@dataclass(frozen=True)
class Found:
    """A legal move and what was found out about the position."""

    move: int
    score: int | None = None
    """Centipawns of the mover, mates as in `GameRecord.scores`."""
    visits: PlyVisits = ()
    """Of the root's moves, the most visited first; empty where nobody tells."""


class SelfPlayer(Protocol):
    """Plays both sides of one game at a time. Used by one thread; `kill` may come from another."""

    @property
    def name(self) -> str:
        """What it calls itself, once started."""

    @property
    def running(self) -> bool: ...

    def start(self) -> None:
        """Be ready to play. Does nothing where it is. Raises EngineError where it cannot be."""

    def new_game(self, seed: int) -> None:
        """Nothing of earlier games is remembered; `seed` is of what is drawn by lot."""

    def choose(self, game: Game, nodes: int, timeout: float) -> Found:
        """A move in the last position of a game that goes on, `nodes` searched. A program that has
        none within `timeout` seconds has failed. Raises EngineError, MoveError."""

    def kill(self) -> None:
        """Stop at once, from any thread; a `choose` under way raises or returns anything."""

    def close(self) -> None: ...


class UciSelfPlayer:
    """A program that speaks UCI."""

    def __init__(self, client: UciClient, variant: str | None) -> None:
        """`variant` is the program's name of the variant (UCI_Variant), None to set none."""
        self.client, self.variant = client, variant
        self._texts: list[str] = []

    @property
    def name(self) -> str:
        return self.client.name

    @property
    def running(self) -> bool:
        return self.client.running

    def start(self) -> None:
        if not self.client.running:
            self.client.start()
            if self.variant is not None:
                self.client.set_variant(self.variant)

    def new_game(self, seed: int) -> None:
        self._texts = []
        # Stockfish and its kin keep tables of pawns and material over `ucinewgame`, and in some
        # variants what they search depends on them; told how many threads to use, they begin anew.
        threads = self.client.value_of("Threads")
        if threads is not None:
            self.client.set_option("Threads", threads)
        self.client.new_game()

    def choose(self, game: Game, nodes: int, timeout: float) -> Found:
        rules = game.rules
        for ply in range(len(self._texts), len(game.moves)):
            self._texts.append(_UCI.write(rules, game.positions[ply], game.moves[ply]))
        answer = self.client.go(
            rules.fen(game.positions[0]), self._texts, limits={"nodes": nodes}, timeout=timeout
        )
        if answer.move is None:
            raise EngineError(
                f"engine {self.name} sees no move where the game goes on (FEN {game.fen()})"
            )
        return Found(game.read_uci(answer.move), score_of(answer))

    def kill(self) -> None:
        self.client.kill()

    def close(self) -> None:
        self.client.close()


class NetSelfPlayer(SearchHolder):
    """A network with search settings, in this process. Its tree is kept from move to move where the
    settings say so, and the visits then are those of the tree, not of the last search alone."""

    def __init__(
        self, make_search: Callable[[], Searcher], name: str, kept_moves: int = KEPT_MOVES
    ) -> None:
        """make_search: loads the network and makes the search, when the player starts. kept_moves:
        how many moves of each search are kept with their visits, the most visited ones."""
        super().__init__(make_search)
        self.name = name
        self._kept = kept_moves

    @property
    def running(self) -> bool:
        return self._search is not None

    def new_game(self, seed: int) -> None:
        assert self._search is not None
        self._search.clear(seed)

    def choose(self, game: Game, nodes: int, timeout: float) -> Found:
        search = self._search
        assert search is not None
        search.set_game(game)
        report = search.run(Limits(simulations=nodes))  # no clock: it does not hang
        if report.best is None:
            raise EngineError(f"{self.name} has no move (FEN {game.fen()})")
        visits = search.root_visits()[: self._kept] if self._kept else ()
        return Found(report.best, score_of_report(report), tuple(visits))


def game_seed(seed: int, number: int) -> int:
    """A seed for the player of game `number`, in 63 bits."""
    said = f"player {seed} {number}".encode()
    return int.from_bytes(hashlib.blake2b(said, digest_size=8).digest(), "little") >> 1


_UCI = UciNotation()
