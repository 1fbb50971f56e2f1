"""`variant-ai store mates`, and the `--mates` option of commands that measure nets."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variant_ai.cli.common.console import note, print_facts, print_json, progress
from variant_ai.cli.common.ending import fail
from variant_ai.cli.common.options import (
    COUNT,
    F,
    examples,
    json_option,
    output_option,
    replace_option,
    require_new,
    seed_option,
)
from variant_ai.cli.common.store_options import (
    any_variant_option,
    open_store,
    store_argument,
)
from variant_ai.core.system.text_tables import counted

if TYPE_CHECKING:
    from variant_ai.core.data.sample.mixture import MixedSampler
    from variant_ai.core.data.sample.sampler import Sampler
    from variant_ai.core.rules.interface import Rules
    from variant_ai.core.train.measure.mate_set import MateSet


def mates_option(command: F) -> F:
    """Add `--mates FILE|N` as the parameter `mates: str | None`; see `read_or_find_mates`."""
    return click.option(
        "--mates",
        metavar="FILE|N",
        help="Also measure on positions with a mate in one: those of a file (`variant-ai store "
        "mates`), or N positions found in the same games; the published number is 1000.",
    )(command)


def read_or_find_mates(given: str, rules: Rules, source: Sampler | MixedSampler | None) -> MateSet:
    """Read the set from a file, or find that number of positions in a sampler (None: no games)."""
    from variant_ai.core.data.sample.sampler import Sampler
    from variant_ai.core.train.measure.mate_set import find_mates, load_mates

    if not given.isdecimal() or Path(given).is_file():
        return load_mates(given, rules)
    count = int(given)
    if count < 1:
        raise click.UsageError("--mates: give a file, or the number of positions to find")
    if source is None:
        fail("there are no games to find mates in; give a file made by `variant-ai store mates`")
    if not isinstance(source, Sampler):
        fail("cannot find mates in one in a mixture of stores; give a file")
    with progress() as bar:
        found = find_mates(
            source, rules, count,
            advance=partial(bar.advance, bar.add_task("mates in one", total=count)),
        )  # fmt: skip
    if len(found) < count:
        note(
            f"Only {len(found):,} of {counted(found.scanned, 'position')} have a mate in one, instead of "
            f"{count:,}."
        )
    return found


@click.command(
    "mates",
    epilog=examples(
        "variant-ai store mates games.store -o mates.jsonl",
        "variant-ai evaluate a.onnx games.store --model b.onnx --mates mates.jsonl",
    ),
)
@store_argument
@output_option("File to write, with a line of JSON for each position.")
@click.option(
    "--count",
    type=COUNT,
    default=1000,
    help="Number of positions to find; all of them if the games have fewer.",
)
@seed_option
@any_variant_option
@replace_option
@json_option
def mates(
    path: Path,
    output: Path,
    count: int,
    seed: int,
    variant: str | None,
    replace: bool,
    as_json: bool,
) -> None:
    """Write positions of the games in which a move wins at once.

    They are distinct, sampled from all positions by the seed, and have a move that mates (or wins
    by a rule of the variant). `evaluate --mates` measures nets on them.
    """
    from variant_ai.core.data.sample.sampler import Sampler
    from variant_ai.core.encoding import Encoder
    from variant_ai.core.train.measure.mate_set import save_mates
    from variant_ai.plugins import registry

    require_new(output, replace, [path])
    store = open_store(path, variant)
    rules = registry().rules(store.spec)
    source = Sampler(store, Encoder(store.spec), batch=1024, seed=seed, rules=rules)
    found = read_or_find_mates(str(count), rules, source)
    save_mates(output, found, rules)
    facts: dict[str, Any] = {
        "positions": len(found),
        "scanned": found.scanned,
        "legal_moves": round(found.legal_moves, 3),
        "mating_moves": round(found.mating_moves, 3),
    }
    if as_json:
        print_json({"path": output, "variant": store.info.variant, "seed": seed, **facts})
        return
    print_facts(
        [
            ("positions", f"{len(found):,} of {found.scanned:,} searched"),
            ("legal moves", f"{found.legal_moves:.2f} a position"),
            ("mating moves", f"{found.mating_moves:.2f} a position"),
        ],
        title=str(output),
    )
