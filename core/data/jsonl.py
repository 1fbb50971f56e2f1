"""Games as JSON, one object a line: what other tools and our own scripts exchange.

`{"moves": "e2e4 e7e5" or ["e2e4", …], "result": "1-0", "white": …, "date": …, "fen": …}`; keys are
those of `_HEADERS` in any case, unknown ones are kept as headers.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

from variant_ai.core.data.reader import MAX_HEADERS, MAX_PLIES, GameReader, RawGame
from variant_ai.core.data.text import TextLines, head_text

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
        for number, line in TextLines(stream):
            if not line.strip():
                continue
            count += 1
            game = RawGame(source, count, number)
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
    year = data.pop("year", None)
    for key, value in data.items():
        if isinstance(value, (str, int, float)) and len(game.headers) < MAX_HEADERS:
            game.headers.setdefault(_HEADERS.get(str(key).lower(), str(key)), str(value))
    if isinstance(year, int):
        # What the source's makers found out about the date beats our reading of its words.
        game.headers["Year"] = str(year)
    notation = game.headers.pop("notation", "")
    if notation:
        game.notations = (notation.lower(),)
