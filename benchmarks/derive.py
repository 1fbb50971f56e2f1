"""Derive a spec for every variant of Fairy-Stockfish, and report which engine plays it.

    python benchmarks/derive.py --keep derived.jsonl -o docs/variants.md   # the full run
    python benchmarks/derive.py chess shogi --positions 5000

No speed is measured. A draft is written for the kernel if its moves, checks and ends agree with
Fairy-Stockfish in random games, and for `engine: fairy` otherwise. With `--keep` finished variants are
written to a file, and a run that was stopped continues from there.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from variant_ai.cli.common.ending import run_script
from variant_ai.core.derive.derivation import POSITIONS, Derivation, derive
from variant_ai.core.rules.fairy.fairy_stockfish import fairy_variants


def read_kept(path: Path | None) -> dict[str, Derivation]:
    """Read the variants that earlier runs have finished; an incomplete last line is ignored."""
    kept = {}
    for line in path.read_text().splitlines() if path and path.exists() else ():
        try:
            found = Derivation(**json.loads(line))
        except json.JSONDecodeError:
            continue
        kept[found.variant] = found
    return kept


def write(found: Sequence[Derivation], positions: int) -> str:
    """Return the report as Markdown."""
    counts = Counter(d.engine or "none" for d in found)
    known = len(fairy_variants())
    variants = (
        f"its {known} variants" if len(found) == known else f"{len(found)} of its {known} variants"
    )
    lines = [
        "# Variants of Fairy-Stockfish",
        "",
        f"Written by `python benchmarks/derive.py --positions {positions} -o docs/variants.md` with pyffish "
        f"{version('pyffish')}. "
        "`variant-ai spec derive NAME` drafts a spec for each of its variants by asking and probing "
        f"([how](new-variant.md#a-variant-of-fairy-stockfish)). Of {variants}, "
        f"{counts['kernel']} run in the kernel, {counts['fairy']} on `engine: fairy`, and "
        f"{counts['none']} have no spec that trains. A draft is written for the kernel if moves, checks "
        f"and FENs of {positions} positions of random games, and the ends of more games, agree with "
        "Fairy-Stockfish.",
        "",
        "`engine: fairy` plays a variant through Fairy-Stockfish, at some 300 positions a second of a "
        "search. *Why not the kernel*: words that it does not have, a mistake in the draft, or the first "
        "position in which the kernel differs (FEN, or the moves that led there). *Not found*: words that "
        "asking did not decide; the draft marks them with NOT FOUND.",
        "",
        "| variant | engine | why not the kernel | not found |",
        "| --- | --- | --- | --- |",
    ]
    for d in found:
        why = d.failure or d.why_fairy
        cells = (d.variant, d.engine or "none", _cell(why), _cell("; ".join(d.notes)))
        lines.append(f"| {' | '.join(cells)} |")
    words: dict[str, list[str]] = defaultdict(list)
    for d in found:
        if d.engine == "fairy" and len(d.why_fairy) < 60:
            words[d.why_fairy].append(d.variant)
    lines += ["", "## Words that the kernel would need", ""]
    for word, names in sorted(words.items(), key=lambda item: -len(item[1])):
        lines.append(f"- {word}: {', '.join(names)}")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    short = text if len(text) <= 160 else f"{text[:157]}…"
    return short.replace("|", "\\|").replace("\n", " ")


def main() -> int:
    parser = argparse.ArgumentParser(description="Specs of all variants of Fairy-Stockfish.")
    parser.add_argument("variants", nargs="*", help="default: all")
    parser.add_argument("--positions", type=int, default=POSITIONS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="file of finished variants, to continue from")
    parser.add_argument("-o", "--output", type=Path, help="write the report to a file")
    options = parser.parse_args()
    kept = read_kept(options.keep)
    found = []
    for name in options.variants or fairy_variants():
        one = kept.get(name)
        if one is None:
            one = derive(name, positions=options.positions, seed=options.seed)
            if options.keep:
                with options.keep.open("a") as file:
                    file.write(json.dumps(asdict(one)) + "\n")
            print(
                f"{name}: {one.engine or 'none'} {one.failure or one.why_fairy}"[:150], flush=True
            )
        found.append(one)
    text = write(found, options.positions)
    if options.output:
        options.output.write_text(text)
    return 0


if __name__ == "__main__":
    run_script(main)
