"""What moves cost on the player's clock beyond the time that was meant for them.

The clock that a client shows at the next move tells what the last one really took: the way to the
client and back, threads that woke up late on a busy machine, a batch that was slow. The engine sees
none of it by itself. What was seen once may come again, so the greatest lag is forgotten slowly.

Increments are taken to be added in full after each move (Fischer's).
"""

from __future__ import annotations

from dataclasses import dataclass

GAIN = 1 / 8
"""Weight of the newest lag in the usual one, as for round trips in networks (RFC 6298)."""
MEMORY = 0.99
"""Share of the greatest lag that is left after one more move: half of it after 69."""
FEARED = 0.1
"""Seconds taken for the greatest lag before any was seen."""
MOST = 0.25
"""Seconds. Greater ones are taken for this: what a pause of the whole machine or network costs cannot
be kept in hand."""


@dataclass(frozen=True)
class _Move:
    """A move that was sent to the client."""

    ply: int
    remaining: float
    increment: float
    meant: float


class Lag:
    """Learns the lag from the clocks that a client shows, move by move."""

    def __init__(self) -> None:
        self.usual = 0.0
        """Seconds, smoothed over the last moves."""
        self.worst = FEARED
        """Seconds, the greatest of the last moves."""
        self._last: _Move | None = None

    def sent(self, ply: int, remaining: float, increment: float, meant: float) -> None:
        """A move was sent. ply: the game's, before the move; remaining: what the clock showed when it
        was asked for; meant: time that it should have taken. Times are seconds."""
        self._last = _Move(ply, remaining, increment, meant)

    def shown(self, ply: int, remaining: float) -> None:
        """The clock before a move. Nothing is learnt where it cannot be the player's next one after
        the move sent (moves were taken back, time was added, another game or side), nor from clocks
        in whole seconds."""
        last = self._last
        self.forget_last()
        if last is None or ply != last.ply + 2:
            return
        spent = last.remaining + last.increment - remaining
        if spent < 0 or (remaining % 1 == 0 and last.remaining % 1 == 0):
            return
        seen = min(max(spent - last.meant, 0.0), MOST)
        self.usual += GAIN * (seen - self.usual)
        self.worst = max(seen, MEMORY * self.worst)

    def forget_last(self) -> None:
        """The next clock says nothing of the last move. What was learnt stays."""
        self._last = None
