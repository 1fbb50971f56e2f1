"""A `go` with everything that its search depends on: the position, the options, the time when it came."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from variant_ai.core.engine.commands import Go

if TYPE_CHECKING:
    from variant_ai.core.search.move.clock import Clock

NEVER = math.inf
"""Time of something that does not happen."""


@dataclass(frozen=True)
class SearchTask:
    """A `go` with everything that its search depends on."""

    go: Go
    number: int
    at: float
    """Time when its line was read, by perf_counter."""
    side: int
    """Colour to move."""
    ply: int
    """Plies of the game before the move."""
    legal_moves: int
    """Number of moves to choose from."""
    allowed: tuple[int, ...] | None = None
    """The only moves to search; None: all."""
    multipv: int = 1
    node_limit: int | None = None
    """Limit of the options, in addition to that of the `go`."""
    fixed_movetime: float | None = None
    """Seconds for every move, instead of the clock."""
    overhead: float = 0.02

    @property
    def own_moves(self) -> int:
        """Moves that the player has made in the game."""
        return self.ply // 2

    @property
    def clock(self) -> Clock | None:
        """Clock of the player to move, None without one."""
        from variant_ai.core.search.move.clock import Clock

        index = 0 if self.go.relative else self.side
        left = self.go.times[index]
        if left is None or self.fixed_movetime is not None:
            return None
        moves = self.go.moves_to_go
        return Clock(
            left,
            max(self.go.increments[index] or 0.0, 0.0),
            moves if moves is not None and moves > 0 else None,
            max(self.go.byoyomi or 0.0, 0.0),
        )

    @property
    def movetime(self) -> float | None:
        """Seconds for this move: those of `movetime` less `Move Overhead` (at most a tenth), otherwise those of
        the option `Fixed_Movetime`; None without either."""
        given = self.go.movetime
        if given is None and self.fixed_movetime is not None and not self.go.infinite:
            return self.fixed_movetime
        if given is None:
            return None
        return max(given - min(self.overhead, given / 10), 0.0)

    @property
    def nodes(self) -> int | None:
        limits = [n for n in (self.go.nodes, self.node_limit) if n is not None]
        return max(min(limits), 1) if limits else None

    @property
    def depth(self) -> int | None:
        """Plies of the best line."""
        return None if self.go.depth is None else max(self.go.depth, 1)

    @property
    def mate(self) -> int | None:
        """Full moves until mate."""
        return None if self.go.mate is None else max(self.go.mate, 1)

    @property
    def has_limit(self) -> bool:
        """True if the search ends by itself once its clock runs."""
        given = (self.depth, self.nodes, self.movetime, self.mate, self.clock)
        return any(limit is not None for limit in given)
