"""Protocol logs: every line of a session with its time, and a replay of the client's lines.

A line of the log is the seconds since the start, `<` for input or `>` for output, and the text.

The replay sends a line when the engine has given as many answers as the client had seen then: a line
after the third `bestmove` waits for the third `bestmove`. Only lines sent during a search (`stop`,
`ponderhit`) wait for the logged time.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

from variant_ai.core.engine.line_io import InputLine
from variant_ai.core.errors import DataError

PATIENCE = 600.0
"""Seconds to wait for an answer that is in the log."""
ANSWERS = ("uciok", "ucciok", "readyok", "bestmove", "nobestmove")
_LINE = re.compile(r"([0-9]+\.[0-9]+) ([<>]) ?(.*)\Z")


class ProtocolLog:
    """Writes a log. If the file cannot be written any more (full disk), the game goes on without."""

    def __init__(
        self, file: IO[str] | None, on_output: Callable[[str], None] = lambda line: None
    ) -> None:
        """on_output: called with every line of the engine."""
        self._file = file
        self._on_output = on_output
        self._lock = threading.Lock()
        self._start = time.perf_counter()

    def __call__(self, sign: str, *lines: str) -> None:
        seconds = time.perf_counter() - self._start
        with self._lock:
            try:
                if self._file is not None:
                    for line in lines:
                        self._file.write(f"{seconds:.4f} {sign} {line}\n")
                    self._file.flush()
            except OSError:
                self._file = None
        # last: it may wake a thread that writes the next line
        for line in lines if sign == ">" else ():
            self._on_output(line)

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                with contextlib.suppress(OSError):
                    self._file.close()
                self._file = None


class LoggedLine(NamedTuple):
    """A line of the client in a log."""

    text: str
    answers: int
    """Answers of the engine before it."""
    pause: float
    """Seconds since the previous line if a search was running, else 0."""


class Replay:
    """Iterates over the client's lines of a log; call `on_output` with every line of the engine."""

    def __init__(self, path: Path) -> None:
        """Raises DataError if the file is not a log."""
        self.lines = list(read_log(path))
        self._answers = 0
        self._changed = threading.Condition()

    def on_output(self, line: str) -> None:
        """Note a line of the engine."""
        if (line.split() or [""])[0] in ANSWERS:
            with self._changed:
                self._answers += 1
                self._changed.notify_all()

    def __iter__(self) -> Iterator[InputLine]:
        for line in self.lines:
            answers = line.answers
            with self._changed:
                self._changed.wait_for(lambda: self._answers >= answers, PATIENCE)  # noqa: B023
            if line.pause:
                time.sleep(line.pause)
            yield InputLine(line.text, time.perf_counter())


def read_log(path: Path) -> Iterator[LoggedLine]:
    """Yield the client's lines of a file written by `--log-protocol`. Raises DataError."""
    try:
        texts = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    answers = 0
    searching = False
    before = 0.0
    for number, text in enumerate(texts, 1):
        match = _LINE.match(text)
        if match is None:
            raise DataError(f"{path}:{number}: this is not a line of a protocol log: {text[:60]!r}")
        at, words = float(match[1]), match[3].split()
        word = words[0] if words else ""
        if match[2] == ">":
            answers += word in ANSWERS
            searching = searching and word not in ("bestmove", "nobestmove")
            continue
        yield LoggedLine(match[3], answers, max(at - before, 0.0) if searching else 0.0)
        searching = searching or word == "go"
        before = at
