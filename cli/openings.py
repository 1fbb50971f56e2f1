"""`variant-ai openings`: opening lines drawn from a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from variant_ai.cli.common import (
    examples,
    json_option,
    load_variant,
    print_facts,
    print_json,
    progress,
    seed_option,
    variant_option,
)

if TYPE_CHECKING:
    from variant_ai.core.rules.game import Game


@click.command(
    epilog=examples(
        "variant-ai openings --from-model model.onnx -V NAME --count 1000 -o openings.txt",
        "variant-ai generate --engine ENGINE -V NAME --openings openings.txt --random-plies 0 0 \\",
        "    -o games.store",
    )
)
@click.option(
    "--from-model",
    "model",
    type=click.Path(path_type=Path, exists=True),
    required=True,
    metavar="FILE",
    help="Network whose policy the moves are drawn from.",
)
@variant_option()
@click.option(
    "--count", type=click.IntRange(min=1), default=1000, show_default=True, help="Lines to draw."
)
@click.option(
    "--plies",
    type=(click.FloatRange(min=1), click.FloatRange(min=0)),
    default=(5.84, 2.77),
    show_default=True,
    metavar="MEAN DEVIATION",
    help="Lengths of the lines (normal); the default is the paper's.",
)
@click.option(
    "--temperature",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    help="Above 1 unlikely moves are drawn more often.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE",
    help="A line of UCI moves for each opening.",
)
@seed_option()
@json_option
def command(
    model: Path,
    variant: str,
    count: int,
    plies: tuple[float, float],
    temperature: float,
    output: Path,
    seed: int,
    as_json: bool,
) -> None:
    """Draw opening lines from the policy of a network.

    All lines differ. `match` and `generate` read the file with `--openings`.
    """
    from variant_ai.core.arena.policy_lines import policy_lines
    from variant_ai.core.data.record import GameRecord
    from variant_ai.core.data.text_output import move_line, text_file
    from variant_ai.core.inference.choose import make_evaluator
    from variant_ai.core.rules.notation import UciNotation
    from variant_ai.core.search.limits import Limits
    from variant_ai.core.search.params import SearchParams
    from variant_ai.core.search.search import Search
    from variant_ai.plugins import registry

    spec = load_variant(variant)
    rules = registry().rules(spec)
    params = SearchParams.of(
        spec, batch_size=1, node_temperature=1.0, noise_epsilon=0.0, enhance_checks=False
    )
    search = Search(spec, make_evaluator(spec, model, batch=1), params, rules=rules)

    def priors(game: Game) -> list[tuple[int, float]]:
        """What the network thinks of the moves: the priors of the root after one visit."""
        search.clear()
        search.set_game(game)
        moves = game.legal_moves()
        report = search.run(Limits(simulations=1), multipv=len(moves))
        known = {line.move: line.prior for line in report.lines}
        return [(int(move), max(known.get(int(move), 0.0), 1e-9)) for move in moves]

    lengths = []
    try:
        with text_file(output) as out, progress() as bar:
            task = bar.add_task("openings", total=count)
            lines = policy_lines(
                rules, priors, count, plies=plies, seed=seed, temperature=temperature
            )
            for opening in lines:
                record = GameRecord(spec.variant, list(opening.moves))
                out.write(move_line(rules, UciNotation(), record))
                lengths.append(len(opening.moves))
                bar.advance(task)
    finally:
        search.close()
    mean = sum(lengths) / len(lengths)
    deviation = (sum((length - mean) ** 2 for length in lengths) / len(lengths)) ** 0.5
    facts = {"file": output, "openings": len(lengths), "plies": mean, "deviation": deviation}
    if as_json:
        print_json(facts)
    else:
        print_facts(
            [
                ("file", output),
                ("openings", len(lengths)),
                ("plies", f"{mean:.2f} ± {deviation:.2f}"),
            ]
        )
