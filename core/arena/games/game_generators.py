"""Generators of games: of a program in threads, of a net in shared batches, of either in several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from variant_ai.core.arena.games.generated_games import STOPPED, Dropped, Ended
from variant_ai.core.arena.games.generation import (
    RANDOM_MOVE,
    GameGenerator,
    GameVariation,
    GenerationSettings,
    NextGame,
    game_seed,
)
from variant_ai.core.arena.games.openings import Opening, played_out
from variant_ai.core.arena.match.player_pool import PlayerPool
from variant_ai.core.arena.match.referee import PlayedGame, Referee
from variant_ai.core.arena.players.player import (
    FAULTS,
    Allowance,
    Player,
    PlayerClock,
    Reply,
    Turn,
)
from variant_ai.core.errors import EngineError
from variant_ai.core.inference.interface import Evaluator
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.search.settings import SearchParams

if TYPE_CHECKING:
    from variant_ai.core.search.forest.position_searches import PositionSearches


AT_ONCE = 64
"""Games of a net at once, if the settings do not say how many."""
NET_GAMES_AHEAD = 8
"""Games that are begun for each of those before the oldest one has ended: games differ in length."""
QUEUED = 2
"""Tasks for each process, so that it need not wait for the next one."""
TASKS_AHEAD = 4
"""Times the games of all tasks that are begun before the oldest one has ended."""
MakeGenerator = Callable[[], GameGenerator]
MakePool = Callable[[int, Callable[[MakeGenerator], None], tuple[MakeGenerator]], Executor]
"""Arguments: number of processes, and a function that each calls once with these arguments."""


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
    """Games of a program, or of any other `Player`, each in a thread with a player of its own."""

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


@dataclass
class _Game:
    """A game in progress."""

    number: int
    played: PlayedGame
    variety: GameVariation
    rng: np.random.Generator
    """Of its noise and sampled moves."""


class NetGames(GameGenerator):
    """Games of a net with compiled rules, many at once with shared batches; each search with a fresh tree."""

    def __init__(
        self,
        settings: GenerationSettings,
        rules: Rules,
        make_evaluator: Callable[[int], Evaluator],
        params: SearchParams,
        name: str,
        openings: Sequence[Opening] = (Opening(),),
        *,
        kept_visits: int = 0,
    ) -> None:
        """make_evaluator: loads the net for batches of this size. name: of the player in records.
        kept_visits: moves of each search that are recorded with their visits."""
        self.at_once = min(settings.workers or AT_ONCE, settings.games)
        super().__init__(settings, rules, openings, ahead=NET_GAMES_AHEAD * self.at_once)
        self.name = name
        self.kept_visits = kept_visits
        self._params = params
        self._make_evaluator = make_evaluator
        self._searches: PositionSearches | None = None
        self._referee = Referee(settings.conduct, self._stopped.is_set)
        self._playing: dict[int, _Game] = {}
        """By tree."""

    @property
    def group(self) -> int:
        return self.at_once

    def check_player(self) -> str:
        self._loaded()
        return self.name

    def _loaded(self) -> PositionSearches:
        if self._searches is None:
            from variant_ai.core.search.forest.position_searches import PositionSearches

            settings = self.settings
            self._searches = PositionSearches(
                self.rules.spec,
                self._make_evaluator(self.at_once),
                self._params,
                self.at_once,
                positions=settings.max_plies,
                nodes=round(settings.nodes * (1 + settings.node_jitter)),
                rules=self.rules,
            )
        return self._searches

    def _played(self, next_game: NextGame, done: Mapping[int, Ended]) -> Iterator[Ended]:
        searches = self._loaded()
        free = list(range(self.at_once))
        while not self._stopped.is_set():
            while free and (begun := next_game()) is not None:
                number, game = begun
                if number in done:
                    yield done[number]
                    continue
                tree = free.pop()
                seed = self._params.seed + game_seed(self.settings.seed, number)
                self._playing[tree] = _Game(
                    number,
                    PlayedGame(game, game.ply),
                    GameVariation(self.settings, number),
                    np.random.default_rng(seed),
                )
                if not self._search(tree, searches):
                    free.append(tree)
                    yield self._end(tree)
            if not self._playing:
                return
            for tree in searches.step():
                self._move(tree, searches)
                if not self._search(tree, searches):
                    free.append(tree)
                    yield self._end(tree)

    def _search(self, tree: int, searches: PositionSearches) -> bool:
        """Begin the search of a game's next move, after random moves if these are due; returns False
        if the game has ended."""
        playing = self._playing[tree]
        played = playing.played
        while not self._referee.is_over(played):
            move = playing.variety.random_move(played.game)
            if move is None:
                searches.start(tree, played.game, playing.variety.nodes(), playing.rng)
                return True
            played.play(Reply(move, comment=RANDOM_MOVE))
        return False

    def _move(self, tree: int, searches: PositionSearches) -> None:
        """Play the move of a complete search."""
        report = searches.report(tree, pv=False)
        assert report.best is not None
        line = report.best_line
        self._playing[tree].played.play(
            Reply(
                report.best,
                score=line.score if line else None,
                nodes=report.visits,
                visits=tuple(searches.root_visits(tree)[: self.kept_visits]),
                value=round(searches.root_value(tree), 5),
            )
        )

    def _end(self, tree: int) -> Ended:
        playing = self._playing.pop(tree)
        return self._kept(playing.number, playing.played, self.name)


class PooledGames(GameGenerator):
    """Games of another generator, played in the processes of a pool, on this machine or on a cluster.

    Every process has a generator of its own. A game depends only on its number and opening, so the games
    are those that one generator would play alone.
    """

    def __init__(
        self,
        generator: GameGenerator,
        make_generator: MakeGenerator,
        make_pool: MakePool,
        processes: int,
    ) -> None:
        """generator: used for its settings and its name only. make_generator: makes one like it in
        another process; must be picklable."""
        games = generator.settings.games
        self._group = max(1, min(generator.group, -(-games // processes)))
        self._tasks = QUEUED * processes
        super().__init__(
            generator.settings,
            generator.rules,
            generator.openings,
            ahead=TASKS_AHEAD * self._tasks * self._group,
        )
        self._generator = generator
        self._processes, self._make_pool = processes, make_pool
        self._make_generator = make_generator

    def check_player(self) -> str:
        return self._generator.check_player()

    def _played(self, next_game: NextGame, done: Mapping[int, Ended]) -> Iterator[Ended]:
        pool = self._make_pool(self._processes, _begin_process, (self._make_generator,))
        running: set[Future[list[Ended]]] = set()
        try:
            while not self._stopped.is_set():
                while len(running) < self._tasks:
                    group: list[tuple[int, Opening]] = []
                    while len(group) < self._group and (begun := next_game()) is not None:
                        number, game = begun
                        if number in done:
                            yield done[number]
                            continue
                        start = self._starts.opening(number)
                        group.append((number, Opening(start.fen, tuple(game.moves))))
                    if not group:
                        break
                    running.add(pool.submit(_play_in_process, group))
                if not running:
                    return
                # The timeout lets the main thread receive Ctrl-C on every system.
                ended, running = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in ended:
                    yield from future.result()
        except BrokenExecutor as error:
            raise EngineError(f"a process that played games was lost: {error}") from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


class _Process:
    """State of a process of the pool."""

    generator: GameGenerator


def _begin_process(make_generator: MakeGenerator) -> None:
    _Process.generator = make_generator()


def _play_in_process(group: list[tuple[int, Opening]]) -> list[Ended]:
    generator = _Process.generator
    return generator.play_group(
        [(number, played_out(generator.rules, opening)) for number, opening in group]
    )
