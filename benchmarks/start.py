"""Time of each command to its first answer, before and after the code is compiled.

    python benchmarks/start.py
    python benchmarks/start.py --commands analyse engine --rounds 5 --variant crazyhouse

Each command runs with an empty cache of its own, then again; `first output` is the time until it prints
anything. Seconds of wall time; warm figures are medians of the rounds after the second run, which may
still measure evaluators. `engine` is timed to `readyok`, and its first `go movetime
1000` from there.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from variant_ai.cli.common.ending import run_script
from variant_ai.core.system.folders import FOLDER_VARIABLE

PROGRAM = [sys.executable, "-m", "variant_ai.cli.main"]
ENGINE = [sys.executable, "-m", "variant_ai.cli.play.engine"]


@dataclass
class Run:
    """One run of a command."""

    first_word: float
    total: float
    notes: dict[str, float] = field(default_factory=dict)


def run_command(arguments: list[str], folder: Path, answers: str = "") -> Run:
    """Run a command to its end. answers: text for its standard input."""
    began = time.perf_counter()
    with subprocess.Popen(
        [*PROGRAM, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(answers.encode())
        process.stdin.close()
        process.stdout.read(1)
        first = time.perf_counter() - began
        text = process.stdout.read().decode(errors="replace")
    if process.returncode:
        sys.exit(f"{' '.join(arguments)} failed:\n{text[-2000:]}")
    return Run(first, time.perf_counter() - began)


def run_engine(variant: str) -> Run:
    """Run the engine: `uci`, `isready`, then `go movetime 1000`."""
    began = time.perf_counter()
    with subprocess.Popen(
        [*ENGINE, "--variant", variant],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as engine:
        given, answers = engine.stdin, engine.stdout
        assert given is not None and answers is not None

        def ask(line: str, answer: str) -> float:
            given.write(f"{line}\n")
            next(line for line in answers if line.startswith(answer))
            return time.perf_counter() - began

        uciok = ask("uci", "uciok")
        readyok = ask("isready", "readyok")
        move = ask("go movetime 1000", "bestmove") - readyok
        given.write("quit\n")
    return Run(uciok, readyok, {"go movetime 1000": move})


def commands(variant: str, folder: Path) -> dict[str, Callable[[], Run]]:
    """Return the commands to time."""
    from variant_ai.plugins import registry

    entry = registry().variants.get(variant)
    if entry is None or entry.sample is None:
        raise SystemExit(f"--variant {variant}: a registered variant with sample games is needed")
    sample = str(entry.sample)
    start = registry().variant(variant).rules.start
    pgn = folder / "two.pgn"
    store = str(folder / "two.store")
    if not pgn.exists():
        done = subprocess.run(
            [*PROGRAM, "store", "export", sample, "--games", "1-2", "-o", str(pgn)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(done.stderr)

    def command(*arguments: str, answers: str = "") -> Callable[[], Run]:
        def run() -> Run:
            run_folder = tempfile.mkdtemp(dir=folder) + "/run"
            return run_command([a.format(run=run_folder) for a in arguments], folder, answers)

        return run

    found = {
        "analyse": command("analyse", "-V", variant, "--nodes", "100", start),
        "import": command("import", "-V", variant, str(pgn), "-o", store, "--replace"),
        "play": command("play", "-V", variant, "--nodes", "50", answers="quit\n"),
        "engine": lambda: run_engine(variant),
        "train": command(*("train", "-V", variant, "--steps", "4", "--run", "{run}")),
        "stats": command("stats", sample),
        "generate": command(
            *("generate", "-V", variant, "--games", "1", "--nodes", "4", "--max-plies", "20"),
            *("-o", str(folder / "new.store"), "--replace"),
        ),
    }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--variant", default="crazyhouse")
    parser.add_argument("--commands", nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    print("command     cold: first output  answer   second start   warm: answer")
    with tempfile.TemporaryDirectory() as folder:
        known = commands(given.variant, Path(folder))
        if unknown := sorted(set(given.commands or ()) - set(known)):
            parser.error(f"unknown commands: {', '.join(unknown)}; known: {', '.join(known)}")
        for name, run in known.items():
            if given.commands and name not in given.commands:
                continue
            with tempfile.TemporaryDirectory() as cache:
                os.environ[FOLDER_VARIABLE] = cache
                cold, second = run(), run()
                warm = [run() for _ in range(given.rounds)]
            print(
                f"{name:10} {cold.first_word:17.2f} {cold.total:9.2f} {second.total:14.2f} "
                f"{statistics.median(w.total for w in warm):14.2f}",
                flush=True,
            )
            for what in cold.notes:
                later = statistics.median(w.notes[what] for w in warm)
                print(f"  {what}: {cold.notes[what]:.2f} cold, {later:.2f} warm", flush=True)


if __name__ == "__main__":
    run_script(main)
