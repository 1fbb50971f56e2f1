"""An engine without a process, and games generated with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from variant_ai.core.arena.games.both_sides import UciSelfPlayer
from variant_ai.core.arena.games.generation import (
    Dropped,
    GameGenerator,
    GenerateSettings,
)
from variant_ai.core.arena.programs.uci_client import Answer, UciClient
from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.text.notation import uci
from variant_ai.core.spec import EngineError

SHORT = GenerateSettings(games=3, nodes=1, max_plies=16, move_timeout=20)


class ToyEngine(UciClient):
    """An engine without a process: plays the first legal move, and does wrong on demand.

    The real client is tested against real processes elsewhere.
    """

    def __init__(self, rules: Rules, wrong: str = "", at: tuple[int, ...] = ()) -> None:
        super().__init__(["toy"])
        self.rules, self.wrong, self.at = rules, wrong, at
        self.games = self.starts = 0
        self.up = False

    @property
    def running(self) -> bool:
        return self.up

    def start(self) -> None:
        self.name, self.up = "Toy 1.0", True
        self.starts += 1

    def kill(self) -> None:
        self.up = False

    def close(self) -> None:
        self.kill()

    def set_variant(self, name: str) -> None:
        assert name == self.rules.spec.fairy

    def new_game(self) -> None:
        assert self.up
        self.games += 1

    def asked(self, limits: Mapping[str, int]) -> None:
        """For tests: told of every search."""

    def score(self, ply: int) -> int:
        """Of the move played at this ply of the game."""
        return ply

    def go(
        self,
        fen: str,
        moves: Sequence[str] = (),
        *,
        limits: Mapping[str, int],
        timeout: float,
        grace: float = 0.0,
    ) -> Answer:
        assert self.up and limits["nodes"] > 0
        self.asked(limits)
        if self.wrong and (not self.at or self.games in self.at):
            if self.wrong == "fails":
                raise EngineError("engine Toy died")
            return Answer({"illegal": "a1a1", "garbage": "?!", "no move": None}[self.wrong])
        game = Game.from_uci(self.rules, fen, moves)
        move = int(min(game.legal_moves()))
        return Answer(
            uci(self.rules.types, self.rules.spec.board.files, move), self.score(len(moves))
        )


def generator(
    rules: Rules, settings: GenerateSettings, wrong: str = "", at: tuple[int, ...] = ()
) -> GameGenerator:
    return GameGenerator(
        rules,
        lambda: UciSelfPlayer(ToyEngine(rules, wrong, at), rules.spec.fairy),
        settings,
    )


def played(made: GameGenerator) -> tuple[list[GameRecord], list[Dropped]]:
    games: list[GameRecord] = []
    dropped: list[Dropped] = []
    for item in made.games():
        (games if isinstance(item, GameRecord) else dropped).append(item)  # type: ignore[arg-type]
    return games, dropped
