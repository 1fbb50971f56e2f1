"""Chinese notation of books and game collections: 炮二平五, 馬８進７; and WXF: `C2=5`, `H8+7`.

In Chinese notation Red is written with Chinese numerals, Black with digits. Both scripts, every form
of digit, the characters of every set of pieces, and either side's characters for either side are read.

WXF is that of the World Xiangqi Federation, written as in Fairy-Stockfish: `H` horse, `E` elephant; of
two equal pieces on a file the front one is `H+`, the other `H-`; soldiers on one file are counted from
the front, with number and file (`25=6` is the second soldier of file 5), unless there are just two:
`P+`, `P-`. Also read: `N` and `B`, `.` for sideways, small letters, the sign before the piece (`+C=5`).

The two notations differ only in their signs. Both convert text to and from a `Description` of a move by
piece, file, direction and number, from which the first part makes moves:

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

import re
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
from variant_ai.core.rules.text.notation import MoveText, Notation

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


# --- text -----------------------------------------------------------------------------------------

PIECES = {
    "K": "帥帅將将",
    "A": "仕士",
    "B": "相象",
    "N": "馬马傌㐷",
    "R": "車车俥伡",
    "C": "炮砲包",
    "P": "兵卒",
}
DIRECTIONS = {"+": "進进", "-": "退", "=": "平"}
ORDERS = {"f": "前", "m": "中", "b": "後后"}
DIGITS = ("１1一", "２2二", "３3三", "４4四", "５5五", "６6六", "７7七", "８8八", "９9九")

_SIGNS = str.maketrans(
    {
        character: sign
        for table in (PIECES, DIRECTIONS, ORDERS, {str(i): d for i, d in enumerate(DIGITS, 1)})
        for sign, characters in table.items()
        for character in characters
    }
)
CHARACTERS = "".join(map(chr, _SIGNS))
"""All characters of Chinese move text."""
_SIGNS |= str.maketrans(dict.fromkeys("KABNRCPfmb+-=", " "))
"""The signs of this module are not signs of the text: `C2=5` is not Chinese."""

_LETTERS = {"N": "H", "B": "E"}
_WXF_SIGNS = str.maketrans(
    {"H": "N", "E": "B", "G": "K", ".": "=", "。": "=", "－": "-", "＝": "=", "＋": "+"}
)
_WXF_ORDERS = str.maketrans("+-", "fb")

_ORDER_OF = {"f": FRONT, "m": MIDDLE, "b": BACK}
_MOVE = re.compile(
    r"(?:(?P<piece>[KABNRCP])(?P<file>[1-9])"  # 炮二平五, C2=5
    r"|(?P<before>[fmb1-5])(?P<second>[KABNRCP])(?P<on>[1-9])?"  # 前馬退八, 二兵平四, 前兵六平五
    r"|(?P<first>[KABNRCP])(?P<after>[fmb])"  # 馬前退八, C+=5
    r"|(?P<soldier>[fmb1-5])(?P<column>[1-9]))"  # 前六平五: the front soldier of that file; 15+1
    r"(?P<direction>[+\-=])(?P<number>[1-9])"
)


def _parsed(signs: str) -> Description | None:
    """Parse the signs of this module: letters of pieces, `f`, `m` and `b` for the order; None if they
    are not a move."""
    match = _MOVE.fullmatch(signs)
    if match is None:
        return None
    piece, file, before, second, on, first, after, soldier, column, direction, number = (
        match.groups()
    )
    sign = before or after or soldier
    return Description(
        piece or second or first or "P",
        int(file or on or column or 0),
        _ORDER_OF.get(sign) or int(sign or 0),
        direction,
        int(number),
    )


class ChineseNotation(Notation):
    """Chinese move text, written in one script and read in both."""

    def __init__(self, name: str, red: str, black: str, directions: str, back: str) -> None:
        """red, black: characters of K A B N R C P; directions: signs of forward,
        back, sideways; back: sign of the rear piece."""
        self.name = name
        self._pieces = tuple(dict(zip("KABNRCP", side, strict=True)) for side in (red, black))
        self._directions = dict(zip("+-=", directions, strict=True))
        self._orders = {FRONT: "前", MIDDLE: "中", BACK: back}

    def write(self, rules: Rules, position: Position, move: int) -> str:
        given = describe(rules, position, move)
        black = int(position["side"][0])
        digits = [alike[0 if black else 2] for alike in DIGITS]
        piece = self._pieces[black][given.piece]
        if given.order:
            sign = self._orders.get(given.order) or digits[given.order - 1]
            head = f"{sign}{piece}"
        else:
            head = f"{piece}{digits[given.file - 1]}"
        return f"{head}{self._directions[given.direction]}{digits[given.number - 1]}"

    def read(self, rules: Rules, position: Position, text: str) -> int:
        found = MoveText(self.name, rules, position, text)
        return read(
            found, _parsed(text.strip().translate(_SIGNS)), "moves like 炮二平五 or 馬８進７"
        )


def chinese() -> ChineseNotation:
    """Traditional characters."""
    return ChineseNotation("chinese", "帥仕相馬車炮兵", "將士象馬車炮卒", "進退平", "後")


def chinese_simplified() -> ChineseNotation:
    """Simplified characters."""
    return ChineseNotation("chinese-simplified", "帅仕相马车炮兵", "将士象马车炮卒", "进退平", "后")


class WxfNotation(Notation):
    """WXF move text."""

    name = "wxf"

    def write(self, rules: Rules, position: Position, move: int) -> str:
        given = describe(rules, position, move)
        letter = _LETTERS.get(given.piece, given.piece)
        head = f"{letter}{given.file}"
        if given.order:
            origin = move_origin(move)
            columns = doubled(position, int(position["board"][0, origin]))
            squares = columns[given.file]
            if len(columns) == 1 and len(squares) == 2:
                head = letter + ("+" if given.order == FRONT else "-")
            else:
                head = f"{squares.index(origin) + 1}{given.file}"
        return f"{head}{given.direction}{given.number}"

    def read(self, rules: Rules, position: Position, text: str) -> int:
        found = MoveText(self.name, rules, position, text)
        signs = text.strip().upper().translate(_WXF_SIGNS)
        # the last two are direction and number
        description = _parsed(signs[:-2].translate(_WXF_ORDERS) + signs[-2:])
        return read(found, description, "moves like C2=5 or H8+7")
