"""Limits of a search."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real

from variant_ai.core.errors import SettingError

MOST = 1 << 62
"""More visits than a search makes."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of a search; None: no limit. The first one reached ends the search.

    Without any limit a search goes on until it is stopped, its root is proven, or its memory or its
    visit counts are full. Raises SettingError for a negative limit, for one that is no whole number but
    `movetime`, and for a mate in 0 moves.
    """

    simulations: int | None = None
    """Visits of the root that this search makes."""
    nodes: int | None = None
    """The same, under its name in protocols."""
    evaluations: int | None = None
    """Positions evaluated by the network."""
    movetime: float | None = None
    """Seconds from the call of `run`; with 0 it returns at once."""
    depth: int | None = None
    """Plies of the principal variation (`Report.depth`)."""
    mate: int | None = None
    """Number of full moves: the search ends when a win of the mover in at most this many is proven."""
    infinite: bool = False
    """Go on until stopped, even if another limit is reached, or if the tree is solved or full."""

    def __post_init__(self) -> None:
        for name in ("simulations", "nodes", "evaluations", "depth", "mate"):
            value = getattr(self, name)
            whole = isinstance(value, Integral) and not isinstance(value, bool)
            if value is not None and not (whole and int(value) >= 0):
                raise SettingError(
                    f"limit {name} = {value!r}: must be a whole number of at least 0"
                )
        if self.mate == 0:
            raise SettingError("limit mate = 0: must be at least 1 move")
        movetime: object = self.movetime
        real = isinstance(movetime, Real) and float(movetime) >= 0
        if isinstance(movetime, bool) or not (movetime is None or real):
            raise SettingError(f"limit movetime = {movetime!r}: must be a number of at least 0")

    @property
    def visits(self) -> int | None:
        """The smaller of `simulations` and `nodes`."""
        given = [n for n in (self.simulations, self.nodes) if n is not None]
        return min(given, default=None)

    def left(self, visits: int, evaluations: int) -> tuple[int, int]:
        """Return the remaining (visits, evaluations) of a search that has made the given numbers."""
        most_visits = None if self.infinite else self.visits
        most_evaluations = None if self.infinite else self.evaluations
        return (
            MOST if most_visits is None else min(most_visits, MOST) - visits,
            MOST if most_evaluations is None else min(most_evaluations, MOST) - evaluations,
        )
