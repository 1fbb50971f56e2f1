"""Child processes that compute positions for the rules engine `fairy` ahead of time.

A call of Fairy-Stockfish takes milliseconds and holds the GIL, so threads do not help. A search
knows which positions it will need next: it requests them together, and each worker computes a
part.

A worker is another Python process with the same spec that reads requests from a pipe. It ends when
the pipe closes, however the parent process ended, and leaves signals such as Ctrl-C to the parent.
If a worker dies there is a warning, and the search continues without workers.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.errors import VariantAIError
from variant_ai.core.rules.fairy.fairy_rules import FairyRules
from variant_ai.core.rules.interface import Outcome, Rules
from variant_ai.core.rules.position import Position
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.system.child_processes import (
    end_with_parent,
    leave_signals_to_parent,
    signals_held,
)
from variant_ai.core.system.processors import processors

MAX_WORKERS = 8
"""Maximum number of workers by default."""
TARGET_SECONDS = 0.03
"""Seconds in which positions requested together should be computed."""
_START = "from variant_ai.core.rules.fairy.fairy_workers import work; work()"


class Lookahead(NamedTuple):
    """A position with all that a search needs of it, computed ahead of time."""

    position: Position
    """Position after the move, shape (1,)."""
    outcome: Outcome | None
    moves: NDArray[np.int32]
    """Legal moves; none if the game is over."""


def look_ahead(rules: Rules, position: Position, move: int) -> Lookahead:
    """Compute the position after a legal move, and all that a search needs of it."""
    after = rules.play(position, move)
    outcome = rules.outcome(after)
    moves = np.zeros(0, np.int32) if outcome else rules.legal_moves(after)
    return Lookahead(after, outcome, moves)


class RulesWorkers:
    """Workers of one spec, started by `start` or the first request. Thread-safe."""

    def __init__(self, spec: VariantSpec, count: int) -> None:
        """count: number of workers; with 0 no request is answered."""
        self.spec = spec
        self.count = count
        self._processes: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()
        self._closing: weakref.finalize[Any, Any] | None = None
        self._seconds_each = TARGET_SECONDS
        """Seconds that a worker took for each position of the last request."""

    @property
    def is_running(self) -> bool:
        return bool(self._processes)

    @property
    def at_once(self) -> int:
        """Number of positions computed within `TARGET_SECONDS`, at least one for each worker."""
        return self.count * max(int(TARGET_SECONDS / self._seconds_each), 1)

    def start(self) -> None:
        """Start the workers and wait until they have loaded the rules, which takes most of a second
        that the first search would lose."""
        with self._lock:
            if not self._processes and self.count:
                try:
                    self._start()
                    self._results(())
                except (OSError, EOFError, pickle.UnpicklingError) as error:
                    self._give_up(error)

    def ask(self, requests: Sequence[tuple[Position, int]]) -> list[Lookahead | None]:
        """`look_ahead` of each position (1,) and legal move; None if a worker has not computed
        it."""
        missing: list[Lookahead | None] = [None] * len(requests)
        if not self.count or not requests:
            return missing
        with self._lock:
            try:
                self._start()
                started = time.perf_counter()
                parts = self._results(requests)
                self._seconds_each = (time.perf_counter() - started) / len(parts[0])
            except (OSError, EOFError, pickle.UnpicklingError) as error:
                self._give_up(error)
                return missing
        results = missing
        for number, part in enumerate(parts):
            results[number :: self.count] = part
        return results

    def close(self) -> None:
        """End the workers; the next request starts new ones."""
        with self._lock:
            self._stop()

    def _start(self) -> None:
        if self._processes:
            return
        for _ in range(self.count):
            with signals_held():
                process = subprocess.Popen(
                    [sys.executable, "-c", _START], stdin=subprocess.PIPE, stdout=subprocess.PIPE
                )
            self._processes.append(process)
            _send(process.stdin, (os.getpid(), sys.path, self.spec))
        self._closing = weakref.finalize(self, _end, self._processes)

    def _results(self, requests: Sequence[tuple[Position, int]]) -> list[list[Lookahead | None]]:
        """Return the workers' parts: worker w gets every `count`-th request from w on."""
        for number, process in enumerate(self._processes):
            part = requests[number :: self.count]
            _send(process.stdin, list(part))
        return [pickle.load(_pipe(process.stdout)) for process in self._processes]

    def _give_up(self, error: Exception) -> None:
        ended = [process.poll() for process in self._processes]
        status = next((code for code in ended if code is not None), None)
        how = f"ended with status {status}" if status is not None else f"failed ({error})"
        self._stop()
        self.count = 0
        warnings.warn(
            f"a worker process for the rules of {self.spec.variant} {how}; "
            "the search continues without workers, and is slower",
            RuntimeWarning,
            stacklevel=4,
        )

    def _stop(self) -> None:
        if self._closing is not None:
            self._closing.detach()
            self._closing = None
        _end(self._processes)


@dataclass
class EndedWorkers:
    """CPU time of the workers of this process that have ended."""

    cpu_seconds: float = 0.0


ended_workers = EndedWorkers()
_known: weakref.WeakKeyDictionary[Rules, RulesWorkers] = weakref.WeakKeyDictionary()


def workers_of(rules: Rules, count: int | None = None) -> RulesWorkers | None:
    """Return the workers of a rules object, shared by all its searches; None if it has none.

    count: new number of workers; None: unchanged, at first one for each processor up to
    `MAX_WORKERS`, and none on a machine with one processor.
    """
    if type(rules) is not FairyRules:  # not for other engines, whose results may differ
        return None
    workers = _known.get(rules)
    if workers is None or (count is not None and count != workers.count):
        if workers is not None:
            workers.close()
        if count is None:
            count = min(processors(), MAX_WORKERS) if processors() > 1 else 0
        workers = _known[rules] = RulesWorkers(rules.spec, count)
    return workers


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    """End worker processes without waiting for what they compute."""
    before = _cpu_of_children()
    for process in processes:
        process.kill()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                _pipe(pipe).close()
        process.wait()
    processes.clear()
    ended_workers.cpu_seconds += _cpu_of_children() - before


def _cpu_of_children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _pipe(pipe: Any) -> BinaryIO:
    assert pipe is not None
    file: BinaryIO = pipe
    return file


def _send(pipe: Any, message: object) -> None:
    file = _pipe(pipe)
    pickle.dump(message, file)
    file.flush()


# --- in the worker -------------------------------------------------------------------------------


def work() -> None:
    """Main function of a worker: read a spec, then requests until the pipe closes."""
    leave_signals_to_parent()
    requests = os.fdopen(os.dup(0), "rb")
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of libraries must not mix with the results
    with contextlib.suppress(EOFError, OSError):
        parent, path, spec = pickle.load(requests)
        end_with_parent(parent)  # a closed pipe would be noticed only after the current part
        sys.path[:] = path
        rules = FairyRules(spec)
        while True:
            _send(results, [_compute(rules, *request) for request in pickle.load(requests)])


def _compute(rules: FairyRules, position: Position, move: int) -> Lookahead | None:
    try:
        return look_ahead(rules, position, move)
    except VariantAIError:  # the parent gets the same error and reports it
        return None
