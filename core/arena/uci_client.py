"""A UCI engine as a subprocess: started, asked, and never waited for longer than agreed.

One thread reads the engine's lines into a queue, another keeps the tail of its stderr, so no call
can block on a pipe. Whatever an engine does wrong (it cannot be started, dies, hangs, answers
nonsense) is an EngineError; after one the process is dead, and `start` runs a fresh one.
"""

from __future__ import annotations

import contextlib
import os
import queue
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from variant_ai.specs.errors import EngineError, unknown

GAMES_FOLDERS = ("/usr/games", "/usr/local/games")
"""Where Debian puts games; not in everybody's PATH."""

STDERR_LINES = 20
_END = None


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
class UciOption:
    """An option as the engine declared it."""

    name: str
    kind: str
    """`check`, `spin`, `combo`, `button` or `string`."""
    default: str = ""
    choices: tuple[str, ...] = ()
    """The `var` values of a combo."""


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
    info: tuple[str, ...] = field(default=(), repr=False)
    """The last `info` line of every multipv rank."""


class UciClient:
    """One engine process. Not for two threads at once; a context manager that ends the process."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        options: Mapping[str, str] | None = None,
        soft_options: Mapping[str, str] | None = None,
        timeout: float = 20.0,
        cwd: Path | None = None,
    ) -> None:
        """`options` are set at every start, names in any case; `soft_options` too, but only where
        the engine has them. `timeout` (seconds) is the longest wait for `uciok` and `readyok`."""
        self.command = tuple(command)
        self.options_wanted = dict(options or {})
        self.soft_options = dict(soft_options or {})
        self.timeout = timeout
        self.cwd = cwd
        self.name = Path(command[0]).name
        self.author = ""
        self.options: dict[str, UciOption] = {}
        """By lower-case name."""
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._readers: list[threading.Thread] = []

    # --- process -------------------------------------------------------------------------------

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
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the process (again) and go through the handshake; options are set anew."""
        self.kill()
        self._lines = queue.Queue()
        self._stderr = deque(maxlen=STDERR_LINES)
        try:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.cwd,
                # A Ctrl-C at the terminal is ours to answer: the engine's game is finished first.
                start_new_session=True,
            )
        except OSError as error:
            raise EngineError(f"engine {self.name} cannot be started: {error}") from error
        self._readers = [
            threading.Thread(target=_read_lines, args=(self._process, self._lines), daemon=True),
            threading.Thread(target=_read_tail, args=(self._process, self._stderr), daemon=True),
        ]
        for reader in self._readers:
            reader.start()
        self.options = {}
        self._send("uci")
        deadline = time.monotonic() + self.timeout
        while (line := self._line("uciok", deadline)) != "uciok":
            if line.startswith("id name "):
                self.name = line.removeprefix("id name ").strip()
            elif line.startswith("id author "):
                self.author = line.removeprefix("id author ").strip()
            elif line.startswith("option "):
                option = parse_option(line)
                if option is not None:
                    self.options[option.name.lower()] = option
        for name, value in self.soft_options.items():
            if name.lower() in self.options:
                self.set_option(name, value)
        for name, value in self.options_wanted.items():
            self.set_option(name, value)
        self.ready()

    def close(self) -> None:
        """End the engine: `quit`, and by force if it is still there after a second."""
        if self.running:
            with contextlib.suppress(EngineError):
                self._send("quit")
            assert self._process is not None
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1.0)
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
        process.wait()
        with contextlib.suppress(OSError):
            assert process.stdin is not None
            process.stdin.close()
        for reader in self._readers:
            reader.join(1.0)

    # --- talking -------------------------------------------------------------------------------

    def _send(self, line: str) -> None:
        if self._process is None or self._process.stdin is None:
            raise EngineError(f"engine {self.name} is not running")
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except (OSError, ValueError) as error:
            raise self._died() from error

    def _line(self, waiting_for: str, deadline: float) -> str:
        """The next line; kills the engine and raises when it dies or the deadline passes."""
        try:
            line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            self.kill()
            raise EngineError(
                f"engine {self.name} hangs: no {waiting_for!r} in the time agreed"
            ) from None
        if line is _END:
            raise self._died()
        return line

    def _died(self) -> EngineError:
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
        return EngineError(f"engine {self.name} died{status}{said}")

    def ready(self) -> None:
        """Wait until the engine has done all that it was told."""
        self._send("isready")
        deadline = time.monotonic() + self.timeout
        while self._line("readyok", deadline) != "readyok":
            pass

    def set_option(self, name: str, value: str) -> None:
        """Raises EngineError where the engine has no such option or does not offer the value."""
        option = self.options.get(name.lower())
        if option is None:
            known = sorted(o.name for o in self.options.values())
            raise EngineError(f"engine {self.name}: {unknown('option', name, known)}")
        if option.choices and value not in option.choices:
            listed = sorted(option.choices)
            raise EngineError(
                f"engine {self.name}: {unknown(f'value of {option.name}', value, listed)}"
            )
        self._send(
            f"setoption name {option.name}" + ("" if option.kind == "button" else f" value {value}")
        )

    def set_variant(self, name: str) -> None:
        """Set UCI_Variant. An engine without that option plays one variant and is believed."""
        if "uci_variant" in self.options:
            self.set_option("UCI_Variant", name)
            self.ready()

    def new_game(self) -> None:
        self._send("ucinewgame")
        self.ready()

    def go(
        self,
        fen: str,
        moves: Sequence[str] = (),
        *,
        limits: Mapping[str, int],
        timeout: float,
    ) -> Answer:
        """Search the position after `moves` from `fen`; `limits` as UCI has them (`nodes`,
        `depth`, `movetime`). `timeout` is in seconds, after which the engine counts as hung."""
        if not limits:
            raise ValueError("a search without a limit never ends")
        played = f" moves {' '.join(moves)}" if moves else ""
        self._send(f"position fen {fen}{played}")
        self._send("go " + " ".join(f"{word} {value}" for word, value in limits.items()))
        deadline = time.monotonic() + timeout
        ranks: dict[int, str] = {}
        while True:
            line = self._line("bestmove", deadline)
            if line.startswith("bestmove"):
                words = line.split()
                move = words[1] if len(words) > 1 else ""
                return _answer(None if move in ("(none)", "0000", "") else move, ranks)
            if line.startswith("info ") and " pv " in line:
                rank = _number(line.split(), "multipv", 1)
                # A bound is a score only where the search was cut off before any exact one.
                if rank not in ranks or not _is_bound(line) or _is_bound(ranks[rank]):
                    ranks[rank] = line


