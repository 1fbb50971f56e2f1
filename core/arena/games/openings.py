"""Openings: read from files, sampled from stores, Polyglot books, a network's policy, or random
play.

Keys of a Polyglot book are defined for chess only: a board of 8 x 8 squares, the six kinds of
pieces, castling, en passant and the side to move. So books are accepted for variants with that
board and these pieces. Keys do not include pieces in hand; positions that differ only in hands
share their entries, as in books that python-chess reads and writes (drops included), and illegal
moves are skipped.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from variant_ai.core.arena.players.player import random_move
from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.read.game_files import read_bytes
from variant_ai.core.data.read.game_reader import GameReader, RawGame, Skip
from variant_ai.core.data.read.importer import Importer, MakeResolver
from variant_ai.core.data.read.resolve import Resolver
from variant_ai.core.data.store.game_store import Store
from variant_ai.core.errors import DataError, FenError, MoveError
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.shuffled_starts import STARTS, is_shuffled, random_start, shuffled_start
from variant_ai.core.rules.text.notation import UciNotation
from variant_ai.core.system.missing_packages import missing_packages_explained
from variant_ai.core.system.text_tables import counted

if TYPE_CHECKING:
    from chess.polyglot import MemoryMappedReader

POSITION_SUFFIXES = (".epd", ".fen")
BOOK_SUFFIX = ".bin"
STORE_TRIES = 20
"""Positions sampled for each one wanted, before a store is exhausted."""
BOOK_LINES = 1000
"""Lines sampled from a book by default."""
BOOK_TRIES = 100
"""Lines in a row that are not new, after which a book is exhausted."""
POLICY_TRIES = 50
"""The same for a policy."""
POLICY_PLIES = 5.84, 2.77
"""Mean and standard deviation of the lengths of the published openings ([CrazyAra-preprint] section
7)."""
BOOK_PIECES = frozenset("PNBRQK")
BOOK_BOARD = 8, 8
_BOOK_CASTLING = {"e1h1": "e1g1", "e1a1": "e1c1", "e8h8": "e8g8", "e8a8": "e8c8"}
"""Books write castling as the king that captures its rook."""
_NUMBER = re.compile(r"\d+\.+")
_UCI = UciNotation()

Priors = Callable[[Game], Sequence[tuple[int, float]]]
"""Legal moves of a game's position with their probabilities, on any positive scale."""
BookMoves = Callable[[tuple[int, ...]], list[tuple[int, int]]]
"""Moves of a book after a line of moves, with their weights."""


@dataclass(frozen=True)
class Opening:
    """Start of a game: a position, and moves played from it that belong to the game."""

    fen: str | None = None
    """None: the variant's start position."""
    moves: tuple[int, ...] = ()
    """All legal."""


def played_out(rules: Rules, opening: Opening) -> Game:
    """Make a game at the end of its opening."""
    game = Game(rules, opening.fen)
    for move in opening.moves:
        game.push(move)
    return game


def openings_digest(openings: Sequence[Opening]) -> str:
    """Digest of openings in their order, 16 hex digits."""
    return hashlib.blake2b(repr(tuple(openings)).encode(), digest_size=8).hexdigest()


# --- files -------------------------------------------------------------------------------------


def read_positions(path: Path, rules: Rules) -> tuple[Opening, ...]:
    """Read a file with a FEN or an EPD per line; blank lines and lines with `#` are skipped.

    EPD operations (`bm e4; id "1";`) are dropped; missing counters start from the beginning. Raises
    DataError with file and line for a line that is not a position of the variant.
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
    return _checked([Opening(fen) for fen in fens], path)


def read_lines(
    path: Path,
    plies: int,
    readers: Sequence[GameReader],
    make_resolver: MakeResolver,
    report: Callable[[str], None] = lambda text: None,
) -> tuple[Opening, ...]:
    """Read the first plies of each game of a file (PGN or any other format of the readers), without
    repetitions. report: called with the number of games that could not be read.

    Raises DataError if no game can be read, with the first reason.
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
        report(f"{path}: {len(reasons)} of the openings could not be read; {reasons[0]}")
    return _checked(list(lines), path, reasons[0] if reasons else "")


def line_openings(lines: Sequence[str], resolver: Resolver) -> tuple[Opening, ...]:
    """Read lines of moves in any notation of the variant, with or without move numbers:
    `1.e4 e5 2.Nf3`. Raises DataError with the line that is not legal."""
    openings = []
    for number, line in enumerate(lines, start=1):
        moves = _NUMBER.sub(" ", line).split()
        raw = RawGame("openings", number, number, moves=moves, lines=[number] * len(moves))
        record = resolver.resolve(raw)
        if isinstance(record, Skip):
            raise DataError(f"opening {number} ({line!r}): {record.detail or record.reason}")
        openings.append(Opening(record.start_fen, tuple(record.moves)))
    return _checked(openings, Path("openings"))


def _checked(openings: list[Opening], path: Path, reason: str = "") -> tuple[Opening, ...]:
    if not openings:
        raise DataError(f"{path}: there is no opening in it{f' ({reason})' if reason else ''}")
    return tuple(openings)


