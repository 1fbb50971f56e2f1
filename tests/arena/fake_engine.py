"""An engine for tests that speaks four protocols and misbehaves on demand.

    fake_engine.py [PROTOCOL:]MODE [AT] [COUNTER]

PROTOCOL is uci (where none is given), ucci, cyclone, xboard or xboard-old (version 1). It plays the
first legal move by pyffish, or the next one of the line in the environment's FAKE_LINE, with a
made-up score, and does what MODE says in the game numbered AT (0: always; `dies-from`: from AT on).
`says-result` (xboard) claims a result after its move, which is then late. `ponders` names the move it expects; an answer that it had pondered on has depth 9, not 1.
Games are counted in the file COUNTER, so that a restart does not forget.
"""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path
from typing import NoReturn

PROTOCOL, _, MODE = (sys.argv[1] if len(sys.argv) > 1 else "good").rpartition(":")
PROTOCOL = PROTOCOL or "uci"
AT = int(sys.argv[2]) if len(sys.argv) > 2 else 0
COUNTER = Path(sys.argv[3]) if len(sys.argv) > 3 else None
PARENT = os.getppid()
LINE = os.environ.get("FAKE_LINE", "").split()
ZERO = PROTOCOL != "uci"
"""Whether ranks count from 0; the games of the other protocols' tests have ten ranks."""


def say(text: str) -> None:
    sys.stdout.buffer.write(text.encode() + b"\n")
    sys.stdout.buffer.flush()


def hang() -> NoReturn:
    while os.getppid() == PARENT:  # a client that was killed kills nobody
        time.sleep(0.2)
    sys.exit()


def die() -> NoReturn:
    sys.stderr.write("something broke\nfatal: out of ideas\n")
    sys.stderr.flush()
    sys.exit(7)


def flood() -> NoReturn:
    while os.getppid() == PARENT:
        sys.stdout.buffer.write(b"info string and another thing\n" * 100)


class Game:
    """What the engine knows of the game it plays."""

    def __init__(self) -> None:
        self.variant = "xiangqi" if ZERO else "chess"
        self.number = 0
        self.fen = ""
        self.moves: list[str] = []

    def new(self) -> None:
        self.number += 1
        self.fen, self.moves = "", []
        if COUNTER is not None:
            self.number = int(COUNTER.read_text() or 0) + 1 if COUNTER.exists() else 1
            COUNTER.write_text(str(self.number))

    def mode(self) -> str:
        if MODE == "dies-from":
            return "dies" if self.number >= AT else "good"
        return MODE if AT in (0, self.number) else "good"

    def legal(self) -> list[str]:
        if LINE:
            second_begins = self.fen.split()[1:2] == ["b"]
            move = LINE[len(self.moves) + second_begins]
            return [shifted(move, -1) if ZERO else move]
        import pyffish

        fen = self.fen or pyffish.start_fen(self.variant)
        moves = [shifted(move, 1) for move in self.moves] if ZERO else self.moves
        return [
            shifted(move, -1) if ZERO else move
            for move in pyffish.legal_moves(self.variant, fen, moves)
        ]


def shifted(move: str, by: int) -> str:
    return re.sub(r"\d+", lambda rank: str(int(rank[0]) + by), move)


# --- UCI, UCCI, UCI-cyclone ----------------------------------------------------------------------


def uci() -> None:
    game, pondering = Game(), False
    for raw in sys.stdin.buffer:
        line = raw.decode().strip()
        word, _, rest = line.partition(" ")
        if word in ("uci", "ucci"):
            if MODE == "mute":
                hang()
            if MODE == "babbles":
                flood()
            greet(word)
        elif word == "setoption":
            name, _, value = rest.removeprefix("name ").partition(" value ")
            if name == "UCI_Variant":
                game.variant = value
            if name == "newgame":
                game.new()
            sys.stderr.write(f"set {name} to {value}\n")
            sys.stderr.flush()
        elif word == "isready":
            say("readyok")
        elif word == "ucinewgame":
            game.new()
        elif word in ("position", "fen", "startpos"):
            if word != "position":
                rest = line
            rest = rest.removeprefix("startpos").strip()
            fen, _, played = rest.removeprefix("fen ").partition("moves")
            game.fen = fen.strip().replace(" r ", " w ")
            game.moves = played.split()
        elif word == "go":
            pondering = rest.startswith("ponder")
            if not pondering:
                uci_answer(game)
        elif word == "ponderhit":
            pondering = False
            uci_answer(game, depth=9)
        elif word == "stop" and pondering:
            pondering = False
            uci_answer(game)
        elif word == "stop" and MODE == "late":
            say(f"bestmove {game.legal()[0]}")
        elif word == "quit":
            if MODE == "stubborn":
                hang()
            if PROTOCOL == "ucci":
                say("bye")
            return


def greet(word: str) -> None:
    say("Welcome to a fake engine")
    say("id name Fake Engine 1.0")
    say("id author nobody")
    sys.stdout.buffer.write(b"\xff\xfe not UTF-8\r\n")
    if word == "ucci":
        say("option usemillisec type check default false")
        say("option newgame type button")
        say("ucciok")
        return
    say("option name Hash type spin default 16 min 1 max 1024")
    say("option name Clear Hash type button")
    if MODE != "one-variant":
        names = "var chess var xiangqi var crazyhouse var tic tac toe"
        say(f"option name UCI_Variant type combo default chess {names}")
    say("option nonsense")
    say("uciok")


