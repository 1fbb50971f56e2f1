"""What a client can ask of the engine, whatever the protocol it asks in.

A dialect turns a line into one of these; the session acts on them and knows no protocol. Squares
and moves are still text here: which squares there are depends on the variant.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """Something a client asked."""


@dataclass(frozen=True)
class Handshake(Command):
    """`uci`, `ucci`: who are you, and what can be set?"""


@dataclass(frozen=True)
class IsReady(Command):
    """Answered at once during a search, otherwise when all before it is done."""


@dataclass(frozen=True)
class SetOption(Command):
    name: str
    """Names are compared without regard to case; a blank and `_` are the same."""
    value: str | None = None
    """None where the client gave none: a button."""


@dataclass(frozen=True)
class NewGame(Command):
    """What comes belongs to another game."""


@dataclass(frozen=True)
class SetPosition(Command):
    fen: str | None
    """None: the variant's start position."""
    moves: tuple[str, ...] = ()
    bare: bool = False
    """Given without the word `position`: the client speaks the cyclone dialect."""


@dataclass(frozen=True)
class BanMoves(Command):
    """These moves may not be played from the position on the table."""

    moves: tuple[str, ...]


@dataclass(frozen=True)
class Go(Command):
    """Search; every limit None where it was not given. Times in seconds, possibly negative."""

    times: tuple[float | None, float | None] = (None, None)
    """Time left of the first and the second player. UCCI knows whose turn it is, not the colour:
    there they are the mover's and the other's, see `relative`."""
    increments: tuple[float | None, float | None] = (None, None)
    relative: bool = False
    """The times above are (mover, other), not (first player, second player)."""
    moves_to_go: int | None = None
    depth: int | None = None
    nodes: int | None = None
    movetime: float | None = None
    mate: int | None = None
    perft: int | None = None
    infinite: bool = False
    ponder: bool = False
    draw_offered: bool = False
    search_moves: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """What of the line was not understood; the rest is searched all the same."""

    @property
    def has_clock(self) -> bool:
        return any(time is not None for time in self.times)

    @property
    def waits(self) -> bool:
        """Whether the move may not be printed before the client allows it."""
        return self.infinite or self.ponder


@dataclass(frozen=True)
class Stop(Command):
    """Answer now."""


@dataclass(frozen=True)
class PonderHit(Command):
    """The expected move was played: the clock runs from here."""

    draw_offered: bool = False


@dataclass(frozen=True)
class Probe(Command):
    """What is known of a position without a search."""

    position: SetPosition


@dataclass(frozen=True)
class Debug(Command):
    on: bool


@dataclass(frozen=True)
class Show(Command):
    """Draw the position (`d`)."""


@dataclass(frozen=True)
class Quit(Command):
    """Leave at once."""


@dataclass(frozen=True)
class Ignored(Command):
    """Something the protocol knows and this engine has no use for."""


@dataclass(frozen=True)
class Unreadable(Command):
    """A line that means nothing here."""

    problem: str
    """Says what was given and what would be accepted."""
