"""`variant-ai experiment n-e6`: visits and Q of one move over simulations, by search settings.

This is [CrazyAra-preprint] figure 13 (section 10.2) for any position, move and net: one thread,
small batches and the same noise for every move, so that only the setting makes a difference. The
solver, which the engine of the paper did not have, is off.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import note, print_json, print_table, progress
from variant_ai.cli.common.ending import EXIT_INTERRUPTED, fail
from variant_ai.cli.common.options import (
    examples,
    json_option,
    load_variant,
    replace_option,
    require_new,
    variant_option,
)
from variant_ai.cli.common.search_options import (
    NetChoice,
    fail_if_over,
    load_evaluator,
    net_options,
    settings_given,
)
from variant_ai.core.system.interrupts import stop_on_signal

if TYPE_CHECKING:
    from variant_ai.core.rules.game import Game
    from variant_ai.core.search.search import Search
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
"""Settings of each curve, which override `PLAIN`."""

FIXED: dict[str, Any] = {
    "batch_size": 8,
    "batch_growth": 0.0,
    "noise_epsilon": 0.25,
    "noise_style": "uniform",
    "solver": False,
    "deterministic": True,
}
"""Settings of the experiment ([CrazyAra-preprint] section 10.2), which the user's override."""

STYLES = ("-", "--", "-", "-.", ":")
"""Line styles of the curves, some of which coincide."""


@click.command(
    epilog=examples(
        "variant-ai experiment n-e6 -V NAME --model net.onnx -o n-e6.png",
        "variant-ai experiment n-e6 -V NAME -n 100000 --only default --only all --json",
        "# another position and move",
        "variant-ai experiment n-e6 -V NAME --fen FEN --move e2e4",
    )
)
@variant_option()
@net_options
@click.option(
    "--fen",
    metavar="FEN",
    help="Position, a FEN or startpos; required if the variant cannot have that of figure 13.  [default: figure 13's]",
)
@click.option("--move", "text", metavar="MOVE", help="Move to watch, in UCI.  [default: N@e6]")
@click.option(
    "-n",
    "--nodes",
    "--simulations",
    "simulations",
    type=click.IntRange(min=1),
    default=20_000,
    help="Nodes of each setting.",
)
@click.option(
    "--points",
    type=click.IntRange(2, 2000),
    default=200,
    help="Points of each curve.",
)
@click.option("--only", "only", multiple=True, metavar="SETTING", help="Only these settings.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Plot: .png, .svg or .pdf.",
)
@replace_option
@json_option
def command(
    variant: str,
    net: NetChoice,
    fen: str | None,
    text: str | None,
    simulations: int,
    points: int,
    only: tuple[str, ...],
    output: Path | None,
    replace: bool,
    as_json: bool,
) -> int:
    """Show visits and Q of a move while the search grows, for each setting.

    The position is that of figure 13 of the CrazyAra preprint: of 73 moves only N@e6 does not lose,
    and a net gives it almost no prior. Settings: default, fix-checkmates (mate stop),
    enhance-checks, u-divisor (adaptive), all. Here the batch is 8 unless --batch
    is given, with one thread, uniform noise and no solver; --set changes these. Ctrl-C keeps the finished curves.
    """
    from variant_ai.core.errors import FenError, MoveError, UnknownNameError
    from variant_ai.core.rules.game import Game
    from variant_ai.core.rules.text.fen import fen_or_start
    from variant_ai.core.rules.text.notation import UciNotation
    from variant_ai.core.search.search import Search
    from variant_ai.core.search.settings import DEFAULT_SET, PAPER, SearchParams
    from variant_ai.plugins import registry

    spec = load_variant(variant)
    for name in only:
        if name not in SETTINGS:
            raise UnknownNameError("setting", name, SETTINGS)
    if output is not None and output.suffix.lower() not in (".png", ".svg", ".pdf"):
        fail(f"{output}: a plot ends in .png, .svg or .pdf")
    if output is not None:
        require_new(output, replace)
    settings_name = net.settings_name
    if settings_name == DEFAULT_SET and PAPER in spec.settings:
        settings_name = PAPER
    params = curve_params(SearchParams.of(spec, settings_name), settings_given(net))
    rules = registry().rules(spec)
    try:
        game = Game(rules, POSITION if fen is None else fen_or_start(fen))
        fail_if_over(game)
        move = UciNotation().read(rules, game.position, text or MOVE)
    except FenError:
        if fen is None:
            fail(f"figure 13 is not a position of {spec.variant}: give --fen FEN and --move MOVE")
        raise
    except MoveError:
        if fen is not None and text is None:
            fail(f"{MOVE}, the move of figure 13, is not legal in {fen}: give --move MOVE")
        raise
    evaluator = load_evaluator(spec, net, net.batch or FIXED["batch_size"])
    steps = looks(simulations, points)
    curves: list[MoveCurve] = []
    names = [name for name in SETTINGS if not only or name in only]
    with stop_on_signal() as interrupt, progress(quiet=as_json) as bar:
        for name in names:
            task = bar.add_task(name, total=simulations)

            def show(at: int, curve: MoveCurve, task: object = task) -> None:
                state = f"{curve.visits[-1]:,} visits, Q {curve.q[-1]:+.3f}"
                bar.update(task, completed=at, note=state)  # type: ignore[arg-type]

            search = Search(spec, evaluator, params[name], rules=rules)
            interrupt.stops[:] = [search.stop]
            curves.append(follow(search, game, move, name, steps, on_step=show, stopped=interrupt))
            search.close()
            if interrupt():
                break
    if output is not None:
        draw(curves, f"{text or MOVE}: {evaluator.info.source}", output)
        note(f"plotted: {output}")
    if as_json:
        print_json(
            {
                "variant": spec.variant,
                "fen": game.fen(),
                "move": text or MOVE,
                "net": evaluator.info.source,
                "evaluator": evaluator.name,
                "curves": [curve.as_json() for curve in curves],
            }
        )
    else:
        print_table(
            ("setting", "prior", "rank", "first visit", "visits", "Q", "leads from", "played"),
            [curve.row() for curve in curves],
            right=("prior", "rank", "first visit", "visits", "Q", "leads from"),
        )
    return EXIT_INTERRUPTED if interrupt() else 0


