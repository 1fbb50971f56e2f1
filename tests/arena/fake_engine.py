"""A UCI engine for tests that misbehaves on demand.

    fake_engine.py MODE [AT] [COUNTER]

It plays the first legal move by pyffish, with a made-up score, and does what MODE says in the game
numbered AT (0: always; `dies-from`: from AT on). Games are counted in the file COUNTER, so that a restart does not forget.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import NoReturn

MODE = sys.argv[1] if len(sys.argv) > 1 else "good"
AT = int(sys.argv[2]) if len(sys.argv) > 2 else 0
COUNTER = Path(sys.argv[3]) if len(sys.argv) > 3 else None


def say(text: str) -> None:
    sys.stdout.buffer.write(text.encode() + b"\n")
    sys.stdout.buffer.flush()


def hang() -> NoReturn:
    while True:
        time.sleep(60)


def die() -> NoReturn:
    sys.stderr.write("something broke\nfatal: out of ideas\n")
    sys.stderr.flush()
    sys.exit(7)


def main() -> None:
    variant, fen, game = "chess", "", 0
    moves: list[str] = []
    if MODE == "dead":
        die()
    for raw in sys.stdin.buffer:
        line = raw.decode().strip()
        word, _, rest = line.partition(" ")
        if word == "uci":
            if MODE == "mute":
                hang()
            say("Welcome to a fake engine")
            say("id name Fake Engine 1.0")
            say("id author nobody")
            sys.stdout.buffer.write(b"\xff\xfe not UTF-8\r\n")
            say("option name Hash type spin default 16 min 1 max 1024")
            say("option name Clear Hash type button")
            if MODE != "one-variant":
                names = "var chess var xiangqi var crazyhouse var tic tac toe"
                say(f"option name UCI_Variant type combo default chess {names}")
            say("option nonsense")
            say("uciok")
        elif word == "setoption":
            name, _, value = rest.removeprefix("name ").partition(" value ")
            if name == "UCI_Variant":
                variant = value
            sys.stderr.write(f"set {name} to {value}\n")
            sys.stderr.flush()
        elif word == "isready":
            say("readyok")
        elif word == "ucinewgame":
            game += 1
            if COUNTER is not None:
                game = int(COUNTER.read_text() or 0) + 1 if COUNTER.exists() else 1
                COUNTER.write_text(str(game))
        elif word == "position":
            fen, _, played = rest.removeprefix("fen ").partition(" moves ")
            moves = played.split()
        elif word == "go":
            wrong = MODE if AT in (0, game) else "good"
            if MODE == "dies-from" and game >= AT:
                wrong = "dies"
            answer(wrong, variant, fen, moves)
        elif word == "quit":
            if MODE == "stubborn":
                hang()
            return


def answer(mode: str, variant: str, fen: str, moves: list[str]) -> None:
    if mode == "dies":
        die()
    if mode == "hangs":
        say("info depth 1 nodes 1 time 0")
        hang()
    if mode == "illegal":
        say("bestmove a1a1")
        return
    if mode == "nonsense":
        say("info score cp pv")
        say("info depth x score mate nodes pv e2e4")
        say("bestmove")
        return
    if mode == "no-move":
        say("bestmove (none)")
        return
    if mode == "echo":
        say(f"bestmove {len(moves)}")
        return
    if mode == "scores":
        say("info string just thinking aloud")
        say("info depth 1 multipv 1 score cp 10 nodes 5 pv e2e4")
        say("info depth 1 multipv 2 score cp 8 nodes 9 pv d2d4")
        say("info depth 2 multipv 1 score mate -3 nodes 20 pv e2e4 e7e5")
        say("info depth 3 multipv 1 score cp 99 lowerbound nodes 30 pv a2a3")
        say("bestmove e2e4 ponder e7e5")
        return
    import pyffish

    legal = pyffish.legal_moves(variant, fen, moves)
    say(f"info depth 1 score cp {len(moves)} nodes 1 pv {legal[0] if legal else ''}")
    say(f"bestmove {legal[0] if legal else '(none)'}")


main()
