"""Analysis for programs in other languages: one JSON object per line in both directions.

    {"id": "a", "variant": "…", "fen": "…", "moves": ["e2e4"], "nodes": 800, "multipv": 3}
    {"id": "a", "final": true, "best": "…", "lines": [{"move": "…", "pv": […], "value": 0.1, …}], …}

Queries wait in a queue: the highest `priority` first, then in the order of their arrival. Each has
its own limits and may request reports during the search. `{"action": "stop", "id": "a"}` stops one,
`{"action": "stop"}` all of them; each still gets its final answer. At the end of the input all
waiting queries are answered. A line that cannot be understood gets an `error`, with its `id` if that
can be read.
"""

from __future__ import annotations

import heapq
import itertools
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel, ConfigDict, Field

from variant_ai.core.engine.line_io import InputLine, LineWriter
from variant_ai.core.errors import DataError, SettingError, VariantAIError, unknown
from variant_ai.core.system.checked_models import checked

if TYPE_CHECKING:
    from variant_ai.core.rules.game import Game
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.search.interface import BaseSearch
    from variant_ai.core.search.report import Report

DEFAULT_NODES = 800
MOST_PRIORITY = 1e300
"""Fits into a double; JSON numbers have no limit."""
LOOK = 0.2
"""Seconds between two checks whether a query was stopped, in addition to the stop itself."""
ACTIONS = ("stop", "clear", "version")


class QueryFields(BaseModel):
    """Fields of a query; null is as good as missing."""

    model_config = ConfigDict(strict=True, extra="forbid")

    id: str | int = ""
    action: str = ""
    variant: str = ""
    fen: str = ""
    moves: list[str] = []
    nodes: int = 0
    movetime: float = Field(0.0, allow_inf_nan=False)
    depth: int = 0
    mate: int = 0
    multipv: int = Field(1, ge=1)
    search_moves: list[str] = []
    priority: float = Field(0.0, ge=-MOST_PRIORITY, le=MOST_PRIORITY)
    report_every: float = Field(1.0, gt=0, allow_inf_nan=False)
    layer: int = 0
    """Of the action `layer`."""


@dataclass(order=True)
class Query:
    """A query or a `clear` that waits its turn."""

    order: tuple[float, int]
    """The least is next."""
    words: dict[str, Any] = field(compare=False)
    stopped: bool = field(default=False, compare=False)

    @property
    def id(self) -> Any:
        return self.words.get("id")


class VariantEngine(Protocol):
    """Rules and search of one variant."""

    @property
    def rules(self) -> Rules: ...

    @property
    def search(self) -> BaseSearch: ...

    def close(self) -> None: ...


QueryAction = Callable[[VariantEngine, "Game", Mapping[str, Any]], Mapping[str, Any]]
"""Answers a query other than a search, which is its third argument; the fields that it returns join
`id` and `action` in the answer."""


