"""UCI, and its cyclone dialect: text to commands, and answers to text.

The grammar is that of the UCI document of April 2006 with what clients have added since: `perft`,
`d`, an empty list after `moves`, options in any case, and the bare `fen …` or `startpos` of
xiangqi GUIs. A dialect holds no state of a game; the reading thread parses with it while the
working thread writes with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

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
from variant_ai.core.engine.protocols.engine_options import Option, declare

SHOWN = 60
"""Characters of a client's words repeated in an error."""
_NUMBER = re.compile(r"([+-]?[0-9]{1,15})(\.[0-9]*)?\Z")
_SQUARE = re.compile(r"([a-l])([0-9]{1,2})")


@dataclass(frozen=True)
class Info:
    """What one `info` line tells, from the mover's point of view."""

    depth: int
    seldepth: int = 0
    rank: int = 1
    """Place among the lines shown (`multipv`), from 1."""
    cp: int = 0
    mate: int | None = None
    """Full moves, negative when being mated; then `cp` is not shown."""
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
    """What the engine says of itself."""

    name: str
    author: str


class Dialect:
    """A protocol's words. Squares are given and taken as UCI text; the dialect turns them."""

    name = "uci"
    first_rank = 1
    """Number of the first rank: 1 in UCI, 0 in UCCI and cyclone."""
    has_variants = True
    """Whether the client can choose the variant by UCI_Variant."""
    handshake_word = "uci"

    # --- reading -------------------------------------------------------------------------------

    def parse(self, text: str) -> Command | None:
        """The command of a line; None for an empty one."""
        words = text.split()
        if not words:
            return None
        word = words[0].lower()
        rest = words[1:]
        if word in ("uci", "ucci"):
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
            f"unknown command {shown(words[0])}; {self.handshake_word}, isready, setoption, "
            "position, go, stop and quit are some that exist"
        )

    # --- writing -------------------------------------------------------------------------------

    def greeting(self, who: Identity, options: Iterable[Option]) -> list[str]:
        lines = [f"id name {who.name}", f"id author {who.author}"]
        lines += [declare(option) for option in options]
        return [*lines, "uciok"]

    def message(self, text: str) -> str:
        return f"info string {text}"

    def info(self, info: Info) -> list[str]:
        score = f"cp {info.cp}" if info.mate is None else f"mate {info.mate}"
        words = [f"info depth {info.depth} seldepth {info.seldepth} multipv {info.rank}"]
        words.append(f"score {score}")
        if info.wdl is not None:
            words.append("wdl {} {} {}".format(*info.wdl))
        words.append(f"nodes {info.nodes} nps {info.nps} hashfull {info.hashfull}")
        words.append(f"time {info.milliseconds}")
        if info.pv:
            words.append("pv " + " ".join(self.squares(move) for move in info.pv))
        return [" ".join(words)]

    def best(self, move: str, ponder: str | None, verdict: str = "") -> list[str]:
        """`verdict`: what else is said with the move, `draw` or `resign`; UCI has no word for it."""
        line = f"bestmove {self.squares(move)}"
        return [f"{line} ponder {self.squares(ponder)}" if ponder else line]

    def no_move(self, ended: int) -> list[str]:
        """The game is over: 1 won by the side to move, 0 drawn, -1 lost."""
        from variant_ai.core.search.report import MAX_CENTIPAWNS

        score = {1: f"cp {MAX_CENTIPAWNS}", 0: "cp 0", -1: "mate 0"}[ended]
        return [f"info depth 0 score {score}", "bestmove (none)"]

    def farewell(self) -> list[str]:
        return []

    def idle_stop(self) -> list[str]:
        """The answer to `stop` where nothing is being searched."""
        return []

    def squares(self, move: str) -> str:
        """A move of UCI text with this dialect's ranks."""
        return move if self.first_rank == 1 else _SQUARE.sub(_from_zero, move)


class Uci(Dialect):
    """UCI as GUIs for chess and its variants speak it."""


class Cyclone(Dialect):
    """What xiangqi GUIs call UCI: ranks from 0, a bare `fen` or `startpos`, one variant."""

    name = "cyclone"
    first_rank = 0
    has_variants = False


def _from_zero(match: re.Match[str]) -> str:
    return f"{match[1]}{int(match[2]) - 1}"


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
    """`name N [value V]` with blanks in either, or UCCI's `N V`. A long form is known by the word
    `name`; garbled ones are answered in words."""
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
    """`startpos` or `fen F`, then perhaps `moves` with any number of moves, none included."""
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


@dataclass
class GoWords:
    """Reads the words of a `go` one after the other, and keeps what it does not understand."""

    words: Sequence[str]
    at: int = 0
    problems: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return self.at < len(self.words)

    def take(self) -> str:
        word = self.words[self.at]
        self.at += 1
        return word.lower()

    def number(self, of: str) -> float | None:
        """The number that belongs to the word `of`; None, and a problem, where there is none."""
        given = self.words[self.at] if self else ""
        match = _NUMBER.match(given)
        if match is None:
            what = shown(given) if given else "nothing"
            self.problems.append(f"go: {what} where the number of {of} is expected")
            return None
        self.at += 1
        return float(given)

    def whole(self, of: str) -> int | None:
        value = self.number(of)
        return None if value is None else int(value)

    def seconds(self, of: str, unit: float = 1e-3) -> float | None:
        value = self.number(of)
        return None if value is None else value * unit

    def unknown(self, word: str) -> None:
        self.problems.append(f"go: unknown word {shown(word)}")


_GO_WORDS = {
    "wtime", "btime", "winc", "binc", "movestogo", "depth", "nodes", "movetime", "mate", "perft",
    "infinite", "ponder", "searchmoves",
}  # fmt: skip


def parse_go(given: Sequence[str]) -> Go:
    """A UCI `go`. What is not understood is kept in `problems`, the rest is searched."""
    words = GoWords(given)
    times: dict[str, float | None] = {}
    counts: dict[str, int | None] = {}
    flags: set[str] = set()
    moves: list[str] = []
    while words:
        word = words.take()
        if word in ("wtime", "btime", "winc", "binc", "movetime"):
            times[word] = words.seconds(word)
        elif word in ("movestogo", "depth", "nodes", "mate", "perft"):
            counts[word] = words.whole(word)
        elif word in ("infinite", "ponder"):
            flags.add(word)
        elif word == "searchmoves":
            while words and words.words[words.at].lower() not in _GO_WORDS:
                moves.append(words.words[words.at])
                words.at += 1
        else:
            words.unknown(word)
    return Go(
        times=(times.get("wtime"), times.get("btime")),
        increments=(times.get("winc"), times.get("binc")),
        moves_to_go=counts.get("movestogo"),
        depth=counts.get("depth"),
        nodes=counts.get("nodes"),
        movetime=times.get("movetime"),
        mate=counts.get("mate"),
        perft=counts.get("perft"),
        infinite="infinite" in flags,
        ponder="ponder" in flags,
        search_moves=tuple(moves),
        problems=tuple(words.problems),
    )


def shown(text: str) -> str:
    """A client's word as an error repeats it: short, and without control characters."""
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}...")
