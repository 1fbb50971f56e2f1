"""Processes that answer questions to the rules engine `fairy` ahead of time.

A question to Fairy-Stockfish takes milliseconds and holds Python's lock all the while, so threads
cannot share them out. A search knows which positions it will need next: it asks for them together,
and each worker answers a part.

A worker is another Python with the same spec, fed through pipes. It ends when its pipe closes, in
whatever way the process that started it went, and leaves Ctrl-C and its kin to that one. One
that dies is told as a warning; whoever asked goes on without workers, and finds out by itself.
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
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.errors import VariantAIError
from variant_ai.core.rules.fairy.fairy_rules import FairyRules
from variant_ai.core.rules.fairy.fairy_states import Packed, State, state_of, with_state
from variant_ai.core.rules.interface import Outcome, Rules
from variant_ai.core.rules.position import POSITION, Position
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.system.child_processes import leave_signals_to_parent, signals_held
from variant_ai.core.system.processors import processors

MOST = 8
"""Workers started unless more are asked for."""
SOON = 0.03
"""Seconds in which questions asked together should be answered."""
_START = "from variant_ai.core.rules.fairy.fairy_workers import work; work()"


class Lookahead(NamedTuple):
    """What is known of a position before anybody asks for it."""

    position: Position
    """Shape (1,), as `Rules.play` gives it."""
    outcome: Outcome | None
    moves: NDArray[np.int32]
    """Legal moves, none where the game is over."""


def look_ahead(rules: Rules, position: Position, move: int) -> Lookahead:
    """The position after a legal move, and all that a search asks of it."""
    after = rules.play(position, move)
    outcome = rules.outcome(after)
    moves = np.zeros(0, np.int32) if outcome else rules.legal_moves(after)
    return Lookahead(after, outcome, moves)


class RulesWorkers:
    """Workers of one spec, started by `start` or at the first question. Safe in any thread."""

    def __init__(self, spec: VariantSpec, count: int) -> None:
        """count: how many; with 0 nobody answers."""
        self.spec = spec
        self.count = count
        self._processes: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()
        self._closing: weakref.finalize[Any, Any] | None = None
        self._pace = SOON
        """Seconds that a worker takes for an answer, as the last ones were."""

    @property
    def is_running(self) -> bool:
        return bool(self._processes)

    @property
    def at_once(self) -> int:
        """Questions that are answered within `SOON`, one for each worker at least."""
        return self.count * max(int(SOON / self._pace), 1)

    def start(self) -> None:
        """Start the workers and wait until they have loaded the rules: most of a second that would
        fall into the first search."""
        with self._lock:
            if not self._processes and self.count:
                try:
                    self._start()
                    self._answers(())
                except (OSError, EOFError, pickle.UnpicklingError) as error:
                    self._give_up(error)

    def ask(self, questions: Sequence[tuple[Position, int]]) -> list[Lookahead | None]:
        """`look_ahead` of each position (1,) and legal move; None where nobody has answered."""
        silence: list[Lookahead | None] = [None] * len(questions)
        if not self.count or not questions:
            return silence
        with self._lock:
            try:
                self._start()
                begun = time.perf_counter()
                parts = self._answers(questions)
                self._pace = (time.perf_counter() - begun) / len(parts[0])
            except (OSError, EOFError, pickle.UnpicklingError) as error:
                self._give_up(error)
                return silence
        answers = silence
        for number, part in enumerate(parts):
            answers[number :: self.count] = part
        return answers

    def close(self) -> None:
        """End the workers; the next question starts new ones."""
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
            _send(process.stdin, (sys.path, self.spec))
        self._closing = weakref.finalize(self, _end, self._processes)

    def _answers(self, questions: Sequence[tuple[Position, int]]) -> list[list[Lookahead | None]]:
        """The workers' parts: worker w has every `count`-th question from w on."""
        for number, process in enumerate(self._processes):
            part = questions[number :: self.count]
            _send(process.stdin, [(*_written(position), int(move)) for position, move in part])
        return [
            [None if told is None else _read(told) for told in pickle.load(_pipe(process.stdout))]
            for process in self._processes
        ]

    def _give_up(self, error: Exception) -> None:
        ended = [process.poll() for process in self._processes]
        status = next((code for code in ended if code is not None), None)
        how = f"ended with status {status}" if status is not None else f"failed ({error})"
        self._stop()
        self.count = 0
        warnings.warn(
            f"a process that helps with the rules of {self.spec.variant} {how}; "
            "the search goes on without such processes, and slower",
            RuntimeWarning,
            stacklevel=4,
        )

    def _stop(self) -> None:
        if self._closing is not None:
            self._closing.detach()
            self._closing = None
        _end(self._processes)


_known: weakref.WeakKeyDictionary[Rules, RulesWorkers] = weakref.WeakKeyDictionary()


def workers_of(rules: Rules, count: int | None = None) -> RulesWorkers | None:
    """The workers of a rules object, shared by all searches with it; None where it has none.

    count: how many from now on; None: as they are, at first one for each processor up to `MOST`, none
    on a machine with one.
    """
    if type(rules) is not FairyRules:  # what a plugin's engine answers only the plugin knows
        return None
    workers = _known.get(rules)
    if workers is None or (count is not None and count != workers.count):
        if workers is not None:
            workers.close()
        if count is None:
            count = min(processors(), MOST) if processors() > 1 else 0
        workers = _known[rules] = RulesWorkers(rules.spec, count)
    return workers


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    """A closed pipe ends a worker; one that is in the middle of an answer is not waited for."""
    for process in processes:
        process.kill()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                _pipe(pipe).close()
        process.wait()
    processes.clear()


def _pipe(pipe: Any) -> BinaryIO:
    assert pipe is not None
    file: BinaryIO = pipe
    return file


def _send(pipe: Any, message: object) -> None:
    file = _pipe(pipe)
    pickle.dump(message, file)
    file.flush()


def _written(position: Position) -> tuple[bytes, Packed | None]:
    """A position as it goes through a pipe: the record, and what Fairy-Stockfish keeps of it."""
    state = state_of(position)
    return position.tobytes(), state.packed() if state else None


def _read(told: tuple[bytes, Packed, Outcome | None, bytes]) -> Lookahead:
    record, packed, outcome, moves = told
    state = State(*packed)
    legal = np.frombuffer(moves, np.int32)
    if outcome is None:
        state.legal, state.outcome = legal, None
    return Lookahead(with_state(np.frombuffer(bytearray(record), POSITION), state), outcome, legal)


# --- in the worker -------------------------------------------------------------------------------


def work() -> None:
    """The life of a worker: a spec, then questions until the pipe closes."""
    leave_signals_to_parent()
    questions = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not fall among the answers
    with contextlib.suppress(EOFError, OSError):
        path, spec = pickle.load(questions)
        sys.path[:] = path
        rules = FairyRules(spec)
        while True:
            _send(answers, [_answer(rules, *question) for question in pickle.load(questions)])


def _answer(
    rules: FairyRules, record: bytes, packed: Packed | None, move: int
) -> tuple[bytes, Packed, Outcome | None, bytes] | None:
    position: Position = np.frombuffer(bytearray(record), POSITION)
    if packed is not None:
        position = rules.recall(position, packed)
    try:
        told = look_ahead(rules, position, move)
    except VariantAIError:  # who asked will meet it, and tell it
        return None
    state = state_of(told.position)
    assert state is not None
    moves = told.moves.astype(np.int32).tobytes()
    return told.position.tobytes(), state.packed(), told.outcome, moves
