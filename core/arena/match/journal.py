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
from typing import Any

from variant_ai.core.data.store.blocks import write_lock
from variant_ai.core.errors import DataError, os_reason
from variant_ai.core.system.closing import Closing

_CHECKSUM = "checksum"
_CHECKED = re.compile(rb',"checksum":"([0-9a-f]{16})"\}\Z')


def read_journal(path: Path) -> Iterator[dict[str, Any]]:
    """Read the complete lines of a journal, one at a time. Raises DataError for a damaged line."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.endswith(b"\n"):
                yield _parse(line, path, number)


def _parse(line: bytes, path: Path, number: int) -> dict[str, Any]:
    """Parse a line and check its checksum. Raises DataError."""
    line = line.strip()
    try:
        content = json.loads(line)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise DataError(f"{path}:{number}: not a line of a journal")
    if _CHECKSUM in content:
        found = _CHECKED.search(line)
        if found is None or _digest(line[: found.start()]) != found[1].decode():
            raise DataError(
                f"{path}:{number}: damaged or changed: the line does not match its checksum; delete "
                "the line, and the same command plays the game again"
            )
        del content[_CHECKSUM]
    return content


def _digest(text: bytes) -> str:
    """Checksum of a line without its last brace, 16 hex digits."""
    return hashlib.blake2b(text, digest_size=8).hexdigest()


class Journal(Closing):
    """A file of JSON lines that is appended to; a context manager."""

    def __init__(self, path: Path, *, keep: bool = True) -> None:
        """keep: add new lines to `lines`, too.

        Raises DataError if another process writes it, or if a line before the last is damaged."""
        self.path = path
        self._keep = keep
        self._stack = contextlib.ExitStack()
        try:
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
            self._file = self._stack.enter_context(io.FileIO(os.open(path, flags, 0o666), "r+"))
            self._stack.enter_context(write_lock(self._file, path))
            self.lines: list[dict[str, Any]] = self._read()
        except BaseException as error:
            self._stack.close()
            if isinstance(error, OSError):
                raise DataError(f"{path}: {error.strerror or error}") from error
            raise

    def close(self) -> None:
        self._stack.close()

    def append(self, content: dict[str, Any]) -> None:
        """Add a line; it is on disk when this returns. Raises DataError, for example on a full
        disk."""
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))[:-1].encode()
        line = b'%s,"checksum":"%s"}\n' % (text, _digest(text).encode())
        data = memoryview(line)
        try:
            while data:
                data = data[self._file.write(data) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            raise DataError(f"cannot write {self.path}: {os_reason(error, self.path)}") from error
        if self._keep:
            self.lines.append(content)

    def _read(self) -> list[dict[str, Any]]:
        """Read the complete lines, and remove an incomplete last one. Raises DataError."""
        data = self._file.readall()
        end = data.rfind(b"\n") + 1
        whole = enumerate(data[:end].split(b"\n")[:-1], start=1)
        lines = [_parse(line, self.path, number) for number, line in whole]
        self._file.truncate(end)
        self._file.seek(end)
        return lines
