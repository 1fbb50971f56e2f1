"""Analysis for programs in other languages: a JSON object a line in, a JSON object a line out.

    {"id": "a", "variant": "…", "fen": "…", "moves": ["e2e4"], "nodes": 800, "multipv": 3}
    {"id": "a", "final": true, "best": "…", "lines": [{"move": "…", "pv": […], "value": 0.1, …}], …}

Queries wait in a queue, the highest `priority` first, then in the order in which they came; each
has limits of its own and may ask for reports on the way. `{"action": "stop", "id": "a"}` ends one,
`{"action": "stop"}` all of them, and each still gets its final answer. At the end of the input
everything that waits is answered. What cannot be understood is answered with `error`, and with the
`id` where one could be read.
"""

from __future__ import annotations

import heapq
import itertools
import json
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from variant_ai.core.engine.line_io import InputLine, LineWriter
from variant_ai.core.errors import DataError, VariantAIError

if TYPE_CHECKING:
    from variant_ai.core.engine.engine_builder import Searching
    from variant_ai.core.rules.game import Game
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.search.report import Report

DEFAULT_NODES = 800
MOST_PRIORITY = 1e300
"""What a double holds; JSON's numbers have no end."""
LOOK = 0.2
"""Seconds between two looks at whether a query was stopped, beside the stop itself."""
FIELDS = {
    "id": (str, int),
    "variant": (str,),
    "fen": (str,),
    "moves": (list,),
    "nodes": (int,),
    "movetime": (int, float),
    "depth": (int,),
    "mate": (int,),
    "multipv": (int,),
    "search_moves": (list,),
    "priority": (int, float),
    "report_every": (int, float),
}
ACTIONS = ("stop", "clear", "version")


@dataclass(order=True)
class Query:
    """A position to analyse."""

    order: tuple[float, int]
    """Least first."""
    words: dict[str, Any] = field(compare=False)
    stopped: bool = field(default=False, compare=False)

    @property
    def id(self) -> Any:
        return self.words.get("id")


@dataclass
class Desk:
    """What one variant is analysed with."""

    rules: Rules
    search: Searching


class Service:
    """Reads queries from one thread and answers them from another."""

    def __init__(
        self,
        make_desk: Callable[[str], Desk],
        write: LineWriter,
        *,
        default_variant: str | None,
        version: str,
    ) -> None:
        """make_desk: called once for each variant, in the answering thread."""
        self._make_desk = make_desk
        self._write = write
        self._default_variant = default_variant
        self._version = version
        self._desks: dict[str, Desk] = {}
        self._numbers = itertools.count()
        self._waiting: list[Query] = []
        self._running: Query | None = None
        self._search: Searching | None = None
        self._ended = False
        self._changed = threading.Condition()

    def run(self, lines: Iterable[InputLine]) -> None:
        """Serve until the input ends and everything is answered, or nobody reads."""
        worker = threading.Thread(target=self._work, name="analysis", daemon=True)
        worker.start()
        for line in lines:
            if self._write.is_broken:
                break
            if line.text:
                self._hear(line)
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        while worker.is_alive() and not self._write.is_broken:
            worker.join(0.2)
        for desk in self._desks.values():
            desk.search.close()

    # --- the reading thread --------------------------------------------------------------------

    def _hear(self, line: InputLine) -> None:
        words: Any = None
        try:
            if line.cut:
                raise DataError("the line is too long")
            words = json.loads(line.text)
            self._take(check(words))
        except (ValueError, RecursionError) as error:
            self._answer({"error": f"is not JSON: {error}"})
        except VariantAIError as error:
            named = words.get("id") if isinstance(words, Mapping) else None
            is_name = isinstance(named, FIELDS["id"]) and not isinstance(named, bool)
            self._answer({"id": named if is_name else None, "error": str(error)})

    def _take(self, words: dict[str, Any]) -> None:
        action = words.get("action")
        if action == "version":
            self._answer({"id": words.get("id"), "action": action, "version": self._version})
        elif action == "stop":
            self._stop(words.get("id"))
        else:
            # clearing waits its turn like a query
            order = (-float(words.get("priority", 0)), next(self._numbers))
            with self._changed:
                heapq.heappush(self._waiting, Query(order, words))
                self._changed.notify_all()

    def _stop(self, named: Any) -> None:
        with self._changed:
            for query in [*self._waiting, *([self._running] if self._running else [])]:
                if named is None or query.id == named:
                    query.stopped = True
            if self._running is not None and self._running.stopped and self._search is not None:
                self._search.stop()

    def _answer(self, words: Mapping[str, Any]) -> None:
        shown = {key: value for key, value in words.items() if key != "id" or value is not None}
        self._write(json.dumps(shown, ensure_ascii=False, allow_nan=False))

    # --- the answering thread ------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._ended:
                    self._changed.wait()
                if not self._waiting:
                    return
                query = self._running = heapq.heappop(self._waiting)
            try:
                if query.words.get("action") == "clear":
                    for desk in self._desks.values():
                        desk.search.clear()
                    self._answer({"id": query.id, "action": "clear"})
                else:
                    self._analyse(query)
            except VariantAIError as error:
                self._answer({"id": query.id, "error": str(error)})
            except Exception as error:  # one bad query must not end the others
                self._answer({"id": query.id, "error": f"{type(error).__name__}: {error}"})
            with self._changed:
                self._running, self._search = None, None

    def _desk(self, name: str | None) -> Desk:
        variant = name or self._default_variant
        if variant is None:
            raise DataError("the query names no `variant`, and none was given to the program")
        if variant not in self._desks:
            self._desks[variant] = self._make_desk(variant)
        return self._desks[variant]

    def _analyse(self, query: Query) -> None:
        from variant_ai.core.rules.game import Game
        from variant_ai.core.rules.text.notation import UciNotation
        from variant_ai.core.search.move.limits import Limits

        words = query.words
        desk = self._desk(words.get("variant"))
        game = Game.from_uci(desk.rules, words.get("fen"), words.get("moves", ()))
        notation = UciNotation()
        chosen = [
            notation.read(desk.rules, game.position, m) for m in words.get("search_moves", ())
        ]
        numbers: dict[str, Any] = {
            name: words.get(name) for name in ("nodes", "movetime", "depth", "mate")
        }
        if all(value is None for value in numbers.values()):
            numbers["nodes"] = DEFAULT_NODES
        limits = Limits(**numbers)
        every = words.get("report_every")

        last = time.monotonic()

        def on_report(report: Report) -> None:
            nonlocal last
            if query.stopped:
                desk.search.stop()
            if every is not None and time.monotonic() - last >= 0.9 * every:
                last = time.monotonic()
                self._answer(described(query.id, game, report, final=False))

        with self._changed:
            self._search = desk.search
            if query.stopped:
                limits = Limits(movetime=0.0)
        desk.search.set_game(game)
        report = desk.search.run(
            limits,
            moves=chosen or None,
            multipv=int(words.get("multipv", 1)),
            on_report=on_report,
            interval=LOOK if every is None else min(float(every), LOOK),
        )
        self._answer(described(query.id, game, report, final=True))