def _fen_of(line: str, fields: int) -> str:
    """FEN in a line of EPD or FEN: the given number of fields, and counters if they follow."""
    words = line.split(";", maxsplit=1)[0].split()
    counters = []
    for word in words[fields : fields + 2]:
        if not word.isdigit():
            break
        counters.append(word)
    return " ".join(words[:fields] + counters)


# --- stores and random play ----------------------------------------------------------------------


def sampled_from_store(
    store: Store, rules: Rules, count: int, plies: tuple[int, int], seed: int
) -> tuple[Opening, ...]:
    """Sample `count` distinct positions of recorded games, each of another game.

    plies: minimum and maximum plies before the position ([Xiangqi-thesis] 5.2: at most 100); these
    moves belong to the opening. Raises DataError if the store has too few.
    """
    chance = random.Random(f"positions {seed}")
    least, most = plies
    found: dict[str, Opening] = {}
    indices = list(range(len(store)))
    chance.shuffle(indices)
    for index in indices[: STORE_TRIES * count]:
        record = store.game(index)
        deepest = min(most, record.plies - 1)
        if deepest < least:
            continue
        opening = Opening(record.start_fen, tuple(record.moves[: chance.randint(least, deepest)]))
        game = played_out(rules, opening)
        if game.outcome() is None:
            found.setdefault(_without_counters(game.fen()), opening)
        if len(found) == count:
            return tuple(found.values())
    raise DataError(
        f"{store.path}: only {len(found)} of {count} different positions were found after {least} to "
        f"{counted(most, 'ply')}; ask for fewer, or for other plies"
    )


def _without_counters(fen: str) -> str:
    """FEN without its numbers: equal for positions that differ only in counters."""
    return " ".join(word for word in fen.split() if not word.isdigit())


def random_starts(rules: Rules, count: int | None, seed: int) -> tuple[Opening, ...]:
    """Different start positions in random order, at most `count`, None: all; the only one of a variant
    without `shuffle: chess960`."""
    if not is_shuffled(rules.spec):
        return (Opening(),)
    numbers = random.Random(f"starts {seed}").sample(range(STARTS), min(count or STARTS, STARTS))
    return tuple(Opening(shuffled_start(rules.spec, number)) for number in numbers)


def random_lines(
    rules: Rules, count: int, plies: tuple[int, int], seed: int
) -> tuple[Opening, ...]:
    """Sample at most `count` lines of random legal moves to different positions, none of which ends
    the game; with `shuffle: chess960` from random start positions. plies: minimum and maximum. Without such a
    line the start position is returned."""
    chance = random.Random(f"random lines {seed}")
    found: dict[str, Opening] = {}
    for _ in range(STORE_TRIES * count):
        start = random_start(rules.spec, chance)
        game = Game(rules, start)
        for _ in range(chance.randint(*plies)):
            if game.outcome() is not None:
                break
            game.push(random_move(chance, game))
        if game.outcome() is None:
            found.setdefault(_without_counters(game.fen()), Opening(start, tuple(game.moves)))
        if len(found) == count:
            break
    return tuple(found.values()) or (Opening(),)


