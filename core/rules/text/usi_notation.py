"""Moves and positions of USI, the protocol of shogi programs.

Files are numbers from the right, ranks letters from the top: `7g7f`, `8h2b+` (promotion), `P*5e` (drop).
A position (SFEN) has the first player as `b`, the hands as a field of their own (`2Pb`, `-`), and the
number of the next ply from 1.
"""

from __future__ import annotations

import re

from variant_ai.core.errors import FenError
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import Position
from variant_ai.core.rules.text.notation import MoveText, Notation

_UCI_SQUARE = re.compile(r"([a-l])([0-9]{1,2})")
_USI_DROP = re.compile(r"(?P<piece>[A-Za-z])\*(?P<target>[0-9]{1,2}[a-l])")
_USI_MOVE = re.compile(r"(?P<origin>[0-9]{1,2}[a-l])(?P<target>[0-9]{1,2}[a-l])(?P<promoted>[+=]?)")
_HAND = re.compile(r"([1-9][0-9]*)?([A-Za-z])")


class UsiNotation(Notation):
    """Notation of shogi programs; see the module."""

    name = "usi"

    def write(self, rules: Rules, position: Position, move: int) -> str:
        board = rules.spec.board
        return usi(rules.uci(move), board.files, board.ranks)

    def read(self, rules: Rules, position: Position, text: str) -> int:
        found, token = MoveText(self.name, rules, position, text), text.strip()
        board = rules.spec.board

        def square(name: str) -> str:
            file, rank = board.files - int(name[:-1]), board.ranks - (ord(name[-1]) - ord("a"))
            if not (0 <= file < board.files and 1 <= rank <= board.ranks):
                raise found.illegal()
            return f"{chr(ord('a') + file)}{rank}"

        if drop := _USI_DROP.fullmatch(token):
            return found.drop(drop["piece"], square(drop["target"]))
        match = _USI_MOVE.fullmatch(token)
        if match is None:
            raise found.unreadable("squares like 7g7f, with + to promote, or P*5e")
        promoted = match["promoted"].replace("=", "")
        return found.from_to(square(match["origin"]), square(match["target"]), promoted)


def usi(move: str, files: int, ranks: int) -> str:
    """Return a move of UCI text as USI writes it on a board of that size."""

    def square(match: re.Match[str]) -> str:
        file, rank = files - (ord(match[1]) - ord("a")), ranks - int(match[2])
        return f"{file}{chr(ord('a') + rank)}"

    return _UCI_SQUARE.sub(square, move.replace("@", "*"))


def fen_of_sfen(sfen: str) -> str:
    """Return the FEN of a position as USI writes it. Raises FenError if a field is wrong or missing.

    The board is not checked.
    """
    fields = sfen.split()
    if len(fields) not in (3, 4):
        raise FenError(
            f"{sfen!r} has {len(fields)} fields; an SFEN has a board, b or w, hands, and the number of the "
            "next ply"
        )
    board, side, hands = fields[:3]
    if side not in ("b", "w"):
        raise FenError(f"{side!r} in {sfen!r} is no side; it must be b (first player) or w")
    held = "" if hands == "-" else hands
    if _HAND.sub("", held):
        raise FenError(f"{hands!r} in {sfen!r} are no hands; expected pieces like 2Pb, or -")
    pieces = "".join(letter * min(int(count or 1), 99) for count, letter in _HAND.findall(held))
    ply = fields[3] if len(fields) == 4 else "1"
    if not ply.isdecimal():
        raise FenError(f"{ply!r} in {sfen!r} is not the number of a ply")
    return f"{board}[{pieces or '-'}] {'w' if side == 'b' else 'b'} 0 {(int(ply) + 1) // 2 or 1}"
