"""Archives of monthly files, fetched into a store one month at a time; those of database.lichess.org are
rated games of a variant, PGN compressed with zstd.

    BASE/NAME/lichess_db_NAME_rated_2016-01.pgn.zst
    BASE/NAME/sha256sums.txt        `<64 hex digits>  <file>`, a line for each month

The files are published under CC0. NAME is the name of the variant on the site, from
its spec (`names: {lichess: [...]}`).

    server ─ temporary file (checksum) ─ decompression ─ reader ─ conditions ─ store
                                                           one run (RUN … END) a month

The temporary file lies beside the store and has no name. A month is in the store completely or not at
all: its run is closed after the whole file was decompressed, and undone otherwise. The months in a
store are listed in its sources, so the next run continues after them; an incomplete month of a killed
process is removed first.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from variant_ai.core.data.fetch.remote_file import RemoteError, fetch_text
from variant_ai.core.data.filters import GameFilter, conditions_text
from variant_ai.core.data.read.game_files import NamedStream
from variant_ai.core.data.read.game_reader import Skip
from variant_ai.core.data.read.importer import Importer, ImportReport
from variant_ai.core.data.store import store_format as form
from variant_ai.core.data.store.blocks import read_body, scan, write_lock
from variant_ai.core.data.store.columns import decode_json
from variant_ai.core.data.store.game_store import Store
from variant_ai.core.data.store.store_writer import Mode, StoreWriter
from variant_ai.core.data.store.stored_moves import RulesCodec
from variant_ai.core.errors import DataError
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.system.files import naming

SITE = "lichess"
"""Key of the site in `names:` of a spec."""
BASE = "https://database.lichess.org"
SUMS = "sha256sums.txt"
_MONTH = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")
MONTH_ATTEMPTS = 2
"""Number of times a month is read before a wrong checksum is final."""
UNREAD = ("damaged file", "not a game file", "archive not read", "archives too deep")
"""Reasons of skips of whole files, which have games that were not read."""
FetchFile = Callable[[str, IO[bytes]], int]
"""Writes the bytes of a URL to a file and returns how many times the transfer was resumed."""


def check_month(text: str) -> str:
    """Return a month as it is written here, `2016-01`; months sort as texts. Raises DataError."""
    month = text.strip()
    if not _MONTH.fullmatch(month):
        raise DataError(f"{text!r} is not a month; accepted: months like 2016-01")
    return month


class MonthlyFile(NamedTuple):
    """File with the games of one month."""

    month: str
    """`2016-01`."""
    name: str
    """File name, by which a store records a finished month from any server."""
    url: str
    sha256: str = ""
    """Hex digits, empty if unknown."""


class Archive(NamedTuple):
    """Files of one variant on one server."""

    variant: str
    """Name of the variant on the site."""
    base: str = BASE

    @property
    def folder(self) -> str:
        return f"{self.base.rstrip('/')}/{self.variant}"

    def files(
        self,
        first: str | None,
        last: str | None,
        *,
        on_wait: Callable[[str], None] = lambda text: None,
    ) -> list[MonthlyFile]:
        """Return the files from one month to another, inclusive; None: the first or last available.

        Reads the list of checksums; `on_wait` is called with the reason before each retry. Raises
        DataError if a month of the range is missing, RemoteError.
        """
        try:
            text = fetch_text(f"{self.folder}/{SUMS}", on_wait=on_wait)
        except RemoteError as error:
            if error.status != 404:
                raise
            raise DataError(
                f"{self.folder} has no {SUMS}: the site has no variant {self.variant!r}, or the "
                "server is not a mirror of the site"
            ) from error
        known = self._parse(text)
        if not known:
            raise DataError(f"{self.folder}/{SUMS} lists no month of {self.variant!r}")
        months = _range(first or min(known), last or max(known))
        missing = [month for month in months if month not in known]
        if missing:
            raise DataError(
                f"there are no games of {missing[0]}"
                + (f" and {len(missing) - 1} other months" if missing[1:] else "")
                + f" at {self.folder}, which has {min(known)} to {max(known)}"
            )
        return [known[month] for month in months]

    def unlisted(self, first: str, last: str) -> list[MonthlyFile]:
        """Return the files without a request to the server, and without checksums."""
        names = {m: f"lichess_db_{self.variant}_rated_{m}.pgn.zst" for m in _range(first, last)}
        return [MonthlyFile(m, name, f"{self.folder}/{name}") for m, name in names.items()]

    def _parse(self, text: str) -> dict[str, MonthlyFile]:
        form = re.compile(
            rf"([0-9a-fA-F]{{64}})\s+\*?(lichess_db_{re.escape(self.variant)}_rated_"
            r"(\d{4}-\d\d)\.pgn\.\w+)\s*"
        )
        found = (form.fullmatch(line) for line in text.splitlines())
        files = (
            MonthlyFile(check_month(m[3]), m[2], f"{self.folder}/{m[2]}", m[1].lower())
            for m in found
            if m
        )
        return {file.month: file for file in files}


def _range(first: str, last: str) -> list[str]:
    if last < first:
        raise DataError(f"the last month ({last}) is before the first ({first})")
    return [str(month) for month in np.arange(np.datetime64(first), np.datetime64(last) + 1)]


@dataclass
class MonthReport:
    """Result of fetching a month."""

    file: MonthlyFile
    imported: ImportReport
    bytes: int
    resumed: int
    """Number of times the transfer was interrupted and resumed."""

    def as_json(self) -> dict[str, Any]:
        month = {"month": str(self.file.month), "bytes": self.bytes, "resumed": self.resumed}
        report = self.imported.as_json()
        del report["sources"], report["interrupted"]
        return month | report


@dataclass
class Fetcher:
    """Fetcher of an archive. Callbacks are called in the thread of `run`."""

    store: Path
    spec: VariantSpec
    make_importer: Callable[[], Importer]
    """Makes an importer for each month, with the conditions that are recorded in the store."""
    conditions: GameFilter
    fetch_file: FetchFile
    on_month: Callable[[MonthlyFile], None]
    """Called when a month begins."""
    report: Callable[[str], None]

    def __post_init__(self) -> None:
        self._codec = RulesCodec(self.spec)

    def missing(self, files: Sequence[MonthlyFile]) -> list[MonthlyFile]:
        """Return the files that are not in the store yet; removes an incomplete month from the store.

        Raises DataError if the store has months with other conditions, or a part of a month.
        """
        if not self.store.exists():
            return list(files)
        names = {file.name for file in files}
        cut = cut_unfinished_month(self.store)
        if cut:
            self.report(f"{self.store}: removed an incomplete month, {cut}.")
        info = Store(self.store, self.spec).info
        for run in info.runs:
            month = next((source for source in run.sources if is_month(source)), None)
            if month is not None and run.conditions != self.conditions.as_dict():
                raise DataError(
                    f"{self.store} has {month} with other conditions "
                    f"({conditions_text(run.conditions)}, now {self.conditions}); fetch into another store"
                )
            # with several sources it is unknown which one was not a game file
            unread = UNREAD if len(run.sources) == 1 else UNREAD[:1]
            if month is not None and (run.interrupted or any(map(run.dropped.get, unread))):
                raise DataError(
                    f"{self.store} has a part of {month}, from an import that was interrupted or read a "
                    "damaged file; fetch into another store"
                )
        done = names & set(info.sources)
        return [file for file in files if file.name not in done]

    def run(self, files: Sequence[MonthlyFile]) -> Generator[MonthReport, None, None]:
        """Fetch the files in order and yield a report after each.

        Raises DataError (a checksum that stays wrong, a full disk) and RemoteError (a file that
        cannot be read). Every error, and Ctrl-C, undoes the current month; earlier ones stay.
        """
        for file in files:
            self.on_month(file)
            yield self._month(file)

    def _month(self, file: MonthlyFile) -> MonthReport:
        problem = ""
        for _ in range(MONTH_ATTEMPTS):
            with naming(self.store, self.store.parent):
                file_beside = tempfile.TemporaryFile(dir=self.store.parent)  # noqa: SIM115
            with file_beside as archive:
                resumed = self.fetch_file(file.url, archive)
                size = archive.tell()
                problem = _wrong(file, archive)
                if not problem:
                    report, problem = self._import(file, archive)
                    if not problem:
                        return MonthReport(file, report, size, resumed)
                    if file.sha256:
                        raise DataError(
                            f"{problem}; its checksum is right, so its format is unknown"
                        )
            self.report(f"{problem}; reading it again.")
        raise DataError(f"{problem} after {MONTH_ATTEMPTS} attempts; its games were not kept")

    def _import(self, file: MonthlyFile, archive: IO[bytes]) -> tuple[ImportReport, str]:
        """Import a month; return the report of the import, and why it was not kept, else `''`."""
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
            importer = self.make_importer()
            unread = _unread(importer)
            report = importer.run([NamedStream(file.name, archive)], writer)
            if unread:
                return report, f"{file.url}: {unread[0].reason}: {unread[0].detail}"
            writer.close(dropped=report.skipped + report.dropped)
            return report, ""
        finally:
            writer.abort()  # no effect after closing


def _unread(importer: Importer) -> list[Skip]:
    """Return a list to which the importer will add the files that it cannot read."""
    found: list[Skip] = []
    on_skip = importer.on_skip

    def keep(skip: Skip) -> None:
        if skip.reason in UNREAD:
            found.append(skip)
        on_skip(skip)

    importer.on_skip = keep
    return found


def _wrong(file: MonthlyFile, archive: IO[bytes]) -> str:
    """Return the error message if the checksum of a file is wrong, else `''`; rewind it."""
    archive.seek(0)
    found = hashlib.file_digest(archive, "sha256").hexdigest()  # type: ignore[arg-type]
    archive.seek(0)
    if file.sha256 in ("", found):
        return ""
    return (
        f"{file.url} has a wrong checksum (SHA-256 {found[:16]}…, in the list of the server "
        f"{file.sha256[:16]}…)"
    )


def is_month(source: str) -> bool:
    """Return True if a source of a store is a monthly file."""
    return source.startswith("lichess_db_")


def cut_unfinished_month(path: Path) -> str:
    """Remove the last run of a store if it is a month that was not finished.

    Returns the file of the month, empty if nothing was removed. Raises DataError if the store is
    damaged or being written.
    """
    with path.open("r+b") as file, write_lock(file, path):
        found = scan(file, str(path))
        ends = [block for block in found.blocks if block.kind == form.END]
        if not ends:
            return ""
        rest = found.blocks[ends[-1].number + 1 :]
        if not rest or rest[0].kind != form.RUN:
            return ""
        sources = decode_json(read_body(file, rest[0], str(path))).get("sources", [])
        if not sources or not is_month(sources[0]):
            return ""
        file.truncate(ends[-1].end)
        return str(sources[0])