def check(given: Any) -> dict[str, Any]:
    """A query or an action with fields of the right types, without those that are null. Raises
    DataError saying which field is not right."""
    if not isinstance(given, dict):
        raise DataError(f"a query is a JSON object, not {json.dumps(given)[:60]}")
    words: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    priority = words.get("priority", 0)
    is_number = isinstance(priority, int | float) and not isinstance(priority, bool)
    if not is_number or not -MOST_PRIORITY <= priority <= MOST_PRIORITY:
        raise DataError(
            f"priority: {json.dumps(priority)[:60]} where a number is expected, of at most "
            f"{MOST_PRIORITY:.0e} either way"
        )
    if "action" in words:
        if words["action"] not in ACTIONS:
            raise DataError(f"unknown action {words['action']!r}; there are {', '.join(ACTIONS)}")
        _check_field("id", words.get("id", ""))
        return words
    for name, value in words.items():
        if name not in FIELDS:
            raise DataError(f"unknown field {name!r}; there are {', '.join(FIELDS)}")
        _check_field(name, value)
        if isinstance(value, float) and not math.isfinite(value):
            raise DataError(f"{name}: {value} where a finite number is expected")
        if isinstance(value, list) and not all(isinstance(item, str) for item in value):
            raise DataError(f"{name}: a list of moves as text is expected")
    if words.get("multipv", 1) < 1 or words.get("report_every", 1) <= 0:
        raise DataError("multipv and report_every are greater than 0")
    return words


def _check_field(name: str, value: Any) -> None:
    """Raises DataError unless the value is of a type that the field takes."""
    if isinstance(value, bool) or not isinstance(value, FIELDS[name]):
        kinds = " or ".join(kind.__name__ for kind in FIELDS[name])
        raise DataError(f"{name}: {json.dumps(value)[:60]} where a {kinds} is expected")


def described(id: Any, game: Game, report: Report, *, final: bool) -> dict[str, Any]:
    """A report as an answer. Values, scores and chances are those of the side to move."""
    from variant_ai.core.rules.text.notation import uci

    types, files = game.rules.types, game.rules.spec.board.files

    def text(move: int) -> str:
        return uci(types, files, move)

    found = {
        "id": id,
        "final": final,
        "best": None if report.best is None else text(report.best),
        "ponder": None if report.ponder is None else text(report.ponder),
        "lines": [line.as_json(text) for line in report.known_lines],
        "visits": report.visits,
        "depth": report.depth,
        "seconds": round(report.seconds, 4),
        "stopped_by": report.stopped_by,
    }
    outcome = game.outcome()
    if final and outcome is not None:
        found["outcome"] = {"result": outcome.result, "reason": outcome.reason}
    return found
