"""Games of one player against itself, each in a thread with a player of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from variant_ai.core.arena.games.generated_games import STOPPED, Dropped, Ended
from variant_ai.core.arena.games.generation import (
    RANDOM_MOVE,
    GameGenerator,
    GameVariation,
    GenerationSettings,
    NextGame,
    game_seed,
)
from variant_ai.core.arena.games.openings import Opening
from variant_ai.core.arena.match.player_pool import PlayerPool
from variant_ai.core.arena.match.referee import Referee
from variant_ai.core.arena.players.player import (
    FAULTS,
    Allowance,
    Player,
    PlayerClock,
    Reply,
    Turn,
)
from variant_ai.core.errors import EngineError
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules


class VariedPlayer(Player):
    """Plays random moves now and then, else those of another player, whose nodes vary."""

    def __init__(self, player: Player, settings: GenerationSettings) -> None:
        self.player, self.settings = player, settings
        self._variety = GameVariation(settings, 0)

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.player.name

    def start(self) -> None:
        self.player.start()

    def new_game(self, game: Game, number: int = 0) -> None:
        self._variety = GameVariation(self.settings, number)
        self.start()
        self.player.new_game(game, game_seed(self.settings.seed, number))

    def play(self, game: Game, turn: Turn) -> Reply:
        move = self._variety.random_move(game)
        if move is not None:
            return Reply(move, comment=RANDOM_MOVE)
        clock = PlayerClock(Allowance(nodes=self._variety.nodes()))
        return self.player.play(game, replace(turn, clocks=(clock, clock)))

    def close(self) -> None:
        self.player.close()

    def kill(self) -> None:
        self.player.kill()


class PlayerGames(GameGenerator):
    """Games of a program, or of any other `Player`."""

    def __init__(
        self,
        settings: GenerationSettings,
        rules: Rules,
        make_player: Callable[[], Player],
        openings: Sequence[Opening] = (Opening(),),
    ) -> None:
        """make_player: makes a player that is not started; each worker has its own."""
        workers = settings.workers or 1
        super().__init__(settings, rules, openings, ahead=2 * workers)
        self._make_player = make_player
        self._pool = PlayerPool(workers, lambda index: VariedPlayer(make_player(), settings))
        self._referee = Referee(settings.conduct, self._pool.stopped)

    def stop(self) -> None:
        self._pool.stop()

    def check_player(self) -> str:
        with closing(self._make_player()) as player:
            if reason := player.rejection(Allowance(nodes=self.settings.nodes)):
                raise EngineError(f"player {player.name!r} cannot play these games: {reason}")
            player.start()
            return player.name

    def play_group(self, games: Sequence[tuple[int, Game]]) -> list[Ended]:
        return [self._play(number, game) for number, game in games]

    def _played(self, next_game: NextGame, done: Mapping[int, Ended]) -> Iterator[Ended]:
        def play(job: tuple[int, Game]) -> Ended:
            return done.get(job[0]) or self._play(*job)

        return self._pool.results(next_game, play, submitted=self._ahead)

    def _play(self, number: int, game: Game) -> Ended:
        """Play one game from the end of its opening."""
        if self._pool.stopped():
            return Dropped(number, STOPPED)
        (player,) = self._pool.players((0,))
        allowance = Allowance(nodes=self.settings.nodes)
        try:
            played = self._referee.play(game, (player, player), (allowance, allowance), number)
        except EngineError as error:
            return Dropped(number, str(error))
        if self._pool.stopped():  # which may have cut a search short
            return Dropped(number, STOPPED)
        if played.reason in FAULTS:
            player.kill()
            return Dropped(number, played.detail, played.reason)
        return self._kept(number, played, player.name)
