"""A client that sends anything: valid commands in every order, cut ones, noise, binary, long lines.

    python benchmarks/hostile_client.py --lines 1000000 --progress /tmp/hostile.jsonl

Each new engine gets 20,000 lines. With --progress the same command continues after an interruption.

The engine must never crash, never hang, answer every `isready`, send one `bestmove` for each `go`,
and still play afterwards. If it does not, the status is 1 and the last lines are printed. Memory is
printed at the start and the end.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from variant_ai.cli.common.ending import run_script

FENS = (
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR[] w KQkq - 0 1",
    "3k2r1/pBpr1p1p/Pp3p1B/3p4/2PPn2B/5NPp/q4PpP/1R1QR1K1[NNbp] w - - 1 23",
    "rnbakabnr/9/1c5c1/p1p1p1p1p/9/9/P1P1P1P1P/1C5C1/9/RNBAKABNR w - - 0 1",
    "4k3/8/8/8/8/8/8/4K3[Qn] w - - 0 1",
    "3k5/9/9/9/9/9/9/9/9/4K4 b",
    "8/8/8/8/8/8/8/8 w - - 0 1",
    "rnbqkbnr/pppppppp/9 w - -",
)
MOVES = ("e2e4", "e7e5", "g1f3", "h2e2", "h9g7", "P@e4", "a1a1", "0000", "e1g1", "z9z9", "")
OPTIONS = ("Hash", "MultiPV", "Threads", "Move Overhead", "UCI_Variant", "Clear Hash", "Model",
           "UCI_ShowWDL", "Centi_CPuct_Init", "usemillisec", "Backup", "Nonsense", "", "value")  # fmt: skip
VALUES = (
    "1",
    "2",
    "16",
    "true",
    "false",
    "-5",
    "crazyhouse",
    "xiangqi",
    "chess",
    "none",
    "x" * 50,
    "",
)
LIMITS = ("nodes 1", "nodes 30", "movetime 5", "depth 2", "wtime 30 btime 30", "wtime -9 btime 1",
          "mate 1 nodes 20", "perft 1", "nodes x", "movetime", "searchmoves e2e4 h3e3 nodes 9",
          "infinite", "ponder nodes 5", "ponder wtime 50 btime 50", "depth 0", "foo")  # fmt: skip
ENDLESS = ("infinite", "ponder", "foo", "movetime\n", "nodes x")
PATIENCE = 120.0
LONGEST = 1 << 20
PART = 20_000
"""Lines for one process of the engine."""


class Client:
    """The engine process and its answers."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.counts: dict[str, int] = {}
        self.bad: list[str] = []
        self._changed = threading.Condition()
        self._ears = threading.Thread(target=self._listen, daemon=True)
        self._ears.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for raw in self.process.stdout:
            line = raw.decode("utf-8", "replace").rstrip("\n")
            word = (line.split() or [""])[0]
            with self._changed:
                self.counts[word] = self.counts.get(word, 0) + 1
                if "internal" in line:
                    self.bad.append(line)
                self._changed.notify_all()

    def send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def wait(self, word: str, count: int) -> bool:
        """Return True if the word comes this many times within PATIENCE."""
        with self._changed:
            return self._changed.wait_for(lambda: self.counts.get(word, 0) >= count, PATIENCE)


def commands(draw: random.Random, *, long_lines: bool = True) -> Iterator[bytes]:
    """Yield endless lines that a broken client might send."""
    while True:
        kind = draw.random()
        if kind < 0.25:
            moves = " ".join(draw.choice(MOVES) for _ in range(draw.randrange(4)))
            where = draw.choice(("startpos", f"fen {draw.choice(FENS)}"))
            bare = draw.random() < 0.05
            text = f"{'' if bare else 'position '}{where} moves {moves}"
        elif kind < 0.45:
            text = f"go {draw.choice(LIMITS)}"
        elif kind < 0.6:
            name, value = draw.choice(OPTIONS), draw.choice(VALUES)
            text = draw.choice(
                (f"setoption name {name} value {value}", f"setoption {name} {value}")
            )
        elif kind < 0.85:
            text = draw.choice(
                ("stop", "ponderhit", "isready", "ucinewgame", "uci", "debug on", "debug off", "d",
                 "banmoves e2e4", "probe startpos", "stop", "")
            )  # fmt: skip
        elif kind < 0.9:
            yield bytes(draw.randrange(256) for _ in range(draw.randrange(60))).replace(b"\n", b"")
            continue
        else:
            text = draw.choice(("position fen ", "go ", "xyzzy ", "setoption name ")) + "".join(
                chr(draw.randrange(32, 0x2FFF)) for _ in range(draw.randrange(30))
            )
        data = text.encode()
        if draw.random() < 0.05:
            data = data[: draw.randrange(len(data) + 1)]
        if long_lines and draw.random() < 0.0003:
            data += b" e2e4" * (1 << 18)
        yield data


