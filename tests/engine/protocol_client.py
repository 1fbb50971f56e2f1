"""A client in the test's own process: a session between two pipes, with a search of its own.

`FakeSearch` keeps the interface of the real one and does what a test tells it: it "searches" a
visit each half millisecond, prefers the first legal move by name, and never looks at a net.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from variant_ai.core.encoding import Encoder
from variant_ai.core.engine.engine_builder import EngineBuilder
from variant_ai.core.engine.line_io import LineWriter, read_lines
from variant_ai.core.engine.protocols.uci import Identity
from variant_ai.core.engine.session import Session
from variant_ai.core.inference import Evaluator, UniformEvaluator
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.text.notation import uci
from variant_ai.core.search.interface import BaseSearch
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.report import Line, Report, centipawns
from variant_ai.core.search.settings import SearchParams
from variant_ai.core.spec.catalogue import builtin_specs
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.plugins import registry

VISIT = 0.0005
PATIENCE = 60.0


class FakeSearch:
    """Interface of `Search`; `q` and `mate` are what it finds, `solved` ends it at once, under
    `infinite` too, where it waits to be stopped."""

    def __init__(self, params: SearchParams) -> None:
        self.params = params
        self.q = 0.1291571
        self.mate: int | None = None
        self.solved = False
        self.fails = False
        self.games: list[list[str]] = []
        """Moves of every game that was set."""
        self.limits: list[Limits] = []
        self.cleared = 0
        self.judges_chases = False
        self._game: Game | None = None
        self._stop = threading.Event()
        self._state: tuple[float, int, list[int]] = (0.0, 0, [])

    @property
    def game(self) -> Game:
        assert self._game is not None
        return self._game

    def set_game(self, game: Game) -> None:
        self._game = game
        self.games.append(game.uci_moves())

    def run(
        self,
        limits: Limits,
        *,
        moves: Sequence[int] | None = None,
        multipv: int = 1,
        on_report: Callable[[Report], None] | None = None,
        interval: float = 1.0,
    ) -> Report:
        assert self._game is not None
        self._stop.clear()  # as the real one: a stop before the run is lost
        if self.fails:
            raise RuntimeError("broken on purpose")
        self.limits.append(limits)
        rules, files = self._game.rules, self._game.rules.spec.board.files
        legal = self._game.legal_moves().tolist() if moves is None else list(moves)
        legal.sort(key=lambda move: uci(rules.types, files, move))
        start = time.perf_counter()
        visits, stopped_by = 0, ""
        while not stopped_by:
            self._state = (time.perf_counter() - start, visits, legal)
            if limits.movetime is not None and self._state[0] >= limits.movetime:
                stopped_by = "movetime"
            elif limits.nodes is not None and visits >= limits.nodes:
                stopped_by = "simulations"
            elif limits.depth is not None and visits >= 10 * limits.depth:
                stopped_by = "depth"
            elif self.solved and not limits.infinite:
                stopped_by = "solved"
            elif self._stop.wait(VISIT):
                stopped_by = "stop"
            else:
                visits += not self.solved
        return self._report(multipv, stopped_by)

    def settle(self) -> None:
        pass

    def report(self, multipv: int = 1, *, pv: bool = True) -> Report:
        return self._report(multipv, "solved" if self.solved else "")

    def _report(self, multipv: int, stopped_by: str) -> Report:
        _, visits, legal = self._state
        lines = tuple(
            Line(
                move,
                self._pv(move),
                visits // (rank + 1),
                0.1,
                self.q,
                None,
                centipawns(self.q),
                self.mate,
            )
            for rank, move in enumerate(legal[:multipv])
        )
        pv = lines[0].pv if lines else ()
        return Report(
            best=legal[0] if legal else None,
            ponder=pv[1] if len(pv) > 1 else None,
            lines=lines if visits else (),
            visits=visits,
            depth=1 + visits // 10,
            seldepth=2,
            seconds=0.0,
            stopped_by=stopped_by,
        )

    def _pv(self, move: int) -> tuple[int, ...]:
        """The move and the first answer by name."""
        assert self._game is not None
        rules = self._game.rules
        after = rules.play(self._game.position, move)
        replies = rules.legal_moves(after).tolist()
        files = rules.spec.board.files
        replies.sort(key=lambda reply: uci(rules.types, files, reply))
        return (move, *replies[:1])

    def stop(self) -> None:
        self._stop.set()

    def judge_chases(self, on: bool) -> None:
        self.judges_chases = on

    def clear(self) -> None:
        self.cleared += 1

    def warm_up(self) -> None: ...

    def close(self) -> None:
        pass


@cache
def _rules(name: str) -> Rules:
    """Made once for all tests: tables take longer than most of these."""
    return registry().rules(registry().variant(name))


@cache
def _evaluator(name: str) -> Evaluator:
    encoder = Encoder(registry().variant(name))
    return UniformEvaluator(encoder.shape, encoder.actions)


class FakeBuilder(EngineBuilder):
    """Real variants and rules, no nets, and searches that the test can reach."""

    def __init__(self, default: str = "crazyhouse") -> None:
        super().__init__(builtin_specs(), default, registry)
        self.searches: list[FakeSearch] = []
        self.settings: list[Mapping[str, Any]] = []
        self.shape: dict[str, Any] = {}
        """Attributes given to each new search."""

    def evaluator(
        self, spec: VariantSpec, settings: Mapping[str, Any], say: Callable[[str], None]
    ) -> Evaluator:
        self.settings.append(settings)
        return _evaluator(spec.variant)

    def rules(self, spec: VariantSpec) -> Rules:
        return _rules(spec.variant)

    def search(
        self, spec: VariantSpec, evaluator: Evaluator, params: SearchParams, rules: Rules
    ) -> BaseSearch:
        search = FakeSearch(params)
        vars(search).update(self.shape, encoder=Encoder(spec), rules=rules, evaluators=[evaluator])
        self.searches.append(search)
        return search

    def compile_search(self) -> None:
        pass

    def import_early(self) -> None:
        pass


class Client:
    """Talks with a session over pipes."""

    def __init__(self, builder: EngineBuilder | None = None, **keywords: Any) -> None:
        self.builder = builder or FakeBuilder()
        to_read, self._to = os.pipe()
        self._from, to_write = os.pipe()
        self.session = Session(
            Identity("Test 1", "Tests"), self.builder, LineWriter(to_write), **keywords
        )
        self.lines: queue.Queue[str] = queue.Queue()
        self.heard: list[str] = []
        self._fds = [to_read, to_write]
        self._ears = threading.Thread(target=self._listen, daemon=True)
        self._ears.start()
        self._runner = threading.Thread(
            target=self.session.run, args=(read_lines(to_read),), daemon=True
        )
        self._runner.start()

    def _listen(self) -> None:
        with os.fdopen(self._from, "rb") as pipe:
            for line in pipe:
                self.lines.put(line.decode().removesuffix("\n"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._to >= 0:
            self.send("quit")
        self.end()

    def end(self) -> None:
        """End of the input; waits for the session."""
        if self._to >= 0:
            os.close(self._to)
            self._to = -1
        self._runner.join(PATIENCE)
        assert not self._runner.is_alive()
        for fd in self._fds:
            os.close(fd)
        self._fds = []
        self._ears.join(PATIENCE)

    def send(self, *lines: str) -> None:
        self.send_bytes("".join(f"{line}\n" for line in lines).encode())

    def send_bytes(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._to, data) :]

    def line(self, seconds: float = PATIENCE) -> str:
        line = self.lines.get(timeout=seconds)
        self.heard.append(line)
        return line

    def until(self, word: str) -> list[str]:
        """Lines up to the one that begins with the word."""
        found = [self.line()]
        while found[-1].split()[:1] != [word]:
            found.append(self.line())
        return found

    def ask(self, *lines: str, until: str = "readyok") -> list[str]:
        """Send, then everything that comes until `readyok`, which is left out."""
        self.send(*lines, *(["isready"] if until == "readyok" else []))
        found = self.until(until)
        return found[:-1] if until == "readyok" else found

    def silent(self, seconds: float = 0.1) -> bool:
        """Whether nothing comes for so long."""
        try:
            self.heard.append(self.lines.get(timeout=seconds))
        except queue.Empty:
            return True
        return False


def hello(word: str = "uci", builder: EngineBuilder | None = None, **keywords: Any) -> Client:
    """A client that has shaken hands."""
    client = Client(builder, **keywords)
    client.send(word)
    client.until(f"{word}ok")
    return client


def model_file(folder: Path) -> Path:
    """A file that is no net."""
    path = folder / "model.onnx"
    path.write_bytes(b"not a net")
    return path


def last_search(client: Client) -> FakeSearch:
    assert isinstance(client.builder, FakeBuilder)
    return client.builder.searches[-1]


def best(lines: list[str]) -> str:
    moves = [line.split()[1] for line in lines if line.startswith("bestmove")]
    assert len(moves) == 1, lines
    return moves[0]
