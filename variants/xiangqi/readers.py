"""Readers of xiangqi games: PGN of Chinese programs, and games saved from web pages."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

from variant_ai.core.data.read.decoding import TextLines, head_text
from variant_ai.core.data.read.game_reader import MAX_PLIES, GameReader, RawGame
from variant_ai.core.data.read.pgn import PgnReader
from variant_ai.variants.xiangqi.notation import CHARACTERS


def xiangqi_pgn() -> PgnReader:
    """Reader of PGN with `Red` for `White` and moves in any xiangqi notation."""
    return PgnReader("xiangqi-pgn", CHARACTERS, ("chinese", "wxf", "iccs", "uci"))


_START = "8979695949392919097717866646260600102030405060708012720323436383"
_PIECES = "RNBAKABNRCCPPPPP" + "rnbakabnrccppppp"
"""Order of the pieces in `binit`, two digits each: file from the left, rank from the top; 99
none."""
_OPENING = re.compile(r"\[DhtmlXQ(?:_(\w+))?\]", re.IGNORECASE)
"""Beginning of a game, or of a tag."""
_LONGEST_TAG = 1 << 17
"""Characters of a tag that is still waiting for its end; more than those of the longest game."""
_SCRIPT = re.compile(r"\bMOVE_STR\s*=\s*[\"']([0-9]+)[\"']")
"""Moves in a saved page of 01xq.com, in the same digits."""
_MOVE = re.compile(r"([0-8])([0-9])([0-8])([0-9])")
_HEADERS = {
    "red": "White",
    "redname": "White",
    "black": "Black",
    "blackname": "Black",
    "event": "Event",
    "date": "Date",
    "place": "Site",
    "round": "Round",
}
_RESULTS = {
    "红先胜": "1-0",
    "紅先勝": "1-0",
    "红先和": "1/2-1/2",
    "紅先和": "1/2-1/2",
    "红胜": "1-0",
    "紅勝": "1-0",
    "黑胜": "0-1",
    "黑勝": "0-1",
    "和局": "1/2-1/2",
    "和棋": "1/2-1/2",
}


class DhtmlXqReader(GameReader):
    """Reader of `[DhtmlXQ_movelist]77477062…[/DhtmlXQ_movelist]`, with two digits for each of the
    two squares of a move, and of pages with `MOVE_STR = "77477062…"`."""

    name = "dhtmlxq"
    extensions = (".txt", ".htm", ".html", ".ubb")

    def sniff(self, head: bytes) -> bool:
        text = head_text(head, CHARACTERS)
        return "[dhtmlxq" in text.lower() or _SCRIPT.search(text) is not None

    def read(self, stream: io.BufferedReader, source: str) -> Iterator[RawGame]:
        games = _Games(source)
        for number, line in TextLines(stream, CHARACTERS):
            yield from games.add(number, line)
        yield from games.end()


class _Games:
    """Puts games together from the tags of a file, in the order of the text."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._count = 0
        self._game: RawGame | None = None
        self._tags: set[str] = set()
        """Tags of the game so far."""
        self._held, self._held_line = "", 0
        """Beginning of a tag whose end is on a later line, and its line."""

    def add(self, number: int, line: str) -> Iterator[RawGame]:
        """Return the games that end before or on this line."""
        text, number = self._held + line, self._held_line if self._held else number
        self._held, at = "", 0
        while (opening := _OPENING.search(text, at)) is not None:
            at = opening.end()
            if opening[1] is None:
                yield from self._new_game()
                continue
            following = _OPENING.search(text, at)
            limit = len(text) if following is None else following.start()
            end = re.compile(rf"\[/DhtmlXQ_{opening[1]}\]", re.IGNORECASE).search(text, at, limit)
            if end is None and following is None and limit - at < _LONGEST_TAG:
                self._held, self._held_line = text[opening.start() :], number
                break
            value = None if end is None else text[at : end.start()].strip()
            yield from self._take(number, opening[1].lower(), value)
            at = at if end is None else end.end()
        for match in _SCRIPT.finditer(line):
            yield from self._new_game()
            yield from self._take(number, "movelist", match[1])

    def end(self) -> Iterator[RawGame]:
        """Return the last game."""
        if (opening := _OPENING.match(self._held)) is not None:
            yield from self._take(self._held_line, opening[1].lower(), None)
        yield from self._new_game()

    def _new_game(self) -> Iterator[RawGame]:
        if self._game is not None:
            yield self._game
        self._game = None
        self._tags.clear()

    def _take(self, number: int, name: str, value: str | None) -> Iterator[RawGame]:
        """Add a tag to the game; value: None if the tag has no end. In a file without `[DhtmlXQ]` a tag that
        comes again after the moves begins the next game."""
        if name in self._tags and "movelist" in self._tags:
            yield from self._new_game()
        if self._game is None:
            self._count += 1
            self._game = RawGame(self._source, self._count, number, notations=("uci",))
        self._tags.add(name)
        if value is not None:
            _take(self._game, number, name, value)
        elif name == "movelist":
            self._game.problem, self._game.detail = "cut off", "the list of moves has no end"


def _take(game: RawGame, number: int, name: str, value: str) -> None:
    if name == "movelist":
        digits = re.sub(r"\s", "", value)
        if len(digits) % 4 or len(digits) > 4 * MAX_PLIES:
            game.problem, game.detail = (
                "cut off",
                "the list of moves is not a multiple of four digits",
            )
        game.moves = [_uci(digits[i : i + 4]) for i in range(0, len(digits) - 3, 4)]
        game.lines = [number] * len(game.moves)
        if game.moves and "FEN" in game.headers:
            game.headers["FEN"] = _with_side(game.headers["FEN"], game.moves[0])
    elif name == "binit":
        if value and value != _START:
            fen = _fen(value)
            game.headers["FEN"] = _with_side(fen, game.moves[0]) if game.moves else fen
    elif name == "result":
        game.result = next((r for words, r in _RESULTS.items() if words in value), "")
    elif value and name in _HEADERS:
        game.headers.setdefault(_HEADERS[name], value)
    elif value and name == "title":
        game.headers["Title"] = value


def _uci(digits: str) -> str:
    match = _MOVE.fullmatch(digits)
    if match is None:
        return digits
    files, ranks = "abcdefghi", [10 - int(match[i]) for i in (2, 4)]
    return f"{files[int(match[1])]}{ranks[0]}{files[int(match[3])]}{ranks[1]}"


def _fen(binit: str) -> str:
    """FEN of a list of squares, with Red to move; any other text is returned unchanged."""
    if not re.fullmatch(r"(?:[0-8][0-9]|99){32}", binit):
        return binit
    board = [["1"] * 9 for _ in range(10)]
    for i, piece in enumerate(_PIECES):
        file, rank = int(binit[2 * i]), int(binit[2 * i + 1])
        if file < 9:
            board[rank][file] = piece
    rows = [re.sub("1+", lambda gap: str(len(gap[0])), "".join(row)) for row in board]
    return "/".join(rows) + " w - - 0 1"


def _with_side(fen: str, first: str) -> str:
    """Set the side to move to that of the piece that moves first; the format does not have it."""
    rows = fen.split(" ", 1)[0].split("/")
    if len(rows) != 10 or not re.fullmatch(r"[a-i]\d{1,2}[a-i]\d{1,2}", first):
        return fen
    row = re.sub(r"\d", lambda gap: "1" * int(gap[0]), rows[10 - int(re.findall(r"\d+", first)[0])])
    piece = row[ord(first[0]) - 97]
    return fen.replace(" w ", " b ") if piece.islower() else fen
