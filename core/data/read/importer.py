"""Import of game files: legal games that meet the conditions go to a store, the rest is reported.

    files ─ sources ─ reader ─┬─ resolver ─┬─ conditions ─ store
                              └─ resolver ─┘        (in processes, if there are many games)

Games are handled in batches of bounded size, so memory does not grow with the input. Games, and
what could not be read, form one sequence of items in the order of the files, independent of the
number of processes. The number of finished items and a digest of them are the mark at which an
import resumes after a kill or interrupt: the items before it are read again, compared with the
digest, and skipped.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from variant_ai.core.data.filters import GameFilter
from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.read.game_files import HEAD, NamedStream, open_sources
from variant_ai.core.data.read.game_reader import (
    GameReader,
    OnSkip,
    RawGame,
    Skip,
    bounded,
    choose_reader,
)
from variant_ai.core.data.read.resolve import Resolver
from variant_ai.core.data.store.blocks import MARK
from variant_ai.core.errors import DataError, MoveError
from variant_ai.core.system.child_processes import WorkerPool
from variant_ai.core.system.text_tables import counted

if TYPE_CHECKING:
    from variant_ai.core.data.store.store_writer import StoreWriter

BATCH_GAMES = 64
BATCH_PLIES = 20_000
"""Moves after which a batch is full, regardless of the number of games."""
MIN_GAMES_FOR_POOL = 300
"""With fewer games, starting processes takes longer than reading."""

MakeResolver = Callable[[], Resolver]
MakePool = Callable[[int, Callable[[MakeResolver], None], tuple[MakeResolver]], Executor]
"""Arguments: number of processes, and a function that each calls once with these arguments."""


class GameSink(Protocol):
    """Destination of games: the writer of a store, with which an import can be resumed, or another."""

    def add(self, record: GameRecord) -> bool | None:
        """Add a game; return False if it is a duplicate, which is not added."""


@dataclass
class ImportReport:
    """Numbers of games read, added and left out."""

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
    """Games that did not meet the conditions, by reason, including duplicates."""
    interrupted: bool = False
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        return vars(self) | {
            "skipped": dict(self.skipped.most_common()),
            "dropped": dict(self.dropped.most_common()),
            "seconds": round(self.seconds, 2),
        }


Result = GameRecord | Skip


class _Place(NamedTuple):
    """Place in the sequence of items: number of items before it, games among them, and a digest of
    them."""

    items: int
    games: int
    digest: str


_BEGINNING = _Place(0, 0, hashlib.blake2b(digest_size=16).hexdigest())


class _Item(NamedTuple):
    """Item of the sequence: a raw game, or a skip."""

    raw: RawGame | Skip
    end: _Place
    """Place behind it."""


@dataclass
class Importer:
    """One import, by one call of `run`. Callbacks are called in the thread that calls `run`."""

    readers: Sequence[GameReader]
    make_resolver: MakeResolver
    """Makes a resolver in each process; must be picklable if `workers` is above 1."""
    conditions: GameFilter = field(default_factory=GameFilter)
    workers: int = 1
    make_pool: MakePool = WorkerPool
    """Makes the processes that resolve moves, if `workers` is above 1; they may be on other machines."""
    on_skip: OnSkip = lambda skip: None
    on_bytes: Callable[[int], None] = lambda size: None
    on_progress: Callable[[ImportReport], None] = lambda report: None
    """Called after every batch."""
    stop: Callable[[], bool] = lambda: False
    """Called between games; True ends the import, and finished games are kept."""

    def __post_init__(self) -> None:
        self._report = ImportReport()
        self._done = _BEGINNING
        """Place behind the items that are finished."""
        self._sink: GameSink | None = None
        self._current: tuple[_Item, int] | None = None
        """Item that is being added, and the number of games that the sink had before it."""
        self._resumed: Mapping[str, Any] | None = None
        """Mark at which this import resumes."""

    def run(
        self,
        paths: Iterable[str | Path | NamedStream],
        sink: GameSink,
        resume: Mapping[str, Any] | None = None,
    ) -> ImportReport:
        """Import files, folders, archives and streams. Bad input is skipped and reported, not raised.

        `resume`: mark of an earlier import of the same files. Items before it are not imported again,
        and the report covers both imports. Raises DataError if the files have changed, and errors of
        the sink such as DataError for a full disk.
        """
        report, self._sink, self._resumed = self._report, sink, resume
        started = time.monotonic()
        items = self._items(paths, report)
        if resume is not None:
            self._skip_finished(items, resume)
        for batch in self._resolved(items):
            for item, result in batch:
                self._add(item, result, sink)
                self._done = item.end
                report.read = item.end.games
            report.seconds = time.monotonic() - started
            self.on_progress(report)
        report.interrupted = self.stop()
        report.seconds = time.monotonic() - started
        return report

    def mark(self) -> dict[str, Any]:
        """Position at which an import of the same files may resume, as JSON. Called by the sink while
        it adds a game, or after an interrupt."""
        resumed, done = self._resumed, self._done
        if resumed is not None and done.items < resumed["items"]:
            return dict(resumed)
        sink = cast("StoreWriter", self._sink)
        if self._current is not None:
            item, games = self._current
            # An interrupt may come between any two lines of `_add`: only the sink knows what it has.
            if item.end.items > done.items and sink.games > games:
                done = item.end
        report = self._report
        return {
            "items": done.items,
            "digest": done.digest,
            "games": sink.games + (resumed["games"] if resumed else 0),
            "plies": sink.plies + (resumed["plies"] if resumed else 0),
            "skipped": dict(report.skipped),
            "dropped": dict(report.dropped),
        }

    def _skip_finished(self, items: Iterator[_Item], mark: Mapping[str, Any]) -> None:
        """Skip and count the items that an earlier import has finished."""
        for item in islice(items, mark["items"]):
            self._done = item.end
        done, report = self._done, self._report
        if done.items == mark["items"] and done.digest == mark["digest"]:
            report.games, report.plies, report.read = mark["games"], mark["plies"], done.games
            report.skipped.update(mark["skipped"])
            report.dropped.update(mark["dropped"])
        elif not self.stop():
            raise DataError(
                f"cannot resume: the files have changed since {counted(mark['games'], 'game')} of them were "
                "imported; import them into another store"
            )
        else:
            report.games, report.plies = mark["games"], mark["plies"]

    def _add(self, item: _Item, result: Result, sink: GameSink) -> None:
        """Count an item, and add it if it is a game that meets the conditions."""
        report = self._report
        if isinstance(result, Skip):
            self._skip(result)
        elif (reason := self.conditions.reason(result)) is not None:
            report.dropped[reason] += 1
        else:
            self._current = (item, getattr(sink, "games", 0))
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
        games, digest = 0, hashlib.blake2b(digest_size=16)
        for number, raw in enumerate(self._read(paths, report), 1):
            games += isinstance(raw, RawGame)
            if isinstance(raw, Skip):
                text = repr((raw.reason, raw.source, raw.number))
            else:
                text = repr((raw.source, raw.number, raw.headers, raw.moves, raw.result))
            data = text.encode("utf-8", "surrogatepass")
            digest.update(hashlib.blake2b(data, digest_size=16).digest())
            yield _Item(raw, _Place(number, games, digest.hexdigest()))
            if self.stop():
                return

    def _read(
        self, paths: Iterable[str | Path | NamedStream], report: ImportReport
    ) -> Iterator[RawGame | Skip]:
        skips: deque[Skip] = deque()
        """Skips of the sources since the last item."""
        for source in open_sources(paths, skips.append, self.on_bytes):
            while skips:
                yield skips.popleft()
            head = source.stream.peek(HEAD)[:HEAD]
            if not head:
                if not source.damaged:
                    yield Skip("empty file", source.name, detail="the file is empty")
                continue
            reader = choose_reader(self.readers, source.name, head)
            if reader is None:
                listed = ", ".join(r.name for r in self.readers)
                detail = f"no reader recognises this format; readers: {listed}"
                if head.startswith(MARK):
                    detail = "it is a game store; `variant-ai store merge` joins stores"
                yield Skip("not a game file", source.name, detail=detail)
                continue
            held_games = False
            for raw in reader.read(source.stream, source.name):
                report.sources += not held_games
                held_games = True
                yield bounded(raw)
            if not held_games:
                yield Skip(
                    "no games", source.name, detail=f"the reader {reader.name} found no game"
                )
        yield from skips

    # --- raw games to games --------------------------------------------------------------------

    def _resolved(self, items: Iterator[_Item]) -> Iterator[list[tuple[_Item, Result]]]:
        """Yield the resolved items in order, batch by batch; many are resolved in other processes."""
        first = list(islice(items, MIN_GAMES_FOR_POOL if self.workers > 1 else 0))
        if len(first) < MIN_GAMES_FOR_POOL:
            resolver = self.make_resolver()
            for item in chain(first, items):
                yield [(item, _result(resolver, item.raw))]
                if self.stop():
                    return
            return
        pool = self.make_pool(self.workers, _start_worker, (self.make_resolver,))
        pending: deque[tuple[list[_Item], Future[list[Result]]]] = deque()
        try:
            for batch in _batches(chain(first, items)):
                pending.append((batch, pool.submit(_resolve, [item.raw for item in batch])))
                if len(pending) > 3 * self.workers:
                    yield _joined(pending.popleft())
                if self.stop():
                    break
            # On stop, batches that have not begun are dropped, and those in progress are finished.
            while self.stop() and pending and pending[-1][1].cancel():
                pending.pop()
            while pending:
                yield _joined(pending.popleft())
        except BrokenExecutor as error:
            if self.stop():  # the signal has ended the workers as well
                return
            raise DataError(
                "a worker process was killed, perhaps because memory ran out; try --workers 1"
            ) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


class _Worker:
    """State of a worker process."""

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
