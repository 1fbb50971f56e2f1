"""Opening lines of a Polyglot book: positions by a 64-bit key, each with moves and their weights.

The key is defined for chess alone: it knows a board of 8 x 8 squares, the six kinds of pieces,
castling, en passant and the side to move. So books are read for variants that are played with
these, and refused for all others, whose positions have no key. Pieces in hand are not in the key;
where a variant has them, positions that differ in hands alone share their entries (as books that
python-chess reads and writes have it, drops included), and a move that our rules refuse is passed
over.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from variant_ai.core.arena.games.openings import Opening
from variant_ai.core.errors import DataError, MoveError
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.text.notation import UciNotation

if TYPE_CHECKING:
    from chess.polyglot import MemoryMappedReader

BOOK_SUFFIX = ".bin"
BOOK_LINES = 1000
"""Lines drawn of a book where nobody says how many."""
TRIES = 100
"""Lines drawn for one that is new, before a book counts as used up."""
PIECES = frozenset("PNBRQK")
SIDE = 8
"""Files, and ranks, of a board that has a key."""
_CASTLING = {"e1h1": "e1g1", "e1a1": "e1c1", "e8h8": "e8g8", "e8a8": "e8c8"}
"""Books write castling as the king that takes its rook."""


def refuse_book(rules: Rules) -> str:
    """Why positions of the variant have no key; empty: they have one."""
    spec = rules.spec
    if (spec.board.files, spec.board.ranks) != (SIDE, SIDE):
        return f"its board is {spec.board.files} x {spec.board.ranks}"
    others = sorted(set(spec.pieces) ^ PIECES)
    if others:
        return f"its pieces are not those of chess ({', '.join(others)})"
    return ""


def book_lines(
    path: Path, rules: Rules, plies: int, *, count: int | None = None, seed: int = 0
) -> tuple[Opening, ...]:
    """Lines from the start position, every move drawn by its weight in the book, no two alike.

    A line ends after `plies` plies, or where the book knows no further move. count: lines wanted;
    None: `BOOK_LINES`, or as many as the book has. The same seed draws the same lines.

    Raises DataError where the file is no book, has no line of the variant or too few of them,
    where the variant's positions have no key, and without python-chess.
    """
    refused = refuse_book(rules)
    if refused:
        raise DataError(
            f"{path}: Polyglot books are for positions of chess, which {rules.spec.variant} does "
            f"not have: {refused}; give openings as positions (.epd) or lines of moves"
        )
    chance = random.Random(f"book {seed}")
    found: dict[tuple[int, ...], None] = {}
    wanted = BOOK_LINES if count is None else count
    failed = 0
    with _opened(path) as book:
        known = _remembered(rules, book)
        while len(found) < wanted and failed < TRIES:
            line = _line(rules, known, plies, chance)
            failed = failed + 1 if not line or line in found else 0
            if line:
                found[line] = None
    if not found:
        raise DataError(f"{path}: the book has no move for the start of {rules.spec.variant}")
    if count is not None and len(found) < count:
        raise DataError(
            f"{path}: only {len(found)} different lines of at most {plies} plies were found, "
            f"{count} are wanted"
        )
    return tuple(Opening(None, line) for line in found)


def weighted_moves(rules: Rules, book: MemoryMappedReader, game: Game) -> list[tuple[int, int]]:
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
        if text in _CASTLING and board.piece_type_at(entry.move.from_square) == chess.KING:
            text = _CASTLING[text]
        if entry.move.from_square == entry.move.to_square and entry.move.drop is None:
            text = f"P@{text[:2]}"  # the code of a pawn is that of no promotion
        try:
            move = _UCI.read(rules, game.position, text)
        except MoveError:
            continue
        moves[move] = moves.get(move, 0) + entry.weight
    return list(moves.items())


Known = Callable[[Game], list[tuple[int, int]]]


def _remembered(rules: Rules, book: MemoryMappedReader) -> Known:
    """`weighted_moves`, each position looked up once: lines share their beginnings."""
    seen: dict[tuple[int, ...], list[tuple[int, int]]] = {}

    def known(game: Game) -> list[tuple[int, int]]:
        key = tuple(game.moves)
        if key not in seen:
            seen[key] = weighted_moves(rules, book, game)
        return seen[key]

    return known


def _line(rules: Rules, known: Known, plies: int, chance: random.Random) -> tuple[int, ...]:
    """A line that does not end the game; shorter by a move where the book's would."""
    game = Game(rules)
    while game.ply < plies and (moves := known(game)):
        game.push(chance.choices([m for m, _ in moves], [weight for _, weight in moves])[0])
        if game.outcome() is not None:
            return tuple(game.moves[:-1])
    return tuple(game.moves)


def _opened(path: Path) -> MemoryMappedReader:
    try:
        from chess.polyglot import open_reader
    except ModuleNotFoundError as error:
        raise DataError(
            f"{path}: reading a Polyglot book needs python-chess; install variant-ai[books]"
        ) from error
    try:
        return open_reader(path)
    except OSError as error:
        raise DataError(f"{path}: no Polyglot book: {error.strerror or error}") from error


_UCI = UciNotation()
