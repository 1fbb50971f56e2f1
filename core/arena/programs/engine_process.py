"""An engine as a subprocess that speaks lines: started, read, and never waited for too long.

An engine ends with our process, in whatever way that ends (`core/system/child_processes.py`). One thread reads
the engine's lines into a queue, another keeps the tail of its stderr, so no call can block on a
pipe. Whatever an engine does wrong is an EngineError (EngineDiedError, EngineHungError); after one
the process is dead, and `start` of the protocol's client runs a fresh one.
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
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from variant_ai.core.errors import EngineError
from variant_ai.core.system.child_processes import guard_child, release_child

GAMES_FOLDERS = ("/usr/games", "/usr/local/games")
"""Where Debian puts games; not in everybody's PATH."""

STDERR_LINES = 20
STDOUT_LINES = 5
"""Last lines kept of each stream, to show when the engine fails."""
_INTERPRETER = re.compile(
    r"(?:python|pypy|java|node|wine|perl|ruby|mono|sh|bash|nice|env)[\d.]*(?:\.exe)?"
)
STDOUT_WIDTH = 200
"""Characters shown of such a line."""
LINE_BYTES = 1 << 20
"""Longer lines come in pieces, so that an engine without line ends does not fill the memory."""


class EngineDiedError(EngineError):
    """The process ended, or could not be started."""


class EngineHungError(EngineError):
    """No answer in the time agreed; the process was ended."""


def engine_command(text: str) -> list[str]:
    """The words of an engine command, its program as a path that exists.

    A bare name is looked for in PATH and in the games folders. Raises EngineError.
    """
    try:
        words = shlex.split(text, posix=os.name != "nt")
    except ValueError as error:
        raise EngineError(f"engine command {text!r} cannot be read: {error}") from error
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
class Answer:
    """What came of one `go`."""

    move: str | None
    """As the engine wrote it; None where it says that there is no move."""
    score: int | None = None
    """Centipawns from the point of view of the side to move; None without a score or at a mate."""
    mate: int | None = None
    """Full moves to mate, negative when being mated; None without one."""
    depth: int = 0
    nodes: int = 0
    pv: tuple[str, ...] = ()
    seconds: float = 0.0
    """From the word to search to the answer, as read."""
    late: bool = False
    """The answer came only when the engine was told to stop at its deadline."""
    claim: str = ""
    """What the engine said instead of, or beside, a move: `resign`, `draw`, or the line in which it
    claimed that the game had ended."""
    expected: str = ""
    """The other side's move that the engine would ponder on; empty: it named none."""
    info: tuple[str, ...] = field(default=(), repr=False)
    """The last `info` line of every multipv rank."""


@dataclass(frozen=True)
class Line:
    """A line of an engine, and when it was read (`time.monotonic`)."""

    text: str
    at: float


class EngineProcess(ABC):
    """One engine process. Not for two threads at once, `kill` apart, which any thread may call;
    a context manager that ends the process."""

    def __init__(
        self, command: Sequence[str], *, timeout: float = 20.0, cwd: Path | None = None
    ) -> None:
        """`timeout` (seconds) is the longest wait for an answer that needs no search."""
        self.command = tuple(command)
        self.timeout = timeout
        self.cwd = cwd
        self.name = command_name(command)
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: queue.Queue[Line | None] = queue.Queue()
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._stdout: deque[str] = deque(maxlen=STDOUT_LINES)
        self._readers: list[threading.Thread] = []

    @abstractmethod
    def start(self) -> None:
        """Start the process (again) and go through the handshake; options are set anew."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def last_lines(self) -> tuple[str, ...]:
        """Its last lines: up to 5 lines of its output, then up to 20 of its errors."""
        return (*self._stdout, *self._stderr)

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def _launch(self) -> None:
        """Start the process, without a word to it."""
        self.kill()
        self._lines = queue.Queue()
        self._stderr = deque(maxlen=STDERR_LINES)
        self._stdout = deque(maxlen=STDOUT_LINES)
        try:
            process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.cwd,
                # A Ctrl-C at the terminal is ours to answer: the engine's game is finished first.
                start_new_session=True,
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
        """End the engine: `quit`, and by force if it is still there after a second."""
        process = self._process
        if process is not None and process.poll() is None:
            with contextlib.suppress(EngineError):
                self._send("quit")
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1.0)
        self.kill()

    def kill(self) -> None:
        """End the process and all that it started, at once."""
        process, self._process = self._process, None
        if process is None:
            return
        if sys.platform == "win32":
            process.kill()
        else:
            # The group outlives its leader when a wrapper script died before its engine.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        release_child(process.pid)  # before the system gives its number to another process
        process.wait()
        with contextlib.suppress(OSError):
            assert process.stdin is not None
            process.stdin.close()
        for reader in self._readers:
            reader.join(1.0)

    # --- talking -------------------------------------------------------------------------------

    def say(self, line: str) -> None:
        """Send a line. Raises EngineDiedError."""
        self._send(line)

    def _send(self, line: str) -> None:
        process = self._process
        if process is None or process.stdin is None:
            raise EngineDiedError(f"engine {self.name} is not running")
        try:
            process.stdin.write(line.encode() + b"\n")
            process.stdin.flush()
        except (OSError, ValueError) as error:
            raise self._died() from error

    def _line(self, waiting_for: str, deadline: float) -> str:
        """The next line; kills the engine and raises when it dies or the deadline passes."""
        line = self._next(deadline)
        if line is None:
            self.kill()
            raise EngineHungError(
                f"engine {self.name} hangs: no {waiting_for!r} in the time agreed"
            )
        return line.text

    def _next(self, deadline: float) -> Line | None:
        """The next line, None when the deadline passes first. Raises EngineDiedError."""
        try:
            line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            return None
        if line is None:
            raise self._died()
        return line

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
        said = f"; it said: {self._stderr[-1]}" if self._stderr else ""
        return EngineDiedError(f"engine {self.name} died{status}{said}")


def command_name(command: Sequence[str]) -> str:
    """Name of a program before it has said its name: its file, or that of the script which an
    interpreter runs."""
    names = [Path(word).name for word in command if not word.startswith("-")]
    scripts = (name for name in names if not _INTERPRETER.fullmatch(name))
    return next(scripts, names[0] if names else command[0])


def _read_lines(
    process: subprocess.Popen[bytes], lines: queue.Queue[Line | None], tail: deque[str]
) -> None:
    assert process.stdout is not None
    with process.stdout as pipe, contextlib.suppress(ValueError, OSError):
        while line := pipe.readline(LINE_BYTES):
            text = line.decode("utf-8", "replace").strip()
            lines.put(Line(text, time.monotonic()))
            tail.append(text[:STDOUT_WIDTH])
    lines.put(None)


def _read_tail(process: subprocess.Popen[bytes], tail: deque[str]) -> None:
    assert process.stderr is not None
    with process.stderr as pipe, contextlib.suppress(ValueError, OSError):
        while line := pipe.readline(LINE_BYTES):
            tail.append(line.decode("utf-8", "replace").rstrip())
