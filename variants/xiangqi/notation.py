"""Chinese notation of books and game collections: 炮二平五, 馬８進７; and WXF: `C2=5`, `H8+7`.

In Chinese notation Red is written with Chinese numerals, Black with digits. Both scripts, every form
of digit, the characters of every set of pieces, and either side's characters for either side are read.

WXF is that of the World Xiangqi Federation, written as in Fairy-Stockfish: `H` horse, `E` elephant; of
two equal pieces on a file the front one is `H+`, the other `H-`; soldiers on one file are counted from
the front, with number and file (`25=6` is the second soldier of file 5), unless there are just two:
`P+`, `P-`. Also read: `N` and `B`, `.` for sideways, small letters, the sign before the piece (`+C=5`).
"""

from __future__ import annotations

import re

from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import Position, move_origin
from variant_ai.core.rules.text.notation import MoveText, Notation
from variant_ai.variants.xiangqi.description import (
    BACK,
    FRONT,
    MIDDLE,
    Description,
    describe,
    doubled,
    read,
)

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
