"""A logged session once more: the client's lines at the moments at which they came then.

A moment is what the client had seen, not a time: a line that followed the third `bestmove` waits
for the third `bestmove`. Only lines sent during a search (`stop`, `ponderhit`) wait as long as
they did then.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from variant_ai.core.engine.line_io import InputLine, ProtocolLog
from variant_ai.core.errors import DataError

PATIENCE = 600.0
"""Seconds an answer is waited for that came in the log."""
AWAITED = ("uciok", "ucciok", "readyok", "bestmove", "nobestmove")
_LINE = re.compile(r"([0-9]+\.[0-9]+) ([<>]) ?(.*)\Z")


class Logged(NamedTuple):
    """A line of the client in a log."""

    text: str
    answers: int
    """Answers that the client had seen before."""
    pause: float
    """Seconds since the line before, where a search was running; else 0."""


class Replay:
    """Iterates over the lines of a log like a client; tell `heard` what the engine answers."""

    def __init__(self, path: Path) -> None:
        """Raises DataError for a file that is not a log."""
        self.lines = list(read_log(path))
        self._answers = 0
        self._changed = threading.Condition()

    def heard(self, line: str) -> None:
        """The engine has said this."""
        if (line.split() or [""])[0] in AWAITED:
            with self._changed:
                self._answers += 1
                self._changed.notify_all()

    def __iter__(self) -> Iterator[InputLine]:
        for line in self.lines:
            self._await(line.answers)
            if line.pause:
                time.sleep(line.pause)
            yield InputLine(line.text, time.perf_counter())

    def _await(self, answers: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._answers >= answers, PATIENCE)


def read_log(path: Path) -> Iterator[Logged]:
    """The client's lines of a file written by `--log-protocol`. Raises DataError."""
    try:
        texts = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    answers = 0
    asked = False
    before = 0.0
    for number, text in enumerate(texts, 1):
        match = _LINE.match(text)
        if match is None:
            raise DataError(f"{path}:{number}: is no line of a protocol log: {text[:60]!r}")
        at, words = float(match[1]), match[3].split()
        word = words[0] if words else ""
        if match[2] == ">":
            answers += word in AWAITED
            asked = asked and word not in ("bestmove", "nobestmove")
            continue
        yield Logged(match[3], answers, max(at - before, 0.0) if asked else 0.0)
        asked = asked or word == "go"
        before = at


class Telling(ProtocolLog):
    """A log that hands on what the engine says, and writes to another log if there is one."""

    def __init__(self, heard: Callable[[str], None], log: ProtocolLog | None) -> None:
        self._heard = heard
        self._behind = log

    def __call__(self, sign: str, *lines: str) -> None:
        if self._behind is not None:
            self._behind(sign, *lines)
        for line in lines if sign == ">" else ():
            self._heard(line)

    def close(self) -> None:
        if self._behind is not None:
            self._behind.close()
