"""WXF notation of the World Xiangqi Federation: `C2=5`, `H8+7`, `R+-2`, `15+1`.

Written as Fairy-Stockfish writes it: `H` horse, `E` elephant; of two alike on a file the front one
is `H+`, the one behind `H-`; soldiers behind each other are counted from the front, number and file
(`25=6` is the second soldier of file 5), save where only two stand so: `P+`, `P-`. Read besides: `N`
and `B`, `.` for sideways, small letters, the sign before the piece (`+C=5`).
"""

from __future__ import annotations

import re

from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import Position, move_origin
from variant_ai.core.rules.text.notation import Notation
from variant_ai.variants.xiangqi.description import (
    BACK,
    FRONT,
    Description,
    describe,
    doubled,
    read,
    unreadable,
)

_LETTERS = {"N": "H", "B": "E"}
_READ = str.maketrans(
    {"H": "N", "E": "B", "G": "K", ".": "=", "。": "=", "－": "-", "＝": "=", "＋": "+"}
)
_MOVE = re.compile(
    r"(?:(?P<piece>[KABNRCP])(?P<file>[1-9])"  # C2=5
    r"|(?P<behind>[KABNRCP])(?P<order>[+\-])"  # C+=5
    r"|(?P<place>[+\-])(?P<placed>[KABNRCP])"  # +C=5
    r"|(?P<count>[1-5])(?P<column>[1-9]))"  # 15+1
    r"(?P<way>[+\-=])(?P<number>[1-9])"
)


def parse(text: str) -> Description | None:
    """What a text in WXF says, None where it is none."""
    match = _MOVE.fullmatch(text.upper().translate(_READ))
    if match is None:
        return None
    piece, file, behind, order, place, placed, count, column, way, number = match.groups()
    if piece:
        return Description(piece, int(file), 0, way, int(number))
    if count:
        return Description("P", int(column), int(count), way, int(number))
    where = FRONT if (order or place) == "+" else BACK
    return Description(behind or placed, 0, where, way, int(number))


class WxfNotation(Notation):
    """WXF move text."""

    name = "wxf"

    def write(self, rules: Rules, position: Position, move: int) -> str:
        said = describe(rules, position, move)
        letter = _LETTERS.get(said.piece, said.piece)
        head = f"{letter}{said.file}"
        if said.place:
            origin = move_origin(move)
            columns = doubled(position, int(position["board"][0, origin]))
            squares = columns[said.file]
            if len(columns) == 1 and len(squares) == 2:
                head = letter + ("+" if said.place == FRONT else "-")
            else:
                head = f"{squares.index(origin) + 1}{said.file}"
        return f"{head}{said.way}{said.number}"

    def read(self, rules: Rules, position: Position, text: str) -> int:
        said = parse(text.strip())
        if said is None:
            raise unreadable(self.name, rules, position, text, "moves like C2=5 or H8+7")
        return read(self.name, rules, position, text, said)
