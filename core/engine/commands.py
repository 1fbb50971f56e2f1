"""Commands of a client, independent of the protocol.

A dialect (`protocols/`) parses a line into one of these, and the session executes it. Squares and
moves are still text, because their meaning depends on the variant. These are named tuples: creating
a dataclass takes a millisecond while the client waits for the handshake.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias


class Handshake:
    """`uci`, `ucci`: print name and options."""


class IsReady:
    """Answered at once during a search, otherwise after all earlier commands."""


class SetOption(NamedTuple):
    name: str
    """Case does not matter; a space and `_` are the same."""
    value: str | None = None
    """None if the client gave none, as for a button."""


class NewGame:
    """The next position belongs to another game."""


class SetPosition(NamedTuple):
    fen: str | None
    """None: the variant's start position."""
    moves: tuple[str, ...] = ()
    bare: bool = False
    """True without the word `position`: the client speaks the cyclone dialect."""


class BanMoves(NamedTuple):
    """These moves may not be played from the current position."""

    moves: tuple[str, ...]


class Go(NamedTuple):
    """Search. A limit that was not given is None. Times are seconds and may be negative."""

    times: tuple[float | None, float | None] = (None, None)
    """Time left of the first and the second player. In UCCI: of the player to move and the other one,
    see `relative`."""
    increments: tuple[float | None, float | None] = (None, None)
    relative: bool = False
    """True if the times are (player to move, other), not (first player, second player)."""
    byoyomi: float | None = None
    """Seconds for each move once the player's time is used up, as in shogi."""
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
    """Messages about words that were not understood; the rest still counts."""

    @property
    def waits(self) -> bool:
        """True if the answer must wait until the client allows it."""
        return self.infinite or self.ponder


class Stop:
    """Stop searching and answer now."""


class PonderHit(NamedTuple):
    """The expected move was played: the clock starts now."""

    draw_offered: bool = False


class Probe(NamedTuple):
    """Print what is known about a position without a search."""

    position: SetPosition


class Debug(NamedTuple):
    on: bool


class Show:
    """Draw the position (`d`)."""


class Quit:
    """Stop everything and leave."""


class Ignored:
    """A command that has no effect here."""


class Respond(NamedTuple):
    """A command with the same answer at any time."""

    line: str


class Unreadable(NamedTuple):
    """A line with an error."""

    problem: str
    """Message with the given text and the accepted ones."""


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
    | Respond
    | Unreadable
)
"""Any command of a client."""
