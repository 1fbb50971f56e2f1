"""Importing: files in, proven and chosen games out to a store, and an account of the rest.

    files ─ sources ─ reader ─┬─ resolver ─┬─ conditions ─ store
                              └─ resolver ─┘        (processes, where there is much to do)

Everything flows in batches of bounded size, so memory does not grow with the input. Order is that of
the files whatever the number of processes.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from variant_ai.core.data.filters import GameFilter
from variant_ai.core.data.reader import GameReader, RawGame, bounded, choose_reader
from variant_ai.core.data.record import GameRecord
from variant_ai.core.data.resolve import Resolver
from variant_ai.core.data.skips import OnSkip, Skip
from variant_ai.core.data.sources import NamedStream, open_sources
from variant_ai.specs.errors import DataError, MoveError

HEAD = 8192
"""Bytes that a file's format is recognised by."""
BATCH_GAMES = 64
BATCH_PLIES = 20_000
"""Moves after which a batch is full, however few its games."""
WORTH_A_POOL = 300
"""Games below which starting processes takes longer than reading."""

MakeResolver = Callable[[], Resolver]


class GameSink(Protocol):
    """What games are added to: a store's writer."""

    def add(self, record: GameRecord) -> bool | None:
        """False: the same game was there, and is not taken twice."""


@dataclass
class ImportReport:
    """What became of everything that was read."""

    sources: int = 0
    """Streams that held games: files and members of archives."""
    read: int = 0
    """Games found in them."""
    games: int = 0
    """Games added."""
    plies: int = 0
    """Moves of the games added."""
    skipped: Counter[str] = field(default_factory=Counter)
    """Games, members and files that could not be read, by reason."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Games that did not meet the conditions, by reason; duplicates among them."""
    interrupted: bool = False
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        return {
            "sources": self.sources,
            "read": self.read,
            "games": self.games,
            "plies": self.plies,
            "skipped": dict(self.skipped.most_common()),
            "dropped": dict(self.dropped.most_common()),
            "interrupted": self.interrupted,
            "seconds": round(self.seconds, 2),
        }


@dataclass
class Importer:
    """One import. Callbacks are called in the thread that runs it."""

    readers: Sequence[GameReader]
    make_resolver: MakeResolver
    """Makes a resolver, in each process anew; picklable where `workers` is above 1."""
    conditions: GameFilter = field(default_factory=GameFilter)
    workers: int = 1
    on_skip: OnSkip = lambda skip: None
    on_bytes: Callable[[int], None] = lambda size: None
    on_progress: Callable[[ImportReport], None] = lambda report: None
    """After every batch."""
    stop: Callable[[], bool] = lambda: False
    """Asked between games; true ends the import with what is done kept."""

    def run(self, paths: Iterable[str | Path | NamedStream], sink: GameSink) -> ImportReport:
        """Import the files, folders, archives and streams. Raises what the sink raises, such as DataError
        for a full disk; bad input is skipped and reported, never raised."""
        report = ImportReport()
        started = time.monotonic()

        def skip(what: Skip) -> None:
            report.skipped[what.reason] += 1
            self.on_skip(what)

        for batch in self._resolved(self._raw_games(paths, report, skip)):
            for game in batch:
                if isinstance(game, Skip):
                    skip(game)
                    continue
                reason = self.conditions.reason(game)
                if reason is not None:
                    report.dropped[reason] += 1
                    continue
                try:
                    if sink.add(game) is False:
                        report.dropped["duplicate"] += 1
                        continue
                except MoveError as error:
                    where = (game.source, game.number)
                    skip(Skip("does not fit the store", *where, detail=str(error)))
                    continue
                report.games += 1
                report.plies += game.plies
            report.seconds = time.monotonic() - started
            self.on_progress(report)
            if self.stop():
                break
        report.interrupted = self.stop()
        report.seconds = time.monotonic() - started
        return report

    # --- files to raw games --------------------------------------------------------------------

    def _raw_games(
        self, paths: Iterable[str | Path | NamedStream], report: ImportReport, skip: OnSkip
    ) -> Iterator[RawGame]:
        for source in open_sources(paths, skip, self.on_bytes):
            if self.stop():
                return
            head = source.stream.peek(HEAD)[:HEAD]
            if not head:
                if not source.damaged:
                    skip(Skip("empty file", source.name, detail="there is nothing in it"))
                continue
            reader = choose_reader(self.readers, source.name, head)
            if reader is None:
                listed = ", ".join(r.name for r in self.readers)
                detail = f"no reader knows this format; there are: {listed}"
                skip(Skip("not a game file", source.name, detail=detail))
                continue
            before = report.read
            for raw in reader.read(source.stream, source.name):
                report.read += 1
                yield bounded(raw)
                if self.stop():
                    return
            if report.read > before:
                report.sources += 1
            else:
                skip(Skip("no games", source.name, detail=f"the reader {reader.name} found none"))

    # --- raw games to games --------------------------------------------------------------------

    def _resolved(self, raws: Iterator[RawGame]) -> Iterator[list[GameRecord | Skip]]:
        """The games in order, batch by batch, resolved here or in other processes."""
        first = list(islice(raws, WORTH_A_POOL if self.workers > 1 else 0))
        if len(first) < WORTH_A_POOL:
            resolver = self.make_resolver()
            for raw in _chained(first, raws):
                yield [resolver.resolve(raw)]
            return
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(self.workers, context, _start_worker, (self.make_resolver,))
        try:
            pending: deque[Future[list[GameRecord | Skip]]] = deque()
            for batch in _batches(_chained(first, raws)):
                pending.append(pool.submit(_resolve, batch))
                if len(pending) > 3 * self.workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        except BrokenProcessPool as error:
            raise DataError(
                "a process that read games was killed, perhaps for want of memory; try --workers 1"
            ) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


class _Worker:
    """What a worker process keeps between batches."""

    resolver: Resolver


def _start_worker(make_resolver: MakeResolver) -> None:
    # Ctrl-C reaches every process of the terminal; only the first one decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _Worker.resolver = make_resolver()


def _resolve(batch: list[RawGame]) -> list[GameRecord | Skip]:
    return [_Worker.resolver.resolve(raw) for raw in batch]


def _chained(first: list[RawGame], rest: Iterator[RawGame]) -> Iterator[RawGame]:
    """Gives up its hold on the first games as they go by."""
    queue = deque(first)
    first.clear()
    while queue:
        yield queue.popleft()
    yield from rest


def _batches(raws: Iterator[RawGame]) -> Iterator[list[RawGame]]:
    batch: list[RawGame] = []
    plies = 0
    for raw in raws:
        batch.append(raw)
        plies += len(raw.moves)
        if len(batch) >= BATCH_GAMES or plies >= BATCH_PLIES:
            yield batch
            batch, plies = [], 0
    if batch:
        yield batch