def asks_for(line: bytes, word: str) -> bool:
    """True if a line is this command and short enough to be read."""
    words = line.decode("utf-8", "replace").split()
    return len(line) <= LONGEST and words[:1] == [word]


def attack(client: Client, lines: int, seed: int, *, report: bool = True) -> str:
    """Send the lines; return a problem, or an empty text."""
    draw = random.Random(seed)
    recent: deque[bytes] = deque(maxlen=20)
    sent = wanted = perfts = ready = 0
    start = time.perf_counter()
    for line in commands(draw):
        words = line.decode("utf-8", "replace").split()
        if words[:1] == ["quit"] or sent >= lines:
            break
        recent.append(line[:100])
        perft = words[:2] == ["go", "perft"]
        perfts += perft
        wanted += asks_for(line, "go") and not perft
        try:
            client.send(line + draw.choice((b"\n", b"\n", b"\n", b"\r\n")))
            sent += 1
            if sent % 200 == 0:
                client.send(b"stop\nisready\n")
                ready += 1
                if not client.wait("readyok", ready):
                    return f"no readyok after {sent} lines; the last: {list(recent)}"
                if not client.wait("bestmove", wanted):
                    return f"a move is missing after {sent} lines; the last: {list(recent)}"
        except OSError:
            return f"it died after {sent} lines; the last: {list(recent)}"
        ready += asks_for(line, "isready")
        if report and sent % 5000 == 0:
            rate = sent / (time.perf_counter() - start)
            print(f"{sent} lines, {rate:.0f} a second, {memory(client.process.pid)} MB", flush=True)
    client.send(b"stop\nsetoption name UCI_Variant value chess\nposition startpos\ngo nodes 5\n")
    if not client.wait("bestmove", wanted + 1):
        return "it does not play any more"
    if client.counts["bestmove"] > wanted + 1:
        return f"{client.counts['bestmove']} moves for {wanted + 1} searches"
    return client.bad[0] if client.bad else ""


def memory(pid: int) -> int:
    """Return the resident memory in MB; 0 if it is not available."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return 0
    found = [line.split()[1] for line in text.splitlines() if line.startswith("VmRSS")]
    return int(found[0]) // 1024 if found else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--progress", type=Path, help="file of the finished parts")
    parser.add_argument("engine", nargs="*", help="command of the engine")
    given = parser.parse_args()
    default = [sys.executable, "-m", "variant_ai.cli.play.engine", "--option", "Hash=16"]
    done = set()
    if given.progress is not None and given.progress.is_file():
        done = {json.loads(line)["seed"] for line in given.progress.read_text().splitlines()}
    parts = [
        (given.seed + k, min(PART, given.lines - k * PART)) for k in range(-(-given.lines // PART))
    ]
    for seed, lines in parts:
        if seed in done:
            continue
        problem = run_part(given.engine or default, lines, seed)
        if problem:
            print(f"seed {seed}: {problem}")
            sys.exit(1)
        if given.progress is not None:
            with given.progress.open("a") as file:
                file.write(json.dumps({"seed": seed, "lines": lines}) + "\n")
    print(f"survived {given.lines:,} lines")


def run_part(command: list[str], lines: int, seed: int) -> str:
    """Send lines to a new engine; return a problem, or an empty text."""
    client = Client(command)
    client.send(b"uci\nisready\n")
    if not (client.wait("uciok", 1) and client.wait("readyok", 1)):
        return "no answer to uci and isready"
    client.counts["readyok"] = 0
    before = memory(client.process.pid)
    problem = attack(client, lines, seed)
    after = memory(client.process.pid)
    print(f"seed {seed}: {before} to {after} MB, {dict(sorted(client.counts.items()))}", flush=True)
    if problem:
        client.process.kill()
        return problem
    client.send(b"quit\n")
    status = client.process.wait(60)
    return f"exit status {status}" if status else ""


if __name__ == "__main__":
    run_script(main)
