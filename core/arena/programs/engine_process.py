"""An engine as a subprocess that reads and writes lines, with a time limit on every wait.

The engine ends when our process ends, even if that is killed (`core/system/child_processes.py`).
One thread reads the engine's lines into a queue, another keeps the last lines of its stderr, so no
call can block on a pipe. Every failure of an engine is an EngineError (EngineDiedError,
EngineHungError); after one the process is dead, and `start` of the protocol's client runs a new
one.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from variant_ai.core.errors import EngineError
from variant_ai.core.system.child_processes import guard_child, release_child
from variant_ai.core.system.closing import Closing

GAMES_FOLDERS = ("/usr/games", "/usr/local/games")
"""Debian installs games here, which PATH does not always include."""

STDERR_LINES = 20
STDOUT_LINES = 5
"""Last lines kept of each stream, shown when the engine fails."""
_INTERPRETER = re.compile(
    r"(?:python|pypy|java|node|wine|perl|ruby|mono|sh|bash|nice|env)[\d.]*(?:\.exe)?"
)
STDOUT_WIDTH = 200
"""Characters kept of such a line."""
LINE_BYTES = 1 << 16
"""Longer lines are read in pieces, so that an engine that writes no line ends cannot fill
memory."""
MOST_LINES = 100_000
"""Lines that may wait to be read; more are lost, so that an engine that writes without end cannot
fill memory while the other side thinks."""
LOOK_EVERY = 0.1
"""Seconds between two checks of `hurried`."""


class EngineDiedError(EngineError):
    """The process ended, or could not be started."""


class EngineHungError(EngineError):
    """The engine did not answer in time; the process was ended."""


def command_words(text: str, *, windows: bool = os.name == "nt") -> list[str]:
    """Split a command as a shell does; on Windows a backslash is a part of paths. Raises ValueError
    for a quote that is not closed."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
    lexer.whitespace_split = True
    lexer.commenters = ""
    if windows:
        lexer.escape = ""
    return list(lexer)


def engine_command(text: str) -> list[str]:
    """Split an engine command into words, with the path of its program first.

    A bare name is looked up in PATH and in GAMES_FOLDERS. Raises EngineError.
    """
    try:
        words = command_words(text)
    except ValueError as error:
        raise EngineError(f"cannot parse the engine command {text!r}: {error}") from error
    if not words:
        raise EngineError("the engine command is empty")
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *GAMES_FOLDERS])
    program = shutil.which(words[0], path=path)
    if program is None:
        folders = ", ".join(GAMES_FOLDERS)
        raise EngineError(
            f"engine {words[0]!r} is not a program in PATH or {folders}, nor an executable file"
        )
    return [program, *words[1:]]


@dataclass(frozen=True)
class ProgramAnswer:
    """Result of one search of an engine."""

    move: str | None
    """Text of the engine; None if it reports that there is no move."""
    score: int | None = None
    """Centipawns from the point of view of the side to move; None if it gave no score or a mate."""
    mate: int | None = None
    """Full moves to mate, negative if the side to move is mated; None if there is no mate."""
    depth: int = 0
    nodes: int = 0
    seconds: float = 0.0
    """Time between the command to search and the answer."""
    late: bool = False
    """True if the engine answered only after `stop` was sent at its deadline."""
    claim: str = ""
    """`resign`, `draw`, or the line in which the engine claimed that the game has ended; else
    empty."""
    expected: str = ""
    """The reply that the engine would ponder on; empty if it named none."""
    candidates: tuple[ProgramAnswer, ...] = ()
    """First moves of the lines that it compared (option MultiPV), in its order, with their scores; empty
    if it wrote only one line."""


@dataclass(frozen=True)
class OutputLine:
    """A line that an engine wrote, and the time it was read (`time.monotonic`)."""

    text: str
    at: float


