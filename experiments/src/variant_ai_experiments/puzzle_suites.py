"""Puzzle suites: positions with a best move, and the number that a player solves.

A suite is a file of JSON lines, `{"fen": …, "mate_in": 2, "pv": "e8e9 …"}`, a set of mates in one as
`variant-ai store mates` writes it, or EPD with the operations `bm` (best moves), `dm` (moves until mate)
and `id`.
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
"""Maximum number of counters at the end of a FEN."""


@dataclass(frozen=True)
class Puzzle:
    """A position and its solutions."""

    fen: str
    best: tuple[int, ...] = ()
    """Moves that solve it; empty if any mate does."""
    mate_in: int | None = None
    """Full moves in which the side to move mates."""
    name: str = ""


@dataclass(frozen=True)
class Attempt:
    """Answer of a player to a puzzle."""

    puzzle: Puzzle
    move: str
    """In UCI; empty if the player did not move."""
    solved: bool
    seconds: float
    nodes: int
    fault: str = ""


def read_suite(path: Path, rules: Rules, notations: Sequence[Notation]) -> tuple[Puzzle, ...]:
    """Return the puzzles of a file. Raises DataError with the line that cannot be read."""
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
        raise DataError(f"{path}: the file contains no puzzle")
    return tuple(puzzles)


def solve(
    player: Player, rules: Rules, puzzles: Sequence[Puzzle], allowance: Allowance, *, wait: float
) -> Iterator[Attempt]:
    """Let the player solve each puzzle, as a game of its own.

    wait: seconds after which the player counts as hung. A fault is a failed attempt, not an exception.
    """
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
        # A mate announced in time counts like the line of the suite.
        quick = (
            reply.score is not None
            and puzzle.mate_in is not None
            and reply.score >= MATE - puzzle.mate_in
        )
        side = game.side
        game.push(reply.move)
        outcome = game.outcome()
        mates = puzzle.mate_in is not None and outcome is not None and outcome.winner == side
        solved = reply.move in puzzle.best or mates or quick
        yield Attempt(puzzle, game.uci_moves()[-1], solved, reply.seconds, reply.nodes)


def _is_head(line: str, rules: Rules) -> bool:
    """Return True if the line is the head of a set of mates in one (`variant-ai store mates`).

    Raises ValueError if the set is of another variant.
    """
    head = json.loads(line) if line.lstrip().startswith("{") else {}
    if not isinstance(head, dict) or "format" not in head or "fen" in head:
        return False
    if head.get("variant") != rules.spec.variant:
        raise ValueError(f"positions of {head.get('variant')!r}, not of {rules.spec.variant}")
    return True


def _from_json(line: str, rules: Rules, notations: Sequence[Notation]) -> Puzzle:
    item = json.loads(line)
    if "mates" in item:  # of a set of mates in one
        item |= {"bm": item["mates"], "mate_in": 1}
    mate_in = item.get("mate_in")
    words = item.get("bm") or str(item.get("pv", "")).split()[:1]
    words = words.split() if isinstance(words, str) else words
    if not isinstance(item.get("fen"), str):
        raise ValueError("`fen`, a text, is missing")
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError(f"bm {words!r}; accepted: moves, in a text or a list")
    if mate_in is not None and (type(mate_in) is not int or mate_in < 1):
        raise ValueError(f"mate_in {mate_in!r}; accepted: a number from 1")
    if not words and mate_in is None:
        raise ValueError("bm (best moves), pv (a line) and mate_in are missing; one is required")
    name = str(item.get("id", item.get("name", "")))
    return _puzzle(rules, notations, item["fen"], words, mate_in, name)


def _from_epd(line: str, rules: Rules, notations: Sequence[Notation]) -> Puzzle:
    """Read the fields of a FEN of the variant, then operations that end in semicolons."""
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
        raise ValueError("bm (best moves) and dm (mate in) are missing; one is required")
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
