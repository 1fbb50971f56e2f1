"""What a player may spend on a move: a clock, a fixed time, nodes, or a depth.

Texts are `[MOVES/]BASE[+INCREMENT]` in seconds or minutes:seconds, as match runners write them:
`60+0.25` (thesis), `15:00+5` (paper 000, table 13), `40/300`. All times inside are milliseconds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Self

from variant_ai.core.errors import SettingError

_CONTROL = re.compile(
    r"(?:(?P<moves>\d+)/)?(?:(?P<minutes>\d+):)?(?P<seconds>\d+(?:\.\d+)?)(?:\+(?P<increment>\d+(?:\.\d+)?))?"
)


@dataclass(frozen=True)
class Allowance:
    """Limits of every move of a player; None where there is no such limit, but not all."""

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
        """A clock, from its text. Raises SettingError."""
        match = _CONTROL.fullmatch(text.strip())
        if match is None:
            raise SettingError(
                f"clock {text!r}: it is written [MOVES/]BASE[+INCREMENT], such as 60+0.25, "
                "15:00+5 or 40/300"
            )
        seconds = 60 * int(match["minutes"] or 0) + float(match["seconds"])
        return cls(
            base=round(1000 * seconds),
            increment=round(1000 * float(match["increment"] or 0)),
            moves=int(match["moves"]) if match["moves"] else None,
        )

    @property
    def given(self) -> bool:
        """Whether anything is limited."""
        limits = (self.base, self.movetime, self.nodes, self.depth)
        return any(limit is not None for limit in limits)

    @property
    def timed(self) -> bool:
        """Whether a player can lose on time."""
        return self.base is not None or self.movetime is not None

    @property
    def text(self) -> str:
        """In words: `60+0.25`, `1000 nodes`, `0.5 s a move`."""
        parts = []
        if self.base is not None:
            prefix = f"{self.moves}/" if self.moves else ""
            suffix = f"+{self.increment / 1000:g}" if self.increment else ""
            parts.append(f"{prefix}{self.base / 1000:g}{suffix}")
        if self.movetime is not None:
            parts.append(f"{self.movetime / 1000:g} s a move")
        if self.nodes is not None:
            parts.append(f"{self.nodes} nodes")
        if self.depth is not None:
            parts.append(f"depth {self.depth}")
        return ", ".join(parts)

    @property
    def pgn(self) -> str:
        """As PGN's TimeControl tag has it: `60+0.25`, `40/300`; `-` without a clock."""
        if self.base is None:
            return "-"
        return replace(self, movetime=None, nodes=None, depth=None).text


@dataclass
class PlayerClock:
    """A player's clock in one game. Without a base it stands still."""

    allowance: Allowance
    left: int = 0
    """Milliseconds left; less than 0 where the margin was used."""
    made: int = 0
    """Own moves made."""

    def __post_init__(self) -> None:
        self.left = self.allowance.base or 0

    @property
    def moves_to_go(self) -> int | None:
        moves = self.allowance.moves
        return None if moves is None else moves - self.made % moves

    def spend(self, milliseconds: int, margin: int) -> bool:
        """Take the time of a move; False where the player has lost on time. `margin`: what a move
        may be over, for the way between engine and clock."""
        allowance = self.allowance
        if allowance.movetime is not None and milliseconds > allowance.movetime + margin:
            return False
        if allowance.base is None:
            return True
        self.left -= milliseconds
        if self.left + margin < 0:
            return False
        # What was over is forgiven, or the margin could be used once only.
        self.left = max(self.left, 0) + allowance.increment
        self.made += 1
        if allowance.moves is not None and self.made % allowance.moves == 0:
            self.left += allowance.base
        return True


@dataclass(frozen=True)
class Turn:
    """What one move may take, as its player is told."""

    clocks: tuple[PlayerClock, PlayerClock]
    """The first player's and the second's."""
    side: int
    """Whose move it is: 0 or 1."""
    wait: float
    """Seconds after which the player is told to stop."""
    grace: float
    """Seconds more after which it counts as hung."""

    @property
    def clock(self) -> PlayerClock:
        return self.clocks[self.side]

    @property
    def allowance(self) -> Allowance:
        return self.clock.allowance
