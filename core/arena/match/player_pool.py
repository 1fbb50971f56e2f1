"""Threads that play games at the same time, each with its own players; and their results in order."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from variant_ai.core.arena.players.player import Player

Job = TypeVar("Job")
Result = TypeVar("Result")


def in_order(
    results: Iterable[Result],
    number_of: Callable[[Result], int],
    order: Iterable[int],
    waiting: dict[int, Result] | None = None,
) -> Iterator[Result]:
    """Yield results, which come in any order, in the order of their numbers. number_of: gives the number
    of a result. waiting: an empty dictionary for those that come before their turn, if the caller needs
    to see them."""
    waiting = {} if waiting is None else waiting
    turns = iter(order)
    turn = next(turns, None)
    for result in results:
        waiting[number_of(result)] = result
        while turn in waiting:
            ready = waiting.pop(turn)
            turn = next(turns, None)
            yield ready


class PlayerPool:
    """Plays games in threads. Used once: call `results`, and `stop` from any thread to end
    early."""

    def __init__(self, workers: int, make_player: Callable[[int], Player]) -> None:
        """make_player: makes a player by its index; it is started when first needed."""
        self.workers = workers
        self.alive: list[Player] = []
        """Players of all threads."""
        self._make_player = make_player
        self._stopped = threading.Event()
        self._local = threading.local()
        self._lock = threading.RLock()  # a signal may call `stop` while the lock is held

    def stopped(self) -> bool:
        """Return True after `stop`."""
        return self._stopped.is_set()

    def stop(self) -> None:
        """End soon: running games are lost."""
        self._stopped.set()
        with self._lock:
            players = list(self.alive)
        for player in players:
            player.kill()

    def players(self, indices: Sequence[int]) -> list[Player]:
        """This thread's players of the given indices, made when first needed; its others are
        closed."""
        own: dict[int, Player] | None = getattr(self._local, "players", None)
        if own is None:
            own = self._local.players = {}
        for index in [index for index in own if index not in indices]:
            player = own.pop(index)
            with self._lock, contextlib.suppress(ValueError):
                self.alive.remove(player)
            player.close()
        for index in indices:
            if index not in own:
                own[index] = self._make_player(index)
                with self._lock:
                    self.alive.append(own[index])
        return [own[index] for index in indices]

    def results(
        self,
        next_job: Callable[[], Job | None],
        play: Callable[[Job], Result],
        *,
        submitted: int | None = None,
    ) -> Generator[Result, None, None]:
        """Play jobs, and yield results as games end, until `stop` or until there are no more jobs.

        next_job: called in this thread; returns None if there is no job at present. play: called in
        the pool's threads. submitted: maximum number of jobs handed to the threads, one each by
        default. Errors are raised after the results of games that ended at the same time.
        """
        running: set[Future[Result]] = set()
        threads = ThreadPoolExecutor(self.workers, thread_name_prefix="game")
        try:
            while not self.stopped():
                while len(running) < (submitted or self.workers):
                    job = next_job()
                    if job is None:
                        break
                    running.add(threads.submit(play, job))
                if not running:
                    break
                # The timeout lets the main thread receive Ctrl-C on every system.
                ended, running = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in sorted(ended, key=lambda one: one.exception() is not None):
                    yield future.result()
        finally:
            self.stop()
            threads.shutdown(cancel_futures=True)
            for player in self.alive:
                player.close()
