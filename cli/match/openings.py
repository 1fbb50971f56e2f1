"""`variant-ai openings`: opening lines sampled from a network or a Polyglot book."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from variant_ai.cli.common.console import print_facts, print_json, progress
from variant_ai.cli.common.options import (
    COUNT,
    EXISTING_FILE,
    FiniteRange,
    NetPath,
    examples,
    json_option,
    load_variant,
    output_option,
    reject_given,
    replace_option,
    require_new,
    seed_option,
    variant_option,
)

if TYPE_CHECKING:
    from variant_ai.core.arena.games.openings import Opening, Priors
    from variant_ai.core.rules.game import Game
    from variant_ai.core.rules.interface import Rules

LINES = 1000
"""Default number of lines, as in [CrazyAra-preprint] section 7."""


@click.command(
    epilog=examples(
        "variant-ai openings --from-model model.onnx -V NAME --count 1000 -o openings.txt",
        "variant-ai openings --from-book book.bin -V NAME --depth 12 -o openings.txt",
        "variant-ai generate --engine ENGINE -V NAME --openings openings.txt --random-plies 0 0 \\",
        "    -o games.store",
    )
)
@click.option(
    "--from-model",
    "model",
    type=NetPath(),
    metavar="FILE",
    help="Net whose policy moves are sampled from; `packaged` is the one that comes with the variant.",
)
@click.option(
    "--from-book",
    "book",
    type=EXISTING_FILE,
    help="Polyglot book whose moves are sampled by weight; for variants with the board and the pieces "
    "of chess.",
)
@variant_option()
@click.option(
    "--count",
    type=COUNT,
    help="Number of lines; by default fewer if a book has fewer.  [default: 1000]",
)
@click.option(
    "--plies",
    type=(FiniteRange(min=1), FiniteRange(min=0)),
    default=(5.84, 2.77),
    metavar="MEAN DEVIATION",
    help="Mean and standard deviation of the lengths of a network's lines.",
)
@click.option(
    "--temperature",
    type=FiniteRange(min=0, min_open=True),
    default=1.0,
    help="Above 1, unlikely moves of a network are sampled more often.",
)
@click.option(
    "--depth",
    type=COUNT,
    default=16,
    help="Maximum plies of a book's lines.",
)
@output_option("File to write: a line of UCI moves for each opening.")
@replace_option
@seed_option
@json_option
def command(
    model: Path | None,
    book: Path | None,
    variant: str,
    count: int | None,
    plies: tuple[float, float],
    temperature: float,
    depth: int,
    output: Path,
    replace: bool,
    seed: int,
    as_json: bool,
) -> None:
    """Sample opening lines from the policy of a network, or from a Polyglot book.

    All lines differ. `match` and `generate` read the file with `--openings`.
    """
    if (model is None) == (book is None):
        raise click.UsageError("give either --from-model or --from-book")
    if book is None:
        reject_given(["depth"], "has no effect with --from-model")
    else:
        reject_given(["plies", "temperature"], "has no effect with --from-book")
    require_new(output, replace, [path for path in (model, book) if path is not None])

    import statistics

    from variant_ai.core.arena.games.openings import book_lines, policy_lines
    from variant_ai.core.data.game_record import GameRecord
    from variant_ai.core.data.game_text import move_line, text_file
    from variant_ai.core.rules.text.notation import UciNotation
    from variant_ai.plugins import registry

    spec = load_variant(variant)
    rules = registry().rules(spec)
    lengths = []
    with contextlib.ExitStack() as stack:
        lines: Iterable[Opening]
        if book is not None:
            lines = book_lines(book, rules, depth, count=count, seed=seed)
            total = len(lines)
        else:
            assert model is not None
            total = count or LINES
            priors = stack.enter_context(_policy(model, rules))
            lines = policy_lines(
                rules, priors, total, plies=plies, seed=seed, temperature=temperature
            )
        out = stack.enter_context(text_file(output))
        bar = stack.enter_context(progress())
        task = bar.add_task("openings", total=total)
        for opening in lines:
            record = GameRecord(spec.variant, list(opening.moves))
            out.write(move_line(rules, UciNotation(), record))
            lengths.append(len(opening.moves))
            bar.advance(task)
    mean, deviation = statistics.fmean(lengths), statistics.pstdev(lengths)
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


@contextlib.contextmanager
def _policy(model: Path, rules: Rules) -> Iterator[Priors]:
    """Policy of a network: the priors of the root after one visit."""
    from variant_ai.core.search.interface import make_search
    from variant_ai.core.search.move.limits import Limits
    from variant_ai.core.search.settings import SearchParams
    from variant_ai.plugins import registry

    spec = rules.spec
    params = SearchParams.of(
        spec,
        batch_size=1,
        node_temperature=1.0,
        noise_epsilon=0.0,
        enhance_checks=False,
        look_for_material=False,
        look_for_mates=False,
    )
    search = make_search(spec, registry().evaluator(spec, model, batch=1), params, rules=rules)

    def priors(game: Game) -> list[tuple[int, float]]:
        search.clear()
        search.set_game(game)
        moves = game.legal_moves()
        report = search.run(Limits(simulations=1), multipv=len(moves))
        known = {line.move: line.prior for line in report.lines}
        return [(int(move), max(known.get(int(move), 0.0), 1e-9)) for move in moves]

    try:
        yield priors
    finally:
        search.close()
