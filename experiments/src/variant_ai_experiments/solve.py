"""`variant-ai solve`: number of puzzles that a player solves, by nodes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import note, print_json, print_table, progress
from variant_ai.cli.common.ending import EXIT_INTERRUPTED
from variant_ai.cli.common.options import (
    FiniteRange,
    examples,
    json_option,
    load_variant,
    variant_option,
)
from variant_ai.core.system.text_tables import counted

if TYPE_CHECKING:
    from variant_ai_experiments.puzzle_suites import Attempt


@click.command(
    epilog=examples(
        "variant-ai solve net:model.onnx mates.jsonl -V NAME --nodes 100 --nodes 800",
        "variant-ai solve 'xboard:sjeng' tactics.epd -V NAME --depth 6 --limit 50",
    )
)
@click.argument("player")
@click.argument("suite", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@variant_option()
@click.option(
    "--nodes",
    type=click.IntRange(min=1),
    multiple=True,
    help="Nodes or simulations for each puzzle; repeat it for several lines of the table.",
)
@click.option("--movetime", type=FiniteRange(min=0, min_open=True), help="Seconds for each puzzle.")
@click.option("--depth", type=click.IntRange(min=1), help="Plies of each search.")
@click.option("--limit", type=click.IntRange(min=1), help="Maximum number of puzzles.")
@click.option(
    "--wait",
    type=FiniteRange(min=0, min_open=True),
    default=120.0,
    help="Seconds for a puzzle, after which the player counts as hung.",
)
@json_option
def command(
    player: str,
    suite: Path,
    variant: str,
    nodes: tuple[int, ...],
    movetime: float | None,
    depth: int | None,
    limit: int | None,
    wait: float,
    as_json: bool,
) -> int:
    """Let PLAYER solve the puzzles of SUITE: mate suites (JSON lines with fen, mate_in, pv) and
    best-move EPDs (bm, dm).

    A puzzle is solved by one of its best moves, by an immediate mate, or by a mate announced in time.
    PLAYER is written as in `variant-ai match`. Ctrl-C reports the puzzles tried so far.
    """
    from variant_ai.cli.common.player_options import make_player
    from variant_ai.core.arena.players.player import Allowance
    from variant_ai.core.arena.players.player_spec import parse_player
    from variant_ai.core.errors import SettingError
    from variant_ai.plugins import registry
    from variant_ai_experiments.puzzle_suites import read_suite, solve

    spec = load_variant(variant)
    rules = registry().rules(spec)
    described = parse_player(player)
    milliseconds = None if movetime is None else max(1, round(1000 * movetime))
    budgets = [
        Allowance(nodes=count, movetime=milliseconds, depth=depth) for count in nodes or (None,)
    ]
    if not budgets[0].given:
        budgets = [described.allowance()]
    puzzles = read_suite(suite, rules, list(registry().notations(spec).values()))[:limit]
    made = make_player(described, rules)
    for budget in budgets:
        if not budget.given:
            raise SettingError("the searches have no limit; give --nodes, --movetime or --depth")
        reason = made.rejection(budget)
        if reason:
            raise SettingError(f"player {described.label!r}: {reason}")
    runs: list[tuple[str, list[Attempt]]] = []
    interrupted = False
    try:
        with progress() as bar:
            for budget in budgets:
                task = bar.add_task(budget.text, total=len(puzzles))
                runs.append((budget.text, []))
                for attempt in solve(made, rules, puzzles, budget, wait=wait):
                    runs[-1][1].append(attempt)
                    bar.advance(task)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        made.close()
    lines = [_line(limit, attempts) for limit, attempts in runs if attempts]
    if interrupted:
        note(f"Interrupted after {counted(sum(len(attempts) for _, attempts in runs), 'puzzle')}.")
    _report(made.name, suite, len(puzzles), lines, as_json=as_json)
    return EXIT_INTERRUPTED if interrupted else 0


def _report(
    player: str, suite: Path, puzzles: int, lines: list[dict[str, Any]], *, as_json: bool
) -> None:
    if as_json:
        print_json({"player": player, "suite": suite, "puzzles": puzzles, "runs": lines})
        return
    for line in lines:
        for fault in line["faults"]:
            note(fault)
    print_table(
        ["limit", "puzzles", "solved", "%", "s a puzzle"],
        [
            (
                line["limit"],
                line["puzzles"],
                line["solved"],
                f"{100 * line['share']:.1f}",
                f"{line['seconds']:.3f}",
            )
            for line in lines
        ],
        title=f"{player}: {suite.name}",
        right=("puzzles", "solved", "%", "s a puzzle"),
    )


def _line(limit: str, attempts: list[Attempt]) -> dict[str, Any]:
    solved = sum(attempt.solved for attempt in attempts)
    by_mate: dict[str, list[bool]] = {}
    for attempt in attempts:
        if attempt.puzzle.mate_in is not None:
            by_mate.setdefault(str(attempt.puzzle.mate_in), []).append(attempt.solved)
    return {
        "limit": limit,
        "puzzles": len(attempts),
        "solved": solved,
        "share": solved / len(attempts),
        "by_mate": {mate: sum(done) / len(done) for mate, done in sorted(by_mate.items())},
        "seconds": sum(attempt.seconds for attempt in attempts) / len(attempts),
        "nodes": sum(attempt.nodes for attempt in attempts) / len(attempts),
        "faults": [attempt.fault for attempt in attempts if attempt.fault],
        "unsolved": [
            {"fen": attempt.puzzle.fen, "id": attempt.puzzle.name, "move": attempt.move}
            for attempt in attempts
            if not attempt.solved
        ],
    }
