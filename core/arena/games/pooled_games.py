"""Games that are played in the processes of a pool, on this machine or on those of a cluster.

Every process has a generator of its own. A game depends only on its number and opening, so the games
are those that one generator would play alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait

from variant_ai.core.arena.games.generated_games import Ended
from variant_ai.core.arena.games.generation import GameGenerator, NextGame
from variant_ai.core.arena.games.openings import Opening, played_out
from variant_ai.core.errors import EngineError

QUEUED = 2
"""Tasks for each process, so that it need not wait for the next one."""
AHEAD = 4
"""Times the games of all tasks that are begun before the oldest one has ended."""
MakeGenerator = Callable[[], GameGenerator]
MakePool = Callable[[int, Callable[[MakeGenerator], None], tuple[MakeGenerator]], Executor]
"""Arguments: number of processes, and a function that each calls once with these arguments."""


class PooledGames(GameGenerator):
    """Games of another generator in other processes."""

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
            ahead=AHEAD * self._tasks * self._group,
        )
        self._generator = generator
        self._processes, self._make_pool = processes, make_pool
        self._make_generator = make_generator

    def check_player(self) -> str:
        return self._generator.check_player()

    def _played(self, next_game: NextGame, done: Mapping[int, Ended]) -> Iterator[Ended]:
        pool = self._make_pool(self._processes, _begin, (self._make_generator,))
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
                    running.add(pool.submit(_play, group))
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


def _begin(make_generator: MakeGenerator) -> None:
    _Process.generator = make_generator()


def _play(group: list[tuple[int, Opening]]) -> list[Ended]:
    generator = _Process.generator
    return generator.play_group(
        [(number, played_out(generator.rules, opening)) for number, opening in group]
    )