class OpeningSampler:
    """Openings of generated games: given ones in turn, then random legal moves."""

    def __init__(
        self, rules: Rules, openings: Sequence[Opening], plies: tuple[int, int], seed: int
    ) -> None:
        """plies: minimum and maximum of random moves."""
        self.rules, self.openings, self.plies, self.seed = rules, tuple(openings), plies, seed
        self._seen: set[str] = set()

    def opening(self, number: int) -> Opening:
        """Given opening of game `number`; instead of the start position, a random one with
        `shuffle: chess960`."""
        opening = self.openings[number % len(self.openings)]
        if opening == Opening():
            chance = random.Random(f"start {self.seed} {number}")
            return Opening(random_start(self.rules.spec, chance))
        return opening

    def game(self, number: int) -> Game:
        """Sample the start of game `number`; call in the order of numbers. It differs from the
        starts of earlier games, unless OPENING_TRIES samples did not find a new one."""
        chance = random.Random(f"opening {self.seed} {number}")
        opening = self.opening(number)
        least, most = self.plies
        game = played_out(self.rules, opening)
        for attempt in range(OPENING_TRIES):
            # If all short openings have been used, sample longer ones.
            plies = chance.randint(least, most + attempt // 10)
            game = played_out(self.rules, opening)
            while game.ply < len(opening.moves) + plies and game.outcome() is None:
                game.push(random_move(chance, game))
            key = game.fen()
            if game.outcome() is None and key not in self._seen:
                self._seen.add(key)
                break
        return game


OPENING_TRIES = 100
"""Samples of a generated game's opening, before one that has been used is accepted."""


# --- a network's policy ----------------------------------------------------------------------------


def policy_lines(
    rules: Rules,
    priors: Priors,
    count: int,
    *,
    plies: tuple[float, float] = POLICY_PLIES,
    seed: int = 0,
    temperature: float = 1.0,
) -> Iterator[Opening]:
    """Sample `count` different lines from the start position that do not end the game.

    plies: mean and standard deviation of their lengths, normally distributed, at least 1.
    temperature: above 1, unlikely moves are sampled more often. Raises DataError if the policy has
    no more lines.
    """
    chance = random.Random(f"lines {seed}")
    seen: set[tuple[int, ...]] = set()
    failed = 0
    while len(seen) < count:
        game = Game(rules)
        for _ in range(max(1, round(chance.gauss(*plies)))):
            moves = priors(game)
            most = max(probability for _, probability in moves)  # so that no power underflows
            weights = [(probability / most) ** (1 / temperature) for _, probability in moves]
            game.push(chance.choices([move for move, _ in moves], weights)[0])
            if game.outcome() is not None:
                break
        line = tuple(game.moves)
        if line in seen or game.outcome() is not None:
            failed += 1
            if failed > POLICY_TRIES:
                raise DataError(
                    f"found only {counted(len(seen), 'different line')}; give longer ones or a higher "
                    "temperature"
                )
            continue
        failed = 0
        seen.add(line)
        yield Opening(None, line)


# --- Polyglot books --------------------------------------------------------------------------------


def book_rejection(rules: Rules) -> str:
    """Return why positions of the variant have no key in Polyglot books; empty if they have one."""
    spec = rules.spec
    if (spec.board.files, spec.board.ranks) != BOOK_BOARD:
        return f"its board is {spec.board.files} x {spec.board.ranks}"
    others = sorted(set(spec.pieces) ^ BOOK_PIECES)
    if others:
        return f"its pieces are not those of chess ({', '.join(others)})"
    return ""


def book_lines(
    path: Path, rules: Rules, plies: int, *, count: int | None = None, seed: int = 0
) -> tuple[Opening, ...]:
    """Sample different lines of a Polyglot book from the start position, each move by its weight.

    A line ends after `plies` plies, or where the book has no more moves. count: number of lines;
    None: BOOK_LINES, or as many as the book has.

    Raises DataError if the file is not a book or has too few lines of the variant, if books do not
    support the variant, and if python-chess is missing.
    """
    reason = book_rejection(rules)
    if reason:
        raise DataError(
            f"{path}: Polyglot books do not support {rules.spec.variant}: {reason}; give openings as "
            "positions (.epd) or lines of moves"
        )
    chance = random.Random(f"book {seed}")
    found: dict[tuple[int, ...], None] = {}
    failed = 0
    with _open_book(path) as book:

        @cache  # lines share their first moves
        def moves(line: tuple[int, ...]) -> list[tuple[int, int]]:
            return book_moves(rules, book, played_out(rules, Opening(None, line)))

        while len(found) < (count or BOOK_LINES) and failed < BOOK_TRIES:
            line = _book_line(rules, moves, plies, chance)
            failed = failed + 1 if not line or line in found else 0
            if line:
                found[line] = None
    if not found:
        raise DataError(f"{path}: the book has no move for the start of {rules.spec.variant}")
    if count is not None and len(found) < count:
        raise DataError(
            f"{path}: only {len(found)} of {count} different lines of at most {counted(plies, 'ply')} were found"
        )
    return tuple(Opening(None, line) for line in found)


def book_moves(rules: Rules, book: MemoryMappedReader, game: Game) -> list[tuple[int, int]]:
    """Legal moves of the book in the game's position, with their weights (above 0)."""
    import chess
    from chess.polyglot import zobrist_hash

    placed, turn, castling, passant = game.fen().split()[:4]
    board = chess.Board(None)
    board.set_board_fen(placed.partition("[")[0].replace("~", ""))
    board.turn = turn == "w"
    board.set_castling_fen(castling)
    board.ep_square = chess.SQUARE_NAMES.index(passant) if passant != "-" else None
    moves: dict[int, int] = {}
    for entry in book.find_all(zobrist_hash(board)):
        text = entry.move.uci()
        if text in _BOOK_CASTLING and board.piece_type_at(entry.move.from_square) == chess.KING:
            text = _BOOK_CASTLING[text]
        if entry.move.from_square == entry.move.to_square and entry.move.drop is None:
            text = f"P@{text[:2]}"  # a dropped pawn has the code of no promotion
        try:
            move = _UCI.read(rules, game.position, text)
        except MoveError:
            continue
        moves[move] = moves.get(move, 0) + entry.weight
    return list(moves.items())


def _book_line(rules: Rules, book: BookMoves, plies: int, chance: random.Random) -> tuple[int, ...]:
    """Sample a line; if its last move ends the game, that move is left out."""
    game = Game(rules)
    while game.ply < plies and (moves := book(tuple(game.moves))):
        game.push(chance.choices([m for m, _ in moves], [weight for _, weight in moves])[0])
        if game.outcome() is not None:
            return tuple(game.moves[:-1])
    return tuple(game.moves)


def _open_book(path: Path) -> MemoryMappedReader:
    with missing_packages_explained():
        from chess.polyglot import open_reader
    try:
        return open_reader(path)
    except OSError as error:
        raise DataError(f"{path}: not a Polyglot book: {error.strerror or error}") from error
