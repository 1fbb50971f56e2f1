"""Hours of games by one engine process, and its memory use.

    python benchmarks/endurance.py --hours 2 --variants crazyhouse xiangqi
    python benchmarks/endurance.py --hours 0.1 --movetime 50 --hash 16

The engine plays against itself, one variant after the other, each game from `ucinewgame` to its end
or to `--plies`, pondering on the expected answer at every other move. Every few minutes it prints games,
moves, and the resident memory of the process; at the end the growth after the first tenth, when the
hash, the nets of all variants and the compiled code are loaded. Exit status 1 if a move is illegal, an
answer is missing, or memory grew by more than `--most`.
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

from variant_ai.cli.common.ending import run_script
from variant_ai.core.rules.game import Game
from variant_ai.plugins import registry

PATIENCE = 60
"""Maximum seconds for an answer."""


class Engine:
    """The engine process, used line by line."""

    def __init__(self, hash_mb: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "variant_ai.cli.play.engine"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.sent: deque[str] = deque(maxlen=6)
        signal.signal(signal.SIGALRM, self._give_up)
        self.send("uci")
        self.until("uciok")
        self.send(f"setoption name Hash value {hash_mb}")
        self.send("setoption name Ponder value true")

    def send(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.sent.append(line)

    def until(self, word: str) -> list[str]:
        """Return the words of the first line that begins with `word`."""
        assert self.process.stdout is not None
        signal.alarm(PATIENCE)
        for line in self.process.stdout:
            if line.startswith(word):
                signal.alarm(0)
                return line.split()
        raise SystemExit(f"the engine ended with status {self.process.wait()} before {word!r}")

    def _give_up(self, number: int, frame: object) -> None:
        sent = "\n  ".join(self.sent)
        raise SystemExit(f"no answer within {PATIENCE} s (process {self.process.pid}) to\n  {sent}")

    @property
    def resident(self) -> float:
        """Return the resident memory in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024


def play(engine: Engine, game: Game, given: argparse.Namespace) -> Iterator[None]:
    """Play a game; yield after each move. Raises MoveError if the engine's move is illegal."""
    engine.send("ucinewgame")
    moves: list[str] = []
    while game.outcome() is None and len(moves) < given.plies:
        engine.send(f"position startpos moves {' '.join(moves)}".removesuffix(" moves "))
        engine.send(f"go movetime {given.movetime}")
        answer = engine.until("bestmove")
        game.push_uci(answer[1])
        moves.append(answer[1])
        if len(answer) > 3 and len(moves) % 2:
            engine.send(f"position startpos moves {' '.join([*moves, answer[3]])}")
            engine.send(f"go ponder movetime {given.movetime}")
            time.sleep(given.movetime / 2000)
            engine.send("stop")
            engine.until("bestmove")
        yield


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--variants", nargs="+", default=["crazyhouse", "xiangqi"])
    parser.add_argument("--movetime", type=int, default=100, help="milliseconds a move")
    parser.add_argument("--pause", type=int, default=0, help="milliseconds of pause after a move")
    parser.add_argument("--plies", type=int, default=150, help="maximum length of a game")
    parser.add_argument("--hash", type=int, default=64, help="MB")
    parser.add_argument("--most", type=float, default=40.0, help="maximum growth in MB")
    given = parser.parse_args()
    rules = {name: registry().rules(registry().variant(name)) for name in given.variants}
    engine = Engine(given.hash)
    begun = reported = time.monotonic()
    seconds = given.hours * 3600
    games: Counter[str] = Counter()
    moves, settled, most = 0, 0.0, 0.0
    while time.monotonic() - begun < seconds:
        name = given.variants[games.total() % len(given.variants)]
        engine.send(f"setoption name UCI_Variant value {name}")
        for _ in play(engine, Game(rules[name]), given):
            moves += 1
            time.sleep(given.pause / 1000)
            now = time.monotonic()
            resident = engine.resident
            if not settled or now - begun < seconds / 10:
                settled = max(settled, resident)
            most = max(most, resident)
            if now - reported > seconds / 24:
                reported = now
                print(
                    f"{(now - begun) / 60:6.1f} min  {games.total():5} games  {moves:7,} moves  "
                    f"{resident:7.1f} MB",
                    flush=True,
                )
            if now - begun >= seconds:
                break
        games[name] += 1
    engine.send("quit")
    status = engine.process.wait(10)
    grown = most - settled
    by_variant = ", ".join(f"{count} of {name}" for name, count in games.items())
    print(
        f"{by_variant}; {moves:,} moves; most {most:.1f} MB, {grown:+.1f} MB after the first tenth"
    )
    sys.exit(1 if status or grown > given.most else 0)


if __name__ == "__main__":
    run_script(main)
