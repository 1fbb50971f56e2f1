"""Games as JSON, one object a line: what other tools and our own scripts exchange.

`{"moves": "e2e4 e7e5" or ["e2e4", …], "result": "1-0", "white": …, "date": …, "fen": …}`; keys are
those of `_HEADERS` in any case, unknown ones are kept as headers. `scores`, `clocks` (lists as long
as the game, null where unknown), `comments` (ply to words) and `tags` are as `text_output.py`
writes them, `notation` is the name of the notation of the moves. `visits` has an object for every
ply, how often a search visited which move: `[{"e2e4": 31, "d2d4": 12}, {}, …]`.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

from variant_ai.core.data.game_record import MOST_VISITS
from variant_ai.core.data.read.annotations import LONGEST_CLOCK
from variant_ai.core.data.read.decoding import TextLines, head_text
from variant_ai.core.data.read.game_reader import (
    MAX_COMMENT,
    MAX_HEADERS,
    MAX_PLIES,
    GameReader,
    RawGame,
)

MOST = LONGEST_CLOCK
"""Of a score or a clock."""
LONGEST_LINE = 16 << 20
"""Bytes: a long game with the visits of its searches takes megabytes. Python's objects may take
twenty times the memory of their JSON."""
_HEADERS = {
    "variant": "Variant",
    "white": "White",
    "red": "White",
    "black": "Black",
    "white_elo": "WhiteElo",
    "red_elo": "WhiteElo",
    "whiteelo": "WhiteElo",
    "black_elo": "BlackElo",
    "blackelo": "BlackElo",
    "result": "Result",
    "date": "Date",
    "event": "Event",
    "site": "Site",
    "round": "Round",
    "eco": "ECO",
    "ecco": "ECO",
    "time_control": "TimeControl",
    "timecontrol": "TimeControl",
    "termination": "Termination",
    "fen": "FEN",
    "start_fen": "FEN",
    "group": "Group",
    "opening_group": "Group",
}


class JsonlReader(GameReader):
    """JSON lines."""

    name = "jsonl"
    extensions = (".jsonl", ".ndjson", ".json")

    def sniff(self, head: bytes) -> bool:
        text = head_text(head).lstrip()
        return text.startswith("{") and '"moves"' in text

    def read(self, stream: io.BufferedReader, source: str) -> Iterator[RawGame]:
        count = 0
        lines = TextLines(stream, longest=LONGEST_LINE)
        for number, line in lines:
            if lines.is_rest or not line.strip():
                continue
            count += 1
            game = RawGame(source, count, number)
            if lines.is_cut:
                game.problem = "too long"
                game.detail = f"line {number} is longer than {LONGEST_LINE >> 20} MiB"
                yield game
                continue
            try:
                _fill(game, json.loads(line))
            except (ValueError, RecursionError) as error:
                game.problem, game.detail = "not a game", f"line {number}: {error}"
            yield game


def _fill(game: RawGame, data: Any) -> None:
    if not isinstance(data, dict):
        raise ValueError("a JSON object is expected on every line")
    moves = data.pop("moves", None)
    if isinstance(moves, str):
        moves = moves.split()
    if not isinstance(moves, list) or not all(isinstance(move, str) for move in moves):
        raise ValueError('"moves" must be a text of moves or a list of texts')
    if len(moves) > MAX_PLIES:
        raise ValueError(f"more than {MAX_PLIES} moves")
    game.moves = moves
    game.lines = [game.line] * len(moves)
    game.scores = _numbers(data.pop("scores", None), len(moves), "scores")
    game.clocks = _numbers(data.pop("clocks", None), len(moves), "clocks")
    game.visits = _visits(data.pop("visits", None), len(moves))
    game.comments = _comments(data.pop("comments", {}), len(moves))
    tags = data.pop("tags", {})
    year = data.pop("year", None)
    if "notation" in data and type(data.get("plies")) is int:  # a line of `text_output.py`
        del data["plies"]
        data.pop("source", None)
    if isinstance(tags, dict):
        data = {**data, **tags}
    for key, value in data.items():
        if isinstance(value, (str, int, float)) and len(game.headers) < MAX_HEADERS:
            game.headers.setdefault(_HEADERS.get(str(key).lower(), str(key)), str(value))
    if isinstance(year, int):
        # What the source's makers found out about the date beats our reading of its words.
        game.headers["Year"] = str(year)
    notation = game.headers.pop("notation", "")
    if notation:
        game.notations = (notation.lower(),)


def _numbers(value: Any, size: int, name: str) -> list[int | None] | None:
    if value is None:
        return None
    whole = isinstance(value, list) and len(value) == size
    if not whole or not all(
        number is None or (type(number) is int and abs(number) <= MOST) for number in value
    ):
        raise ValueError(
            f'"{name}" must be a list of {size} nulls or whole numbers of at most {MOST:,}'
        )
    return list(value)


def _visits(value: Any, size: int) -> list[dict[str, int]] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != size:
        raise ValueError(f'"visits" must be a list of {size} objects')
    for visited in value:
        if not isinstance(visited, dict) or not all(
            type(count) is int and 1 <= count <= MOST_VISITS for count in visited.values()
        ):
            raise ValueError('"visits" must tell of every ply moves and their visits, from 1')
    return list(value)


def _comments(value: Any, size: int) -> dict[int, str]:
    if not isinstance(value, dict):
        raise ValueError('"comments" must be an object of plies and texts')
    comments = {int(ply): str(text)[:MAX_COMMENT] for ply, text in value.items()}
    if any(not -1 <= ply < size for ply in comments):
        raise ValueError('"comments" has a ply that the game has not')
    return comments
