"""A position for terminals, with letters as in FEN or the variant's own signs."""

from __future__ import annotations

from unicodedata import east_asian_width

from variant_ai.core.draw.piece_images import sign
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.pieces import PieceTypes
from variant_ai.core.rules.position import (
    Position,
    move_squares,
    piece_colour,
    piece_type,
)
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.spec.start_position import walls_of_fen

_RESET = "\x1b[0m"
_LIGHT_FIGURES = dict(zip("♚♛♜♝♞♟", "♔♕♖♗♘♙", strict=True))


def board_text(
    game: Game,
    *,
    signs: bool = False,
    colour: bool = False,
    flipped: bool = False,
    first_rank: int = 1,
) -> str:
    """Draw a game's last position in lines, with the hands above and below, without a line end at the
    end.

    signs: use the variant's signs (characters, figures) instead of FEN's letters. colour: use
    escape sequences for the colours of the players and for the last move, which is else put in
    brackets. first_rank: number of the first rank, 0 or 1.
    """
    spec, types, position = game.rules.spec, game.rules.types, game.position
    files, ranks = spec.board.files, spec.board.ranks
    walls = walls_of_fen(spec, game.fen())
    moved = move_squares(game.moves[-1]) if game.moves else ()
    cells = [
        _cell(spec, types, int(position["board"][0, square]), signs)
        for square in range(files * ranks)
    ]
    wide = any(_width(cell) > 1 and not cell.startswith("+") for cell in cells)
    span = max(map(_width, cells))
    columns = range(files)[:: -1 if flipped else 1]
    rows = range(ranks)[:: 1 if flipped else -1]
    label = len(str(ranks - 1 + first_rank))
    lines = []
    above = 0 if flipped else 1
    if spec.hands:
        lines.append(_hand(spec, types, position, above, signs))
    for rank in rows:
        line = f"{rank + first_rank:>{label}} "
        for column in columns:
            square = rank * files + column
            text = cells[square] or _empty(spec, square in walls, wide)
            text = text + " " * (span - _width(text))
            line += _framed(text, int(position["board"][0, square]), square in moved, colour)
        lines.append(line.rstrip())
        if spec.drawing.river is not None and rank + 1 == spec.drawing.river + (
            0 if flipped else 1
        ):
            lines.append(" " * (label + 1) + "~" * (files * (span + 2)))
    letters = "".join(f" {chr(97 + c)}{' ' * span}" for c in columns)
    lines.append(" " * (label + 1) + letters.rstrip())
    if spec.hands:
        lines.append(_hand(spec, types, position, 1 - above, signs))
    return "\n".join(lines)


def _cell(spec: VariantSpec, types: PieceTypes, code: int, signs: bool) -> str:
    if code == 0:
        return ""
    kind, colour = types.all[piece_type(code)], piece_colour(code)
    if signs:
        shown = sign(spec.drawing, kind, colour)
        if shown in _LIGHT_FIGURES:
            return _LIGHT_FIGURES[shown] if colour == 0 else shown
        if shown != kind.base:
            return shown
    return kind.symbol if colour == 0 else kind.symbol.lower()


def _empty(spec: VariantSpec, is_wall: bool, wide: bool) -> str:
    if is_wall:
        return "＃" if wide else "#"
    if spec.drawing.board == "lines":
        return "＋" if wide else "+"
    return "・" if wide else "."


def _framed(text: str, code: int, moved: bool, colour: bool) -> str:
    if not colour:
        return f"[{text}]" if moved else f" {text} "
    codes = []
    if code:
        codes.append("1;31" if piece_colour(code) == 0 else "1;34")
    if moved:
        codes.append("43")
    return f"\x1b[{';'.join(codes)}m {text} {_RESET}" if codes else f" {text} "


def _hand(
    spec: VariantSpec, types: PieceTypes, position: Position, colour: int, signs: bool
) -> str:
    held = []
    for index, kind in enumerate(types.hand_types):
        count = int(position["hands"][0, colour, index])
        if count:
            shown = _cell(spec, types, 1 + kind + 32 * colour, signs)
            held.append(f"{shown} x {count}" if count > 1 else shown)
    return f"   hand: {'  '.join(held) or '-'}"


def _width(text: str) -> int:
    """Width in columns of a terminal."""
    return sum(2 if east_asian_width(c) in "WF" else 1 for c in text)
