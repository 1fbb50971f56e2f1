"""Time from a click in the browser to its answer, with many pages open beside a search.

    python benchmarks/web_load.py --clients 50 --minutes 10

Each client plays a game of random moves: it asks for the position after each move, as the page does
after a click, waits about a second, and asks for the next. One more client keeps a search running and
gets its reports. Printed are the times from question to answer, the number of answers that are missing
or wrong, and the memory of all processes of the server at the beginning and at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from variant_ai.cli.common.console import print_json
from variant_ai.cli.common.ending import run_script

ADDRESS = re.compile(r"the page is at http://127\.0\.0\.1:(\d+)")
VARIANTS = ("crazyhouse", "xiangqi", "minishogi", "chess")
REPORTS = 0.3
LOST_AFTER = 20.0


class Client:
    """A connection that asks and waits."""

    def __init__(self, socket: Any) -> None:
        self.socket = socket
        self.number = 0

    async def ask(self, **message: Any) -> dict[str, Any]:
        self.number += 1
        await self.socket.send(json.dumps({"id": self.number, **message}))
        while True:
            answer: dict[str, Any] = json.loads(
                await asyncio.wait_for(self.socket.recv(), LOST_AFTER)
            )
            if answer["id"] == self.number and answer.get("final", True):
                return answer


class Load:
    """All clients, and their measurements."""

    def __init__(self, address: str, pause: float) -> None:
        self.address, self.pause = address, pause
        self.times: list[float] = []
        self.lost = 0
        self.nodes = 0
        self.end = 0.0

    async def play(self, seed: int) -> None:
        """Play random games until the end."""
        import websockets

        rng = random.Random(seed)
        async with websockets.connect(self.address, max_size=None) as socket:
            client = Client(socket)
            while time.monotonic() < self.end:
                variant = VARIANTS[seed % len(VARIANTS)]
                moves: list[str] = []
                legal: list[str] = []
                while time.monotonic() < self.end and len(moves) < 200:
                    await asyncio.sleep(rng.uniform(0.5, 1.5) * self.pause)
                    began = time.monotonic()
                    try:
                        found = await client.ask(type="position", variant=variant, moves=moves)
                    except TimeoutError:
                        self.lost += 1
                        break
                    self.times.append(time.monotonic() - began)
                    if len(found.get("written", ())) != len(moves):
                        self.lost += 1
                        break
                    legal = found["legal"]
                    if not legal:
                        break
                    moves.append(rng.choice(legal))

    async def search(self) -> None:
        """Keep a search running."""
        import websockets

        async with websockets.connect(self.address, max_size=None) as socket:
            client = Client(socket)
            while time.monotonic() < self.end:
                found = await client.ask(
                    type="search", variant="crazyhouse", seconds=5, report=REPORTS, multipv=3
                )
                self.nodes += found.get("visits", 0)

    async def run(self, clients: int, seconds: float) -> None:
        """Load the server for so long."""
        import websockets

        async with websockets.connect(
            self.address, max_size=None
        ) as socket:  # everything is loaded
            first = Client(socket)
            for variant in VARIANTS:
                await first.ask(type="position", variant=variant, moves=[])
            await first.ask(type="search", variant="crazyhouse", nodes=10)
        self.end = time.monotonic() + seconds
        await asyncio.gather(self.search(), *(self.play(seed) for seed in range(clients)))


def memory(process: int) -> dict[int, float]:
    """Return megabytes of a process and of all that it started. Linux alone tells."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue
        parents.setdefault(int(text.rpartition(")")[2].split()[1]), []).append(
            int(stat.parent.name)
        )
    every, found = [process], {}
    for one in every:
        every += parents.get(one, [])
        try:
            status = Path(f"/proc/{one}/status").read_text(encoding="utf-8")
        except OSError:
            continue
        used = re.search(r"VmRSS:\s+(\d+)", status)
        found[one] = int(used[1]) / 1024 if used else 0.0
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--pause", type=float, default=1.0, help="Seconds between clicks.")
    given = parser.parse_args()
    command = [sys.executable, "-m", "variant_ai.cli.main", "web", "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        port = ""
        for line in server.stderr:
            if found := ADDRESS.search(line):
                port = found[1]
                break
        try:
            load = Load(f"ws://127.0.0.1:{port}/talk", given.pause)
            asyncio.run(load.run(given.clients, 10.0))  # what is made once is made
            before = memory(server.pid)
            load.times.clear()
            asyncio.run(load.run(given.clients, 60 * given.minutes))
            after = memory(server.pid)
        finally:
            server.terminate()
    times = sorted(load.times)
    shares = {
        f"p{share}_ms": round(1000 * times[int(len(times) * share / 100)], 1)
        for share in (50, 90, 99)
    }
    print_json(
        {
            "clients": given.clients,
            "answers": len(times),
            "lost": load.lost,
            **shares,
            "slowest_ms": round(1000 * times[-1], 1),
            "nodes_searched": load.nodes,
            "memory_mb": {
                "before": round(sum(before.values())),
                "after": round(sum(after.values())),
            },
            "each_mb": {
                str(one): [round(before.get(one, 0)), round(used)] for one, used in after.items()
            },
        }
    )


if __name__ == "__main__":
    run_script(main)
