"""Monthly files of database.lichess.org: rated games of a variant, PGN compressed with zstd.

    BASE/NAME/lichess_db_NAME_rated_2016-01.pgn.zst
    BASE/NAME/sha256sums.txt        `<64 hex digits>  <file>`, a line for each month

The files are published under CC0. NAME is the name of the variant on the site, from its plugin.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from variant_ai.core.data.fetch.remote_file import RemoteError, fetch_text
from variant_ai.core.errors import DataError

SITE = "lichess"
"""Key of the site in `VariantEntry.names`."""
BASE = "https://database.lichess.org"
SUMS = "sha256sums.txt"
_MONTH = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")


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
