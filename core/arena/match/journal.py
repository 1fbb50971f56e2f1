"""Finished games on disk, one JSON object a line, each safe before the next begins.

A line is written and synchronised (fsync) when its game has ended, so a kill at any instant loses
the games in progress and no other. A last line that was cut off is dropped when the file is opened
again. One process writes at a time.

Each line ends with a checksum of the rest of it, so that a result that was changed, by a bad disk or
by hand, is not believed. Lines without one, of earlier versions, are taken as they are.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from variant_ai.core.arena.players.player import ACCIDENTS
from variant_ai.core.data.game_record import Result
from variant_ai.core.data.store.blocks import write_lock
from variant_ai.core.errors import DataError, os_reason


@dataclass
class GameEntry:
    """A finished game of a match. Per-ply lists are as long as the game, None in the opening."""

    number: int
    """Of its pairing."""
    round: int
    first: str
    """Names of the players."""
    second: str
    opening: int
    start_fen: str | None
    moves: list[str]
    """UCI."""
    opening_plies: int
    result: Result
    reason: str
    detail: str = ""
    date: str = ""
    """`2026.11.22`."""
    scores: list[int | None] = field(default_factory=list)
    depths: list[int | None] = field(default_factory=list)
    nodes: list[int | None] = field(default_factory=list)
    times: list[int | None] = field(default_factory=list)
    """Milliseconds."""

    @property
    def course(self) -> tuple[object, ...]:
        """Who played what: equal in a game that repeats another. One that ended by an accident
        repeats none."""
        course = (self.first, self.second, self.start_fen, *self.moves)
        return (*course, self.number) if self.reason in ACCIDENTS else course

    @property
    def points(self) -> float:
        """Of the first player."""
        return {"1-0": 1.0, "0-1": 0.0}.get(self.result, 0.5)


_CHECKSUM = "checksum"
_CHECKED = re.compile(rb',"checksum":"([0-9a-f]{16})"\}\Z')


def read_journal(path: Path) -> Iterator[dict[str, Any]]:
    """The whole lines of a journal, one at a time. Raises DataError at a line that is damaged."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.endswith(b"\n"):
                yield _said(line, path, number)


def _said(line: bytes, path: Path, number: int) -> dict[str, Any]:
    """Content of a line without its checksum. Raises DataError: damaged, or no line of a journal."""
    line = line.strip()
    try:
        said = json.loads(line)
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise DataError(f"{path}:{number}: not a line of a journal")
    if _CHECKSUM in said:
        found = _CHECKED.search(line)
        if found is None or _digest(line[: found.start()]) != found[1].decode():
            raise DataError(
                f"{path}:{number}: damaged or changed: the line does not match its checksum; delete "
                "the line, and the same command plays the game again"
            )
        del said[_CHECKSUM]
    return said


def _digest(words: bytes) -> str:
    """Of a line without its last brace, 16 hex digits."""
    return hashlib.blake2b(words, digest_size=8).hexdigest()


class Journal:
    """A file of JSON lines that is appended to. A context manager."""

    def __init__(self, path: Path, *, keep: bool = True) -> None:
        """keep: hold lines that are added in memory too, in `lines`.

        Raises DataError where another process writes it, or a line before the last is no JSON
        object."""
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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._stack.close()

    def append(self, said: dict[str, Any]) -> None:
        """Add a line; it lasts when this returns. Raises DataError on a full disk and the like."""
        words = json.dumps(said, ensure_ascii=False, separators=(",", ":"))[:-1].encode()
        line = b'%s,"checksum":"%s"}\n' % (words, _digest(words).encode())
        data = memoryview(line)
        try:
            while data:
                data = data[self._file.write(data) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            raise DataError(f"cannot write {self.path}: {os_reason(error, self.path)}") from error
        if self._keep:
            self.lines.append(said)

    def _read(self) -> list[dict[str, Any]]:
        """The lines that are whole; what is cut off behind them is removed. Raises DataError."""
        data = self._file.readall()
        end = data.rfind(b"\n") + 1
        whole = enumerate(data[:end].split(b"\n")[:-1], start=1)
        lines = [_said(line, self.path, number) for number, line in whole]
        self._file.truncate(end)
        self._file.seek(end)
        return lines