def uci_answer(game: Game, depth: int = 1) -> None:
    mode = game.mode()
    score = "score" if PROTOCOL == "ucci" else "score cp"
    if mode == "dies":
        die()
    if mode == "hangs":
        say("info depth 1 nodes 1 time 0")
        hang()
    if mode == "floods":
        flood()
    if mode == "late":
        return
    if mode == "slow":
        time.sleep(0.5)
    if mode == "illegal":
        say("bestmove a1a1")
        return
    if mode == "nonsense":
        say("info score cp pv")
        say("info depth x score mate nodes pv e2e4")
        say("bestmove")
        return
    if mode == "no-move":
        say("nobestmove" if PROTOCOL == "ucci" else "bestmove (none)")
        return
    if mode == "echo":
        say(f"bestmove {len(game.moves)}")
        return
    if mode == "scores":
        say("info string just thinking aloud")
        say("info depth 1 multipv 1 score cp 10 nodes 5 pv e2e4")
        say("info depth 1 multipv 2 score cp 8 nodes 9 pv d2d4")
        say("info depth 2 multipv 1 score mate -3 nodes 20 pv e2e4 e7e5")
        say("info depth 3 multipv 1 score cp 99 lowerbound nodes 30 pv a2a3")
        say("bestmove e2e4 ponder e7e5")
        return
    if mode == "candidates":
        for rank, (move, value) in enumerate((("e2e4", 10), ("d2d4", 8), ("c2c4", 5)), start=1):
            say(f"info depth 2 multipv {rank} score cp {value} nodes 20 pv {move} e7e5")
        say("info depth 3 multipv 1 score cp 15 nodes 30 pv d2d4 d7d5")
        say("info depth 3 multipv 2 score cp 11 nodes 40 pv e2e4 d7d5")
        say("info depth 3 multipv 3 score cp 2 upperbound nodes 50 pv c2c4")
        say("info string the score of nothing is 77")
        say("bestmove d2d4")
        return
    if mode == "parts":
        say("info depth 5 score cp -900 nodes 77")
        say("info depth 5 multipv 1 pv e2e4 e7e5")
        say("info depth 6 score cp -910 nodes 99")
        say("bestmove e2e4")
        return
    legal = game.legal()
    if mode == "lies":
        say(f"info depth 1 score mate 1 nodes 1 pv {legal[0]}")
        say(f"bestmove {legal[0]}")
        return
    if mode == "resigns":
        say(f"bestmove {legal[0]} resign")
        return
    value = -900 if mode == "loses" else len(game.moves)
    say(f"info depth {depth} {score} {value} nodes 1 pv {legal[0] if legal else ''}")
    said = f"bestmove {legal[0] if legal else '(none)'}"
    if mode == "ponders":
        game.moves.append(legal[0])
        said += f" ponder {game.legal()[0]}"
    say(said)


# --- XBoard --------------------------------------------------------------------------------------


def xboard() -> None:
    game, force, hard, depth = Game(), False, False, 1
    for raw in sys.stdin.buffer:
        line = raw.decode().strip()
        word, _, rest = line.partition(" ")
        if word == "protover" and MODE == "babbles":
            flood()
        elif word == "protover" and PROTOCOL == "xboard":
            say("Chess")
            say('# feature myname="not this"')
            say('feature done=0 myname="Fake Engine 1.0" setboard=1 ping=1 usermove=1')
            san = " san=1" if MODE == "san" else ""
            say(f'feature variants="xiangqi,normal"{san} done=1')
        elif word == "new":
            game.new()
            force = False
        elif word == "variant":
            game.variant = rest
        elif word == "ping":
            say(f"pong {rest}")
        elif word == "force":
            force = True
        elif word == "setboard":
            game.fen = rest
        elif word == "usermove" or re.fullmatch(r"[a-i]\d[a-i]\d", word):
            game.moves.append(rest or word)
            if not force:
                xboard_answer(game, depth=9 if hard else depth)
            elif MODE == "claims-early":
                say("1/2-1/2 {50 move rule}")
        elif word in ("hard", "easy"):
            hard = word == "hard"
        elif word == "sd":
            depth = int(rest)
        elif word == "go":
            force = False
            xboard_answer(game, depth)
        elif word == "?" and MODE == "late":
            say(f"move {game.legal()[0]}")
        elif word == "quit":
            return


def xboard_answer(game: Game, depth: int = 1) -> None:
    mode = game.mode()
    if mode == "dies":
        die()
    if mode in ("hangs", "claims-early"):
        hang()
    if mode == "late":
        return
    claims = {
        "claims-win": "1-0 {White mates}",
        "claims-loss": "0-1 {Black mates}",
        "claims-draw": "1/2-1/2 {Draw by repetition}",
        "calls-illegal": "Illegal move (no king): e2e4",
        "resigns": "resign",
        "illegal": "move a1a1",
    }
    if mode in claims:
        say(claims[mode])
        return
    move = game.legal()[0]
    say("1 bad line")
    say(f"{depth}. {len(game.moves)} 0 1 {move}")
    say(f"1. ... {move}" if PROTOCOL == "xboard-old" else f"move {move}")
    game.moves.append(move)
    if mode == "says-result":
        say("1-0 {White wins}")


if MODE == "dead":
    die()
if PROTOCOL.startswith("xboard"):
    xboard()
else:
    uci()
