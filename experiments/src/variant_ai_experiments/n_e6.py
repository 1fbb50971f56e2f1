"""`variant-ai experiment n-e6`: one move's visits and value over simulations, by setting."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from variant_ai.cli.common.console import (
    EXIT_INTERRUPTED,
    examples,
    fail,
    json_option,
    load_variant,
    note,
    print_json,
    print_table,
    progress,
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
    from variant_ai_experiments.move_curve import MoveCurve


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
    help="Position; where figure 13's is none of the variant, needed.  [default: figure 13's]",
)
@click.option("--move", "text", metavar="MOVE", help="Move to watch, in UCI.  [default: N@e6]")
@click.option(
    "-n",
    "--nodes",
    "--simulations",
    "simulations",
    type=click.IntRange(min=1),
    default=20_000,
    show_default=True,
    help="Nodes of each setting.",
)
@click.option(
    "--points", type=click.IntRange(2, 2000), default=200, show_default=True, help="Of each curve."
)
@click.option("--only", "only", multiple=True, metavar="SETTING", help="Only these settings.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Plot: .png, .svg or .pdf.",
)
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
    as_json: bool,
) -> int:
    """Visits and Q of a move while the search goes on, for each setting.

    The position is that of figure 13 of the CrazyAra preprint: of 73 moves only N@e6 does not lose,
    and a net gives it next to no prior. Settings: default, fix-checkmates (mate stop),
    enhance-checks, u-divisor (adaptive), all. Batches of 8, one thread, uniform noise, no solver;
    --batch and --set change that. Ctrl-C keeps what is done.
    """
    from variant_ai.core.errors import FenError, MoveError, UnknownNameError
    from variant_ai.core.rules.game import Game
    from variant_ai.core.rules.text.notation import UciNotation
    from variant_ai.core.search.search import Search
    from variant_ai.core.search.settings import DEFAULT_SET, PAPER, SearchParams
    from variant_ai.plugins import registry
    from variant_ai_experiments.move_curve import (
        FIXED,
        MOVE,
        POSITION,
        SETTINGS,
        draw,
        follow,
        looks,
        settings_of,
    )

    spec = load_variant(variant)
    for name in only:
        if name not in SETTINGS:
            raise UnknownNameError("setting", name, SETTINGS)
    if output is not None and output.suffix.lower() not in (".png", ".svg", ".pdf"):
        fail(f"{output}: a plot ends in .png, .svg or .pdf")
    words = net.search_set
    if words == DEFAULT_SET and PAPER in spec.settings:
        words = PAPER
    chosen = settings_of(SearchParams.of(spec, words), settings_given(net))
    rules = registry().rules(spec)
    try:
        game = Game(rules, fen or POSITION)
        fail_if_over(game)
        move = UciNotation().read(rules, game.position, text or MOVE)
    except FenError:
        if fen is None:
            fail(f"figure 13 is no position of {spec.variant}: give --fen FEN and --move MOVE")
        raise
    except MoveError:
        if fen is not None and text is None:
            fail(f"{MOVE}, the move of figure 13, is none of {fen}: give --move MOVE")
        raise
    evaluator = load_evaluator(spec, net, net.batch or FIXED["batch_size"])
    steps = looks(simulations, points)
    curves: list[MoveCurve] = []
    names = [name for name in SETTINGS if not only or name in only]
    with stop_on_signal() as interrupt, progress(quiet=as_json) as bar:
        for name in names:
            task = bar.add_task(name, total=simulations)

            def show(at: int, curve: MoveCurve, task: object = task) -> None:
                said = f"{curve.visits[-1]:,} visits, Q {curve.q[-1]:+.3f}"
                bar.update(task, completed=at, note=said)  # type: ignore[arg-type]

            search = Search(spec, evaluator, chosen[name], rules=rules)
            interrupt.stops[:] = [search.stop]
            curves.append(follow(search, game, move, name, steps, on_step=show, stopped=interrupt))
            search.close()
            if interrupt():
                break
    title = f"{text or MOVE}: {evaluator.info.source}"
    if output is not None:
        draw(curves, title, output)
        note(f"plotted: {output}")
    if as_json:
        print_json(
            {
                "variant": spec.variant,
                "fen": game.fen(),
                "move": text or MOVE,
                "net": evaluator.info.source,
                "evaluator": evaluator.name,
                "curves": [
                    {
                        "setting": curve.name,
                        "prior": curve.prior,
                        "rank": curve.rank,
                        "first_visit": curve.first_visit,
                        "leads_from": curve.won_at,
                        "chosen": curve.chosen,
                        "simulations": curve.simulations,
                        "visits": curve.visits,
                        "q": [round(q, 5) for q in curve.q],
                    }
                    for curve in curves
                ],
            }
        )
    else:
        print_table(
            ("setting", "prior", "rank", "first visit", "visits", "Q", "leads from", "played"),
            [
                (
                    curve.name,
                    f"{curve.prior:.2e}",
                    curve.rank,
                    _count(curve.first_visit),
                    f"{curve.visits[-1]:,}",
                    f"{curve.q[-1]:+.3f}",
                    _count(curve.won_at),
                    "yes" if curve.chosen else "no",
                )
                for curve in curves
            ],
            right=("prior", "rank", "first visit", "visits", "Q", "leads from"),
        )
    return EXIT_INTERRUPTED if interrupt() else 0


def _count(number: int | None) -> str:
    return "never" if number is None else f"{number:,}"
