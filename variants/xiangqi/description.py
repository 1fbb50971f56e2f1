"""Xiangqi moves as Chinese notation and WXF describe them: piece, file, direction and number.

The two notations differ only in their signs. Both convert text to and from a `Description`, which
this module converts to and from moves.

    files are numbered 1-9 from the mover's right:

        Black   1 2 3 4 5 6 7 8 9
                a b c d e f g h i
        Red     9 8 7 6 5 4 3 2 1

    direction  '+' forward, '-' backward, '=' sideways, as the mover sees it
    number     general, chariot, cannon, soldier: steps along the file, or the target file
               sideways; advisor, elephant, horse: the target file
    order      among equal pieces on one file: FRONT, MIDDLE, BACK, or 1-5 counted from the front;
               if soldiers are doubled on several files, all of these are counted from the mover's
               right
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import (
    Position,
    make_move,
    move_origin,
    move_target,
    piece_code,
)
from variant_ai.core.rules.text.notation import MoveText

FILES = 9
SQUARES = 90
FRONT, MIDDLE, BACK = -1, -2, -3
DIAGONAL = "ABN"
"""Pieces whose number is always the target file."""


class Description(NamedTuple):
    """Parts of the text of a move; `file` and `order` are 0 if they are not given."""

    piece: str
    """The spec's letter: K, A, B, N, R, C, P."""
    file: int
    order: int
    direction: str
    number: int


def find(rules: Rules, position: Position, given: Description) -> list[int]:
    """Legal moves that fit a description; one if it is well-formed."""
    black = int(position["side"][0])
    code = piece_code(rules.types.by_symbol[given.piece].index, black)
    squares = _squares(position, code)
    if given.order:
        squares = _of_order(squares, black, given)
    elif given.file:
        squares = [square for square in squares if file_number(square, black) == given.file]
    # few squares are possible, so legality is tested last
    moves = [
        make_move(origin, target)
        for origin in squares
        for target in _targets(origin, black, given)
        if 0 <= target < SQUARES
    ]
    legal = rules.legal_moves(position).tolist()
    return [move for move in moves if move in legal]


def _targets(origin: int, black: int, given: Description) -> tuple[int, ...]:
    """Possible target squares of a piece on `origin`, on the board or not."""
    file, number = origin % FILES, given.number
    other = number - 1 if black else FILES - number
    ahead = (FILES if given.direction == "+" else -FILES) * (-1 if black else 1)
    if given.direction == "=":
        return (origin - file + other,) if given.piece not in DIAGONAL else ()
    if given.piece not in DIAGONAL:
        return (origin + number * ahead,)
    aside = abs(other - file)
    ranks = {"A": (0, 1, 0), "B": (0, 0, 2), "N": (0, 2, 1)}[given.piece]
    return (origin + ranks[aside] * ahead + other - file,) if 1 <= aside <= 2 else ()


def _squares(position: Position, code: int) -> list[int]:
    """Squares of a piece code, from a1 on."""
    squares: list[int] = np.flatnonzero(position["board"][0, :SQUARES] == code).tolist()
    return squares


def describe(rules: Rules, position: Position, move: int) -> Description:
    """Shortest description that fits only this legal move, with the order that books use."""
    black = int(position["side"][0])
    origin, target = move_origin(move), move_target(move)
    code = int(position["board"][0, origin])
    piece = rules.types.all[(code - 1) & 31].base
    steps = (target // FILES - origin // FILES) * (-1 if black else 1)
    direction = "=" if steps == 0 else "+" if steps > 0 else "-"
    sideways = direction == "=" or piece in DIAGONAL
    number = file_number(target, black) if sideways else abs(steps)
    file, order = file_number(origin, black), 0
    # two advisors or elephants on a file never move in the same direction, so they need no order
    if piece not in "KAB":
        columns = doubled(position, code)
        if file in columns:
            order = _order(columns, file, origin)
    return Description(piece, file, order, direction, number)


def read(text: MoveText, description: Description | None, accepted: str) -> int:
    """Return the move that a description means; None is a text that is not of the notation.

    Raises MoveError: unreadable (accepted: description of texts that are not), illegal, ambiguous.
    """
    if description is None:
        raise text.unreadable(accepted)
    return text.choose(find(text.rules, text.position, description))


def file_number(square: int, black: int) -> int:
    """Number of a square's file, 1-9 from the mover's right."""
    return square % FILES + 1 if black else FILES - square % FILES


def doubled(position: Position, code: int) -> dict[int, list[int]]:
    """File number -> squares, front first, of files with several pieces of a code, from the mover's
    right."""
    return _columns(_squares(position, code), int(position["side"][0]))


def _columns(squares: list[int], black: int) -> dict[int, list[int]]:
    columns: dict[int, list[int]] = {}
    for square in squares if black else reversed(squares):
        columns.setdefault(file_number(square, black), []).append(square)
    return {file: columns[file] for file in sorted(columns) if len(columns[file]) > 1}


def _of_order(squares: list[int], black: int, given: Description) -> list[int]:
    """Squares that an order may refer to."""
    columns = _columns(squares, black)
    if given.file:
        columns = {file: alike for file, alike in columns.items() if file == given.file}
    if given.order > 0:
        # pieces doubled on several files are counted together; a count within a file is read too
        through = [square for alike in columns.values() for square in alike]
        return through[given.order - 1 : given.order]
    if given.order == FRONT:
        return [alike[0] for alike in columns.values()]
    if given.order == BACK:
        return [alike[-1] for alike in columns.values()]
    return [alike[len(alike) // 2] for alike in columns.values() if len(alike) > 2]


def _order(columns: dict[int, list[int]], file: int, origin: int) -> int:
    squares = columns[file]
    if len(columns) == 1 and len(squares) <= 3:
        if origin == squares[0]:
            return FRONT
        return BACK if origin == squares[-1] else MIDDLE
    through = [square for squares in columns.values() for square in squares]
    return through.index(origin) + 1