@dataclass
class MoveCurve:
    """History of a move under one setting; lists of equal length, one entry for each look."""

    name: str
    simulations: list[int] = field(default_factory=list)
    visits: list[int] = field(default_factory=list)
    q: list[float] = field(default_factory=list)
    """For the mover; -1 while unvisited."""
    prior: float = 0.0
    rank: int = 0
    """Rank of the move by its prior, from 1."""
    chosen: bool = False
    """True if it is the move played in the end."""

    @property
    def first_visit(self) -> int | None:
        """Simulations at the first look that found it visited; None: never."""
        pairs = zip(self.simulations, self.visits, strict=True)
        return next((at for at, visits in pairs if visits > 0), None)

    @property
    def won_at(self) -> int | None:
        """Simulations from which on most visits of every step went to the move; None: never."""
        steps = zip(
            self.simulations, [0, *self.simulations], self.visits, [0, *self.visits], strict=False
        )
        at: int | None = None
        for simulations, before, visits, visits_before in reversed(list(steps)):
            if 2 * (visits - visits_before) < simulations - before:
                break
            at = simulations
        return at

    def as_json(self) -> dict[str, Any]:
        return {
            "setting": self.name,
            "prior": self.prior,
            "rank": self.rank,
            "first_visit": self.first_visit,
            "leads_from": self.won_at,
            "chosen": self.chosen,
            "simulations": self.simulations,
            "visits": self.visits,
            "q": [round(q, 5) for q in self.q],
        }

    def row(self) -> tuple[object, ...]:
        """Cells of the table."""
        return (
            self.name,
            f"{self.prior:.2e}",
            self.rank,
            _count(self.first_visit),
            f"{self.visits[-1]:,}",
            f"{self.q[-1]:+.3f}",
            _count(self.won_at),
            "yes" if self.chosen else "no",
        )


def _count(number: int | None) -> str:
    return "never" if number is None else f"{number:,}"


def curve_params(base: SearchParams, given: Mapping[str, Any]) -> dict[str, SearchParams]:
    """Return the search parameters of each curve. `given`: the user's, which override all."""
    return {
        name: base.replace(**{**FIXED, **PLAIN, **own, **given}) for name, own in SETTINGS.items()
    }


def looks(simulations: int, count: int) -> list[int]:
    """Numbers of simulations at which to look, evenly spaced, the last one `simulations`."""
    return sorted({max(1, round(simulations * (i + 1) / count)) for i in range(count)})


def follow(
    search: Search,
    game: Game,
    move: int,
    name: str,
    steps: Sequence[int],
    *,
    on_step: Callable[[int, MoveCurve], None] = lambda at, curve: None,
    stopped: Callable[[], bool] = lambda: False,
) -> MoveCurve:
    """Search and look at the move at each of `steps` simulations; `stopped` is called in between."""
    from variant_ai.core.search.move.limits import Limits

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
    """Draw both plots, one above the other, in the format of the file's suffix.

    Raises ValueError for a suffix that matplotlib cannot write.
    """
    from matplotlib.figure import Figure

    from variant_ai.core.system.files import write_whole

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
    buffer = io.BytesIO()
    figure.savefig(buffer, format=path.suffix[1:] or "png", dpi=130)
    write_whole(path, buffer.getvalue())
