"""Journals of finished games: JSON lines that survive a kill.

A line is written and synchronised (fsync) when its game has ended, so a kill loses only the games
in progress. A last line that was cut off is dropped when the file is opened again. One process
writes at a time.

Each line ends with a checksum of the rest of it, so that a changed line is rejected. Lines of
earlier versions, which have no checksum, are accepted.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from variant_ai.core.data.store.blocks import write_lock
from variant_ai.core.errors import DataError, os_reason
from variant_ai.core.system.closing import Closing

_CHECKSUM = "checksum"
_BLOCK = 1 << 16
"""Bytes that are read at a time when the last line is looked for."""
_CHECKED = re.compile(rb',"checksum":"([0-9a-f]{16})"\}\Z')


def _parse(line: bytes, path: Path, number: int | None) -> dict[str, Any]:
    """Parse a line and check its checksum. number: of the line, from 1; None: it was read before.
    Raises DataError."""
    line, place = line.strip(), str(path) if number is None else f"{path}:{number}"
    try:
        content = json.loads(line)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise DataError(
            f"{place}: not a line of a journal; delete the line to go on without this game"
        )
    if _CHECKSUM in content:
        found = _CHECKED.search(line)
        if found is None or _digest(line[: found.start()]) != found[1].decode():
            raise DataError(
                f"{place}: damaged or changed: the line does not match its checksum; delete "
                "the line, and the same command plays the game again"
            )
        del content[_CHECKSUM]
    return content


def _digest(text: bytes) -> str:
    """Checksum of a line without its last brace, 16 hex digits."""
    return hashlib.blake2b(text, digest_size=8).hexdigest()


class JournalLine(NamedTuple):
    """A line that was read."""

    content: dict[str, Any]
    number: int
    """Counted from 1."""
    offset: int
    """Of its first byte in the file."""


class Journal(Closing):
    """A file of JSON lines that is appended to; a context manager. It keeps no lines in memory."""

    def __init__(self, path: Path) -> None:
        """Open a journal, or begin one. Raises DataError if another process writes it."""
        self.path = path
        self._stack = contextlib.ExitStack()
        try:
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
            self._file = self._stack.enter_context(io.FileIO(os.open(path, flags, 0o666), "r+"))
            self._stack.enter_context(write_lock(self._file, path))
            self._end = _end_of_lines(self._file)
            self._file.truncate(self._end)
            self._file.seek(self._end)
        except BaseException as error:
            self._stack.close()
            if isinstance(error, OSError):
                raise DataError(f"{path}: {error.strerror or error}") from error
            raise

    @property
    def is_empty(self) -> bool:
        return self._end == 0

    def close(self) -> None:
        self._stack.close()

    def append(self, content: dict[str, Any]) -> int:
        """Add a line; it is on disk when this returns. Return its offset. Raises DataError, for example
        on a full disk; the journal is as before then."""
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))[:-1].encode()
        line = b'%s,"checksum":"%s"}\n' % (text, _digest(text).encode())
        data, offset = memoryview(line), self._end
        try:
            while data:
                data = data[self._file.write(data) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            with contextlib.suppress(OSError):
                self._file.truncate(offset)
                self._file.seek(offset)
            raise DataError(f"cannot write {self.path}: {os_reason(error, self.path)}") from error
        self._end += len(line)
        return offset

    def lines(self) -> Iterator[JournalLine]:
        """Read the lines, one at a time. Raises DataError for a damaged one."""
        offset = 0
        with self.path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.endswith(b"\n"):
                    yield JournalLine(_parse(line, self.path, number), number, offset)
                offset += len(line)

    def read(self, offset: int) -> dict[str, Any]:
        """Read the line that begins at an offset. Raises DataError if it is damaged."""
        with self.path.open("rb") as file:
            file.seek(offset)
            return _parse(file.readline(), self.path, None)


def _end_of_lines(file: io.FileIO) -> int:
    """Offset behind the last line that is complete."""
    end = file.seek(0, os.SEEK_END)
    while end > 0:
        begin = max(0, end - _BLOCK)
        file.seek(begin)
        found = file.read(end - begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0
