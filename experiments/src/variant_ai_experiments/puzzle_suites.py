"""Puzzle suites: positions with the move to find, and how many a player finds.

A suite is a file of JSON lines, `{"fen": …, "mate_in": 2, "pv": "e8e9 …"}`, a set of mates in one as
`variant-ai store mates` writes it, or EPD, whose operations `bm` (best moves), `dm` (mate in so many
moves) and `id` are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from variant_ai.core.arena.match.time_control import Allowance, PlayerClock, Turn
from variant_ai.core.arena.players.player import Fault, Player
from variant_ai.core.data.game_record import MATE
from variant_ai.core.errors import DataError, FenError, MoveError
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.text.notation import Notation

_OPERATION = re.compile(r'\s*(\w+)\s+("[^"]*"|[^;]*);')
COUNTERS = 2
"""Numbers that may end a FEN."""


@dataclass(frozen=True)
class Puzzle:
    """A position and what is asked."""

    fen: str
    best: tuple[int, ...] = ()
    """Moves that solve it; empty where any mate does."""
    mate_in: int | None = None
    """Full moves in which the side to move mates."""
    name: str = ""


@dataclass(frozen=True)
class Attempt:
    """What a player made of a puzzle."""

    puzzle: Puzzle
    move: str
    """UCI; empty where it failed to move."""
    solved: bool
    seconds: float
    nodes: int
    fault: str = ""


def read_suite(path: Path, rules: Rules, notations: Sequence[Notation]) -> tuple[Puzzle, ...]:
    """The puzzles of a file. Raises DataError naming the line that is none."""
    puzzles = []
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: {error}") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            if _is_head(line, rules):
                continue
            read = _from_json if line.lstrip().startswith("{") else _from_epd
            puzzles.append(read(line, rules, notations))
        except (ValueError, KeyError, FenError, MoveError) as error:
            raise DataError(f"{path}:{number}: {error}") from error
    if not puzzles:
        raise DataError(f"{path}: there is no puzzle in it")
    return tuple(puzzles)


def solve(
    player: Player, rules: Rules, puzzles: Sequence[Puzzle], allowance: Allowance, *, wait: float
) -> Iterator[Attempt]:
    """Have the player look at each puzzle, as a game of its own. `wait`: seconds after which it
    counts as hung; a fault is an attempt that failed, not an exception."""
    for puzzle in puzzles:
        game = Game(rules, puzzle.fen)
        clock = PlayerClock(allowance)
        try:
            player.start()
            player.new_game(game)
            reply = player.play(game, Turn((clock, clock), game.side, wait, wait))
        except Fault as fault:
            yield Attempt(puzzle, "", False, 0.0, 0, str(fault))
            continue
        told = reply.score is not None and puzzle.mate_in is not None
        # A line told to mate in time is as good as the one that the suite knows.
        quick = told and (reply.score or 0) >= MATE - (puzzle.mate_in or 0)
        side = game.side
        game.push(reply.move)
        outcome = game.outcome()
        mates = puzzle.mate_in is not None and outcome is not None and outcome.winner == side
        solved = reply.move in puzzle.best or mates or quick
        yield Attempt(puzzle, game.uci_moves()[-1], solved, reply.seconds, reply.nodes)


def _is_head(line: str, rules: Rules) -> bool:
    """Whether the line says what a set of mates in one is of (`variant-ai store mates`). Raises
    ValueError where that is another variant."""
    said = json.loads(line) if line.lstrip().startswith("{") else {}
    if not isinstance(said, dict) or "format" not in said or "fen" in said:
        return False
    if said.get("variant") != rules.spec.variant:
        raise ValueError(f"positions of {said.get('variant')!r}, not of {rules.spec.variant}")
    return True


def _from_json(line: str, rules: Rules, notations: Sequence[Notation]) -> Puzzle:
    said = json.loads(line)
    if "mates" in said:  # of a set of mates in one
        said |= {"bm": said["mates"], "mate_in": 1}
    mate_in = said.get("mate_in")
    words = said.get("bm") or str(said.get("pv", "")).split()[:1]
    words = words.split() if isinstance(words, str) else words
    if not isinstance(said.get("fen"), str):
        raise ValueError("there is no `fen`, a text")
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError(f"bm {words!r}: accepted: moves, in a text or a list")
    if mate_in is not None and (type(mate_in) is not int or mate_in < 1):
        raise ValueError(f"mate_in {mate_in!r}: accepted: a number from 1")
    if not words and mate_in is None:
        raise ValueError("neither bm (best moves), pv (a line) nor mate_in is there")
    return _puzzle(
        rules,
        notations,
        str(said["fen"]),
        words,
        mate_in,
        str(said.get("id", said.get("name", ""))),
    )


def _from_epd(line: str, rules: Rules, notations: Sequence[Notation]) -> Puzzle:
    """The fields that a FEN of the variant has, then operations that end in semicolons."""
    fields = sum(not word.isdigit() for word in rules.spec.rules.start.split())
    words = line.split()
    count = fields
    while count < min(len(words), fields + COUNTERS) and words[count].isdigit():
        count += 1
    rest = " ".join(words[count:])
    operations = {m[1]: m[2].strip().strip('"') for m in _OPERATION.finditer(rest + ";")}
    mate = operations.get("dm")
    best = operations.get("bm", "").split()
    if not best and mate is None:
        raise ValueError("neither bm (best moves) nor dm (mate in) is there")
    fen = " ".join(words[:count])
    return _puzzle(
        rules, notations, fen, best, int(mate) if mate else None, operations.get("id", "")
    )


def _puzzle(
    rules: Rules,
    notations: Sequence[Notation],
    fen: str,
    words: Sequence[str],
    mate_in: int | None,
    name: str,
) -> Puzzle:
    position = rules.position(fen)
    best = []
    for word in words:
        failure: MoveError | None = None
        for notation in notations:
            try:
                best.append(notation.read(rules, position, word))
                break
            except MoveError as error:
                failure = failure or error
        else:
            raise failure or MoveError(f"no notation reads {word!r}")
    return Puzzle(rules.fen(position), tuple(best), mate_in, name)
