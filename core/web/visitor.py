"""One browser: it asks questions over its WebSocket and gets answers with their ids.

Questions about rules are answered at once by a process of their own, searches in their turn. Nothing
about a game is kept here, so that a page which connects again continues its game.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from variant_ai.core.engine.protocols.chosen_options import strength_of
from variant_ai.core.engine.protocols.engine_options import LEAST_ELO, MOST_ELO
from variant_ai.core.errors import DataError, VariantAIError
from variant_ai.core.search.move.clock import Clock, TimeManager
from variant_ai.core.web import Json
from variant_ai.core.web.client_messages import ClientMessage, MessageError, read_message
from variant_ai.core.web.search_schedule import SearchJob
from variant_ai.core.web.search_service import engine_name
from variant_ai.core.web.work_room import OWN, WorkRoom
from variant_ai.core.web.worker_process import WorkerError, report_fault

QUESTION_SECONDS = 60.0
"""Longest time for a question about rules; loading a variant for the first time may compile."""
LONGEST_QUEUE = 256
"""Answers that wait for a slow reader; beyond that, reports during a search are left out."""
DEFAULT_NODES = 800
OVERHEAD = 0.2
"""Seconds of a move that pass between the page's clock and the search."""
LINES_OF_WEAK = 24
"""Moves among which a weakened engine chooses."""
SEARCHES = ("search", "policy", "planes", "layer", "tree")
"""Messages that need a net; they wait their turn."""
BOARD_QUESTIONS = ("describe", "position", "line", "pgn", "read", "source")


@dataclass(eq=False)
class _OpenSearch:
    """A search that has not had its final answer."""

    kind: str
    """Type of its message."""
    job: SearchJob
    done: asyncio.Event = field(default_factory=asyncio.Event)


