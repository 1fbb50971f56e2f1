"""Other commands of `variant-ai` as processes of their own, one at a time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import IO, Any

from variant_ai.cli.common.console import EXIT_INTERRUPTED, fail, note

_COMMAND = (sys.executable, "-m", "variant_ai.cli.main")


def run_child(words: Sequence[str], prefix: str, lock: IO[bytes]) -> tuple[int, str]:
    """Runs a command and shows what it says on stderr behind `prefix`; its exit status and the
    last line it said.

    Ctrl-C is passed on once, and waited for. `lock` stays held as long as the command runs,
    even if this process is killed.
    """
    last = ""
    with _started(words, lock, subprocess.DEVNULL) as child:
        assert child.stderr is not None
        while True:
            try:
                for line in child.stderr:
                    last = line.strip() or last
                    note(f"{prefix}: {line.rstrip()}")
                return child.wait(), last.removeprefix("Error: ")
            except KeyboardInterrupt:
                child.send_signal(signal.SIGINT)
                child.wait()
                return EXIT_INTERRUPTED, last


def child_json(words: Sequence[str], lock: IO[bytes]) -> Any:
    """What a command prints with `--json`. Ends this command where that one fails."""
    with _started(words, lock, subprocess.PIPE) as child:
        try:
            said, told = child.communicate()
        except KeyboardInterrupt:
            child.send_signal(signal.SIGINT)
            raise
    if child.returncode != 0:
        fail(f"variant-ai {words[0]} failed: {told.strip().splitlines()[-1] if told else ''}")
    return json.loads(said)


def _started(words: Sequence[str], lock: IO[bytes], stdout: int) -> subprocess.Popen[str]:
    """The command under way; who looks into the file of the lock finds its process there."""
    from variant_ai.core.system.child_processes import PARENT_VARIABLE

    options: dict[str, Any] = {}
    if os.name == "posix":
        # A group of its own, so that the Ctrl-C of a terminal reaches it once, through us.
        options = {"start_new_session": True, "pass_fds": (lock.fileno(),)}
    child = subprocess.Popen(
        [*_COMMAND, *words],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        # It ends with us, however we end, and saves before.
        env={**os.environ, PARENT_VARIABLE: str(os.getpid())},
        **options,
    )
    lock.seek(0)
    lock.truncate()
    lock.write(f"{child.pid}\n".encode())
    lock.flush()
    return child