class JsonService:
    """Reads queries in one thread and answers them in another."""

    def __init__(
        self,
        make_engine: Callable[[str], VariantEngine],
        write: LineWriter,
        *,
        default_variant: str | None,
        version: str,
        actions: Mapping[str, QueryAction] | None = None,
        most_engines: int | None = None,
    ) -> None:
        """make_engine: called once for each variant, in the answering thread. actions: more actions,
        which have the fields of a query and wait their turn like one. most_engines: engines that are
        kept; beyond that, the one that was used least recently is closed."""
        self._make_engine = make_engine
        self._write = write
        self._default_variant = default_variant
        self._version = version
        self._actions = dict(actions or {})
        self._most_engines = most_engines
        self._engines: OrderedDict[str, VariantEngine] = OrderedDict()
        self._numbers = itertools.count()
        self._waiting: list[Query] = []
        self._running: Query | None = None
        self._search: BaseSearch | None = None
        self._ended = False
        self._changed = threading.Condition()

    def run(self, lines: Iterable[InputLine]) -> None:
        """Serve until the input ends and everything is answered, or nobody reads the answers."""
        worker = threading.Thread(target=self._work, name="analysis", daemon=True)
        worker.start()
        for line in lines:
            if self._write.is_broken:
                break
            if line.text:
                self._handle_line(line)
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        while worker.is_alive() and not self._write.is_broken:
            worker.join(0.2)
        for engine in self._engines.values():
            engine.close()

    # --- the reading thread --------------------------------------------------------------------

    def _handle_line(self, line: InputLine) -> None:
        words: Any = None
        try:
            if line.cut:
                raise DataError("the line is too long")
            words = json.loads(line.text)
            self._dispatch(check(words, self._actions))
        except (ValueError, RecursionError) as error:
            self._print_error(None, f"the line is not JSON: {error}")
        except VariantAIError as error:
            given = words.get("id") if isinstance(words, Mapping) else None
            is_id = isinstance(given, str | int) and not isinstance(given, bool)
            self._print_error(given if is_id else None, str(error))

    def _dispatch(self, words: dict[str, Any]) -> None:
        action = words.get("action")
        if action == "version":
            self._print({"id": words.get("id"), "action": action, "version": self._version})
        elif action == "stop":
            self._stop(words.get("id"))
        else:  # a query, or `clear`, which waits its turn like one
            order = (-float(words.get("priority", 0)), next(self._numbers))
            with self._changed:
                heapq.heappush(self._waiting, Query(order, words))
                self._changed.notify_all()

    def _stop(self, id: Any) -> None:
        with self._changed:
            for query in [*self._waiting, *([self._running] if self._running else [])]:
                if id is None or query.id == id:
                    query.stopped = True
            if self._running is not None and self._running.stopped and self._search is not None:
                self._search.stop()

    def _print_error(self, id: Any, problem: str) -> None:
        self._print({"id": id, "final": True, "error": problem})

    def _print(self, words: Mapping[str, Any]) -> None:
        shown = {key: value for key, value in words.items() if key != "id" or value is not None}
        self._write(json.dumps(shown, ensure_ascii=False, allow_nan=False))

    # --- the answering thread ------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ended)
                if not self._waiting:
                    return
                query = self._running = heapq.heappop(self._waiting)
            try:
                if query.words.get("action") == "clear":
                    for engine in self._engines.values():
                        engine.search.clear()
                    self._print({"id": query.id, "action": "clear"})
                else:
                    self._analyse(query)
            except VariantAIError as error:
                self._print_error(query.id, str(error))
            except Exception as error:  # one bad query must not end the others
                self._print_error(query.id, f"{type(error).__name__}: {error}")
            with self._changed:
                self._running, self._search = None, None

    def _engine(self, name: str | None) -> VariantEngine:
        variant = name or self._default_variant
        if variant is None:
            raise DataError("the query names no `variant`, and none was given to the program")
        if variant not in self._engines:
            while self._most_engines is not None and len(self._engines) >= self._most_engines:
                self._engines.popitem(last=False)[1].close()
            self._engines[variant] = self._make_engine(variant)
        self._engines.move_to_end(variant)
        return self._engines[variant]

    def _analyse(self, query: Query) -> None:
        from variant_ai.core.rules.game import Game
        from variant_ai.core.rules.text.fen import fen_or_start
        from variant_ai.core.rules.text.notation import UciNotation
        from variant_ai.core.search.move.limits import Limits

        words = query.words
        engine = self._engine(words.get("variant"))
        rules, search = engine.rules, engine.search
        game = Game.from_uci(rules, fen_or_start(words.get("fen")), words.get("moves", ()))
        action = words.get("action")
        if action is not None:
            answer = self._actions[action](engine, game, words)
            self._print({"id": query.id, "action": action, **answer})
            return
        notation = UciNotation()
        given = words.get("search_moves")
        if given == []:
            raise SettingError("search_moves = []: must have a move; leave it out for all moves")
        moves = None if given is None else [notation.read(rules, game.position, m) for m in given]
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
                search.stop()
            if every is not None and time.monotonic() - last >= 0.9 * every:
                last = time.monotonic()
                self._print(answer_of(query.id, game, report, final=False))

        search.set_game(game)
        with self._changed:  # from here on it may be stopped
            self._search = search
            if query.stopped:
                limits = Limits(movetime=0.0)
        report = search.run(
            limits,
            moves=moves,
            multipv=int(words.get("multipv", 1)),
            on_report=on_report,
            interval=LOOK if every is None else min(float(every), LOOK),
        )
        self._print(answer_of(query.id, game, report, final=True))


def check(given: Any, actions: Collection[str] = ()) -> dict[str, Any]:
    """Return a query or an action without its null fields. actions: those that have the fields of a
    query. Raises DataError, and SettingError naming the field that is wrong."""
    if not isinstance(given, dict):
        raise DataError(f"a query is a JSON object, not {json.dumps(given)[:60]}")
    words: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    action = words.get("action")
    name = words.get("id", "")
    if not isinstance(name, str | int) or isinstance(name, bool):
        raise DataError(f"id: {json.dumps(name)[:60]} where text or a whole number is expected")
    if action is None and "layer" in words:
        raise DataError("layer: a field of the action `layer`, not of a query")
    if action in ACTIONS:  # other fields have no meaning
        checked(
            QueryFields,
            {name: words[name] for name in ("id", "priority") if name in words},
            "query",
        )
    elif action is not None and action not in tuple(actions):  # it may be a list, say
        raise DataError(unknown("action", str(action), (*ACTIONS, *actions)))
    else:
        checked(QueryFields, words, "query")
    return words


def answer_of(id: Any, game: Game, report: Report, *, final: bool) -> dict[str, Any]:
    """Return a report as an answer. Values, scores and chances are those of the side to move."""
    text = game.rules.uci
    answer: dict[str, Any] = {
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
        answer["outcome"] = {"result": outcome.result, "reason": outcome.reason}
    return answer
