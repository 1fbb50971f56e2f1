"""WXF notation of the World Xiangqi Federation: `C2=5`, `H8+7`, `R+-2`, `15+1`.

Written as in Fairy-Stockfish: `H` horse, `E` elephant; of two equal pieces on a file the front one
is `H+`, the other `H-`; soldiers on one file are counted from the front, with number and file
(`25=6` is the second soldier of file 5), unless there are just two: `P+`, `P-`. Also read: `N` and
`B`, `.` for sideways, small letters, the sign before the piece (`+C=5`).
"""

from __future__ import annotations

import re

from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import Position, move_origin
from variant_ai.core.rules.text.notation import MoveText, Notation
from variant_ai.variants.xiangqi.description import (
    BACK,
    FRONT,
    Description,
    describe,
    doubled,
    read,
)

_LETTERS = {"N": "H", "B": "E"}
_READ = str.maketrans(
    {"H": "N", "E": "B", "G": "K", ".": "=", "。": "=", "－": "-", "＝": "=", "＋": "+"}
)
_MOVE = re.compile(
    r"(?:(?P<piece>[KABNRCP])(?P<file>[1-9])"  # C2=5
    r"|(?P<first>[KABNRCP])(?P<after>[+\-])"  # C+=5
    r"|(?P<before>[+\-])(?P<second>[KABNRCP])"  # +C=5
    r"|(?P<count>[1-5])(?P<column>[1-9]))"  # 15+1
    r"(?P<direction>[+\-=])(?P<number>[1-9])"
)


def parse(text: str) -> Description | None:
    """Parse a text in WXF; None if it is not one."""
    match = _MOVE.fullmatch(text.upper().translate(_READ))
    if match is None:
        return None
    piece, file, first, after, before, second, count, column, direction, number = match.groups()
    if piece:
        return Description(piece, int(file), 0, direction, int(number))
    if count:
        return Description("P", int(column), int(count), direction, int(number))
    order = FRONT if (after or before) == "+" else BACK
    return Description(first or second, 0, order, direction, int(number))


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
        return read(found, parse(text.strip()), "moves like C2=5 or H8+7")
