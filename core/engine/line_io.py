"""Lines of a protocol: bytes from one file descriptor, text to another.

Standard input is read as bytes: a path in another encoding, a byte order mark or a Windows line
end must not end the program. Standard output belongs to the protocol alone: `claim_stdout` returns
a copy of it and redirects file descriptor 1 to stderr, so that no library can write into it.
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
from typing import NamedTuple

MAX_LINE = 1 << 20
"""Bytes; the longest possible game has a tenth of it."""
BOM = b"\xef\xbb\xbf"
NOT_TEXT = "\N{REPLACEMENT CHARACTER}"


class InputLine(NamedTuple):
    """One line of the client."""

    text: str
    """Without the line end; bytes that are not UTF-8 are replaced."""
    at: float
    """`time.perf_counter()` when it was read: the clock of a `go` starts here."""
    cut: bool = False
    """True if it is longer than MAX_LINE; the rest of it is discarded."""


def read_lines(fd: int) -> Iterator[InputLine]:
    """Yield the lines of a file descriptor until it ends, or its terminal is closed."""
    before = BOM
    with contextlib.suppress(OSError), open(fd, "rb", closefd=False) as file:
        while raw := file.readline(MAX_LINE + 1):
            at = time.perf_counter()
            rest = raw
            while rest and not rest.endswith(b"\n"):  # the end of the file, or a line to cut
                rest = file.readline(MAX_LINE)
            text = raw[:MAX_LINE].removeprefix(before).decode("utf-8", "replace")
            cut = len(raw) > MAX_LINE and not raw.endswith(b"\n")
            yield InputLine(text.replace("\0", NOT_TEXT).strip(), at, cut)
            before = b""


class LineWriter:
    """Writes whole lines from any thread: one lock, one write per call.

    If nobody reads them any more, `broken` is called once and later lines are discarded.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.broken: Callable[[], None] = lambda: None
        self.is_broken = False
        self._lock = threading.Lock()

    def __call__(self, *lines: str) -> None:
        """Write lines, with no other thread's lines in between."""
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
        self.broken()


def _single(line: str) -> str:
    """The line without line ends, which error messages may contain."""
    return line if line.isprintable() else " ".join(line.split())


def claim_stdout() -> int:
    """Return a copy of standard output for the protocol alone, and redirect descriptor 1 to stderr.

    It works if either is closed: missing streams are replaced by the null device.
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


def prepare_process() -> None:
    """Collect garbage between searches only, because a full collection takes longer than a move may;
    and print errors of threads without ending the others."""
    gc.disable()
    threading.excepthook = lambda args: traceback.print_exception(
        args.exc_type, args.exc_value, args.exc_traceback
    )
