"""An engine without a process, and games generated with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from variant_ai.core.arena.games.game_generators import PlayerGames
from variant_ai.core.arena.games.generated_games import Dropped
from variant_ai.core.arena.games.generation import GenerationSettings
from variant_ai.core.arena.games.openings import Opening
from variant_ai.core.arena.players.player import Player
from variant_ai.core.arena.programs.engine_process import EngineDiedError, ProgramAnswer
from variant_ai.core.arena.programs.program_player import Coordinates, UciPlayer
from variant_ai.core.arena.programs.uci_client import UciClient
from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.text.notation import uci

SHORT = GenerationSettings(games=3, nodes=1, max_plies=16, timeout=20)


def changed(settings: GenerationSettings, **fields: Any) -> GenerationSettings:
    return settings.model_copy(update=fields)


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

    def ready(self) -> None:
        pass

    def send(self, line: str) -> None:
        words = line.split()
        assert words[0] == "position"
        at = words.index("moves") if "moves" in words else len(words)
        fen = None if words[1] == "startpos" else " ".join(words[2:at])
        self.game = Game.from_uci(self.rules, fen, words[at + 1 :])

    def search(
        self, limits: Mapping[str, int], timeout: float, grace: float = 0.0
    ) -> ProgramAnswer:
        assert self.up and limits["nodes"] > 0 and grace == 0
        self.asked(limits)
        if self.wrong and (not self.at or self.games in self.at):
            if self.wrong == "fails":
                raise EngineDiedError("engine Toy died")
            return ProgramAnswer({"illegal": "a1a1", "garbage": "?!", "no move": None}[self.wrong])
        move = int(min(self.game.legal_moves()))
        return ProgramAnswer(
            uci(self.rules.types, self.rules.spec.board.files, move), self.score(self.game.ply)
        )


def toy_player(client: ToyEngine) -> Player:
    fairy = client.rules.spec.fairy
    assert fairy is not None
    return UciPlayer(client, Coordinates(client.rules), fairy)


def clients(made: PlayerGames) -> list[ToyEngine]:
    """Engines of a generator's players."""
    found = [player.player.client for player in made._pool.alive]  # type: ignore[attr-defined]
    assert all(isinstance(client, ToyEngine) for client in found)
    return found


def generator(
    rules: Rules,
    settings: GenerationSettings,
    wrong: str = "",
    at: tuple[int, ...] = (),
    openings: tuple[Opening, ...] = (Opening(),),
) -> PlayerGames:
    return PlayerGames(settings, rules, lambda: toy_player(ToyEngine(rules, wrong, at)), openings)


def played(made: PlayerGames) -> tuple[list[GameRecord], list[Dropped]]:
    games: list[GameRecord] = []
    dropped: list[Dropped] = []
    for item in made.games():
        (games if isinstance(item, GameRecord) else dropped).append(item)  # type: ignore[arg-type]
    return games, dropped
