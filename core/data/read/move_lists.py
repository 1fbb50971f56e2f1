"""Lists of moves, a game a line, as engines and scripts write them.

`e2e4 e7e5 …`, `position startpos moves h2e2 …`, `position fen <FEN> moves …`, `<FEN> moves …`;
a result may end the line, `#` begins a remark. Squares count ranks from 1 (UCI) or 0 (UCCI, ICCS):
which of the two, the moves that are legal show.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

from variant_ai.core.data.read.decoding import MAX_LINE, TextLines, head_text
from variant_ai.core.data.read.game_reader import MAX_PLIES, GameReader, RawGame
from variant_ai.core.data.read.pgn import RESULTS

_MOVE = r"(?:[a-l][0-9]{1,2}-?[a-l][0-9]{1,2}[a-z+]?|\+?[A-Za-z]?@[a-l][0-9]{1,2}|0000|--)"
_LINE = re.compile(
    rf"\s*(?:position\s+)?(?:startpos|(?:fen\s+)?\S*/\S*(?:\s+(?!moves\b)\S+){{0,6}})?"
    rf"\s*(?:moves\s+)?{_MOVE}(?=[\s,;]|\Z)",
    re.IGNORECASE,
)
_SAID = re.compile(
    r"\s*(?:position\s+)?(?:startpos|(?:fen\s+)?\S*/\S*(?:\s+(?!moves\b)\S+){0,6})\s+moves\s+\S",
    re.IGNORECASE,
)
"""With the word `moves` the moves may be in any notation."""
_MARK = re.compile(r"\A#|\s#")
_SPACE = re.compile(r"[\s,;]+")


class MoveListReader(GameReader):
    """Plain lists of moves."""

    name = "moves"
    extensions = (".uci", ".ucci", ".moves", ".txt")

    def sniff(self, head: bytes) -> bool:
        for line in head_text(head).splitlines():
            text = _without_remark(line)
            if text:
                return (_LINE.match(text) or _SAID.match(text)) is not None
        return False

    def read(self, stream: io.BufferedReader, source: str) -> Iterator[RawGame]:
        count = 0
        lines = TextLines(stream)
        for number, line in lines:
            text = "" if lines.is_rest else _without_remark(line)
            if text:
                count += 1
                game = _game(RawGame(source, count, number), text)
                if lines.is_cut:
                    game.problem = "too long"
                    game.detail = f"line {number} is longer than {MAX_LINE >> 20} MiB"
                yield game


def _without_remark(line: str) -> str:
    mark = _MARK.search(line)
    return (line[: mark.start()] if mark else line).strip()


def _game(game: RawGame, text: str) -> RawGame:
    words = [word for word in _SPACE.split(text) if word]
    if words[0].lower() == "position":
        words = words[1:]
    if words and words[0].lower() == "startpos":
        words = words[1:]
    elif words and (words[0].lower() == "fen" or "/" in words[0].replace("1/2", "")):
        words = words[1:] if words[0].lower() == "fen" else words
        lowered = [word.lower() for word in words]
        end = lowered.index("moves") if "moves" in lowered else len(words)
        game.headers["FEN"] = " ".join(words[:end])
        words = words[end:]
    if words and words[0].lower() == "moves":
        words = words[1:]
    if words and words[-1] in RESULTS:
        game.result = RESULTS[words.pop()]
    if len(words) > MAX_PLIES:
        game.problem, game.detail = "too long", f"more than {MAX_PLIES} moves"
        words = words[:MAX_PLIES]
    game.moves = words
    game.lines = [game.line] * len(words)
    return game
