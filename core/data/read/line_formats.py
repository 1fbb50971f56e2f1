"""Formats with one game a line: JSON lines, tables and lists of moves.

JSON lines, for exchange with other tools and scripts:

    {"moves": "e2e4 e7e5" or ["e2e4", …], "result": "1-0", "white": …, "date": …, "fen": …}

`scores`, `clocks` (lists as long as the game, null if unknown), `comments` (ply to text) and `tags`
are as `game_text.py` writes them; `notation` names the notation of the moves. `visits` has an
object for every ply, with the visits of a search by move: `[{"e2e4": 31, "d2d4": 12}, {}, …]`.
`root_values` (numbers in [-1, 1] or null), `trains` (0 to 3) and `generation` are those of
`GameRecord`.

Tables are separated by commas, semicolons or tabs and begin with a line of column names:
`red;black;red_elo;black_elo;result;num_moves;event;moves` is the form of the exports that the
networks of [Xiangqi-thesis] were trained on (numbered moves, `1. C2=5 H8+7 2. …`). Only the column
`moves` is required.

Lists of moves, as engines and scripts write them: `e2e4 e7e5 …`, `position startpos moves h2e2 …`,
`position fen <FEN> moves …`, `<FEN> moves …`; a result may end the line, `#` begins a remark.
Squares count ranks from 1 (UCI) or 0 (UCCI, ICCS); the legal moves show which.

Keys and columns have the names of `_HEADERS` in upper or lower case; others are kept as headers.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from variant_ai.core.data.game_record import MAX_GENERATION, MAX_VISITS, TRAINS_ALL
from variant_ai.core.data.read.decoding import MAX_LINE, TextLines, head_text
from variant_ai.core.data.read.game_reader import (
    MAX_CLOCK,
    MAX_COMMENT,
    MAX_HEADERS,
    MAX_PLIES,
    GameReader,
    RawGame,
    plain_name,
    set_moves,
)
from variant_ai.core.data.read.headers import FIELDS, RATINGS
from variant_ai.core.data.read.pgn import TANDEM

MAX_JSON_LINE = 16 << 20
"""Bytes: a long game with the visits of its searches takes megabytes. Python's objects may take
twenty times the memory of their JSON."""
_HEADERS = {
    plain_name(name): name for name in (*FIELDS, *RATINGS, "Variant", "Result", "Date", "FEN")
} | {"startfen": "FEN", "openinggroup": "Group"}
"""Header of a key or column, without spaces and underscores."""


# --- JSON lines ----------------------------------------------------------------------------------


class JsonlReader(GameReader):
    """JSON lines."""

    name = "jsonl"
    extensions = (".jsonl", ".ndjson", ".json")

    def sniff(self, head: bytes) -> bool:
        text = head_text(head).lstrip()
        return text.startswith("{") and '"moves"' in text

    def read(self, stream: io.BufferedReader, source: str) -> Iterator[RawGame]:
        count = 0
        lines = TextLines(stream, longest=MAX_JSON_LINE)
        for number, line in lines:
            if lines.is_rest or not line.strip():
                continue
            count += 1
            game = RawGame(source, count, number)
            if lines.is_cut:
                game.problem = "too long"
                game.detail = f"line {number} is longer than {MAX_JSON_LINE >> 20} MiB"
                yield game
                continue
            try:
                _fill_from_json(game, json.loads(line))
            except (ValueError, RecursionError) as error:
                game.problem, game.detail = "not a game", f"line {number}: {error}"
            yield game


def _fill_from_json(game: RawGame, data: Any) -> None:
    if not isinstance(data, dict):
        raise ValueError("every line must be a JSON object")
    moves = data.pop("moves", None)
    if isinstance(moves, str):
        moves = moves.split()
    if not isinstance(moves, list) or not all(isinstance(move, str) for move in moves):
        raise ValueError('"moves" must be a text of moves or a list of texts')
    if len(moves) > MAX_PLIES:
        raise ValueError(f"more than {MAX_PLIES} moves")
    game.moves = moves
    game.lines = [game.line] * len(moves)
    plies = len(moves)
    for name, accepted, fits in _LISTS:
        setattr(game, name, _of_plies(data, name, plies, accepted, fits))
    if type(data.get("generation")) is int:
        game.generation = data.pop("generation")
        if not 0 <= game.generation <= MAX_GENERATION:
            raise ValueError(f'"generation" must be from 0 to {MAX_GENERATION:,}')
    game.comments = _comments(data.pop("comments", {}), plies)
    tags = data.pop("tags", {})
    year = data.pop("year", None)
    if "notation" in data and type(data.get("plies")) is int:  # a line of `game_text.py`
        del data["plies"]
        data.pop("source", None)
    if isinstance(tags, dict):
        data = {**data, **tags}
    for key, value in data.items():
        if isinstance(value, (str, int, float)) and len(game.headers) < MAX_HEADERS:
            game.headers.setdefault(_HEADERS.get(plain_name(str(key)), str(key)), str(value))
    if isinstance(year, int):
        # The year given by the makers of the source overrides our reading of its date.
        game.headers["Year"] = str(year)
    notation = game.headers.pop("notation", "")
    if notation:
        game.notations = (notation.lower(),)


def _of_plies(
    data: dict[str, Any], name: str, size: int, accepted: str, fits: Callable[[Any], bool]
) -> list[Any] | None:
    """Take a list with an item for each ply out of `data`; None if there is none. Raises ValueError
    unless all items fit."""
    value = data.pop(name, None)
    if value is not None and not (
        isinstance(value, list) and len(value) == size and all(map(fits, value))
    ):
        raise ValueError(f'"{name}" must be a list of {size} {accepted}')
    return value


def _is_number(value: Any) -> bool:
    return value is None or (type(value) is int and abs(value) <= MAX_CLOCK)


def _is_root_value(value: Any) -> bool:
    return value is None or (type(value) in (int, float) and abs(value) <= 1)


def _is_training(value: Any) -> bool:
    return type(value) is int and 0 <= value <= TRAINS_ALL


def _is_visited(value: Any) -> bool:
    return isinstance(value, dict) and all(
        type(count) is int and 1 <= count <= MAX_VISITS for count in value.values()
    )


_WHOLE = f"nulls or integers of at most {MAX_CLOCK:,}"
_LISTS = (
    ("scores", _WHOLE, _is_number),
    ("clocks", _WHOLE, _is_number),
    ("visits", "objects of moves and visits from 1", _is_visited),
    ("root_values", "nulls or numbers in [-1, 1]", _is_root_value),
    ("trains", f"integers from 0 to {TRAINS_ALL}", _is_training),
)
"""Fields with an item for each ply, what is accepted there, and whether an item is."""


def _comments(value: Any, size: int) -> dict[int, str]:
    if not isinstance(value, dict):
        raise ValueError('"comments" must be an object of plies and texts')
    comments = {int(ply): str(text)[:MAX_COMMENT] for ply, text in value.items()}
    if any(not -1 <= ply < size for ply in comments):
        raise ValueError('"comments" has a ply that is not in the game')
    return comments


# --- tables --------------------------------------------------------------------------------------

_SEPARATORS = ";\t,"
_MOVES = "moves"
_UNUSED = frozenset(("nummoves", "plies", "plycount", ""))
"""Columns that follow from the moves, and an index without a name."""
_NUMBER = re.compile(r"\A(?:\d+\.+|\.+)")
"""Move number joined to its move, `12.e4` and `12...e5`; dots inside a move belong to the move."""


class TableReader(GameReader):
    """Tables separated by commas, semicolons or tabs."""

    name = "table"
    extensions = (".csv", ".tsv")

    def sniff(self, head: bytes) -> bool:
        first = next((line for line in head_text(head).splitlines() if line.strip()), "")
        return _columns(first)[0] is not None

    def read(self, stream: io.BufferedReader, source: str) -> Iterator[RawGame]:
        at = 0

        def texts() -> Iterator[str]:
            nonlocal at
            for number, line in TextLines(stream):
                at = number
                yield line

        lines = texts()
        first = next((line for line in lines if line.strip()), "")
        separator, columns = _columns(first)
        if separator is None:
            return
        rows = csv.reader((f"{line}\n" for line in lines), delimiter=separator)
        count = 0
        while True:
            begin = at + 1
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
            game = RawGame(source, count, begin)
            if not problem and len(row) != len(columns):
                problem = f"{len(row)} columns, but the first line names {len(columns)}"
            if problem:
                game.problem, game.detail = "not a game", f"line {game.line}: {problem}"
            else:
                _fill_from_row(game, dict(zip(columns, row, strict=True)))
            yield game


def _columns(line: str) -> tuple[str | None, list[str]]:
    """Separator and names of the columns; None as separator if no column is named `moves`."""
    for separator in _SEPARATORS:
        names = next(csv.reader([line.rstrip("\r\n")], delimiter=separator), [])
        if len(names) > 1 and _MOVES in map(plain_name, names):
            return separator, [name.strip() for name in names]
    return None, []


def _fill_from_row(game: RawGame, row: dict[str, str]) -> None:
    for name, value in row.items():
        known, value = plain_name(name), value.strip()
        if known == _MOVES:
            words = (
                word if TANDEM.fullmatch(word) else _NUMBER.sub("", word, count=1)
                for word in value.split()
            )
            set_moves(game, [word for word in words if word])
        elif known not in _UNUSED and value and len(game.headers) < MAX_HEADERS:
            game.headers.setdefault(_HEADERS.get(known, name), value)


# --- lists of moves ------------------------------------------------------------------------------

_MOVE = r"(?:[a-l][0-9]{1,2}-?[a-l][0-9]{1,2}[a-z+]?|\+?[A-Za-z]?@[a-l][0-9]{1,2}|0000|--)"
_LINE = re.compile(
    rf"\s*(?:position\s+)?(?:startpos|(?:fen\s+)?\S*/\S*(?:\s+(?!moves\b)\S+){{0,6}})?"
    rf"\s*(?:moves\s+)?{_MOVE}(?=[\s,;]|\Z)",
    re.IGNORECASE,
)
_WITH_KEYWORD = re.compile(
    r"\s*(?:position\s+)?(?:startpos|(?:fen\s+)?\S*/\S*(?:\s+(?!moves\b)\S+){0,6})\s+moves\s+\S",
    re.IGNORECASE,
)
"""After the keyword `moves` the moves may be in any notation."""
_REMARK = re.compile(r"\A#|\s#")
_SPACE = re.compile(r"[\s,;]+")


class MoveListReader(GameReader):
    """Plain lists of moves."""

    name = "moves"
    extensions = (".uci", ".ucci", ".moves", ".txt")

    def sniff(self, head: bytes) -> bool:
        for line in head_text(head).splitlines():
            text = _without_remark(line)
            if text:
                return (_LINE.match(text) or _WITH_KEYWORD.match(text)) is not None
        return False

    def read(self, stream: io.BufferedReader, source: str) -> Iterator[RawGame]:
        count = 0
        lines = TextLines(stream)
        for number, line in lines:
            text = "" if lines.is_rest else _without_remark(line)
            if text:
                count += 1
                game = RawGame(source, count, number)
                _fill_from_list(game, text)
                if lines.is_cut:
                    game.problem = "too long"
                    game.detail = f"line {number} is longer than {MAX_LINE >> 20} MiB"
                yield game


def _without_remark(line: str) -> str:
    remark = _REMARK.search(line)
    return (line[: remark.start()] if remark else line).strip()


def _fill_from_list(game: RawGame, text: str) -> None:
    words = [word for word in _SPACE.split(text) if word]
    _take(words, "position")
    has_start = _take(words, "startpos")
    named = not has_start and _take(words, "fen")
    if named or (not has_start and "/" in "".join(words[:1]).replace("1/2", "")):
        lowered = [word.lower() for word in words]
        end = lowered.index("moves") if "moves" in lowered else len(words)
        game.headers["FEN"] = " ".join(words[:end])
        words = words[end:]
    _take(words, "moves")
    set_moves(game, words)


def _take(words: list[str], keyword: str) -> bool:
    """Remove the first word if it is a keyword; return True if it was."""
    found = bool(words) and words[0].lower() == keyword
    if found:
        del words[0]
    return found