def _read_lines(process: subprocess.Popen[bytes], lines: queue.Queue[str | None]) -> None:
    assert process.stdout is not None
    with process.stdout as pipe:
        for line in pipe:
            lines.put(line.decode("utf-8", "replace").strip())
    lines.put(_END)


def _read_tail(process: subprocess.Popen[bytes], tail: deque[str]) -> None:
    assert process.stderr is not None
    with process.stderr as pipe:
        for line in pipe:
            tail.append(line.decode("utf-8", "replace").rstrip())


def parse_option(line: str) -> UciOption | None:
    """`option name N type T [default D] [var V]…`, names and values with blanks in them."""
    fields: dict[str, list[str]] = {"name": [], "type": [], "default": [], "var": []}
    word = ""
    for token in line.split()[1:]:
        if token in fields and (token == "var" or not fields[token]):
            word = token
            if token == "var":
                fields["var"].append("")
        elif token in ("min", "max"):
            word = ""
        elif word == "var":
            fields["var"][-1] = f"{fields['var'][-1]} {token}".strip()
        elif word:
            fields[word].append(token)
    if not fields["name"] or not fields["type"]:
        return None
    return UciOption(
        " ".join(fields["name"]),
        fields["type"][0],
        " ".join(fields["default"]),
        tuple(fields["var"]),
    )


def _number(words: Sequence[str], after: str, default: int) -> int:
    try:
        return int(words[words.index(after) + 1])
    except (ValueError, IndexError):
        return default


def _is_bound(line: str) -> bool:
    return " lowerbound " in line or " upperbound " in line


def _answer(move: str | None, ranks: Mapping[int, str]) -> Answer:
    """The best line's facts; an `info` line that makes no sense counts as none."""
    words = ranks[min(ranks)].split() if ranks else []
    score = _number(words, "cp", 0) if "cp" in words else None
    mate = _number(words, "mate", 0) if "mate" in words else None
    return Answer(
        move=move,
        score=score,
        mate=mate,
        depth=_number(words, "depth", 0),
        nodes=_number(words, "nodes", 0),
        pv=tuple(words[words.index("pv") + 1 :]) if "pv" in words else (),
        info=tuple(ranks[rank] for rank in sorted(ranks)),
    )
