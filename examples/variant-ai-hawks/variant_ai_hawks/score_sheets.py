"""Score sheets of hawk chess: one game after the other, each with a heading and its moves by pairs.

    == Anna - Bert, 1-0, 2026-05-03
    a2-a3   b5-b4
    c1-d3   (a remark)   b4xa3

Squares are joined by `-` or, if the move captures, by `x`; a promotion ends in `=R`.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

from variant_ai.core.data.read.decoding import TextLines
from variant_ai.core.data.read.game_reader import RESULT_WORDS, GameReader, RawGame

HEADING = re.compile(
    r"==\s*(?P<White>.+?) - (?P<Black>.+?),\s*(?P<Result>[^\s,]+)(?:,\s*(?P<Date>.+))?$"
)
REMARK = re.compile(r"\([^)]*\)")
JOINED = re.compile(r"([a-f][1-6])[-x]([a-f][1-6])(=[RSH])?$")


class ScoreSheetReader(GameReader):
    """Reads score sheets; their moves become UCI text, which every variant can read."""

    name = "hawks-sheets"
    extensions = (".sheet",)

    def sniff(self, head: bytes) -> bool:
        return head.lstrip(b"\xef\xbb\xbf").startswith(b"== ")

    def read(self, stream: io.BufferedReader, source: str) -> Iterator[RawGame]:
        game: RawGame | None = None
        count = 0
        for number, line in TextLines(stream):
            if line.startswith("=="):
                if game is not None:
                    yield game
                count += 1
                game = _begin(line.strip(), source, count, number)
            elif game is not None and not game.problem:
                for word in REMARK.sub(" ", line).split():
                    game.moves.append(_as_uci(word))
                    game.lines.append(number)
        if game is not None:
            yield game


def _begin(line: str, source: str, count: int, number: int) -> RawGame:
    """The game of a heading; bad text is a game with a problem, never an error."""
    game = RawGame(source, count, number, notations=("uci",))
    match = HEADING.match(line)
    if match is None or match["Result"] not in RESULT_WORDS:
        game.problem = "not a game"
        game.detail = f"line {number}: expected `== WHITE - BLACK, RESULT`"
    else:
        game.headers = {name: value for name, value in match.groupdict().items() if value}
    return game


def _as_uci(word: str) -> str:
    """`b4xa3` as `b4a3`; words that are no moves stay, and the import reports their line."""
    match = JOINED.match(word)
    if match is None:
        return word
    origin, target, promoted = match.groups()
    return origin + target + (promoted or "")[1:].lower()
