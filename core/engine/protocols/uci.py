"""UCI and its cyclone dialect: lines to commands, and answers to lines.

The grammar is that of the UCI document of April 2006 with later additions of clients: `perft`, `d`,
an empty list after `moves`, options in any case, and the bare `fen …` or `startpos` of xiangqi GUIs.
A dialect has no state of a game; the reading thread parses with it while the working thread formats
answers with it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from variant_ai.core.engine.commands import (
    BanMoves,
    Command,
    Debug,
    Go,
    Handshake,
    Ignored,
    IsReady,
    NewGame,
    PonderHit,
    Probe,
    Quit,
    SetOption,
    SetPosition,
    Show,
    Stop,
    Unreadable,
)
from variant_ai.core.engine.protocols.engine_options import VARIANT, Option, declare

if TYPE_CHECKING:
    from variant_ai.core.engine.protocols.chosen_options import OptionSet

SHOWN = 60
"""Most characters of a client's text that are repeated in an error."""
_NUMBER = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]*)?\Z")
GREATEST_LIMIT = 1e15
"""A greater number after a word of `go` counts as this; some clients write 2⁶⁴ - 1 for "no limit"."""


@dataclass(frozen=True)
class Info:
    """Content of one `info` line, from the point of view of the player to move."""

    depth: int
    seldepth: int = 0
    rank: int = 1
    """Rank among the lines shown (`multipv`), from 1."""
    cp: int = 0
    mate: int | None = None
    """Full moves, negative when being mated; shown instead of `cp`."""
    wdl: tuple[int, int, int] | None = None
    """Per mille, sum 1000."""
    nodes: int = 0
    nps: int = 0
    hashfull: int = 0
    """Per mille."""
    milliseconds: int = 0
    pv: Sequence[str] = ()
    """Moves as UCI text, ranks from 1."""


@dataclass(frozen=True)
class Identity:
    """Name and author of the engine."""

    name: str
    author: str


