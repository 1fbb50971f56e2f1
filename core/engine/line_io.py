"""Lines of a protocol: bytes from one file descriptor, text to another, and a log of both.

Standard input is read as bytes: a path in another encoding, a byte order mark or a Windows line
end must not end the program. Standard output belongs to the protocol alone: `claim_stdout` keeps
the real one and lets file descriptor 1 point at stderr, so that no library can write into it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple

MAX_LINE = 1 << 20
"""Bytes. The longest game there can be is a tenth of it."""
CHUNK = 1 << 16
BOM = b"\xef\xbb\xbf"
NOT_TEXT = "\N{REPLACEMENT CHARACTER}"


class InputLine(NamedTuple):
    """A line as it came in."""

    text: str
    """Without its end; bytes that are not UTF-8 are replaced."""
    at: float
    """`time.perf_counter()` when it was read: here the clock of a `go` starts."""
    cut: bool = False
    """Longer than MAX_LINE: the text is its beginning, the rest was thrown away."""


class LineReader:
    """Iterates over the lines of a file descriptor until its end; the last may lack its end."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __iter__(self) -> Iterator[InputLine]:
        pending = bytearray()
        skipping = False
        first = True
        while chunk := self._read():
            at = time.perf_counter()
            pieces = chunk.split(b"\n")
            for number, piece in enumerate(pieces):
                if not skipping:
                    pending += piece
                    if len(pending) > MAX_LINE:
                        skipping = True
                        del pending[MAX_LINE:]
                if number == len(pieces) - 1:
                    break
                yield _line(bytes(pending), at, skipping, first)
                pending.clear()
                first = skipping = False
        if pending:
            yield _line(bytes(pending), time.perf_counter(), skipping, first)

    def _read(self) -> bytes:
        try:
            return os.read(self.fd, CHUNK)
        except OSError:  # a terminal that went away
            return b""


def _line(raw: bytes, at: float, cut: bool, first: bool) -> InputLine:
    if first:
        raw = raw.removeprefix(BOM)
    text = raw.decode("utf-8", "replace").replace("\0", NOT_TEXT)
    return InputLine(text.strip(), at, cut)


class LineWriter:
    """Writes whole lines from any thread: one lock, one write per call.

    A reader that went away is no error: `broken` is called once, later lines go nowhere.
    """

    def __init__(self, fd: int, broken: Callable[[], None] | None = None) -> None:
        self.fd = fd
        self.broken = broken
        self.is_broken = False
        self._lock = threading.Lock()

    def __call__(self, *lines: str) -> None:
        """Write the lines without another thread's in between."""
        data = "".join(f"{_single(line)}\n" for line in lines).encode("utf-8", "replace")
        with self._lock:
            if self.is_broken:
                return
            try:
                while data:
                    data = data[os.write(self.fd, data) :]
                return
            except OSError:
                self.is_broken = True
        if self.broken is not None:
            self.broken()


def _single(line: str) -> str:
    """An error's message may have line ends; a protocol's line must not."""
    return line if line.isprintable() else " ".join(line.split())


class ProtocolLog:
    """What was said, for `--replay`: seconds since the start, `<` in or `>` out, the line.

    A log that cannot be written any more (full disk) is given up in silence: the game goes on.
    """

    def __init__(self, file: IO[str]) -> None:
        self._file: IO[str] | None = file
        self._lock = threading.Lock()
        self._start = time.perf_counter()

    def __call__(self, sign: str, *lines: str) -> None:
        seconds = time.perf_counter() - self._start
        with self._lock:
            if self._file is None:
                return
            try:
                for line in lines:
                    self._file.write(f"{seconds:.4f} {sign} {line}\n")
                self._file.flush()
            except OSError:
                self._file = None

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                with contextlib.suppress(OSError):
                    self._file.close()
                self._file = None


def claim_stdout() -> int:
    """A duplicate of standard output for the protocol alone; descriptor 1 then points at stderr.

    Works where either is closed: what has no reader goes to the null device.
    """
    null = os.open(os.devnull, os.O_RDWR)
    try:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        try:
            real = os.dup(1)
        except OSError:
            real = os.dup(null)
        try:
            os.dup2(2, 1)
        except OSError:
            os.dup2(null, 1)
            os.dup2(null, 2)
        if sys.platform == "win32":
            import msvcrt

            for fd in (0, real):
                msvcrt.setmode(fd, os.O_BINARY)
    finally:
        os.close(null)
    return real


def quieten_collector() -> None:
    """Collect garbage between searches only: a full collection costs more than a move may. A thread
    that fails says so and lets the others go on."""
    gc.disable()
    threading.excepthook = lambda args: traceback.print_exception(
        args.exc_type, args.exc_value, args.exc_traceback
    )
