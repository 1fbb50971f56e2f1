"""Readers of game files: bytes in, games as they were written out. Legality comes later.

A reader knows a file format and nothing of rules: it yields the words of the moves and where each
stood. What the words mean, `resolve.py` finds out with the variant's rules and notations. Readers
are found by `register_readers`; those of this module's `core_readers` serve every variant.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

MAX_PLIES = 20_000
"""Words of moves kept of one game; more is no game."""
MAX_COMMENT = 20_000
"""Characters kept of one comment."""
MAX_COMMENTS = 1_000_000
"""Characters kept of all comments of a game."""
MAX_HEADERS = 200
MAX_HEADER = 4_000
"""Characters of a header's name and of its value; a game with a longer one is not taken."""
MAX_WORD = 256
"""Characters of a word of moves; a game with a longer one is not taken."""


@dataclass(slots=True)
class RawGame:
    """A game as a file has it."""

    source: str
    number: int
    """Which game of the source it is, from 1."""
    line: int
    """Line on which it begins, from 1."""
    headers: dict[str, str] = field(default_factory=dict)
    """By the names of PGN, whatever the format: White, Black, Result, Date, WhiteElo, FEN, …"""
    moves: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    """Line of each move."""
    result: str = ""
    """Result written after the moves; `''` where there is none."""
    comments: dict[int, str] = field(default_factory=dict)
    """Ply of a move (0 is the first) to what was said about it; -1: before the first move."""
    scores: list[int | None] | None = None
    """As in `GameRecord`, where the format has a place for them; those in comments are found."""
    clocks: list[int | None] | None = None
    visits: list[dict[str, int]] | None = None
    """Per ply, visits of a search by the words of the moves."""
    notations: tuple[str, ...] = ()
    """Names of the notations the moves may be in; empty: the reader cannot tell."""
    open_end: bool = False
    """The source ended in this game, before a result."""
    problem: str = ""
    """Why the game is not whole (`cut off`, `too long`); `''` if it is."""
    detail: str = ""


def bounded(game: RawGame) -> RawGame:
    """The game, or a short one with the problem `too long` if its words, headers or moves exceed
    the bounds: memory stays bounded whatever a file holds."""
    words = (word for word in game.moves if len(word) > MAX_WORD)
    texts = (text for pair in game.headers.items() for text in pair if len(text) > MAX_HEADER)
    if word := next(words, ""):
        detail = too_long("a word of moves", len(word), MAX_WORD, word)
    elif text := next(texts, ""):
        detail = too_long("a header", len(text), MAX_HEADER, text)
    elif len(game.moves) > MAX_PLIES:
        detail = f"more than {MAX_PLIES} moves"
    else:
        return game
    detail = f"line {game.line}: {detail}"
    return RawGame(game.source, game.number, game.line, problem="too long", detail=detail)


def too_long(what: str, size: int, most: int, text: str) -> str:
    """A sentence about a text that exceeds its bound."""
    return f"{what} has {size:,} characters, at most {most:,} are accepted; it begins {text[:20]!r}"


class GameReader(ABC):
    """A file format. Objects hold no state of a file, so one serves many files at once."""

    name: str
    extensions: tuple[str, ...] = ()
    """Suffixes of file names, `.pgn`; they decide where `sniff` of several readers says yes."""

    @abstractmethod
    def sniff(self, head: bytes) -> bool:
        """Whether a file that begins with these bytes (a few KiB) may be of this format."""

    @abstractmethod
    def read(self, stream: io.BufferedReader, source: str) -> Iterator[RawGame]:
        """The games, one at a time, in bounded memory. Bad text makes bad games, never an error."""


def choose_reader(readers: Sequence[GameReader], name: str, head: bytes) -> GameReader | None:
    """The reader of a file by its name and first bytes, None where no reader knows it.

    The first one wins among those that recognise the bytes and claim the suffix of the name, then
    among those that recognise the bytes.
    """
    fits = [reader for reader in readers if reader.sniff(head)]
    lower = name.lower()
    named = (r for r in fits if any(suffix in lower for suffix in r.extensions))
    return next(named, fits[0] if fits else None)


def core_readers() -> tuple[GameReader, ...]:
    """Readers that every variant has, in the order in which they are asked."""
    from variant_ai.core.data.read.delimited import TableReader
    from variant_ai.core.data.read.jsonl import JsonlReader
    from variant_ai.core.data.read.move_lists import MoveListReader
    from variant_ai.core.data.read.pgn import PgnReader

    return (PgnReader(), JsonlReader(), TableReader(), MoveListReader())
