"""Players of games: their limits and clocks, the interface of all players, and random play.

A player serves one game at a time. If it breaks a rule of the match, it raises `Fault` with the
reason for which it loses the game; it can play another game after that.

Limits are written `[MOVES/]BASE[+INCREMENT]`, in seconds or minutes:seconds, as match programs do:
`60+0.25` ([Xiangqi-thesis]), `15:00+5` ([CrazyAra-preprint] table 13), `40/300`. All times inside
are milliseconds unless noted.
"""

from __future__ import annotations

import random
import re
import threading
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Literal, Self, get_args

from variant_ai.core.data.game_record import PlyVisits
from variant_ai.core.errors import EngineError, SettingError
from variant_ai.core.rules.game import Game
from variant_ai.core.system.text_tables import counted

_CONTROL = re.compile(
    r"(?:(?P<moves>\d+)/)?(?:(?P<minutes>\d+):)?(?P<seconds>\d+(?:\.\d+)?)(?:\+(?P<increment>\d+(?:\.\d+)?))?"
)


@dataclass(frozen=True)
class Allowance:
    """Limits of each move of a player; None means no such limit."""

    base: int | None = None
    """Milliseconds on the clock at the start."""
    increment: int = 0
    """Milliseconds added after each own move."""
    moves: int | None = None
    """Own moves after which `base` is added again; None: never (sudden death)."""
    movetime: int | None = None
    """Milliseconds for each move."""
    nodes: int | None = None
    """Nodes, or simulations of a tree search, for each move."""
    depth: int | None = None
    """Plies."""

    def __post_init__(self) -> None:
        for name in ("base", "movetime", "nodes", "depth", "moves"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise SettingError(f"{name} {value}: it must be above 0")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a clock. Raises SettingError."""
        match = _CONTROL.fullmatch(text.strip())
        if match is None:
            raise SettingError(
                f"clock {text!r}: expected [MOVES/]BASE[+INCREMENT], such as 60+0.25, 15:00+5 or 40/300"
            )
        seconds = 60 * int(match["minutes"] or 0) + float(match["seconds"])
        return cls(
            base=round(1000 * seconds),
            increment=round(1000 * float(match["increment"] or 0)),
            moves=int(match["moves"]) if match["moves"] else None,
        )

    @property
    def given(self) -> bool:
        """True if there is any limit."""
        limits = (self.base, self.movetime, self.nodes, self.depth)
        return any(limit is not None for limit in limits)

    @property
    def timed(self) -> bool:
        """True if a player can lose on time."""
        return self.base is not None or self.movetime is not None

    @property
    def text(self) -> str:
        """Limits as text: `60+0.25`, `1000 nodes`, `0.5 s a move`."""
        parts = []
        if self.base is not None:
            prefix = f"{self.moves}/" if self.moves else ""
            suffix = f"+{self.increment / 1000:g}" if self.increment else ""
            parts.append(f"{prefix}{self.base / 1000:g}{suffix}")
        if self.movetime is not None:
            parts.append(f"{self.movetime / 1000:g} s a move")
        if self.nodes is not None:
            parts.append(counted(self.nodes, "node"))
        if self.depth is not None:
            parts.append(f"depth {self.depth}")
        return ", ".join(parts)

    @property
    def pgn(self) -> str:
        """Value of PGN's TimeControl tag: `60+0.25`, `40/300`; `-` without a clock."""
        if self.base is None:
            return "-"
        return replace(self, movetime=None, nodes=None, depth=None).text


@dataclass
class PlayerClock:
    """Clock of a player in one game; it stands still if the allowance has no base time."""

    allowance: Allowance
    left: int = 0
    """Milliseconds left; below 0 while the margin is used."""
    made: int = 0
    """Own moves made."""

    def __post_init__(self) -> None:
        self.left = self.allowance.base or 0

    @property
    def moves_to_go(self) -> int | None:
        moves = self.allowance.moves
        return None if moves is None else moves - self.made % moves

    def spend(self, milliseconds: int, margin: int) -> bool:
        """Subtract the time of a move; return False if the player has lost on time. margin:
        tolerated overtime in milliseconds, for the transfer between engine and clock."""
        allowance = self.allowance
        if allowance.movetime is not None and milliseconds > allowance.movetime + margin:
            return False
        if allowance.base is None:
            return True
        self.left -= milliseconds
        if self.left + margin < 0:
            return False
        # Overtime within the margin is forgiven, otherwise the margin could be used only once.
        self.left = max(self.left, 0) + allowance.increment
        self.made += 1
        if allowance.moves is not None and self.made % allowance.moves == 0:
            self.left += allowance.base
        return True


@dataclass(frozen=True)
class Turn:
    """Time and limits of one move."""

    clocks: tuple[PlayerClock, PlayerClock]
    """Clocks of the first and the second player."""
    side: int
    """Side to move: 0 or 1."""
    wait: float
    """Seconds after which the player must stop."""
    grace: float
    """Further seconds after which it counts as hung."""
    hurried: threading.Event = field(default_factory=threading.Event)
    """Once it is set, from any thread, a program, and a net that plays without a clock, answer soon with the
    best move so far."""

    @property
    def clock(self) -> PlayerClock:
        return self.clocks[self.side]

    @property
    def allowance(self) -> Allowance:
        return self.clock.allowance


Reason = Literal[
    "crash", "hang", "time forfeit", "illegal move", "no move", "false claim", "resignation"
]
FAULTS = frozenset(get_args(Reason))
"""Reasons for which a player loses its game."""
RULE_FAULTS = frozenset({"illegal move", "no move", "false claim"})
"""Those that other rules than the spec's would explain."""
LONGEST_WAIT = 86_400.0
"""Greatest number of seconds that a program may be given to answer."""
ACCIDENTS = ("crash", "hang", "time forfeit")
"""Reasons that may occur in one game and not in another with the same moves."""


class Fault(EngineError):  # noqa: N818
    """Error or resignation of a player, for which it loses its game."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason: Reason = reason
        self.side: int | None = None
        """Side at fault (0 or 1); None: the side to move."""


@dataclass(frozen=True)
class Reply:
    """Move of a player, with the facts it reported."""

    move: int
    """A legal move."""
    score: int | None = None
    """Centipawns from the player's own view, mates as in `GameRecord.scores`; None: not
    reported."""
    depth: int = 0
    """Plies."""
    nodes: int = 0
    seconds: float = 0.0
    """Time taken, measured as close to the player as possible."""
    visits: PlyVisits = ()
    """Visits of the root's moves, most visited first; empty if not reported."""
    value: float | None = None
    """Value of the search for the player to move, in [-1, 1]; None: not reported."""
    candidates: tuple[tuple[int, int], ...] = ()
    """Moves that a program compared (option MultiPV), in its order, with their scores as in `score`."""
    comment: str = ""
    """Remark for the game record."""


class Player(ABC):
    """One player of a match, used by one thread; only `kill` may be called from others."""

    name: str
    digest: str = ""
    """Digest of the file that decides its play, if any: a match is only resumed with the same
    one."""

    @abstractmethod
    def start(self) -> None:
        """Get ready to play; do nothing if ready. Raises EngineError on failure."""

    @abstractmethod
    def new_game(self, game: Game, number: int = 0) -> None:
        """Begin a game at its opening, with nothing remembered of earlier games. number: of the
        game; random choices depend on it."""

    @abstractmethod
    def play(self, game: Game, turn: Turn) -> Reply:
        """Choose a move in the current position of `game`. Raises Fault if the player loses by its
        own mistake."""

    def ponder(self, game: Game, turn: Turn) -> None:  # noqa: B027
        """Start to think during the other side's turn, if the player does so, and return at once.
        turn: clocks after the player's move. Raises Fault."""

    def rejection(self, allowance: Allowance) -> str:
        """Return why the player cannot play under these limits; empty if it can."""
        return ""

    def game_over(self, result: str, reason: str) -> None:  # noqa: B027
        """Report the end of the game (`1-0`, `0-1`, `1/2-1/2`, `*`). Never raises."""

    @property
    def last_lines(self) -> tuple[str, ...]:
        """Last lines that a program wrote, for error messages."""
        return ()

    @abstractmethod
    def close(self) -> None:
        """Shut down in an orderly way."""

    def kill(self) -> None:
        """Stop at once, from any thread; a running `play` raises or returns any move."""
        self.close()


class RandomPlayer(Player):
    """Plays every legal move with equal probability."""

    def __init__(self, name: str = "random", seed: int = 0) -> None:
        self.name, self.seed = name, seed
        self._chance = random.Random(seed)

    def start(self) -> None:
        pass

    def new_game(self, game: Game, number: int = 0) -> None:
        # Games with one opening differ, and the same game is the same when it is repeated.
        self._chance = random.Random(f"{self.seed} {number} {game.fen()} {game.side}")

    def play(self, game: Game, turn: Turn) -> Reply:
        started = time.monotonic()
        move = random_move(self._chance, game)
        return Reply(move, nodes=1, seconds=time.monotonic() - started)

    def close(self) -> None:
        pass


def random_move(chance: random.Random, game: Game) -> int:
    """A random legal move; sorted first, so that every rules engine gives the same one."""
    return chance.choice(sorted(int(move) for move in game.legal_moves()))
