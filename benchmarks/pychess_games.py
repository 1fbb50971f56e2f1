"""Games through pychess's own players and game model, as its window runs them, without the window.

    /usr/bin/python3 benchmarks/pychess_games.py --games 10 --engine .venv/bin/variant-ai-engine
    /usr/bin/python3 benchmarks/pychess_games.py --opponent fairy-stockfish --variant Crazyhouse

Runs under the system's Python with Debian's package pychess, and needs only the engine's path from
this project. pychess checks moves and ends. A complaint is counted if it considers the engine dead, ends a
game because of an illegal move, or if the clock of the engine runs out.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
from collections import Counter
from typing import Any


async def play(words: argparse.Namespace, number: int) -> tuple[str, float]:
    """Play a game; return its end and the minimum time left of the engine in seconds."""
    import gi

    gi.require_version("Gtk", "3.0")
    from pychess.Players.engineNest import EngineDiscoverer
    from pychess.Utils.const import (
        BLACK,
        DRAW,
        KILLED,
        UNFINISHED_STATES,
        WHITE,
        WHITEWON,
    )
    from pychess.Utils.GameModel import GameModel
    from pychess.Utils.TimeModel import TimeModel
    from pychess.Variants import name2variant

    variant = name2variant[words.variant]
    clock = TimeModel(words.seconds, words.gain)
    game = GameModel(clock, variant)
    nest: Any = EngineDiscoverer.__new__(EngineDiscoverer)
    color = WHITE if number % 2 == 0 else BLACK

    async def player(path: str, side: int, strength: int) -> Any:
        engine = {"name": os.path.basename(path), "protocol": "uci", "command": path, "md5": ""}
        return await EngineDiscoverer.initPlayerEngine(
            nest, engine, side, strength, variant, words.seconds, words.gain, forcePonderOff=False
        )

    # strength 20 is pychess's maximum, with which engines ponder
    ours = await player(words.engine, color, 20)
    theirs = await player(words.opponent, 1 - color, words.strength)
    game.setPlayers([ours, theirs] if color == WHITE else [theirs, ours])
    game.start()
    least = float(words.seconds)
    waited = 0.0
    while game.status in UNFINISHED_STATES and waited < words.patience:
        await asyncio.sleep(0.05)
        waited += 0.05
        if clock.started:
            least = min(least, clock.getPlayerTime(color))
    status, reason, plies = game.status, game.reason, game.ply
    names = {value: name for name, value in vars(sys.modules["pychess.Utils.const"]).items()
             if name.startswith(("WON_", "DRAW_", "ABORTED_", "UNKNOWN_")) and value == reason}  # fmt: skip
    if status in UNFINISHED_STATES:
        ending = f"! no end within {words.patience:g} s, {plies} plies"
    else:
        word = "drawn" if status == DRAW else "won" if status == WHITEWON + color else "lost"
        ending = f"{word}: {names.get(reason, reason)}"
    for each in (ours, theirs):
        each.kill(KILLED)
    await asyncio.sleep(0.2)
    return ending, least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--engine", default=shutil.which("variant-ai-engine") or "")
    parser.add_argument("--opponent", default="fairy-stockfish")
    parser.add_argument("--variant", default="Crazyhouse", help="name of the variant in pychess")
    parser.add_argument("--games", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--gain", type=int, default=0)
    parser.add_argument("--strength", type=int, default=5, help="strength of the opponent, 0 to 20")
    parser.add_argument("--patience", type=float, default=300)
    words = parser.parse_args()
    path = os.pathsep.join([os.environ["PATH"], "/usr/games"])
    words.opponent = shutil.which(words.opponent, path=path) or words.opponent
    words.engine = os.path.abspath(words.engine)
    endings: Counter[str] = Counter()
    least = float("inf")
    # Not `asyncio.run`: pychess's tasks cannot be cancelled the way it does.
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    for number in range(words.games):
        ending, left = loop.run_until_complete(play(words, number))
        endings[ending] += 1
        least = min(least, left)
        print(f"{number + 1:3} {ending}, minimum {left:.2f} s left", flush=True)
    for ending, count in endings.most_common():
        print(f"{count:4} {ending}")
    print(f"minimum time left of the engine: {least:.2f} s of {words.seconds}")
    bad = ("!", "lost: WON_CALLFLAG", "lost: WON_ADJUDICATION", "lost: WON_DISCONNECTION")
    sys.stdout.flush()
    os._exit(any(ending.startswith(bad) or "DIED" in ending for ending in endings))


if __name__ == "__main__":
    main()
