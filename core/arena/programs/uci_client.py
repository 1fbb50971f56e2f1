"""Clients of engines that speak UCI, UCCI 3.0 (Chinese xiangqi programs), or UCI as xiangqi clients
do.

UCCI differs from UCI: `ucci`/`ucciok`, options without the words `name` and `value`, scores without
`cp`, the clock of the side to move only.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from variant_ai.core.arena.programs.engine_process import EngineProcess, ProgramAnswer
from variant_ai.core.errors import EngineError, unknown

D = TypeVar("D")


@dataclass(frozen=True)
class UciOption:
    """An option that the engine declares."""

    name: str
    kind: str
    """`check`, `spin`, `combo`, `button` or `string`."""
    default: str = ""
    choices: tuple[str, ...] = ()
    """The `var` values of a combo."""


_VARIANT_FILE = "variantpath"
"""Option of Fairy-Stockfish: a file that defines variants."""
_OPTION = re.compile(r"option name (.+?) type (\S+)(.*)")
_OPTION_WORDS = re.compile(r" (default|min|max|var)(?= |$)")
_RANK = re.compile(r" multipv ([0-9]+)")
NO_MOVES = ("(none)", "0000", "(null)", "NULL", "none", "")
"""Texts that engines write instead of a move if they find none."""


def parse_option(line: str) -> UciOption | None:
    """Parse `option name N type T [default D] [var V]…`; names and values may contain spaces."""
    declared = _OPTION.match(" ".join(line.split()))
    if declared is None:
        return None
    name, kind, rest = declared.groups()
    _, *parts = _OPTION_WORDS.split(rest)
    words, texts = parts[::2], [text.strip() for text in parts[1::2]]
    found = dict(zip(reversed(words), reversed(texts), strict=True))  # the first of equal words
    choices = [text for word, text in zip(words, texts, strict=True) if word == "var"]
    return UciOption(name, kind, found.get("default", ""), tuple(choices))


def parse_ucci_option(line: str) -> UciOption | None:
    """Parse `option NAME type T [min N] [max N] [var V]… [default D]`."""
    return parse_option(line.replace("option ", "option name ", 1))


class UciClient(EngineProcess):
    """One engine process that speaks UCI."""

    hello = "uci"
    """First line of the client; the engine answers with this word and `ok`."""
    read_option = staticmethod(parse_option)
    """Parses the declaration of an option; None if the line is not one."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        options: Mapping[str, str] | None = None,
        soft_options: Mapping[str, str] | None = None,
        timeout: float = 20.0,
    ) -> None:
        """options: set at every start, names in any case. soft_options: set only if the engine has
        them. timeout: seconds to wait for `uciok` and `readyok`."""
        super().__init__(command, timeout=timeout)
        self.given_options = dict(options or {})
        self.soft_options = dict(soft_options or {})
        self.options: dict[str, UciOption] = {}
        """By lower-case name."""

    def start(self) -> None:
        self._launch()
        self._handshake()
        self.greeted()
        for name, value in self.soft_options.items():
            if name.lower() in self.options:
                self.set_option(name, value)
        for name, value in self.given_options.items():
            self.set_option(name, value)
        if _VARIANT_FILE in map(str.lower, self.given_options):
            self._handshake()  # the variants of the file are among the options now
        self.ready()

    def _handshake(self) -> None:
        """Do the handshake, and read name and options."""
        self.options = {}
        self.send(self.hello)
        deadline = time.monotonic() + self.timeout
        while (line := self._line(f"{self.hello}ok", deadline)) != f"{self.hello}ok":
            if line.startswith("id name "):
                self.name = line.removeprefix("id name ").strip()
            elif line.startswith("option "):
                option = self.read_option(line)
                if option is not None:
                    self.options[option.name.lower()] = option

    def greeted(self) -> None:
        """Called after the handshake, before options are set."""

    def ready(self) -> None:
        """Wait until the engine has processed all commands."""
        self.send("isready")
        deadline = time.monotonic() + self.timeout
        while self._line("readyok", deadline) != "readyok":
            pass

    def set_option(self, name: str, value: str) -> None:
        """Raises EngineError if the engine has no such option or does not accept the value."""
        option = self.options.get(name.lower())
        if option is None:
            known = sorted(o.name for o in self.options.values())
            raise EngineError(f"engine {self.name}: {unknown('option', name, known)}")
        self._require_choice(option, value)
        self.send(
            f"setoption name {option.name}" + ("" if option.kind == "button" else f" value {value}")
        )

    def _require_choice(self, option: UciOption, value: str) -> None:
        if option.choices and value not in option.choices:
            listed = sorted(option.choices)
            raise EngineError(
                f"engine {self.name}: {unknown(f'value of {option.name}', value, listed)}"
            )

    def value_of(self, name: str) -> str | None:
        """Value that an option has had since the start; None if the engine does not have it."""
        option = self.options.get(name.lower())
        if option is None:
            return None
        given = {k.lower(): v for k, v in (self.soft_options | self.given_options).items()}
        return given.get(name.lower(), option.default)

    def set_variant(self, name: str) -> None:
        """Set UCI_Variant. An engine without that option is assumed to play the right variant."""
        if "uci_variant" in self.options:
            self.set_option("UCI_Variant", name)
            self.ready()

    def new_game(self) -> None:
        self.send("ucinewgame")
        self.ready()

    def position_line(self, fen: str | None, moves: Sequence[str]) -> str:
        """Line that sets a position; fen None: the variant's start position."""
        played = f" moves {' '.join(moves)}" if moves else ""
        return f"position {'startpos' if fen is None else f'fen {fen}'}{played}"

    def search(
        self, limits: Mapping[str, int], timeout: float, grace: float = 0.0
    ) -> ProgramAnswer:
        """Search the position that was set.

        limits: named as in UCI (`nodes`, `depth`, `movetime`, `wtime`). timeout: seconds after
        which `stop` is sent; if the engine has not answered `grace` seconds later, it counts as
        hung.
        """
        self.send(f"go{_words_of(limits)}")
        return self._answer(timeout, grace)

    # --- pondering -----------------------------------------------------------------------------

    def ponder(self, limits: Mapping[str, int]) -> None:
        """Search the position that was set, which includes the expected move, until `hit` or
        `miss`."""
        self.send(f"go ponder{_words_of(limits)}")

    def hit(self, timeout: float, grace: float) -> ProgramAnswer:
        """Report that the expected move was played, and wait for the engine's move; see
        `search`."""
        self.send("ponderhit")
        return self._answer(timeout, grace)

    def miss(self) -> None:
        """End the search because another move was played. Raises EngineHungError."""
        self.send("stop")
        deadline = time.monotonic() + self.timeout
        while not self._line("bestmove", deadline).startswith(("bestmove", "nobestmove")):
            pass

    def _answer(self, timeout: float, grace: float) -> ProgramAnswer:
        """Wait for the move of the search under way; see `search`."""
        ranks: dict[int, str] = {}
        candidates = _Candidates()
        for text, seconds, late in self._search_lines("bestmove", "stop", timeout, grace):
            if text.startswith(("bestmove", "nobestmove")):
                words = text.split()
                move = words[1] if len(words) > 1 and words[0] == "bestmove" else ""
                # the best line; numbers that cannot be parsed are left out
                best = _line_of(ranks[min(ranks)]) if ranks else ProgramAnswer(None)
                claim = next((word for word in words[2:] if word in ("draw", "resign")), "")
                expected = words[3] if words[2:3] == ["ponder"] and len(words) > 3 else ""
                return replace(
                    best,
                    move=None if move in NO_MOVES else move,
                    candidates=candidates.found(),
                    seconds=seconds,
                    late=late,
                    claim=claim,
                    expected="" if expected in NO_MOVES else expected,
                )
            if text.startswith("info string"):
                continue
            if text.startswith("info ") and (" pv " in text or " score " in text):
                found = _RANK.search(text)
                rank = int(found[1]) if found else 1
                candidates.add(rank, text)
                if rank not in ranks or _says_more(text, ranks[rank]):
                    ranks[rank] = text
        raise AssertionError  # the lines end by an error only


