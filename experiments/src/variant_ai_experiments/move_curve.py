"""One move of a position while the search goes on: visits and Q over simulations, by setting.

This is figure 13 of the CrazyAra preprint (000, section 10.2) for any position, move and net: one
thread, small batches, noise that is the same for every move, so that nothing but the setting makes
the difference. The solver, which the paper's engine had not, is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any, Protocol

from variant_ai.core.rules.game import Game
from variant_ai.core.search.move.limits import Limits
from variant_ai.core.search.report import Report
from variant_ai.core.search.settings import SearchParams

POSITION = "3k2r1/pBpr1p1p/Pp3p1B/3p4/2PPn2B/5NPp/q4PpP/1R1QR1K1[NNbp] w - - 1 23"
"""Figure 13: White must find N@e6."""
MOVE = "N@e6"

PLAIN: dict[str, Any] = {"mate_stop": False, "enhance_checks": False, "u_divisor": 1.0}
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "fix-checkmates": {"mate_stop": True},
    "enhance-checks": {"enhance_checks": True},
    "u-divisor": {"u_divisor": "adaptive"},
    "all": {"mate_stop": True, "enhance_checks": True, "u_divisor": "adaptive"},
}
"""What each curve has beside `PLAIN`."""

FIXED: dict[str, Any] = {
    "batch_size": 8,
    "batch_growth": 0.0,
    "threads": 1,
    "noise_epsilon": 0.25,
    "noise_style": "uniform",
    "solver": False,
    "deterministic": True,
}
"""Of the experiment (000, section 10.2), unless the user says otherwise."""


STYLES = ("-", "--", "-", "-.", ":")
"""Of the curves: some lie upon each other."""


class Searching(Protocol):
    """The part of `Search` used here."""

    def set_game(self, game: Game) -> None: ...

    def run(
        self,
        limits: Limits,
        *,
        moves: Sequence[int] | None = None,
        multipv: int = 1,
        on_report: Callable[[Report], None] | None = None,
        interval: float = 1.0,
    ) -> Report: ...


@dataclass
class MoveCurve:
    """A move's fate under one setting; lists of equal length, one entry for each look."""

    name: str
    simulations: list[int] = field(default_factory=list)
    visits: list[int] = field(default_factory=list)
    q: list[float] = field(default_factory=list)
    """For the mover; -1 while unvisited."""
    prior: float = 0.0
    rank: int = 0
    """Place of the move by its prior, from 1."""
    chosen: bool = False
    """Whether it is the move played in the end."""

    @property
    def first_visit(self) -> int | None:
        """Simulations at the first look that found it visited; None: never."""
        pairs = zip(self.simulations, self.visits, strict=True)
        return next((at for at, visits in pairs if visits > 0), None)

    @property
    def won_at(self) -> int | None:
        """Simulations from which on most visits of every step went to the move; None: never."""
        at: int | None = None
        for i in range(len(self.visits) - 1, 0, -1):
            made = self.simulations[i] - self.simulations[i - 1]
            if 2 * (self.visits[i] - self.visits[i - 1]) < made:
                break
            at = self.simulations[i]
        return at


def settings_of(base: SearchParams, said: Mapping[str, Any]) -> dict[str, SearchParams]:
    """The parameters of each curve. `said`: what the user set, above everything."""
    return {
        name: base.replace(**{**FIXED, **PLAIN, **own, **said}) for name, own in SETTINGS.items()
    }


def looks(simulations: int, count: int) -> list[int]:
    """Numbers of simulations at which to look, evenly spaced, the last one `simulations`."""
    return sorted({max(1, round(simulations * (i + 1) / count)) for i in range(count)})


def follow(
    search: Searching,
    game: Game,
    move: int,
    name: str,
    steps: Sequence[int],
    *,
    on_step: Callable[[int, MoveCurve], None] = lambda at, curve: None,
    stopped: Callable[[], bool] = lambda: False,
) -> MoveCurve:
    """Search and look at the move at each of `steps` simulations; `stopped` is asked in between."""
    curve = MoveCurve(name)
    search.set_game(game)
    count = len(game.legal_moves())
    at = 0
    for step in steps:
        report = search.run(Limits(simulations=step - at), multipv=count)
        at += report.visits
        line = next((line for line in report.lines if line.move == move), None)
        curve.simulations.append(at)
        curve.visits.append(line.visits if line else 0)
        curve.q.append(line.q if line and line.visits else -1.0)
        if line is not None:
            curve.prior = line.prior
            curve.rank = 1 + sum(other.prior > line.prior for other in report.lines)
        curve.chosen = report.best == move
        on_step(at, curve)
        if stopped() or report.visits == 0:
            break
    return curve


def draw(curves: Sequence[MoveCurve], title: str, path: Path) -> None:
    """Both plots above each other; the kind of picture is that of the file's name.

    Raises ValueError for an ending that matplotlib cannot write.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 7), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    for curve, style in zip(curves, cycle(STYLES), strict=False):
        for axes, values in ((above, curve.visits), (below, curve.q)):
            axes.plot(curve.simulations, values, style, label=curve.name, linewidth=1.6)
    above.set_ylabel("visits of the move")
    below.set_ylabel("Q of the move")
    below.set_xlabel("simulations")
    below.set_ylim(-1.05, 1.05)
    below.axhline(0.0, color="#999999", linewidth=0.8)
    above.set_title(title)
    above.legend(frameon=False)
    for axes in (above, below):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
