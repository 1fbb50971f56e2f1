"""Games as a table, one a line: comma-, semicolon- or tab-separated, with a line of column names.

`red;black;red_elo;black_elo;result;num_moves;event;moves` is how the exports look that the thesis
on Chinese chess was trained on (moves numbered, `1. C2=5 H8+7 2. …`). Only `moves` is needed;
columns are known by the names of `_HEADERS` in any case, others are kept as headers.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator

from variant_ai.core.data.read.decoding import TextLines, head_text
from variant_ai.core.data.read.game_reader import MAX_HEADERS, MAX_PLIES, GameReader, RawGame
from variant_ai.core.data.read.pgn import RESULTS, TANDEM

_SEPARATORS = ";\t,"
_HEADERS = {
    "white": "White",
    "red": "White",
    "black": "Black",
    "whiteelo": "WhiteElo",
    "redelo": "WhiteElo",
    "blackelo": "BlackElo",
    "result": "Result",
    "date": "Date",
    "event": "Event",
    "site": "Site",
    "round": "Round",
    "eco": "ECO",
    "ecco": "ECO",
    "fen": "FEN",
    "startfen": "FEN",
    "variant": "Variant",
    "timecontrol": "TimeControl",
    "termination": "Termination",
    "group": "Group",
    "openinggroup": "Group",
}
_MOVES = "moves"
_UNSAID = frozenset(("nummoves", "plies", "plycount", ""))
"""Columns that the moves say themselves, and an index without a name."""
_NUMBER = re.compile(r"\A(?:\d+\.+|\.+)")
"""The number of a move written onto it, `12.e4` and `12...e5`; dots inside a move are the move's."""


class TableReader(GameReader):
    """CSV and its relatives."""

    name = "table"
    extensions = (".csv", ".tsv")

    def sniff(self, head: bytes) -> bool:
        first = next((line for line in head_text(head).splitlines() if line.strip()), "")
        return _columns(first)[0] is not None

    def read(self, stream: io.BufferedReader, source: str) -> Iterator[RawGame]:
        lines = (line for _, line in TextLines(stream))
        first = next((line for line in lines if line.strip()), "")
        separator, columns = _columns(first)
        if separator is None:
            return
        rows = csv.reader(lines, delimiter=separator)
        count = 0
        while True:
            try:
                row = next(rows, None)
                problem = ""
            except csv.Error as error:
                row, problem = [""], str(error)
            if row is None:
                return
            if not row:
                continue
            count += 1
            game = RawGame(source, count, rows.line_num + 1)
            if not problem and len(row) != len(columns):
                problem = f"{len(row)} columns where the first line names {len(columns)}"
            if problem:
                game.problem, game.detail = "not a game", f"line {game.line}: {problem}"
            else:
                _fill(game, dict(zip(columns, row, strict=True)))
            yield game


def _columns(line: str) -> tuple[str | None, list[str]]:
    """Separator and names of the columns; no separator where the line names no moves."""
    for separator in _SEPARATORS:
        names = next(csv.reader([line.rstrip("\r\n")], delimiter=separator), [])
        if len(names) > 1 and _MOVES in map(_plain, names):
            return separator, [name.strip() for name in names]
    return None, []


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold())


def _fill(game: RawGame, row: dict[str, str]) -> None:
    for name, value in row.items():
        known, value = _plain(name), value.strip()
        if known == _MOVES:
            words = (
                word if TANDEM.fullmatch(word) else _NUMBER.sub("", word, count=1)
                for word in value.split()
            )
            game.moves = [word for word in words if word]
        elif known not in _UNSAID and value and len(game.headers) < MAX_HEADERS:
            game.headers.setdefault(_HEADERS.get(known, name), value)
    if game.moves and game.moves[-1] in RESULTS:
        game.result = RESULTS[game.moves.pop()]
    if len(game.moves) > MAX_PLIES:
        game.problem, game.detail = "too long", f"more than {MAX_PLIES} moves"
        del game.moves[MAX_PLIES:]
    game.lines = [game.line] * len(game.moves)