class Dialect:
    """A protocol: parses lines and formats answers. Moves are passed in and out as UCI text.

    This class is UCI; the attributes say how a protocol differs from it.
    """

    name = "uci"
    """Name in `core.factories.DIALECTS` and in `protocols:` of a spec."""
    first_word = "uci"
    """The handshake of the client, which selects the protocol."""
    notation = "uci"
    """Notation of the client's moves: `uci`, `iccs` (ranks from 0), `usi`, or the class of another one,
    a `Notation`, as `package.module:Class`."""
    declare = staticmethod(declare)
    """Line that declares an option."""
    board = (8, 8)
    """Files and ranks of the variant, for a notation that depends on them."""
    has_variants = True
    """True if the client can choose the variant by UCI_Variant."""
    bare_dialect = ""
    """Name of the protocol that a position without the word `position` selects."""
    has_verdicts = False
    """True if a draw offer and resignation can come with a move."""
    has_static_search = False
    """True if `go depth 0` asks for the value of the position alone."""
    ignores_unknown_options = False
    queues_searches = False
    """True if a `go` waits for the search before it, instead of stopping it."""

    @property
    def first_rank(self) -> int:
        """Number of the first rank: 1 in UCI, 0 in UCCI and cyclone."""
        return 0 if self.notation == "iccs" else 1

    # --- options -------------------------------------------------------------------------------

    def declared(self, options: OptionSet) -> Sequence[Option]:
        """Return the options of the greeting."""
        return [o for o in options.uci if self.has_variants or o.name != VARIANT]

    def apply(self, options: OptionSet) -> None:
        """Take over options that were set before the handshake."""

    # --- reading -------------------------------------------------------------------------------

    def parse(self, text: str) -> Command | None:
        """Return the command of a line; None for an empty line."""
        words = text.split()
        if not words:
            return None
        word = words[0].lower()
        rest = words[1:]
        if word in (self.first_word, "uci", "ucci"):
            return Handshake()
        simple = _SIMPLE.get(word)
        if simple is not None:
            return simple
        if word == "setoption":
            return parse_setoption(rest)
        if word == "position":
            return parse_position(rest)
        if word in ("fen", "startpos"):
            return parse_position(words, bare=True)
        if word == "go":
            return parse_go(rest)
        if word == "debug":
            return Debug((rest or ["on"])[0].lower() != "off")
        if word == "banmoves":
            return BanMoves(tuple(rest))
        if word == "ponderhit":
            return PonderHit("draw" in rest)
        if word == "probe":
            position = parse_position(rest)
            return Probe(position) if isinstance(position, SetPosition) else position
        return Unreadable(
            f"unknown command {shown(words[0])}; commands are {self.first_word}, isready, "
            "setoption, position, go, stop, quit and others"
        )

    # --- writing -------------------------------------------------------------------------------

    def greeting(self, identity: Identity, options: Iterable[Option]) -> list[str]:
        """Format the answer to the handshake."""
        lines = [f"id name {identity.name}", f"id author {identity.author}"]
        lines += [self.declare(option) for option in options]
        return [*lines, f"{self.first_word}ok"]

    def message(self, text: str) -> str:
        return f"info string {text}"

    def info(self, info: Info) -> list[str]:
        words = [f"info depth {info.depth} seldepth {info.seldepth} multipv {info.rank}"]
        words.append(f"score {self.score(info)}")
        if info.wdl is not None:
            words.append("wdl {} {} {}".format(*info.wdl))
        words.append(f"nodes {info.nodes} nps {info.nps} hashfull {info.hashfull}")
        words.append(f"time {info.milliseconds}")
        if info.pv:
            words.append("pv " + " ".join(self.squares(move) for move in info.pv))
        return [" ".join(words)]

    def score(self, info: Info) -> str:
        """Format the score of a line of play."""
        return f"cp {info.cp}" if info.mate is None else f"mate {info.mate}"

    def best(self, move: str, ponder: str | None, verdict: str = "") -> list[str]:
        """Format a move. verdict: `draw`, `resign` or empty; UCI cannot express it."""
        line = f"bestmove {self.squares(move)}"
        return [f"{line} ponder {self.squares(ponder)}" if ponder else line]

    def no_move(self, result: int) -> list[str]:
        """Format the answer if the game is over: 1 won by the side to move, 0 drawn, -1 lost."""
        from variant_ai.core.search.report import MAX_CENTIPAWNS

        score = {1: f"cp {MAX_CENTIPAWNS}", 0: "cp 0", -1: "mate 0"}[result]
        return [f"info depth 0 score {score}", "bestmove (none)"]

    def farewell(self) -> list[str]:
        return []

    def idle_stop(self) -> list[str]:
        """Format the answer to `stop` if nothing is being searched."""
        return []

    def squares(self, move: str) -> str:
        """Return a move of UCI text with the ranks of this dialect."""
        from variant_ai.core.rules.text.notation import shifted_ranks

        return move if self.first_rank == 1 else shifted_ranks(move, -1)


class Uci(Dialect):
    """UCI of GUIs for chess and its variants. A bare `fen` or `startpos`: the client speaks cyclone."""

    bare_dialect = "cyclone"


class Cyclone(Dialect):
    """UCI of xiangqi GUIs: ranks from 0, a bare `fen` or `startpos`, one variant."""

    name = "cyclone"
    notation = "iccs"
    has_variants = False


_SIMPLE: dict[str, Command] = {
    "isready": IsReady(),
    "ucinewgame": NewGame(),
    "uccinewgame": NewGame(),
    "stop": Stop(),
    "quit": Quit(),
    "d": Show(),
    "register": Ignored(),
}


def parse_setoption(words: Sequence[str]) -> Command:
    """Parse `name N [value V]` with spaces in either, or UCCI's `N V`."""
    if not words:
        return Unreadable("setoption: the name of the option is missing")
    if words[0].lower() != "name":
        return SetOption(words[0], " ".join(words[1:]) or None)
    lower = [word.lower() for word in words]
    end = lower.index("value") if "value" in lower else len(words)
    name = " ".join(words[1:end])
    if not name:
        return Unreadable("setoption: there is no name after the word `name`")
    return SetOption(name, " ".join(words[end + 1 :]) if end < len(words) else None)


