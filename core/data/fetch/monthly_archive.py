"""Fetching an archive of monthly files into a store, a month at a time.

    server ─ RemoteFile (checksum) ─ unpacking ─ reader ─ conditions ─ store
                                                       one writing (RUN … END) a month

A month is in the store whole or not at all: its writing is closed once all of it could be unpacked
and the checksum of its bytes is right, and undone otherwise. A store says by its sources which
months it has, so a second run goes on behind them; what a killed process left of a month is cut off
first.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from variant_ai.core.data.fetch.lichess import MonthlyFile
from variant_ai.core.data.fetch.remote_file import RemoteFile
from variant_ai.core.data.filters import GameFilter
from variant_ai.core.data.read.game_files import NamedStream
from variant_ai.core.data.read.game_reader import Skip
from variant_ai.core.data.read.importer import Importer, ImportReport
from variant_ai.core.data.store import store_format as form
from variant_ai.core.data.store.blocks import read_body, scan, write_lock
from variant_ai.core.data.store.columns import decode_json
from variant_ai.core.data.store.game_store import Store
from variant_ai.core.data.store.store_writer import Mode, StoreWriter
from variant_ai.core.data.store.stored_moves import GameCodec, RulesCodec
from variant_ai.core.errors import DataError
from variant_ai.core.spec.schema import VariantSpec

MONTH_ATTEMPTS = 2
"""Times a month is read from its beginning before a wrong checksum is believed."""
UNREAD = ("damaged file", "not a game file", "archive not read", "archives too deep")
"""Skips of whole files: there are games behind them."""

OpenRemote = Callable[[str], RemoteFile]


@dataclass
class MonthReport:
    """What came of a month."""

    file: MonthlyFile
    imported: ImportReport
    bytes: int
    resumed: int
    """How often its transfer broke and went on."""

    def as_json(self) -> dict[str, Any]:
        said = self.imported.as_json()
        del said["sources"], said["interrupted"]
        return {"month": str(self.file.month), "bytes": self.bytes, "resumed": self.resumed, **said}


@dataclass
class Fetcher:
    """One fetching. Callbacks are called in the thread that runs it."""

    store: Path
    spec: VariantSpec
    make_importer: Callable[[], Importer]
    """A fresh one for each month; its conditions are those recorded in the store."""
    conditions: GameFilter = field(default_factory=GameFilter)
    open_remote: OpenRemote = RemoteFile
    on_month: Callable[[MonthlyFile], None] = lambda file: None
    """A month begins."""
    on_note: Callable[[str], None] = lambda text: None

    def __post_init__(self) -> None:
        self._codec: GameCodec = RulesCodec(self.spec)

    def missing(self, files: Sequence[MonthlyFile]) -> list[MonthlyFile]:
        """The files whose games the store does not have yet; cuts off the rest of a killed month.

        Raises DataError where the store has months chosen by other conditions, or a part of one.
        """
        if not self.store.exists():
            return list(files)
        names = {file.name for file in files}
        cut = cut_unfinished(self.store, lambda sources: sources[:1] != [] and is_month(sources[0]))
        if cut:
            self.on_note(f"{self.store}: dropped what was there of {cut[0]}, which was cut short.")
        info = Store(self.store, self.spec).info
        wanted = self.conditions.as_dict()
        for run in info.runs:
            had = next((source for source in run.sources if is_month(source)), None)
            if had is not None and run.conditions != wanted:
                raise DataError(
                    f"{self.store} has {had} chosen by other conditions "
                    f"({_told(run.conditions)}, now {_told(wanted)}); fetch into another store"
                )
            # Of several sources nobody knows which one was no game file.
            unread = UNREAD if len(run.sources) == 1 else UNREAD[:1]
            if had is not None and (run.interrupted or any(map(run.dropped.get, unread))):
                raise DataError(
                    f"{self.store} has a part of {had}, by an import that was interrupted or met "
                    "damage; fetch into another store"
                )
        done = names & set(info.sources)
        return [file for file in files if file.name not in done]

    def run(self, files: Sequence[MonthlyFile]) -> Generator[MonthReport, None, None]:
        """Fetches the files in order and yields after each.

        Raises DataError (a checksum that stays wrong, a full disk) and RemoteError (a file that
        cannot be read); the months before are in the store. Whatever ends it, Ctrl-C among it,
        undoes the month under way and no other.
        """
        for file in files:
            self.on_month(file)
            yield self._month(file)

    def _month(self, file: MonthlyFile) -> MonthReport:
        problem = ""
        unread: list[Skip] = []
        for _ in range(MONTH_ATTEMPTS):
            mode: Mode = "append" if self.store.exists() else "new"
            writer = StoreWriter(
                self.store,
                self.spec,
                mode=mode,
                sources=[file.name],
                conditions=self.conditions,
                codec=self._codec,
            )
            try:
                with self.open_remote(file.url) as remote:
                    importer = self.make_importer()
                    unread = _unread(importer)
                    report = importer.run([NamedStream(file.name, remote)], writer)
                    if remote.failure is not None:  # swallowed where the stream is unpacked
                        raise remote.failure
                    remote.drain()
                    problem = _wrong(file, remote)
                    if unread and not problem:
                        problem = f"{file.url}: {unread[0].reason}: {unread[0].detail}"
                        if file.sha256:
                            raise DataError(f"{problem}; it has its checksum, so its form is new")
                    if not problem:
                        writer.close(dropped=report.skipped + report.dropped)
                        return MonthReport(file, report, remote.received, remote.resumed)
            finally:
                writer.abort()  # nothing happens once it is closed
            self.on_note(f"{problem}; reading it again.")
        raise DataError(f"{problem}, {MONTH_ATTEMPTS} times; its games were not kept")


def _unread(importer: Importer) -> list[Skip]:
    """Where the importer will put the whole files that it cannot read, beside telling of them."""
    found: list[Skip] = []
    tell = importer.on_skip

    def keep(skip: Skip) -> None:
        if skip.reason in UNREAD:
            found.append(skip)
        tell(skip)

    importer.on_skip = keep
    return found


def _wrong(file: MonthlyFile, remote: RemoteFile) -> str:
    """What is wrong with the bytes that came, in words; `''` where nothing is."""
    if not file.sha256 or remote.sha256() == file.sha256:
        return ""
    return (
        f"{file.url} does not have its checksum (SHA-256 {remote.sha256()[:16]}…, the server's list "
        f"says {file.sha256[:16]}…)"
    )


def is_month(source: str) -> bool:
    """Whether a store's source is a monthly file of such an archive."""
    return source.startswith("lichess_db_")


def cut_unfinished(path: Path, ours: Callable[[list[str]], bool]) -> list[str]:
    """Cuts off the last writing of a store if it was not finished and its sources are `ours`.

    Returns the sources of what was cut off, empty where there was nothing. Raises DataError where
    the store is damaged or being written.
    """
    with path.open("r+b") as file, write_lock(file, path):
        found = scan(file, str(path))
        ends = [i for i, block in enumerate(found.blocks) if block.kind == form.END]
        if not ends:
            return []
        last = ends[-1]
        rest = found.blocks[last + 1 :]
        if not rest or rest[0].kind != form.RUN:
            return []
        sources = list(decode_json(read_body(file, rest[0], str(path))).get("sources", []))
        if not ours(sources):
            return []
        file.truncate(found.blocks[last].end)
        return sources


def _told(conditions: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in conditions.items()) or "none"
