"""A xiangqi move as it is spoken: which piece, from which file, which way, how far or where to.

Chinese notation and WXF say the same things in different signs; both translate to and from a
`Description`, and this module alone knows what one means on the board.

    files are numbered 1-9 from the mover's right:

        Black   1 2 3 4 5 6 7 8 9
                a b c d e f g h i
        Red     9 8 7 6 5 4 3 2 1

    way     '+' forward, '-' backward, '=' sideways, all as the mover sees it
    number  of a general, chariot, cannon or soldier: steps along the file, or the file it goes to
            sideways; of an advisor, elephant or horse: the file it goes to
    place   of several alike on one file: FRONT, MIDDLE, BACK, or 1-5 counted from the front; with
            soldiers doubled on several files all of these are counted, from the mover's right
"""

from __future__ import annotations

from dataclasses import dataclass

from variant_ai.core.errors import MoveError
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import (
    Position,
    make_move,
    move_origin,
    move_target,
    piece_code,
)

FILES = 9
SQUARES = 90
FRONT, MIDDLE, BACK = -1, -2, -3
DIAGONAL = "ABN"
"""Pieces whose number is always the file they go to."""


@dataclass(frozen=True, slots=True)
class Description:
    """A spoken move. `file` 0: not said; `place` 0: not said."""

    piece: str
    """The spec's letter: K, A, B, N, R, C, P."""
    file: int
    place: int
    way: str
    number: int


def find(rules: Rules, position: Position, said: Description) -> list[int]:
    """Legal moves that the description fits; the one it means, where it is well-formed."""
    black = int(position["side"][0])
    code = piece_code(rules.types.by_symbol[said.piece].index, black)
    squares = _squares(position, code)
    if said.place:
        squares = _at_place(squares, black, said)
    elif said.file:
        squares = [square for square in squares if file_number(square, black) == said.file]
    # Geometry first, legality last: where a piece may go to is one square, seldom two.
    moves = [
        make_move(origin, target)
        for origin in squares
        for target in _targets(origin, black, said)
        if 0 <= target < SQUARES
    ]
    legal = rules.legal_moves(position).tolist()
    return [move for move in moves if move in legal]


def _targets(origin: int, black: int, said: Description) -> tuple[int, ...]:
    """Squares that a piece on `origin` may mean to go to, on the board or not."""
    file, number = origin % FILES, said.number
    other = number - 1 if black else FILES - number
    ahead = (FILES if said.way == "+" else -FILES) * (-1 if black else 1)
    if said.way == "=":
        return (origin - file + other,) if said.piece not in DIAGONAL else ()
    if said.piece not in DIAGONAL:
        return (origin + number * ahead,)
    aside = abs(other - file)
    ranks = {"A": (0, 1, 0), "B": (0, 0, 2), "N": (0, 2, 1)}[said.piece]
    return (origin + ranks[aside] * ahead + other - file,) if 1 <= aside <= 2 else ()


def _squares(position: Position, code: int) -> list[int]:
    """Squares of a piece code, from a1."""
    board = position.tobytes()[:SQUARES]
    squares = []
    square = board.find(code)
    while square >= 0:
        squares.append(square)
        square = board.find(code, square + 1)
    return squares


def describe(rules: Rules, position: Position, move: int) -> Description:
    """The shortest description that fits this legal move only, with the places that books use."""
    black = int(position["side"][0])
    origin, target = move_origin(move), move_target(move)
    code = int(position["board"][0, origin])
    piece = rules.types.all[(code - 1) & 31].base
    steps = (target // FILES - origin // FILES) * (-1 if black else 1)
    way = "=" if steps == 0 else "+" if steps > 0 else "-"
    sideways = way == "=" or piece in DIAGONAL
    number = file_number(target, black) if sideways else abs(steps)
    file, place = file_number(origin, black), 0
    # Two advisors or elephants on a file never move the same way, so they need no place.
    if piece not in "KAB":
        columns = doubled(position, code)
        if file in columns:
            place = _place(columns, file, origin)
    return Description(piece, file, place, way, number)


def read(name: str, rules: Rules, position: Position, text: str, said: Description) -> int:
    """The move a description means. Raises MoveError: illegal, or ambiguous."""
    fits = find(rules, position, said)
    if len(fits) == 1:
        return int(fits[0])
    fen = rules.fen(position)
    if not fits:
        raise MoveError(f"illegal {name} move {text!r}: no legal move fits it (FEN {fen})")
    from variant_ai.core.rules.text.notation import uci

    listed = ", ".join(uci(rules.types, FILES, move) for move in fits)
    raise MoveError(f"ambiguous {name} move {text!r}: it could be {listed} (FEN {fen})")


def unreadable(name: str, rules: Rules, position: Position, text: str, accepted: str) -> MoveError:
    shown = text if len(text) <= 40 else text[:40] + "..."
    return MoveError(
        f"unreadable {name} move {shown!r}: expected {accepted} (FEN {rules.fen(position)})"
    )


def file_number(square: int, black: int) -> int:
    """1-9 from the mover's right."""
    return square % FILES + 1 if black else FILES - square % FILES


def doubled(position: Position, code: int) -> dict[int, list[int]]:
    """Files, from the mover's right, on which pieces of this code stand behind each other: file
    number -> their squares, the front one first."""
    return _columns(_squares(position, code), int(position["side"][0]))


def _columns(squares: list[int], black: int) -> dict[int, list[int]]:
    columns: dict[int, list[int]] = {}
    for square in squares if black else reversed(squares):
        columns.setdefault(file_number(square, black), []).append(square)
    return {file: columns[file] for file in sorted(columns) if len(columns[file]) > 1}


def _at_place(squares: list[int], black: int, said: Description) -> list[int]:
    """Those of the squares that the place may mean."""
    columns = _columns(squares, black)
    if said.file:
        columns = {file: alike for file, alike in columns.items() if file == said.file}
    if said.place > 0:
        # Doubled on several files they are counted through; a count within a file is read too.
        through = [square for alike in columns.values() for square in alike]
        return through[said.place - 1 : said.place]
    if said.place == FRONT:
        return [alike[0] for alike in columns.values()]
    if said.place == BACK:
        return [alike[-1] for alike in columns.values()]
    return [alike[len(alike) // 2] for alike in columns.values() if len(alike) > 2]


def _place(columns: dict[int, list[int]], file: int, origin: int) -> int:
    squares = columns[file]
    if len(columns) == 1 and len(squares) <= 3:
        if origin == squares[0]:
            return FRONT
        return BACK if origin == squares[-1] else MIDDLE
    through = [square for squares in columns.values() for square in squares]
    return through.index(origin) + 1