class EngineProcess(Closing, ABC):
    """One engine process, used by one thread; others may only call `kill`, and set the event `hurried`. A
    context manager that ends the process."""

    def __init__(self, command: Sequence[str], *, timeout: float = 20.0) -> None:
        """timeout: seconds to wait for an answer that needs no search."""
        self.command = tuple(command)
        self.timeout = timeout
        self.name = command_name(command)
        self.hurried = threading.Event()
        """If set, the search that is under way gets `stop`, and answers with its move so far."""
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: queue.SimpleQueue[OutputLine | None] = queue.SimpleQueue()
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._stdout: deque[str] = deque(maxlen=STDOUT_LINES)
        self._readers: list[threading.Thread] = []

    @abstractmethod
    def start(self) -> None:
        """Start the process (again), do the protocol's handshake and set the options."""

    def __enter__(self) -> Self:
        self.start()
        return self

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def last_lines(self) -> tuple[str, ...]:
        """Last lines that the engine wrote: up to 5 of its output, then up to 20 of its stderr."""
        return (*self._stdout, *self._stderr)

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def _launch(self) -> None:
        """Start the process without sending anything."""
        self.kill()
        self._lines = queue.SimpleQueue()
        self._stderr = deque(maxlen=STDERR_LINES)
        self._stdout = deque(maxlen=STDOUT_LINES)
        try:
            process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # Ctrl-C in the terminal must reach this program only, which ends the engine itself.
                start_new_session=True,
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # Windows
            )
        except OSError as error:
            raise EngineDiedError(f"engine {self.name} cannot be started: {error}") from error
        guard_child(process.pid)
        self._readers = []  # another thread may kill from here on, and waits for those begun only
        self._process = process
        readers = [
            threading.Thread(
                target=_read_lines, args=(process, self._lines, self._stdout), daemon=True
            ),
            threading.Thread(target=_read_tail, args=(process, self._stderr), daemon=True),
        ]
        for reader in readers:
            reader.start()
        self._readers = readers

    def close(self) -> None:
        """End the engine with `quit`; kill it if it still runs after a second."""
        process = self._process
        if process is not None and process.poll() is None:
            with contextlib.suppress(EngineError):
                self.send("quit")
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1.0)
        self.kill()

    def kill(self) -> None:
        """Kill the process and all processes it started."""
        process, self._process = self._process, None
        if process is None:
            return
        if sys.platform == "win32":
            process.kill()
        else:
            # If a wrapper script died before its engine, the process group still exists.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        release_child(process.pid)  # before the system gives its number to another process
        process.wait()
        with contextlib.suppress(OSError):
            assert process.stdin is not None
            process.stdin.close()
        for reader in self._readers:
            reader.join(1.0)

    # --- lines ---------------------------------------------------------------------------------

    def send(self, line: str) -> None:
        """Send a line. Raises EngineDiedError."""
        process = self._process
        if process is None or process.stdin is None:
            raise EngineDiedError(f"engine {self.name} is not running")
        try:
            process.stdin.write(line.encode() + b"\n")
            process.stdin.flush()
        except (OSError, ValueError) as error:
            raise self._died() from error

    def _line(self, waiting_for: str, deadline: float) -> str:
        """Read the next line. Raises EngineDiedError, or EngineHungError after the deadline."""
        line = self._next(deadline)
        if line is None or line.at > deadline:
            raise self._hung(waiting_for)
        return line.text

    def _next(self, deadline: float) -> OutputLine | None:
        """Read the next line; None if the deadline passes first. Raises EngineDiedError.

        Lines that wait already are returned even then, so that a busy machine loses none. Callers compare
        `OutputLine.at` with their deadline: an engine that writes without end would never miss it otherwise.
        """
        try:
            line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            return None
        if line is None:
            raise self._died()
        return line

    def _search_lines(
        self, waiting_for: str, stop: str, timeout: float, grace: float
    ) -> Iterator[tuple[str, float, bool]]:
        """Yield lines during a search, the seconds after its start, and True if they came after the
        command `stop`, which is sent after `timeout` seconds. If the engine has not answered `grace`
        seconds later, it counts as hung. Raises EngineDiedError, EngineHungError."""
        started = time.monotonic()
        deadline, late = started + timeout, False
        while True:
            line = self._next(min(deadline, time.monotonic() + LOOK_EVERY))
            if line is not None:
                # a program may have answered before it was asked, while it pondered
                yield line.text, max(0.0, line.at - started), late
            if (time.monotonic() if line is None else line.at) >= deadline:
                if late or grace <= 0:
                    raise self._hung(waiting_for)
                late, deadline = True, deadline + grace
                self.send(stop)
            elif self.hurried.is_set() and self._lines.empty():  # else it may have answered
                self.hurried.clear()
                self.send(stop)

    def _hung(self, waiting_for: str) -> EngineHungError:
        self.kill()
        return EngineHungError(f"engine {self.name} hangs: no {waiting_for!r} in time")

    def _died(self) -> EngineDiedError:
        process = self._process
        status = ""
        if process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1.0)
            code = process.returncode
            if code is not None:
                status = f" (exit status {code})" if code >= 0 else f" (signal {-code})"
        self.kill()
        last = f"; its last line on stderr: {self._stderr[-1]}" if self._stderr else ""
        return EngineDiedError(f"engine {self.name} died{status}{last}")


def command_name(command: Sequence[str]) -> str:
    """Name of a program until it reports its own: its file name, or that of the script that an
    interpreter runs."""
    names = [Path(word).name for word in command if not word.startswith("-")]
    scripts = (name for name in names if not _INTERPRETER.fullmatch(name))
    return next(scripts, names[0] if names else command[0])


def _read_lines(
    process: subprocess.Popen[bytes], lines: queue.SimpleQueue[OutputLine | None], tail: deque[str]
) -> None:
    assert process.stdout is not None
    with process.stdout as pipe, contextlib.suppress(ValueError, OSError):
        while line := pipe.readline(LINE_BYTES):
            text = line.decode("utf-8", "replace").strip()
            if lines.qsize() < MOST_LINES:
                lines.put(OutputLine(text, time.monotonic()))
            tail.append(text[:STDOUT_WIDTH])
    lines.put(None)


def _read_tail(process: subprocess.Popen[bytes], tail: deque[str]) -> None:
    assert process.stderr is not None
    with process.stderr as pipe, contextlib.suppress(ValueError, OSError):
        while line := pipe.readline(LINE_BYTES):
            tail.append(line.decode("utf-8", "replace").rstrip())
