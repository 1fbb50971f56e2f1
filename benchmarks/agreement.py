"""The kernel against Fairy-Stockfish at full length, every spec that both can play.

    python benchmarks/agreement.py --share 0.005                   # as in CI
    python benchmarks/agreement.py --jobs 2 --keep pieces.jsonl -o docs/agreement.md   # the full run
    python benchmarks/agreement.py --fairy --jobs 2 -o docs/agreement-fairy.md   # the engine fairy

A full run compares 200,000 positions of crazyhouse and xiangqi and 20,000 of every other spec: legal
moves, check, FEN and key, and the winner in positions without a legal move. Games are also played to
their end until a twentieth as many positions have been compared for repetition, perpetual check and
chase, and move counts. Work is split into pieces with seeds of their own, so that a difference can be
reproduced alone. With `--keep` finished pieces are written to a file, and a run that was stopped continues
from there. Exit status 1 if anything differs.

With `--fairy` the engine `fairy` is compared with pyffish itself: every variant of pyffish is played at
random for 200 plies, with a spec made for it, and legal moves, FEN, check and the end of the game are
compared. `--share 0.1` plays 20 plies of each; names restrict the variants. With `-o` its table replaces
the one in the file and keeps the rest of the file.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path

from fairy_agreement import check_fairy_engine

from variant_ai.cli.common.ending import run_script
from variant_ai.core.errors import UnknownNameError
from variant_ai.core.rules.fairy.fairy_stockfish import fairy_variants
from variant_ai.core.spec import VariantSpec, builtin_specs, load_spec
from variant_ai.core.testing.game_conformance import check_game_ends
from variant_ai.core.testing.random_games import Report
from variant_ai.core.testing.rules_conformance import check_rules, in_child

FULL = {"crazyhouse": 200_000, "xiangqi": 200_000}
OTHERS = 20_000
PIECE = 4_000
ENDS_SHARE = 0.05
GAMES_AT_ONCE = 12
GAME_PLIES = 300


@dataclass(frozen=True)
class Task:
    variant: str
    what: str
    """`moves` or `ends`."""
    positions: int
    seed: int


@dataclass
class Result:
    positions: int = 0
    moves: int = 0
    games: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)
    cpu: float = 0.0
    """Processor seconds."""

    def add(self, other: Result) -> None:
        self.positions += other.positions
        self.moves += other.moves
        self.games += other.games
        self.kinds += other.kinds
        self.differences += other.differences
        self.cpu += other.cpu


def judged_specs() -> dict[str, VariantSpec]:
    specs = {name: load_spec(path) for name, path in builtin_specs().items()}
    return {n: s for n, s in specs.items() if s.fairy and s.rules.engine == "kernel"}


def tasks(names: list[str], share: float, seed: int) -> Iterator[Task]:
    for name in names:
        left = round(FULL.get(name, OTHERS) * share)
        ends = round(left * ENDS_SHARE)
        number = 0
        for what, count in (("moves", left), ("ends", ends)):
            while count > 0:
                yield Task(name, what, min(PIECE, count), seed * 1_000_000 + number)
                count -= PIECE
                number += 1


def run(task: Task) -> Result:
    """Result of a piece, with its processor time."""
    begun = time.process_time()
    result = compare(task)
    result.cpu = time.process_time() - begun
    return result


def compare(task: Task) -> Result:
    spec = load_spec(builtin_specs()[task.variant])
    if task.what == "moves":
        report = check_rules(spec, task.positions, task.seed, isolated=False)
        found = [] if report.agrees else [f"seed {task.seed}: {report.first_difference}"]
        return Result(report.positions, report.moves, report.games, report.counts, found)
    result = Result()
    number = 0
    while result.positions < task.positions and not result.differences:
        seed = task.seed * 1_000 + number
        ends = check_game_ends(spec, GAMES_AT_ONCE, seed, max_plies=GAME_PLIES)
        found = [] if ends.agrees else [f"ends, seed {seed}: {ends.first_difference}"]
        result.add(Result(ends.positions, 0, ends.games, ends.counts, found))
        number += 1
    return result


def run_apart(task: Task) -> Result:
    """Run a piece in a process of its own; a crash counts as a difference."""
    try:
        return in_child(run, task)
    except BrokenProcessPool:
        return Result(
            differences=[f"{task.what}, seed {task.seed}: the process of Fairy-Stockfish died"]
        )


def read_kept(path: Path | None) -> dict[Task, Result]:
    """Read the pieces finished by earlier runs; an incomplete last line is ignored."""
    kept = {}
    for line in path.read_text().splitlines() if path and path.exists() else ():
        try:
            item = json.loads(line)
        except json.JSONDecodeError:
            continue
        result = Result(**item["result"])
        result.kinds = Counter(result.kinds)
        kept[Task(**item["task"])] = result
    return kept


def shown_command() -> str:
    """Return this command for the report."""
    return shlex.join(["python", "benchmarks/agreement.py", *sys.argv[1:]])


def write(results: dict[tuple[str, str], Result]) -> str:
    """Return the report as Markdown."""
    minutes = sum(result.cpu for result in results.values()) / 60
    lines = [
        "# Agreement of the kernel with Fairy-Stockfish",
        "",
        f"Made by `{shown_command()}` with pyffish {version('pyffish')} in "
        f"{minutes:.0f} minutes of processor time. Moves: legal moves, check, FEN, key and final verdicts of "
        "positions of steered random games. Ends: verdicts of games with their history.",
        "",
        "| variant | compared | games | positions | legal moves | differences |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for (variant, what), r in results.items():
        moves = f"{r.moves:,}" if r.moves else ""
        row = [variant, what, f"{r.games:,}", f"{r.positions:,}", moves, str(len(r.differences))]
        lines.append(f"| {' | '.join(row)} |")
    lines += ["", "Coverage, in legal moves or positions:", ""]
    for (variant, what), r in results.items():
        met = ", ".join(f"{count:,} {kind}" for kind, count in sorted(r.kinds.items()))
        lines.append(f"- {variant}, {what}: {met}")
    differences = [
        f"- {variant}: {text}" for (variant, _), r in results.items() for text in r.differences
    ]
    if differences:
        lines += ["", "Differences:", "", *differences]
    return "\n".join(lines) + "\n"


# --- the engine fairy ----------------------------------------------------------------------------

FAIRY_PLIES = 200
FAIRY_HEADING = "# Agreement of the engine fairy with pyffish"


def walk_apart(name: str, plies: int, seed: int) -> Report:
    """One variant in a process of its own, which pyffish may kill."""
    try:
        return in_child(check_fairy_engine, name, plies, seed)
    except BrokenProcessPool:
        return Report("fairy", name, first_difference="pyffish's process died")


def walk_all(names: list[str], plies: int, seed: int, jobs: int) -> list[Report]:
    """Walks of the variants; a process serves several, and is started again if it dies."""
    if jobs == 1:
        return [check_fairy_engine(name, plies, seed) for name in _shown(names)]
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda name: walk_apart(name, plies, seed), _shown(names)))


def _shown(names: list[str]) -> Iterator[str]:
    for number, name in enumerate(names, 1):
        if sys.stderr.isatty():
            print(f"\r{number} of {len(names)} variants", end="", file=sys.stderr)
        yield name


def write_walks(walks: list[Report], plies: int) -> str:
    """The report as Markdown."""
    verdicts = Counter(w.verdict for w in walks)
    counted = ", ".join(f"{verdict} {count}" for verdict, count in sorted(verdicts.items()))
    lines = [
        FAIRY_HEADING,
        "",
        f"Made by `{shown_command()}` with pyffish {version('pyffish')}: "
        f"{plies} plies of each of {len(walks)} variants at random, with a spec made for it. "
        "Compared at every position: legal moves, FEN, check, and the end of the game; every eighth "
        f"FEN is read back. Result: {counted}.",
        "",
        "| variant | plies | games | legal moves | ends | result |",
        "| --- | ---: | ---: | ---: | --- | --- |",
    ]
    for w in walks:
        ends = ", ".join(f"{count} {reason}" for reason, count in sorted(w.counts.items()))
        row = [w.variant, str(w.positions), str(w.games), f"{w.moves:,}", ends, w.verdict]
        lines.append(f"| {' | '.join(row)} |")
    problems = [
        (w.variant, w.first_difference or w.skipped) for w in walks if w.verdict != "agrees"
    ]
    if problems:
        lines += ["", "Differences and errors:", "", *(f"- {n}: {text}" for n, text in problems)]
    return "\n".join(lines) + "\n"


def compare_fairy(options: argparse.Namespace) -> int:
    known = fairy_variants()
    unknown = [name for name in options.variants if name not in known]
    if unknown:
        raise UnknownNameError("Fairy-Stockfish variant", unknown[0], known)
    plies = max(1, round(FAIRY_PLIES * options.share))
    names = options.variants or list(known)
    walks = walk_all(names, plies, options.seed, options.jobs)
    text = write_walks(walks, plies)
    if options.output:
        kept = options.output.read_text() if options.output.exists() else ""
        kept = kept.split(FAIRY_HEADING)[0].rstrip()
        options.output.write_text(f"{kept}\n\n{text}".lstrip())
    print(text)
    return 1 if any(w.verdict == "differs" for w in walks) else 0


def main() -> int:
    specs = judged_specs()
    parser = argparse.ArgumentParser(description="The kernel against Fairy-Stockfish.")
    parser.add_argument("variants", nargs="*", help="default: all that can be compared")
    parser.add_argument(
        "--share", type=float, default=1.0, help="share of the full number of positions"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--keep", type=Path, help="file of finished pieces, to continue from")
    parser.add_argument("-o", "--output", type=Path, help="write the report to a file")
    parser.add_argument("--fairy", action="store_true", help="the engine fairy against pyffish")
    options = parser.parse_args()
    if options.fairy:
        return compare_fairy(options)
    unknown = [name for name in options.variants if name not in specs]
    if unknown:
        parser.error(f"not among {', '.join(specs)}: {', '.join(unknown)}")
    todo = list(tasks(options.variants or list(specs), options.share, options.seed))
    results = {(t.variant, t.what): Result() for t in todo}
    kept = read_kept(options.keep)
    for task in todo:
        if task in kept:
            results[(task.variant, task.what)].add(kept[task])
    left = [task for task in todo if task not in kept]
    with ThreadPoolExecutor(options.jobs) as pool:
        waiting = {pool.submit(run_apart, task): task for task in left}
        for number, done in enumerate(as_completed(waiting), len(todo) - len(left) + 1):
            task, result = waiting[done], done.result()
            results[(task.variant, task.what)].add(result)
            if options.keep:
                line = json.dumps({"task": asdict(task), "result": vars(result)})
                with options.keep.open("a") as file:
                    file.write(line + "\n")
            for difference in result.differences:
                print(f"{task.variant}: {difference}", file=sys.stderr)
            if sys.stderr.isatty():
                print(f"\r{number} of {len(todo)} pieces", end="", file=sys.stderr)
    text = write(results)
    if options.output:
        page = options.output.read_text() if options.output.exists() else ""
        _, heading, rest = page.partition(FAIRY_HEADING)
        options.output.write_text(f"{text}\n{heading}{rest}" if heading else text)
    print(text)
    return 1 if any(r.differences for r in results.values()) else 0


if __name__ == "__main__":
    run_script(main)
