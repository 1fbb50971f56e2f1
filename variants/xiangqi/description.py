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

from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import Position, piece_code
from variant_ai.specs.errors import MoveError

FILES = 9
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
    board = position["board"][0].tolist()
    origins = None
    if said.place:
        origins = _at_place(board, code, black, said)
    diagonal = said.piece in DIAGONAL
    forward = -1 if black else 1
    fits = []
    for move in rules.legal_moves(position).tolist():
        origin = move >> 7 & 127
        if board[origin] != code:
            continue
        if origins is not None and origin not in origins:
            continue
        target = move & 127
        if said.file and file_number(origin, black) != said.file:
            continue
        steps = (target // FILES - origin // FILES) * forward
        if said.way == "=":
            right = steps == 0 and file_number(target, black) == said.number
        elif steps == 0 or (steps > 0) != (said.way == "+"):
            right = False
        elif diagonal:
            right = file_number(target, black) == said.number
        else:
            right = abs(steps) == said.number
        if right:
            fits.append(move)
    return fits


def describe(rules: Rules, position: Position, move: int) -> Description:
    """The shortest description that fits this legal move only, with the places that books use."""
    black = int(position["side"][0])
    board = position["board"][0].tolist()
    origin, target = move >> 7 & 127, move & 127
    code = board[origin]
    piece = rules.types.all[(code - 1) & 31].base
    steps = (target // FILES - origin // FILES) * (-1 if black else 1)
    way = "=" if steps == 0 else "+" if steps > 0 else "-"
    sideways = way == "=" or piece in DIAGONAL
    number = file_number(target, black) if sideways else abs(steps)
    file, place = file_number(origin, black), 0
    # Two advisors or elephants on a file never move the same way, so they need no place.
    if piece not in "KAB":
        columns = doubled(board, code, black)
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
    from variant_ai.core.rules.notation import uci

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


def doubled(board: list[int], code: int, black: int) -> dict[int, list[int]]:
    """Files, from the mover's right, on which pieces of this code stand behind each other: file
    number -> their squares, the front one first."""
    columns: dict[int, list[int]] = {}
    for square, piece in enumerate(board):
        if piece == code:
            columns.setdefault(file_number(square, black), []).append(square)
    for squares in columns.values():
        squares.sort(reverse=not black)
    return {file: columns[file] for file in sorted(columns) if len(columns[file]) > 1}


def _at_place(board: list[int], code: int, black: int, said: Description) -> set[int]:
    """Squares that the place may mean."""
    columns = doubled(board, code, black)
    if said.file:
        columns = {file: squares for file, squares in columns.items() if file == said.file}
    if said.place > 0:
        # Doubled on several files they are counted through; a count within a file is read too.
        through = [square for squares in columns.values() for square in squares]
        return set(through[said.place - 1 : said.place])
    if said.place == FRONT:
        return {squares[0] for squares in columns.values()}
    if said.place == BACK:
        return {squares[-1] for squares in columns.values()}
    return {squares[len(squares) // 2] for squares in columns.values() if len(squares) > 2}


def _place(columns: dict[int, list[int]], file: int, origin: int) -> int:
    squares = columns[file]
    if len(columns) == 1 and len(squares) <= 3:
        if origin == squares[0]:
            return FRONT
        return BACK if origin == squares[-1] else MIDDLE
    through = [square for squares in columns.values() for square in squares]
    return through.index(origin) + 1
