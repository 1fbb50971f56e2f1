"""Readers of game files: from bytes to games as they are written. Legality is checked later.

A reader knows a file format and no rules. It yields the words of the moves and the line of each;
`resolve.py` finds out what the words mean, with the rules and notations of the variant. Readers are
registered with `register_readers`; those of `core_readers` serve every variant.
"""

from __future__ import annotations

import io
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from variant_ai.core.data.game_record import Result
from variant_ai.core.errors import VariantAIError

_log = logging.getLogger(__name__)

MAX_PLIES = 20_000
"""Moves of a game; a longer game is rejected."""
MAX_COMMENT = 20_000
"""Characters kept of one comment."""
MAX_COMMENTS = 1_000_000
"""Characters kept of all comments of a game."""
MAX_HEADERS = 200
MAX_HEADER = 4_000
"""Characters of the name and of the value of a header; a game with a longer one is rejected."""
MAX_WORD = 256
"""Characters of a word of moves; a game with a longer one is rejected."""
MAX_CLOCK = 10**12
"""Milliseconds; a larger number is not a clock."""
RESULT_WORDS: dict[str, Result] = {
    "1-0": "1-0",
    "0-1": "0-1",
    "1/2-1/2": "1/2-1/2",
    "1/2": "1/2-1/2",
    "½-½": "1/2-1/2",
    "0.5-0.5": "1/2-1/2",
    "*": "*",
}
"""Results as files write them."""


@dataclass(slots=True)
class RawGame:
    """A game as it is written in a file."""

    source: str
    number: int
    """Number of the game in its source, from 1."""
    line: int
    """Line on which the game begins, from 1."""
    headers: dict[str, str] = field(default_factory=dict)
    """By the names of PGN in every format: White, Black, Result, Date, WhiteElo, FEN, …"""
    moves: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    """Line of each move."""
    result: str = ""
    """Result after the moves; `''` if there is none."""
    comments: dict[int, str] = field(default_factory=dict)
    """Ply of a move (0 is the first) to the comment on it; -1: before the first move."""
    scores: list[int | None] | None = None
    """Scores as in `GameRecord`, if the format has a field for them; those in comments are read later."""
    clocks: list[int | None] | None = None
    visits: list[dict[str, int]] | None = None
    """Per ply, visits of a search by the words of the moves."""
    root_values: list[float | None] | None = None
    trains: list[int] | None = None
    generation: int | None = None
    """These as in `GameRecord`."""
    notations: tuple[str, ...] = ()
    """Names of the notations the moves may be in; empty: unknown to the reader."""
    open_end: bool = False
    """The source ended in this game, before a result."""
    problem: str = ""
    """Reason why the game is not complete (`cut off`, `too long`); `''` if it is."""
    detail: str = ""


class Skip(NamedTuple):
    """A game, archive member or file that was not imported, with place and reason."""

    reason: str
    """A few words by which skips are counted: `illegal move`, `damaged file`, `cut off`."""
    source: str
    """File, or `archive.zip!member`."""
    number: int = 0
    """Number of the game in the source, from 1; 0: the source as a whole."""
    line: int = 0
    """Line in the source, from 1; 0: unknown."""
    ply: int | None = None
    """Ply at which reading stopped, the first move is 1; None: not about a move."""
    text: str = ""
    """The text at this place: the move, the FEN, the value of a header."""
    detail: str = ""
    """The full explanation in one sentence."""

    def as_json(self) -> dict[str, Any]:
        """Fields that are not empty, for the list of skipped games."""
        return {name: value for name, value in self._asdict().items() if value not in ("", 0, None)}


OnSkip = Callable[[Skip], None]


def bounded(game: RawGame) -> RawGame:
    """Return the game, or an empty one with the problem `too long` if its words, headers or moves
    exceed the bounds, so that memory stays bounded for every input."""
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


def too_long(name: str, size: int, limit: int, text: str) -> str:
    """Return an error message about a text that exceeds its limit."""
    return (
        f"{name} has {size:,} characters, at most {limit:,} are accepted; it begins {text[:20]!r}"
    )


def plain_name(text: str) -> str:
    """Return a name reduced to its letters and digits, in small letters."""
    return re.sub(r"[\W_]+", "", text.casefold())


def set_moves(game: RawGame, words: list[str]) -> None:
    """Set the moves of a game that is written on one line, and the result if it follows them."""
    if words and words[-1] in RESULT_WORDS:
        game.result = RESULT_WORDS[words.pop()]
    if len(words) > MAX_PLIES:
        game.problem, game.detail = "too long", f"more than {MAX_PLIES} moves"
    game.moves = words[:MAX_PLIES]
    game.lines = [game.line] * len(game.moves)


class GameReader(ABC):
    """A file format. Readers keep no state of a file, so one object can read many files at once."""

    name: str
    extensions: tuple[str, ...] = ()
    """Suffixes of file names, `.pgn`; they decide if several readers recognise a file."""

    @abstractmethod
    def sniff(self, head: bytes) -> bool:
        """Return True if a file that begins with these bytes (a few KiB) may be of this format."""

    @abstractmethod
    def read(self, stream: io.BufferedReader, source: str) -> Iterator[RawGame]:
        """Yield the games, in bounded memory. Bad text gives games with a problem, never an error."""


@dataclass
class GuardedReader(GameReader):
    """A reader of a plugin. Its errors and values of a wrong type are reported with its name; other files
    are read as before."""

    inner: GameReader
    plugin: str
    reported: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.name, self.extensions = self.inner.name, self.inner.extensions

    def sniff(self, head: bytes) -> bool:
        """Recognise a file as the plugin does; False if that fails, which is reported once."""
        try:
            return bool(self.inner.sniff(head))
        except Exception as error:
            if not self.reported:
                _log.warning("%s", self._failed("sniff", error))
            self.reported = True
            return False

    def read(self, stream: io.BufferedReader, source: str) -> Iterator[RawGame]:
        """Yield the games that the plugin reads. Where that fails, the last one reports it."""
        number = 0
        try:
            for raw in self.inner.read(stream, source):
                if not _is_game(raw):
                    raise TypeError(f"expected a RawGame with moves as texts, got {raw!r}")
                number = raw.number
                yield raw
        except (VariantAIError, OSError):
            raise
        except Exception as error:
            detail = self._failed("read", error)
            yield RawGame(source, number + 1, 0, problem="reader failed", detail=detail)

    def _failed(self, action: str, error: Exception) -> str:
        problem = f"{type(error).__name__}: {error}"
        return f"plugin {self.plugin!r}: {action} of the reader {self.name!r} failed: {problem}"


def _is_game(raw: object) -> bool:
    return isinstance(raw, RawGame) and all(isinstance(word, str) for word in raw.moves)


def choose_reader(readers: Sequence[GameReader], name: str, head: bytes) -> GameReader | None:
    """Return the reader of a file by its name and first bytes, None if no reader recognises it.

    Of the readers that recognise the bytes the first one is chosen whose suffix occurs in the name
    (`games.pgn.gz` has that of PGN), otherwise the first.
    """
    fits = [reader for reader in readers if reader.sniff(head)]
    lower = name.lower()
    named = (r for r in fits if any(suffix in lower for suffix in r.extensions))
    return next(named, fits[0] if fits else None)


def core_readers() -> tuple[GameReader, ...]:
    """Readers of every variant, in the order in which they are tried."""
    from variant_ai.core.data.read.line_formats import JsonlReader, MoveListReader, TableReader
    from variant_ai.core.data.read.pgn import PgnReader

    return (PgnReader(), JsonlReader(), TableReader(), MoveListReader())