class Visitor:
    """The conversation with one page."""

    def __init__(self, room: WorkRoom, send: Callable[[str], Any]) -> None:
        """send: a coroutine function that sends a text to the page."""
        self._room = room
        self._limits = room.settings.limits
        self._send = send
        self._outbox: asyncio.Queue[str] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._searches: dict[int, _OpenSearch] = {}

    async def run(self, receive: Callable[[], Any]) -> None:
        """Answer messages until the page leaves. receive: a coroutine function that returns the next
        text, None at the end."""
        writer = asyncio.create_task(self._write())
        try:
            while (text := await receive()) is not None:
                try:
                    message = read_message(text, self._limits)
                    self._admit(message)
                except MessageError as error:
                    self._answer(error.id, {"error": str(error)})
                except VariantAIError as error:
                    self._put({"id": None, "error": str(error)})
                while self._outbox.qsize() > LONGEST_QUEUE:  # the page does not read
                    await asyncio.sleep(0.05)
        finally:
            writer.cancel()
            self._room.schedule.forget(self)
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(writer, *self._tasks, return_exceptions=True)

    def _admit(self, message: ClientMessage) -> None:
        """Begin to answer a message. Raises MessageError if the visitor has too many open ones, or
        a search with the same id."""
        if message.type == "stop":
            search = self._searches.get(message.fields["search"])
            if search is not None:
                self._room.schedule.stop(search.job)
            return
        if len(self._tasks) >= self._limits.questions:
            raise MessageError(
                message.id, f"at most {self._limits.questions} questions may be open at a time"
            )
        if message.type in SEARCHES:
            # before anything is awaited: a `stop` may follow at once
            self._searches[message.id] = self._open(message)
        task = asyncio.create_task(self._handle(message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _handle(self, message: ClientMessage) -> None:
        try:
            if message.type in SEARCHES:
                await self._search(message)
            else:
                self._answer(message.id, await self._ask(message))
        except VariantAIError as error:
            self._answer(message.id, {"error": str(error), "final": True})
        except Exception as error:  # the page waits for an answer in any case
            text = report_fault(message.type, error)
            self._answer(message.id, {"error": text, "final": True})

    async def _ask(self, message: ClientMessage) -> Json:
        room, fields = self._room, dict(message.fields)
        general = {"hello": room.greeting, "variants": room.variants, "runs": room.runs}
        if message.type in general:
            return await general[message.type]()
        if message.type == "spec":
            return await room.add_spec(fields["text"])
        name = fields.get("variant", "")
        if message.type == "source" and name.startswith(OWN):
            return {"text": room.source_of(name)}
        if message.type in BOARD_QUESTIONS:
            fields["variant"] = room.place_of(name)
            question = {"action": message.type, **fields}
            board = room.board_of(name)
            try:
                return await board.ask(question, QUESTION_SECONDS)
            except WorkerError:  # for another question; a new process answers this one
                return await board.ask(question, QUESTION_SECONDS)
        return await room.reader.ask({"action": message.type, **fields}, QUESTION_SECONDS)

    # --- searches ------------------------------------------------------------------------------

    def _open(self, message: ClientMessage) -> _OpenSearch:
        """Return the search of a message, without its question. Raises MessageError."""
        id, kind, most = message.id, message.type, self._limits.searches
        if id in self._searches:
            raise MessageError(id, f"id: a search with the id {id} is open")
        # one that was stopped ends soon, and a page asks for several kinds at a time
        mine = [one for one in self._searches.values() if one.kind == kind and not one.job.stopped]
        if len(mine) >= most:
            kinds = "searches" if kind == "search" else f"questions of the type {kind}"
            raise MessageError(id, f"at most {most} {kinds} may be open at a time")
        weak = message.fields.get("elo") if kind == "search" else None

        def on_answer(answer: Json) -> None:
            final = answer.get("final", True)
            if final and weak is not None and "lines" in answer:
                choose_weakly(answer, strength_of(weak).temperature)
            if final or self._outbox.qsize() < LONGEST_QUEUE:
                self._answer(id, answer)
            if final:
                self._close(id, search)

        search = _OpenSearch(kind, SearchJob(self, {}, on_answer, 0.0))
        return search

    def _close(self, id: int, search: _OpenSearch) -> None:
        search.done.set()
        if self._searches.get(id) is search:  # not the next one of this id
            del self._searches[id]

    async def _search(self, message: ClientMessage) -> None:
        search = self._searches[message.id]
        job = search.job
        try:
            await self._room.learn_net(message.fields.get("net"))
            job.question, job.seconds = self._query(message)
            await self._room.schedule.submit(job)
            await search.done.wait()
        finally:
            self._close(message.id, search)

    def _query(self, message: ClientMessage) -> tuple[Json, float]:
        """Return a query for the JSON service, and the longest time that it may take."""
        fields, limits = message.fields, self._limits
        variant = self._room.place_of(fields["variant"])
        net = self._room.net(fields.get("net"), fields["variant"])
        query: Json = {
            "variant": engine_name(variant, net),
            "fen": fields.get("fen"),
            "moves": fields.get("moves", []),
        }
        if message.type != "search":
            if "line" in fields:
                query["search_moves"] = fields["line"]
            if "layer" in fields:
                query["layer"] = fields["layer"]
            return {**query, "action": message.type}, 10.0
        nodes, seconds = fields.get("nodes"), fields.get("seconds")
        if "clock" in fields:
            clock = Clock(fields["clock"].get("left", 0.0), fields["clock"].get("increment", 0.0))
            own_moves = len(query["moves"]) // 2
            seconds = TimeManager(overhead=OVERHEAD).budget(clock, own_moves).target
        if nodes is None and seconds is None:
            nodes = DEFAULT_NODES
        multipv = min(fields.get("multipv", 1), 64)
        if "elo" in fields:
            elo = fields["elo"]
            if not LEAST_ELO <= elo <= MOST_ELO:
                raise DataError(f"elo: {elo}; from {LEAST_ELO} to {MOST_ELO} are accepted")
            strength = strength_of(elo)
            nodes, multipv = strength.nodes, LINES_OF_WEAK
        query["nodes"] = min(nodes or limits.nodes, limits.nodes)
        query["movetime"] = min(limits.seconds if seconds is None else seconds, limits.seconds)
        query["multipv"] = multipv
        if "report" in fields:
            query["report_every"] = max(fields["report"], 0.1)
        return query, query["movetime"]

    # --- answers -------------------------------------------------------------------------------

    def _answer(self, id: int, answer: Json) -> None:
        self._put({"id": id, **answer})

    def _put(self, answer: Json) -> None:
        self._outbox.put_nowait(json.dumps(answer, ensure_ascii=False, allow_nan=False))

    async def _write(self) -> None:
        with contextlib.suppress(ConnectionError):
            while True:
                await self._send(await self._outbox.get())


def choose_weakly(answer: Json, temperature: float) -> None:
    """Replace the best move of an answer by one at random, by visits to the power 1/temperature, as
    a weakened engine does."""
    lines = answer["lines"]
    if temperature <= 0 or len(lines) < 2:
        return
    most = max(line["visits"] for line in lines)
    if most > 0:  # shares of the most visits: the power of a number above 1 may overflow
        weights = [(max(line["visits"], 0) / most) ** (1 / temperature) for line in lines]
    else:
        weights = [line["prior"] + 1e-9 for line in lines]
    answer["best"] = random.choices(lines, weights)[0]["move"]