class UcciClient(UciClient):
    """One engine process that speaks UCCI."""

    hello = "ucci"
    read_option = staticmethod(parse_ucci_option)
    millisec = False
    """True if the engine expects times in milliseconds instead of seconds."""

    def greeted(self) -> None:
        self.millisec = "usemillisec" in self.options
        if self.millisec:
            self.send("setoption usemillisec true")

    def set_option(self, name: str, value: str) -> None:
        """Set an option; UCCI engines may accept options that they do not list. Raises
        EngineError."""
        option = self.options.get(name.lower())
        if option is not None:
            self._require_choice(option, value)
        self.send(f"setoption {name} {value}".rstrip())

    def set_variant(self, name: str) -> None:
        """Do nothing: UCCI engines play one variant."""

    def new_game(self) -> None:
        if "newgame" in self.options:
            self.send("setoption newgame")
        self.ready()

    def times(self, milliseconds: int) -> int:
        """Convert a time to the engine's unit, at least 1."""
        return max(1, milliseconds if self.millisec else milliseconds // 1000)


class CycloneClient(UciClient):
    """UCI as xiangqi clients speak it: ranks count from 0, the word `position` is left out, and `r`
    stands for the first player."""

    def position_line(self, fen: str | None, moves: Sequence[str]) -> str:
        played = f" moves {' '.join(moves)}" if moves else ""
        if fen is None:
            return f"startpos{played}"
        board, _, rest = fen.partition(" ")
        if rest[:1] == "w":
            rest = "r" + rest[1:]
        return f"fen {board} {rest}{played}"


def _says_more(text: str, before: str) -> bool:
    """Return True if an `info` line replaces the one before. A score may be missing, and a bound counts
    only if the search was cut off before any exact score."""
    if " score " not in text and " score " in before:
        return False
    return not _is_bound(text) or _is_bound(before)


def _words_of(limits: Mapping[str, int]) -> str:
    return "".join(f" {word} {value}" for word, value in limits.items())


def _number(words: Sequence[str], after: str, default: D) -> int | D:
    try:
        return int(words[words.index(after) + 1])
    except (ValueError, IndexError):
        return default


def _score(words: Sequence[str]) -> int | None:
    """Centipawns of an `info` line: after `cp`, in UCCI directly after `score`."""
    return _number(words, "cp", 0) if "cp" in words else _number(words, "score", None)


def _is_bound(line: str) -> bool:
    return " lowerbound " in line or " upperbound " in line


class _Candidates:
    """Moves that an engine compares. A node limit cuts its last iteration off: the line of a rank may
    then be a bound for another move than before, whose score is that of an earlier iteration."""

    def __init__(self) -> None:
        self._lines: list[tuple[int, str]] = []
        """Rank and text of each line, parsed only if the engine compares moves: it writes dozens of lines
        for a move that takes milliseconds."""

    def add(self, rank: int, text: str) -> None:
        self._lines.append((rank, text))

    def found(self) -> tuple[ProgramAnswer, ...]:
        """Each move once, in the engine's order; empty if it wrote only one line."""
        if len({rank for rank, _ in self._lines}) < 2:
            return ()
        latest: dict[int, ProgramAnswer] = {}  # by rank, the last line, also if it is a bound
        exact: dict[str, ProgramAnswer] = {}  # by move, the last line that is no bound
        for rank, text in self._lines:
            line = _line_of(text)
            if line.move is None or (line.score is None and line.mate is None):
                continue
            latest[rank] = line
            if not _is_bound(text):
                exact[line.move] = line
        if len(latest) < 2:
            return ()
        lines = [latest[rank] for rank in sorted(latest)]
        return tuple({line.move: exact.get(line.move or "", line) for line in lines}.values())


def _line_of(text: str) -> ProgramAnswer:
    words = text.split()
    pv = words.index("pv") + 1 if "pv" in words else len(words)
    return ProgramAnswer(
        move=words[pv] if pv < len(words) else None,
        score=_score(words),
        mate=_number(words, "mate", 0) if "mate" in words else None,
        depth=_number(words, "depth", 0),
        nodes=_number(words, "nodes", 0),
    )
