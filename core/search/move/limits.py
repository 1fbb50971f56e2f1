"""When a search has done enough."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

from variant_ai.core.errors import SettingError

MOST = 1 << 62
"""More visits than a search makes."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Each limit is None where there is none; the first one met stops the search.

    Without any limit at all a search goes on until it is told to stop, its tree is solved, or its
    memory or its counts are full. Raises SettingError for a negative limit.
    """

    simulations: int | None = None
    """Visits of the root that this search makes."""
    nodes: int | None = None
    """The same under the name that protocols use."""
    evaluations: int | None = None
    """Positions given to the network."""
    movetime: float | None = None
    """Seconds from the call of `run`; 0 answers at once."""
    depth: int | None = None
    """Plies of the principal variation (`Report.depth`)."""
    mate: int | None = None
    """Stops once a win in at most so many full moves of the mover is proven."""
    infinite: bool = False
    """Goes on until told to stop: every other limit, a solved tree and a full one included."""

    def __post_init__(self) -> None:
        for name in ("simulations", "nodes", "evaluations", "movetime", "depth", "mate"):
            value = getattr(self, name)
            if value is not None and not _is_at_least_0(value):
                raise SettingError(f"limit {name} = {value!r}: it takes a number from 0")

    @property
    def visits(self) -> int | None:
        """The smaller of `simulations` and `nodes`."""
        given = [n for n in (self.simulations, self.nodes) if n is not None]
        return min(given, default=None)

    def left(self, visits: int, evaluations: int) -> tuple[int, int]:
        """Visits and evaluations that are not made yet, of a search that has made so many."""
        most = None if self.infinite else self.visits
        asked = None if self.infinite else self.evaluations
        return (
            MOST if most is None else most - visits,
            MOST if asked is None else asked - evaluations,
        )

    @property
    def is_bounded(self) -> bool:
        """Whether the search can end by a limit."""
        numbers = (self.visits, self.evaluations, self.movetime, self.depth, self.mate)
        return not self.infinite and any(number is not None for number in numbers)


def _is_at_least_0(value: object) -> bool:
    return isinstance(value, Real) and float(value) >= 0
