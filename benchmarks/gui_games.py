"""Games through XBoard and its bridge, as people play them: a pairing in every protocol.

    python benchmarks/gui_games.py --games 50 --clock 0:10 --increment 0

XBoard (in a virtual display) is the judge and keeps the clocks, `uci2wb` speaks UCI, UCCI or
cyclone to the engine. Needs xboard, xvfb, uci2wb and the opponents; pairings whose programs are
missing are skipped. Printed for each: results, ends of games, and complaints of XBoard.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from variant_ai.cli.common.ending import run_script

PAIRINGS = (
    ("crazyhouse", "uci", "fairy-stockfish"),
    ("crazyhouse", "uci", "sjeng"),
    ("crazyhouse", "uci", "sjaakii -xboard"),
    ("xiangqi", "ucci", "fairy-stockfish"),
    ("xiangqi", "cyclone", "sjaakii -xboard"),
    ("xiangqi", "ucci", "maxqi"),
)
FLAGS = {"uci": "", "ucci": "-x", "cyclone": "-c"}
COMPLAINTS = re.compile(r"illegal|violation|forfeit|died|\berror\b(?! \(un)", re.IGNORECASE)
ENDING = re.compile(r"\{([^{}]*)\}\s*(1-0|0-1|1/2-1/2|\*)\s*\Z")


def play(variant: str, protocol: str, opponent: str, given: argparse.Namespace) -> bool:
    """Play a pairing; return True if there was no complaint."""
    folder = Path(tempfile.mkdtemp(prefix=f"{variant}-{protocol}-"))
    engine = folder / "engine"
    words = " ".join(f"--option {text}" for text in given.option)
    engine.write_text(
        f"#!/bin/sh\nexec {sys.executable} -m variant_ai.cli.play.engine {words} "
        f"--log-protocol {folder}/engine.$$.log 2>>{folder}/engine.err\n"
    )
    engine.chmod(0o755)
    command = ["xvfb-run", "-a", "xboard", "-variant", variant]
    command += ["-fcp", " ".join(f"uci2wb debug {FLAGS[protocol]} {engine}".split())]
    command += ["-scp", opponent, "-mg", str(given.games), "-tc", given.clock]
    command += ["-inc", str(given.increment), "-sgf", str(folder / "games.pgn")]
    command += ["-debug", "-nameOfDebugFile", str(folder / "debug"), "-xexit"]
    command += ["-autoCallFlag", "true"]
    path = os.pathsep.join([os.environ["PATH"], "/usr/games"])
    subprocess.run(
        command, env={**os.environ, "PATH": path}, timeout=given.timeout, capture_output=True,
        check=False,
    )  # fmt: skip
    return report(f"{variant} by {protocol} against {opponent}", folder)


def report(name: str, folder: Path) -> bool:
    """Print the results of a pairing."""
    pgn = folder / "games.pgn"
    games = re.split(r"\n(?=\[Event )", pgn.read_text(errors="replace")) if pgn.is_file() else []
    endings: dict[str, int] = {}
    for game in games:
        match = ENDING.search(game.strip())
        ending = f"{match[2]} {match[1]}" if match else "unfinished"
        endings[ending] = endings.get(ending, 0) + 1
    print(f"{name}: {len(games)} games ({folder})")
    for ending, count in sorted(endings.items(), key=lambda item: -item[1]):
        print(f"  {count:3} {ending}")
    debug = folder / "debug"
    lines = debug.read_text(errors="replace").splitlines() if debug.is_file() else []
    ours = [line for line in lines if COMPLAINTS.search(line) and "second" not in line]
    for line in ours[:5]:
        print(f"  ! {line}")
    return bool(games) and not ours


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", type=int, default=50)
    parser.add_argument("--clock", default="0:20", help="for the whole game, minutes:seconds")
    parser.add_argument("--increment", type=float, default=0.1, help="seconds a move")
    parser.add_argument("--timeout", type=float, default=7200, help="seconds for a pairing")
    parser.add_argument("--only", default="", help="only pairings whose names contain this")
    parser.add_argument("--option", action="append", default=[], help="NAME=VALUE of the engine")
    given = parser.parse_args()
    fine = True
    names = [" ".join(pairing) for pairing in PAIRINGS]
    if not any(given.only in name for name in names):
        parser.error(f"--only {given.only}: is in none of: {', '.join(names)}")
    folders = os.pathsep.join([os.environ["PATH"], "/usr/games"])
    for variant, protocol, opponent in PAIRINGS:
        if given.only not in f"{variant} {protocol} {opponent}":
            continue
        needed = ("xvfb-run", "xboard", "uci2wb", opponent.split()[0])
        missing = [name for name in needed if shutil.which(name, path=folders) is None]
        if missing:
            print(f"{variant} by {protocol} against {opponent}: skipped, no {', '.join(missing)}")
            continue
        fine &= play(variant, protocol, opponent, given)
    sys.exit(not fine)


if __name__ == "__main__":
    run_script(main)
