"""Hours of games by one engine process, and its memory on the way.

    python benchmarks/endurance.py --hours 2 --variants crazyhouse xiangqi
    python benchmarks/endurance.py --hours 0.1 --movetime 50 --hash 16

The engine plays against itself, one variant after the other, each game from `ucinewgame` to its end
or `--plies`, with pondering on the expected answer every other move. Printed every few minutes: games,
moves, and the resident memory of the process; at the end the growth after the first tenth, by which
the hash, the nets of all variants and the compiled code are loaded. Ends with status 1 where a move
is illegal, an answer stays out, or memory grew by more than `--most`.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path

from variant_ai.cli.common.console import run_script
from variant_ai.core.rules.game import Game
from variant_ai.plugins import registry

PATIENCE = 60
"""Seconds in which every answer must have come."""


class Engine:
    """The process, asked line by line."""

    def __init__(self, hash_mb: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "variant_ai.cli.play.engine"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.said: deque[str] = deque(maxlen=6)
        signal.signal(signal.SIGALRM, self._give_up)
        self.say("uci")
        self.until("uciok")
        self.say(f"setoption name Hash value {hash_mb}")
        self.say("setoption name Ponder value true")

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.said.append(line)

    def until(self, word: str) -> list[str]:
        """The words of the first line that begins with `word`."""
        assert self.process.stdout is not None
        signal.alarm(PATIENCE)
        for line in self.process.stdout:
            if line.startswith(word):
                signal.alarm(0)
                return line.split()
        raise SystemExit(f"the engine ended with status {self.process.wait()} before {word!r}")

    def _give_up(self, number: int, frame: object) -> None:
        said = "\n  ".join(self.said)
        raise SystemExit(f"no answer within {PATIENCE} s (process {self.process.pid}) to\n  {said}")

    @property
    def resident(self) -> float:
        """MB of memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024


def play(engine: Engine, game: Game, given: argparse.Namespace) -> Iterator[None]:
    """One game; yields after each move. Raises MoveError where the engine's is illegal."""
    engine.say("ucinewgame")
    moves: list[str] = []
    while game.outcome() is None and len(moves) < given.plies:
        engine.say(f"position startpos moves {' '.join(moves)}".removesuffix(" moves "))
        engine.say(f"go movetime {given.movetime}")
        answer = engine.until("bestmove")
        game.push_uci(answer[1])
        moves.append(answer[1])
        if len(answer) > 3 and len(moves) % 2:
            engine.say(f"position startpos moves {' '.join([*moves, answer[3]])}")
            engine.say(f"go ponder movetime {given.movetime}")
            time.sleep(given.movetime / 2000)
            engine.say("stop")
            engine.until("bestmove")
        yield


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--variants", nargs="+", default=["crazyhouse", "xiangqi"])
    parser.add_argument("--movetime", type=int, default=100, help="milliseconds a move")
    parser.add_argument("--pause", type=int, default=0, help="milliseconds of rest after a move")
    parser.add_argument("--plies", type=int, default=150, help="the longest game")
    parser.add_argument("--hash", type=int, default=64, help="MB")
    parser.add_argument("--most", type=float, default=40.0, help="MB it may grow by")
    given = parser.parse_args()
    rules = {name: registry().rules(registry().variant(name)) for name in given.variants}
    engine = Engine(given.hash)
    begun = told = time.monotonic()
    seconds = given.hours * 3600
    games: Counter[str] = Counter()
    moves, settled, most = 0, 0.0, 0.0
    while time.monotonic() - begun < seconds:
        name = given.variants[games.total() % len(given.variants)]
        engine.say(f"setoption name UCI_Variant value {name}")
        for _ in play(engine, Game(rules[name]), given):
            moves += 1
            time.sleep(given.pause / 1000)
            now = time.monotonic()
            resident = engine.resident
            if not settled or now - begun < seconds / 10:
                settled = max(settled, resident)
            most = max(most, resident)
            if now - told > seconds / 24:
                told = now
                print(
                    f"{(now - begun) / 60:6.1f} min  {games.total():5} games  {moves:7,} moves  "
                    f"{resident:7.1f} MB",
                    flush=True,
                )
            if now - begun >= seconds:
                break
        games[name] += 1
    engine.say("quit")
    status = engine.process.wait(10)
    grown = most - settled
    by_variant = ", ".join(f"{count} of {name}" for name, count in games.items())
    print(
        f"{by_variant}; {moves:,} moves; most {most:.1f} MB, {grown:+.1f} MB after the first tenth"
    )
    sys.exit(1 if status or grown > given.most else 0)


if __name__ == "__main__":
    run_script(main)
