"""Importing: files in, proven and chosen games out to a store, and an account of the rest.

    files ─ sources ─ reader ─┬─ resolver ─┬─ conditions ─ store
                              └─ resolver ─┘        (processes, where there is much to do)

Everything flows in batches of bounded size, so memory does not grow with the input. Order is that of
the files whatever the number of processes: games, and what could not be read, are one sequence of
items. How many of them are done, and a digest of them, is the mark from which an import goes on that
was killed or interrupted: the items before it are read again, compared with the digest, and left out.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

from variant_ai.core.data.filters import GameFilter
from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.read.game_files import NamedStream, open_sources
from variant_ai.core.data.read.game_reader import GameReader, RawGame, bounded, choose_reader
from variant_ai.core.data.read.resolve import Resolver
from variant_ai.core.data.read.skipped_games import OnSkip, Skip
from variant_ai.core.errors import DataError, MoveError
from variant_ai.core.system.child_processes import WorkerPool

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


class CountingSink(GameSink, Protocol):
    """A sink that an import can be taken up with later."""

    @property
    def games(self) -> int:
        """Games added in this process."""

    @property
    def plies(self) -> int:
        """Moves of these."""


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


Result = GameRecord | Skip


@dataclass(slots=True)
class _Item:
    """The next of the sequence: a game as it was read, or what was found instead."""

    raw: RawGame | Skip
    digest: bytes


class _Place:
    """A place in the sequence of items: how many are before it, how many games among them, and a
    digest of all."""

    def __init__(self, items: int = 0, games: int = 0, digest: Any = None) -> None:
        self.items, self.games = items, games
        self._digest = hashlib.blake2b(digest_size=16) if digest is None else digest

    def after(self, item: _Item) -> _Place:
        """The place behind the next item."""
        digest = self._digest.copy()
        digest.update(item.digest)
        return _Place(self.items + 1, self.games + isinstance(item.raw, RawGame), digest)

    @property
    def digest(self) -> str:
        return str(self._digest.hexdigest())


class _Step(NamedTuple):
    """An item that is being taken."""

    place: _Place
    """Before it."""
    item: _Item
    games: int
    """Of the sink before it."""


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
    _report: ImportReport = field(default_factory=ImportReport, init=False)
    _place: _Place = field(default_factory=_Place, init=False)
    _sink: GameSink | None = field(default=None, init=False)
    _step: _Step | None = field(default=None, init=False)
    _before: Mapping[str, Any] | None = field(default=None, init=False)
    """The mark that this import goes on from."""

    def run(
        self,
        paths: Iterable[str | Path | NamedStream],
        sink: GameSink,
        goes_on: Mapping[str, Any] | None = None,
    ) -> ImportReport:
        """Import the files, folders, archives and streams. Raises what the sink raises, such as DataError
        for a full disk; bad input is skipped and reported, never raised.

        goes_on: the mark of an earlier import of the same files. What lies before it is not imported
        again, and the report is of both together. Raises DataError where the files are others now.
        """
        report = self._report = ImportReport()
        self._place, self._sink, self._before = _Place(), sink, goes_on
        started = time.monotonic()
        items = self._items(paths, report)
        if goes_on is not None:
            self._leave_out(items, goes_on)
        for batch in self._resolved(items):
            for item, result in batch:
                self._take(item, result, sink)
                self._place = self._place.after(item)
                report.read = self._place.games
            report.seconds = time.monotonic() - started
            self.on_progress(report)
        report.interrupted = self.stop()
        report.seconds = time.monotonic() - started
        return report

    def mark(self) -> dict[str, Any]:
        """Where an import of the same files may go on, as JSON; asked by the sink, which then holds
        the game it is being given, or by whoever was interrupted."""
        before, place, step = self._before, self._place, self._step
        if before is not None and place.items < before["items"]:
            return dict(before)
        sink = cast("CountingSink", self._sink)
        # An interrupt comes between any two lines of `_take`: the sink alone knows what it has.
        if step is not None and step.place is place and sink.games > step.games:
            place = place.after(step.item)
        report = self._report
        return {
            "items": place.items,
            "digest": place.digest,
            "games": sink.games + (before["games"] if before else 0),
            "plies": sink.plies + (before["plies"] if before else 0),
            "skipped": dict(report.skipped),
            "dropped": dict(report.dropped),
        }

    def _leave_out(self, items: Iterator[_Item], mark: Mapping[str, Any]) -> None:
        """Pass by what an earlier import has done, and count it."""
        for item in islice(items, mark["items"]):
            self._place = self._place.after(item)
        place, report = self._place, self._report
        if place.items == mark["items"] and place.digest == mark["digest"]:
            report.games, report.plies, report.read = mark["games"], mark["plies"], place.games
            report.skipped.update(mark["skipped"])
            report.dropped.update(mark["dropped"])
        elif not self.stop():
            raise DataError(
                f"the files are not those that {mark['games']:,} games were imported from before "
                "the import was interrupted: it cannot go on with them"
            )
        else:
            report.games, report.plies = mark["games"], mark["plies"]

    def _take(self, item: _Item, result: Result, sink: GameSink) -> None:
        """Count an item, and add it where it is a game that is wanted."""
        report = self._report
        if isinstance(result, Skip):
            self._skip(result)
        elif (reason := self.conditions.reason(result)) is not None:
            report.dropped[reason] += 1
        else:
            self._step = _Step(self._place, item, getattr(sink, "games", 0))
            try:
                if sink.add(result) is False:
                    report.dropped["duplicate"] += 1
                else:
                    report.games += 1
                    report.plies += result.plies
            except MoveError as error:
                where = (result.source, result.number)
                self._skip(Skip("does not fit the store", *where, detail=str(error)))

    def _skip(self, skip: Skip) -> None:
        self._report.skipped[skip.reason] += 1
        self.on_skip(skip)

    # --- files to items ------------------------------------------------------------------------

    def _items(
        self, paths: Iterable[str | Path | NamedStream], report: ImportReport
    ) -> Iterator[_Item]:
        for raw in self._read(paths, report):
            if isinstance(raw, Skip):
                said = repr((raw.reason, raw.source, raw.number))
            else:
                said = repr((raw.source, raw.number, raw.headers, raw.moves, raw.result))
            data = said.encode("utf-8", "surrogatepass")
            yield _Item(raw, hashlib.blake2b(data, digest_size=16).digest())
            if self.stop():
                return

    def _read(
        self, paths: Iterable[str | Path | NamedStream], report: ImportReport
    ) -> Iterator[RawGame | Skip]:
        told: deque[Skip] = deque()
        """Of the sources, until the next item."""
        for source in open_sources(paths, told.append, self.on_bytes):
            while told:
                yield told.popleft()
            head = source.stream.peek(HEAD)[:HEAD]
            if not head:
                if not source.damaged:
                    yield Skip("empty file", source.name, detail="there is nothing in it")
                continue
            reader = choose_reader(self.readers, source.name, head)
            if reader is None:
                listed = ", ".join(r.name for r in self.readers)
                detail = f"no reader knows this format; there are: {listed}"
                yield Skip("not a game file", source.name, detail=detail)
                continue
            held_games = False
            for raw in reader.read(source.stream, source.name):
                report.sources += not held_games
                held_games = True
                yield bounded(raw)
            if not held_games:
                yield Skip("no games", source.name, detail=f"the reader {reader.name} found none")
        yield from told

    # --- raw games to games --------------------------------------------------------------------

    def _resolved(self, items: Iterator[_Item]) -> Iterator[list[tuple[_Item, Result]]]:
        """The items in order, batch by batch, resolved here or in other processes."""
        first = list(islice(items, WORTH_A_POOL if self.workers > 1 else 0))
        if len(first) < WORTH_A_POOL:
            resolver = self.make_resolver()
            for item in _chained(first, items):
                yield [(item, _result(resolver, item.raw))]
                if self.stop():
                    return
            return
        pool = WorkerPool(self.workers, _start_worker, (self.make_resolver,))
        pending: deque[tuple[list[_Item], Future[list[Result]]]] = deque()
        try:
            for batch in _batches(_chained(first, items)):
                pending.append((batch, pool.submit(_resolve, [item.raw for item in batch])))
                if len(pending) > 3 * self.workers:
                    yield _joined(pending.popleft())
                if self.stop():
                    break
            # Told to stop, what nobody has begun is left, and what is under way is finished.
            while self.stop() and pending and pending[-1][1].cancel():
                pending.pop()
            while pending:
                yield _joined(pending.popleft())
        except BrokenProcessPool as error:
            if self.stop():  # by a signal that ended the workers as well
                return
            raise DataError(
                "a process that read games was killed, perhaps for want of memory; try --workers 1"
            ) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


class _Worker:
    """What a worker process keeps between batches."""

    resolver: Resolver


def _start_worker(make_resolver: MakeResolver) -> None:
    _Worker.resolver = make_resolver()


def _resolve(batch: list[RawGame | Skip]) -> list[Result]:
    return [_result(_Worker.resolver, raw) for raw in batch]


def _result(resolver: Resolver, raw: RawGame | Skip) -> Result:
    return raw if isinstance(raw, Skip) else resolver.resolve(raw)


def _joined(done: tuple[list[_Item], Future[list[Result]]]) -> list[tuple[_Item, Result]]:
    batch, future = done
    return list(zip(batch, future.result(), strict=True))


def _chained(first: list[_Item], rest: Iterator[_Item]) -> Iterator[_Item]:
    """Gives up its hold on the first items as they go by."""
    queue = deque(first)
    first.clear()
    while queue:
        yield queue.popleft()
    yield from rest


def _batches(items: Iterator[_Item]) -> Iterator[list[_Item]]:
    batch: list[_Item] = []
    plies = 0
    for item in items:
        batch.append(item)
        plies += len(item.raw.moves) if isinstance(item.raw, RawGame) else 1
        if len(batch) >= BATCH_GAMES or plies >= BATCH_PLIES:
            yield batch
            batch, plies = [], 0
    if batch:
        yield batch