def parse_position(words: Sequence[str], bare: bool = False) -> Command:
    """Parse `startpos` or `fen F`, optionally followed by `moves` and any number of moves."""
    kind = words[0].lower() if words else ""
    end = next((i for i, word in enumerate(words) if word.lower() == "moves"), len(words))
    moves = tuple(words[end + 1 :])
    if kind == "startpos":
        if end > 1:
            return Unreadable(f"position: {shown(words[1])} after startpos; `moves` may follow")
        return SetPosition(None, moves, bare)
    if kind == "fen":
        fen = " ".join(words[1:end])
        if not fen:
            return Unreadable("position: there is no FEN after the word `fen`")
        return SetPosition(fen, moves, bare)
    given = shown(words[0]) if words else "nothing"
    return Unreadable(f"position: {given} where `startpos` or `fen` is expected")


class GoWords(NamedTuple):
    """The words of a `go`."""

    times: dict[str, float]
    """Seconds."""
    counts: dict[str, int]
    flags: set[str]
    moves: list[str]
    problems: list[str]
    """Messages about words that were not understood."""


def read_go(
    given: Sequence[str], times: Mapping[str, float], counts: Sequence[str], flags: Sequence[str]
) -> GoWords:
    """Read the words of a `go`: times (with the seconds of their unit) and counts, which a number
    follows, flags, and `searchmoves` if it is among the flags."""
    found = GoWords({}, {}, set(), [], [])
    words = deque(given)
    while words:
        word = words.popleft().lower()
        if word in times or word in counts:
            match = _NUMBER.match(words[0]) if words else None
            if match is None:
                next_word = shown(words[0]) if words else "nothing"
                found.problems.append(f"go: {next_word} where the number of {word} is expected")
                found.times.pop(word, None)
                found.counts.pop(word, None)
                if words and words[0][0].isdigit():
                    words.popleft()
                continue
            number = min(float(words.popleft()), GREATEST_LIMIT)
            if word in times:
                found.times[word] = number * times[word]
            else:
                found.counts[word] = int(number)
        elif word not in flags:
            found.problems.append(f"go: unknown word {shown(word)}")
        elif word == "searchmoves":
            while words and words[0].lower() not in {*times, *counts, *flags}:
                found.moves.append(words.popleft())
        else:
            found.flags.add(word)
    return found


_TIMES = dict.fromkeys(("wtime", "btime", "winc", "binc", "movetime"), 1e-3)
_COUNTS = ("movestogo", "depth", "nodes", "mate", "perft")
_FLAGS = ("infinite", "ponder", "searchmoves")


def parse_go(given: Sequence[str]) -> Go:
    """Parse a UCI `go`; words that are not understood are reported in `problems`."""
    found = read_go(given, _TIMES, _COUNTS, _FLAGS)
    return go_of(found, ("wtime", "btime"), ("winc", "binc"))


def go_of(found: GoWords, times: tuple[str, str], increments: tuple[str, str], **more: Any) -> Go:
    """Return the command of the words of a `go`. times, increments: the words for both players. more:
    other fields."""
    clock, counts, flags = found.times, found.counts, found.flags
    return Go(
        times=(clock.get(times[0]), clock.get(times[1])),
        increments=(clock.get(increments[0]), clock.get(increments[1])),
        byoyomi=clock.get("byoyomi"),
        moves_to_go=counts.get("movestogo"),
        depth=counts.get("depth"),
        nodes=counts.get("nodes"),
        movetime=clock.get("movetime"),
        mate=counts.get("mate"),
        perft=counts.get("perft"),
        infinite="infinite" in flags,
        ponder="ponder" in flags,
        draw_offered="draw" in flags,
        search_moves=tuple(found.moves),
        problems=tuple(found.problems),
        **more,
    )


def shown(text: str) -> str:
    """Return a client's text for an error message: short and without control characters."""
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}...")
