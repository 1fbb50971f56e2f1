"""Lines and positions to start games from: read from a file or a list, drawn from a game store."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.read.game_files import read_bytes
from variant_ai.core.data.read.game_reader import GameReader, RawGame, Skip
from variant_ai.core.data.read.importer import Importer, MakeResolver
from variant_ai.core.data.read.resolve import Resolver
from variant_ai.core.data.store.game_store import Store
from variant_ai.core.errors import DataError, FenError
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules

POSITION_SUFFIXES = (".epd", ".fen")
MAX_OPENINGS = 1_000_000
DRAWS = 20
"""Positions drawn for one that is kept, before a store counts as used up."""
_NUMBER = re.compile(r"\d+\.+")


@dataclass(frozen=True)
class Opening:
    """Where a game begins: a position, and moves played from it that belong to the game."""

    fen: str | None = None
    """None: the variant's start position."""
    moves: tuple[int, ...] = ()
    """Move integers, all legal."""


def read_positions(path: Path, rules: Rules) -> tuple[Opening, ...]:
    """Openings of a file with a FEN or an EPD a line; blank lines and `#` lines are passed over.

    EPD's operations (`bm e4; id "1";`) are dropped; counters that are missing begin anew.
    Raises DataError naming file and line where a line is no position of the variant.
    """
    fields = sum(not word.isdigit() for word in rules.spec.rules.start.split())
    fens: dict[str, None] = {}
    for number, line in enumerate(
        read_bytes(path).decode("utf-8-sig", "replace").splitlines(), start=1
    ):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            fens[rules.fen(rules.position(_fen_of(text, fields)))] = None
        except FenError as error:
            raise DataError(f"{path}:{number}: {error}") from error
    return _some([Opening(fen) for fen in fens], path)


def read_lines(
    path: Path,
    plies: int,
    readers: Sequence[GameReader],
    make_resolver: MakeResolver,
    say: Callable[[str], None] = lambda text: None,
) -> tuple[Opening, ...]:
    """The first plies of each game of a file (PGN, or whatever the readers read), each line once.
    `say` is told how many could not be read.

    Raises DataError where no game can be read, with the first reason.
    """
    lines: dict[Opening, None] = {}

    class Lines:
        def add(self, record: GameRecord) -> None:
            lines[Opening(record.start_fen, tuple(record.moves[:plies]))] = None

    reasons: list[str] = []
    importer = Importer(
        readers, make_resolver, on_skip=lambda skip: reasons.append(f"{skip.reason}: {skip.detail}")
    )
    importer.run([path], Lines())
    if reasons and lines:
        say(f"{path}: {len(reasons)} of the openings could not be read; {reasons[0]}")
    return _some(list(lines), path, reasons[0] if reasons else "")


def line_openings(lines: Sequence[str], resolver: Resolver) -> tuple[Opening, ...]:
    """Openings out of lines of moves in any notation of the variant, move numbers or not:
    `1.e4 e5 2.Nf3`. Raises DataError naming the line that is not legal."""
    openings = []
    for number, line in enumerate(lines, start=1):
        moves = _NUMBER.sub(" ", line).split()
        raw = RawGame("openings", number, number, moves=moves, lines=[number] * len(moves))
        record = resolver.resolve(raw)
        if isinstance(record, Skip):
            raise DataError(f"opening {number} ({line!r}): {record.detail or record.reason}")
        openings.append(Opening(record.start_fen, tuple(record.moves)))
    return _some(openings, Path("openings"))


def drawn_from_store(
    store: Store, rules: Rules, count: int, plies: tuple[int, int], seed: int
) -> tuple[Opening, ...]:
    """`count` positions of recorded games, `plies` (least, most) deep, each of another game and no
    two alike; the moves that led there belong to the opening (thesis 5.2: at most 100 plies).

    Raises DataError where the store has too few.
    """
    chance = random.Random(f"positions {seed}")
    least, most = plies
    found: dict[str, Opening] = {}
    indices = list(range(len(store)))
    chance.shuffle(indices)
    for index in indices[: DRAWS * count]:
        record = store.game(index)
        deepest = min(most, record.plies - 1)
        if deepest < least:
            continue
        depth = chance.randint(least, deepest)
        game = played_out(rules, Opening(record.start_fen, tuple(record.moves[:depth])))
        if game.outcome() is None:
            key = " ".join(word for word in game.fen().split() if not word.isdigit())
            found.setdefault(key, Opening(record.start_fen, tuple(record.moves[:depth])))
        if len(found) == count:
            return tuple(found.values())
    raise DataError(
        f"{store.path}: only {len(found)} different positions {least} to {most} plies deep were "
        f"found, {count} are wanted"
    )


def random_lines(
    rules: Rules, count: int, plies: tuple[int, int], seed: int
) -> tuple[Opening, ...]:
    """At most `count` different lines of random legal moves, `plies` (least, most) long, that do
    not end the game."""
    chance = random.Random(f"random lines {seed}")
    found: dict[tuple[int, ...], Opening] = {}
    for _ in range(DRAWS * count):
        game = Game(rules)
        for _ in range(chance.randint(*plies)):
            if game.outcome() is not None:
                break
            game.push(int(chance.choice(game.legal_moves())))
        if game.outcome() is None:
            found.setdefault(tuple(game.moves), Opening(None, tuple(game.moves)))
        if len(found) == count:
            break
    return tuple(found.values()) or (Opening(),)


def played_out(rules: Rules, opening: Opening) -> Game:
    """A game at the end of its opening."""
    game = Game(rules, opening.fen)
    for move in opening.moves:
        game.push(move)
    return game


def _some(openings: list[Opening], path: Path, why: str = "") -> tuple[Opening, ...]:
    if not openings:
        raise DataError(f"{path}: there is no opening in it{f' ({why})' if why else ''}")
    if len(openings) > MAX_OPENINGS:
        raise DataError(f"{path}: more than {MAX_OPENINGS} openings")
    return tuple(openings)


def _fen_of(line: str, fields: int) -> str:
    """The FEN in a line of EPD or FEN: so many fields, and counters where they follow."""
    words = line.split(";", maxsplit=1)[0].split()
    counters = []
    for word in words[fields : fields + 2]:
        if not word.isdigit():
            break
        counters.append(word)
    return " ".join(words[:fields] + counters)
