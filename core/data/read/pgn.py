"""PGN files of any variant and in any notation: headers, words of moves, comments.

The grammar is the standard's (PGN specification, sections 7 and 8), tolerant of what real files
contain: no blank line between headers and moves or between games, several headers on a line, no
result, move numbers joined to moves, headers without a closing bracket, `\\%` lines, nested or
unfinished variations, files that end anywhere.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence

from variant_ai.core.data.read.decoding import TextLines, head_text
from variant_ai.core.data.read.game_reader import (
    MAX_COMMENT,
    MAX_COMMENTS,
    MAX_HEADER,
    MAX_HEADERS,
    MAX_PLIES,
    MAX_WORD,
    RESULT_WORDS,
    GameReader,
    RawGame,
    too_long,
)

_SIGNS = frozenset(
    ("=", "+-", "-+", "+=", "=+", "+/-", "-/+", "+/=", "=/+", "±", "∓", "⩲", "⩱", "∞", "e.p.", "ep")
)
"""Marks of annotators that are not moves."""

_HEADER = re.compile(r'\s*\[\s*(\w[\w+#=:.-]*)\s+"')
"""Beginning of a header; the end of its value is searched from the end of the line, in linear time."""
_ONE_HEADER = re.compile(r'\s*\[\s*(\w[\w+#=:.-]*)\s+"((?:[^"\\]|\\.)*)"\s*\]')
_BRACKETS = re.compile(r"\s*\[[^%][^\]]*\]\s*")
_QUOTED = re.compile(r'["\\]')
_ESCAPED = re.compile(r'\\(["\\])')
_TOKEN = re.compile(r"[{}();]|\$\d*|[^\s{}();$]+")
_SPECIAL = re.compile(r"[{}();$]")
_NUMBER = re.compile(r"\d+\s*[.．。、…]+|\d+\Z|[.．…]+")
_MOVES = re.compile(r"[\d*({]")
"""Beginning of moves after a header; `],` and the like are not moves."""
TANDEM = re.compile(r"[1-5][1-9]\.[1-9]")
_SNIFF = re.compile(r'^\s*\[\s*\w[\w+#=:.-]*\s+"|^\s*1\s*[.．、]\s*\S', re.MULTILINE)


def without_number(word: str) -> str:
    """Return a word of moves without the move number joined to it. `15.6`, a soldier's move in WXF,
    has none."""
    while not TANDEM.fullmatch(word) and (match := _NUMBER.match(word)) is not None:
        word = word[match.end() :]
    return word


class PgnReader(GameReader):
    """PGN text."""

    name = "pgn"
    extensions: tuple[str, ...] = (".pgn",)

    def __init__(
        self, name: str = "pgn", expect: str = "", notations: tuple[str, ...] = ()
    ) -> None:
        """`expect`: frequent characters of the text, by which its encoding is recognised.
        `notations`: names of the notations to try first if there is no `Format` header."""
        self.name = name
        self.expect = expect
        self.notations = notations

    def sniff(self, head: bytes) -> bool:
        return _SNIFF.search(head_text(head, self.expect)) is not None

    def read(self, stream: io.BufferedReader, source: str) -> Iterator[RawGame]:
        scanner = _Scanner(source, self.notations)
        for number, line in TextLines(stream, self.expect):
            yield from scanner.line(number, line)
        yield from scanner.end()


class _Scanner:
    """Builds games from lines."""

    def __init__(self, source: str, notations: tuple[str, ...]) -> None:
        self.source = source
        self.notations = notations
        self.count = 0
        self.results_seen = 0
        self.game: RawGame | None = None
        self.in_moves = False
        self.blank = False
        """True if an empty line followed the last header."""
        self.ended = False
        """The result has been read; the next word begins another game."""
        self.depth = 0
        """Depth of nested variations."""
        self.comment: str | None = None
        """Text of a comment that is not closed."""
        self.all_comments = 0
        """Characters kept of the game's comments."""

    def line(self, number: int, line: str) -> Iterator[RawGame]:
        """Read the next line and yield the games that end in it."""
        if line.startswith("%") and self.comment is None:
            return
        rest = ""
        if "[" in line and (found := self._headers(line))[0]:
            header, rest = found
            if (self.comment is None and not self.depth) or self._starts_game(header[0][0]):
                if self.comment is not None or self.depth:
                    yield from self._close("cut off", "a comment or variation is not closed")
                yield from self._take_headers(number, header)
                if not rest:
                    return
                line = rest
        elif not line or line.isspace():
            self.blank = True
            return
        elif self._is_among_headers(line):
            return
        if self.comment is None and not self.depth and not _SPECIAL.search(line):
            for token in line.split():
                yield from self._word(number, token)
        else:
            yield from self._words(number, line)

    def end(self) -> list[RawGame]:
        """Return the last game, after the last line."""
        game = self.game
        if game is None:
            return []
        if self.comment is not None or self.depth:
            return self._close("cut off", "the file ends inside a comment or variation")
        if not game.result:
            game.open_end = True
            expected = RESULT_WORDS.get(game.headers.get("Result", ""), "*") != "*"
            # Some files have no results after the moves; in others a missing result means a cut.
            if expected and self.results_seen:
                return self._close("cut off", "the file ends before the game's result")
        return self._close()

    # --- headers -------------------------------------------------------------------------------

    @staticmethod
    def _headers(line: str) -> tuple[list[tuple[str, str]], str]:
        """Headers on the line, and the moves after them; no headers if the line is not a header."""
        begun = _HEADER.match(line)
        if begun is None:
            return [], ""
        inside = line[begun.end() :].rstrip()
        bracket = inside.endswith("]")
        inside = inside[:-1].rstrip() if bracket else inside
        quote = inside.endswith('"')
        value = inside[:-1] if quote else inside
        if bracket and quote and not _QUOTED.search(value):
            return [(begun[1], value)], ""
        found, at = [], 0
        while match := _ONE_HEADER.match(line, at):
            found.append((match[1], _ESCAPED.sub(r"\1", match[2])))
            at = match.end()
        rest = line[at:].strip()
        if found and not (bracket or '"' in rest):
            return found, rest if _MOVES.match(rest) else ""
        if found and not rest:
            return found, ""
        # Quotes inside the value, or no closing quote or bracket.
        return [(begun[1], _ESCAPED.sub(r"\1", value))], ""

    def _is_among_headers(self, line: str) -> bool:
        """Return True for a line among headers that is not a header, such as `[WhiteTeam]`."""
        inside = self.in_moves or self.comment is not None or self.depth
        return self.game is not None and not inside and _BRACKETS.fullmatch(line) is not None

    def _starts_game(self, name: str) -> bool:
        first = next(iter(self.game.headers), "Event") if self.game else "Event"
        return name in ("Event", first)

    def _take_headers(self, number: int, headers: list[tuple[str, str]]) -> Sequence[RawGame]:
        ended: Sequence[RawGame] = ()
        known = self.game.headers if self.game else {}
        again = any(name in known for name, _ in headers)
        if self.in_moves or (again and (self.blank or self._starts_game(headers[0][0]))):
            ended = self._close()
        game = self._game(number)
        for name, value in headers:
            if len(game.headers) < MAX_HEADERS:
                game.headers.setdefault(name[: MAX_HEADER + 1], value.strip()[: MAX_HEADER + 1])
        self.blank = False
        return ended

    # --- moves ---------------------------------------------------------------------------------

    def _words(self, number: int, line: str) -> Iterator[RawGame]:
        at = 0
        while at < len(line):
            if self.comment is not None:
                end = line.find("}", at)
                text = line[at:] + "\n" if end < 0 else line[at:end]
                self.comment = (self.comment + text)[:MAX_COMMENT]
                if end < 0:
                    return
                self._finish_comment()
                at = end + 1
                continue
            match = _TOKEN.search(line, at)
            if match is None:
                return
            at, token = match.end(), match[0]
            if token == "{":
                self.comment = ""
            elif token == ";":
                self.comment = line[at:][:MAX_COMMENT]
                self._finish_comment()
                return
            elif token == "(":
                self.depth += 1
            elif token == ")":
                self.depth = max(0, self.depth - 1)
            elif token != "}" and not self.depth and token[0] != "$":
                yield from self._word(number, token)

    def _word(self, number: int, token: str) -> Sequence[RawGame]:
        result = RESULT_WORDS.get(token)
        if result is None:
            token = without_number(token).rstrip("!?")
            if not token or token in _SIGNS:
                return ()
            result = RESULT_WORDS.get(token)
        ended: Sequence[RawGame] = ()
        if self.ended:
            if result is not None:
                return ()
            ended = self._close()
        game = self.game or self._game(number)
        self.in_moves = True
        if result is not None:
            game.result = result
            self.ended = True
            self.results_seen += 1
        elif len(token) > MAX_WORD:
            game.problem = "too long"
            game.detail = f"line {number}: {too_long('a word', len(token), MAX_WORD, token)}"
        elif len(game.moves) < MAX_PLIES:
            game.moves.append(token)
            game.lines.append(number)
        else:
            game.problem, game.detail = "too long", f"more than {MAX_PLIES} moves"
        return ended

    def _finish_comment(self) -> None:
        text = " ".join((self.comment or "").split())
        self.comment = None
        if self.game is None or self.depth or not text:
            return
        if self.all_comments + len(text) > MAX_COMMENTS:
            return
        self.all_comments += len(text)
        ply = len(self.game.moves) - 1
        before = self.game.comments.get(ply)
        self.game.comments[ply] = f"{before} {text}" if before else text

    # --- games ---------------------------------------------------------------------------------

    def _game(self, number: int) -> RawGame:
        if self.game is None:
            self.count += 1
            self.all_comments = 0
            self.game = RawGame(self.source, self.count, number, notations=self.notations)
        return self.game

    def _close(self, problem: str = "", detail: str = "") -> list[RawGame]:
        """Return the current game unless it is empty; the next word begins another."""
        game = self.game
        self.game, self.in_moves, self.ended, self.blank = None, False, False, False
        self.depth, self.comment = 0, None
        if game is None or not (game.moves or game.headers):
            return []
        if problem and not game.problem:
            game.problem, game.detail = problem, detail
        return [game]
