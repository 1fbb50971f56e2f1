"""What a client can ask of the engine, whatever the protocol it asks in.

A dialect turns a line into one of these; the session acts on them and knows no protocol. Squares
and moves are still text here: which squares there are depends on the variant. Named tuples, because making a dataclass
takes a millisecond of the time in which a client waits for the handshake.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias


class Handshake:
    """`uci`, `ucci`: who are you, and what can be set?"""


class IsReady:
    """Answered at once during a search, otherwise when all before it is done."""


class SetOption(NamedTuple):
    name: str
    """Names are compared without regard to case; a blank and `_` are the same."""
    value: str | None = None
    """None where the client gave none: a button."""


class NewGame:
    """What comes belongs to another game."""


class SetPosition(NamedTuple):
    fen: str | None
    """None: the variant's start position."""
    moves: tuple[str, ...] = ()
    bare: bool = False
    """Given without the word `position`: the client speaks the cyclone dialect."""


class BanMoves(NamedTuple):
    """These moves may not be played from the position on the table."""

    moves: tuple[str, ...]


class Go(NamedTuple):
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


class Stop:
    """Answer now."""


class PonderHit(NamedTuple):
    """The expected move was played: the clock runs from here."""

    draw_offered: bool = False


class Probe(NamedTuple):
    """What is known of a position without a search."""

    position: SetPosition


class Debug(NamedTuple):
    on: bool


class Show:
    """Draw the position (`d`)."""


class Quit:
    """Leave at once."""


class Ignored:
    """Something the protocol knows and this engine has no use for."""


class Unreadable(NamedTuple):
    """A line that means nothing here."""

    problem: str
    """Says what was given and what would be accepted."""


Command: TypeAlias = (
    Handshake
    | IsReady
    | SetOption
    | NewGame
    | SetPosition
    | BanMoves
    | Go
    | Stop
    | PonderHit
    | Probe
    | Debug
    | Show
    | Quit
    | Ignored
    | Unreadable
)
"""Something a client asked."""
