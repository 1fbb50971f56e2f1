"""FEN: text to position and back, from the spec alone, for both rules engines.

    board [pocket]   side   castling e.p.   checks left   halfmove clock   move number

Variants with `shuffle:` write the files of the rooks as castling rights; with `shuffle: chess960` the number
of a start position alone stands for its FEN.

A variant's FEN has the fields of its start position: shogi has no castling and no e.p. field,
three-check has one for the checks left, and makruk has the counting limit in the e.p. field and the
counted plies as clock. Missing fields at the end get defaults.

Some forms are read but never written: pockets as `/Qn` after the last rank and as `[-]`, letters
of `also:`, side `r` for the first player, checks given as `+1+0` at the end, an e.p. field with the square
of the pawn (`d3d4`). Castling rights are
kept only if king and rook are on their squares (with `shuffle:`, anywhere on their first rank), and
an e.p. square only if it can be captured on, so that equal positions have equal records. The key is
left 0 for the rules engine.
"""

from __future__ import annotations

import functools
import re
from typing import NoReturn

from variant_ai.core.errors import FenError
from variant_ai.core.rules.geometry import Geometry
from variant_ai.core.rules.pieces import PieceTypes
from variant_ai.core.rules.position import (
    Position,
    new_position,
    piece_code,
    piece_colour,
    piece_type,
    square_index,
)
from variant_ai.core.rules.shuffled_starts import (
    STARTS,
    castles_from_any_files,
    is_shuffled,
    shuffled_start,
)
from variant_ai.core.rules.text.piece_limits import Hands, PieceLimits
from variant_ai.core.spec.start_position import WALL, board_cells
from variant_ai.core.spec.zones import square_name

MAX_LENGTH = 1000
"""Characters; a full board of 12 x 10 with full pockets has fewer."""
START = "startpos"
"""Word that may stand for the FEN of the start position in options, calls and queries."""
MAX_CLOCK = 30_000
MAX_MOVE_NUMBER = 1_000_000_000

_IN_HAND = re.compile(r"\+?[A-Za-z]|.", re.DOTALL)
_NUMBER = re.compile(r"[0-9]{1,12}\Z")
_CHECKS_LEFT = re.compile(r"([0-9])\+([0-9])\Z")
_CHECKS_GIVEN = re.compile(r"\+([0-9])\+([0-9])\Z")
_ANY_RIGHTS = re.compile(r"-|[A-Za-z]{1,40}\Z")
_ONE_OR_TWO = re.compile(r"([a-z][0-9]{1,2})([a-z][0-9]{1,2})?")
_SIDES = {"w": 0, "r": 0, "b": 1}


def fen_or_start(text: str | None) -> str | None:
    """Return a FEN that a person or program gave, or None for the start position of the variant,
    which may be written `startpos` as in UCI."""
    return None if text is None or text.strip().lower() == START else text


def parse_fen(types: PieceTypes, text: str, *, lenient: bool = False) -> Position:
    """Parse a FEN into a position, shape (1,), key 0.

    lenient: read as much as a record can hold, for FENs of Fairy-Stockfish, which has more rules
    than specs have. Walls (`*`), and rights, e.p. squares and pieces in hand that the spec does not
    have, are ignored; missing, excess and misplaced pieces are accepted.

    Raises FenError for text that is not a FEN of the variant, or a position that cannot be played:
    wrong board size, royal pieces missing or too many, a piece where it had to promote, more pieces
    in hand than there are. Checks are left to the rules engines.
    """
    return _format_of(types).parse(text, lenient)


def start_record(types: PieceTypes) -> Position:
    """Record of the start position, key 0; as much of it as a record can hold."""
    rules = types.spec.rules
    return parse_fen(types, rules.start, lenient=rules.engine == "fairy")


def format_fen(types: PieceTypes, position: Position) -> str:
    """FEN of a position, with the fields of the variant's start position."""
    return _format_of(types).format(position)


def shorten(text: str, length: int = 120) -> str:
    """Text for an error message: shortened in the middle, control characters escaped."""
    if len(text) > length:
        text = f"{text[: length - 40]} ... {text[-30:]}"
    return repr(text)


@functools.lru_cache(maxsize=128)
def _format_of(types: PieceTypes) -> _FenFormat:
    return _FenFormat(types)


class _FenFormat:
    """Reads and writes the FENs of one variant."""

    def __init__(self, types: PieceTypes) -> None:
        spec = types.spec
        self.types = types
        self.geometry = Geometry(spec)
        self.files, self.ranks = spec.board.files, spec.board.ranks
        self.codes: dict[str, int] = {}
        for kind in types.all:
            names = [kind.symbol] + ([kind.piece.also] if kind.piece.also and not kind.twin else [])
            for name in names:
                self.codes[name.upper()] = piece_code(kind.index, 0)
                self.codes[name.lower()] = piece_code(kind.index, 1)
        self.hand_of = {
            symbol: index
            for index, kind in enumerate(types.hand_types)
            for symbol in (types.all[kind].symbol, types.all[kind].piece.also)
            if symbol
        }
        self.counting = spec.rules.counting != "none"
        self.checks = next((win.checks for win in spec.rules.wins if win.checks), 0)
        start = spec.rules.start
        fields = start.split()
        _, bracket, pocket = fields[0].partition("[")
        self.has_rights = len(fields) >= 4 and not _NUMBER.match(fields[2])
        self.empty_pocket = "[-]" if pocket == "-]" else "[]" if bracket else ""
        self.home, hand = self._placement(fields[0], start, spec.rules.engine == "fairy")
        self.limits = PieceLimits(types, self.geometry, self.home, hand)

    # --- reading -----------------------------------------------------------------------------

    def parse(self, text: str, lenient: bool = False) -> Position:
        if len(text) > MAX_LENGTH:
            _reject(text, f"a FEN has at most {MAX_LENGTH} characters, this text has {len(text)}")
        fields = text.split()
        if not fields:
            _reject(text, "the text is empty")
        if len(fields) == 1 and _NUMBER.match(fields[0]) and is_shuffled(self.types.spec):
            number = self._number(text, "start position", fields[0], STARTS - 1)
            fields = shuffled_start(self.types.spec, number).split()
        board, hands = self._placement(fields[0], text, lenient)
        # before counts could overflow the record
        problem = self.limits.overflow(hands) if lenient else self.limits.problem(board, hands)
        if problem:
            _reject(text, problem)
        position = new_position()
        record = position[0]
        record["board"][: len(board)] = board
        for colour in (0, 1):
            for index in hands[colour]:
                record["hands"][colour, index] += 1
        if len(fields) < 2:
            _reject(text, "the side to move is missing; it is 'w' or 'b'")
        if fields[1] not in _SIDES:
            _reject(text, f"side to move {shorten(fields[1], 50)} is neither 'w' (or 'r') nor 'b'")
        record["side"] = side = _SIDES[fields[1]]
        for colour in (0, 1):
            king = piece_code(self.types.royal, colour) if self.types.royal >= 0 else 0
            if king in board and king and (lenient or self.limits.kings[colour]):
                record["kings"][colour] = board.index(king)
        rest = fields[2:]
        if self.has_rights or rest[:2] == ["-", "-"]:
            record["castling"], homes = (
                self._castling(text, rest[0], board, lenient) if rest else (0, {})
            )
            for bit, home in homes.items():
                record["homes"][bit] = home
            field = rest[1] if len(rest) > 1 else "-"
            counts = self.counting and field != "-"
            if counts and not (lenient and self._is_one_square(field)):
                record["count_limit"] = self._number(text, "counting limit", field, MAX_CLOCK)
            elif not lenient or self._is_one_square(field):
                record["ep"] = self._passant(text, field, board, side)
            rest = rest[2:]
        if lenient and not self.checks:
            rest = [field for field in rest if not _CHECKS_LEFT.match(field)]
        rest = self._checks_field(text, rest, position)
        if len(rest) > 2:
            _reject(text, f"nothing is expected after the move number, found {shorten(rest[2])}")
        clock = self._number(text, "halfmove clock", rest[0], MAX_CLOCK) if rest else 0
        number = self._number(text, "move number", rest[1], MAX_MOVE_NUMBER) if rest[1:] else 1
        record["clock"] = clock
        record["ply"] = 2 * (max(number, 1) - 1) + side
        return position

    def _is_one_square(self, field: str) -> bool:
        """Return True if the e.p. field is one square; some variants have several."""
        return square_index(field, self.files, self.ranks) is not None

    def _placement(self, field: str, text: str, lenient: bool) -> tuple[list[int], Hands]:
        """Parse piece codes of all squares, and hand indices of each side, one per piece in
        hand."""
        placement, bracket, pocket = field.partition("[")
        if bracket:
            if not pocket.endswith("]"):
                _reject(text, "the pocket that '[' opens is not closed by ']'")
            pocket = pocket[:-1]
        elif placement.count("/") == self.ranks and self.hand_of and not lenient:
            placement, _, pocket = placement.rpartition("/")
        try:
            cells = board_cells(placement, self.files, self.ranks)
        except FenError as error:
            _reject(text, str(error))
        walls = self.geometry.walls
        board = [0] * (self.files * self.ranks)
        for square, symbol in cells.items():
            if symbol != WALL or not (lenient or square in walls):
                board[square] = self._code(symbol, square, text, lenient)
        for square in () if lenient else sorted(walls):
            if cells.get(square) != WALL:
                _reject(text, f"{square_name(square, self.files)} is a wall, `*`, here")
        return board, self._pocket(pocket, text, lenient)

    def _code(self, symbol: str, square: int, text: str, lenient: bool) -> int:
        """Parse the symbol of a piece on a square."""
        if lenient and symbol not in self.codes:
            symbol = symbol.removesuffix("~")
        if symbol not in self.codes:
            rank = square // self.files + 1
            known = " ".join(kind.symbol for kind in self.types.all)
            _reject(text, f"rank {rank}: {symbol!r} is no piece here; pieces are {known}")
        return self.codes[symbol]

    def _pocket(self, pocket: str, text: str, lenient: bool) -> Hands:
        hands: Hands = ([], [])
        for letter in _IN_HAND.findall("" if pocket == "-" else pocket):
            if letter.upper() not in self.hand_of:
                if lenient and letter.isascii() and letter.isalpha():
                    continue
                known = " ".join(self.hand_of) or "none, the variant has no hands"
                _reject(text, f"{letter!r} cannot be in hand; pieces in hand are {known}")
            hands[letter.islower()].append(self.hand_of[letter.upper()])
        return hands

    def _castling(
        self, text: str, field: str, board: list[int], lenient: bool
    ) -> tuple[int, dict[int, int]]:
        """Parse rights into bits, and into homes by bit: `KQkq`, and where king and rook may begin on any
        files also Shredder-FEN (the rook's file: `HAha`). There a side (X-FEN) means its outermost rook.

        Rights whose king or rook is not on its square are dropped, and so are those of a player without
        a king.
        """
        types, files = self.types, self.files
        any_files = castles_from_any_files(types.spec)
        held, homes = 0, {}
        for letter in "" if field == "-" else field:
            by_side = any(right.letter == letter for right in types.castling_rights)
            file = ord(letter.lower()) - 97 if any_files and letter.isascii() else -1
            if not by_side and not 0 <= file < files:
                if lenient and _ANY_RIGHTS.match(field):
                    continue
                if not types.castling_rights:
                    rights = shorten(field, 50)
                    _reject(text, f"castling {rights}: the spec has no `castling:`; accepted: '-'")
                known = "".join(right.letter for right in types.castling_rights)
                last = chr(96 + files)
                rooks = f", or files of rooks, A-{last.upper()} and a-{last}" if any_files else ""
                _reject(text, f"castling {shorten(field, 50)}: rights are {known}{rooks}, or '-'")
            fits = []
            for number, walk in enumerate(types.castling_walks):
                start = types.castling_rights[walk.bit]
                king, rook = self.home[start.king_from], self.home[start.rook_from]
                if walk.letter.isupper() != letter.isupper():
                    continue
                if board[walk.king_from] != king or board[walk.rook_from] != rook:
                    continue
                if not king or types.royal not in (-1, piece_type(king)):
                    continue
                if walk.letter == letter if by_side else walk.rook_from % files == file:
                    fits.append((abs(walk.rook_from - walk.king_from), number, walk.bit))
            if fits:
                _, number, bit = max(fits)
                held |= 1 << bit
                homes[bit] = number - types.first_walks[bit]
        return held, homes

    def _right_letters(self, position: Position) -> str:
        """Rights as written in a FEN; with `shuffle:` the files of the rooks."""
        held = int(position[0]["castling"])
        rights = [right for right in self.types.castling_rights if held >> right.bit & 1]
        if not castles_from_any_files(self.types.spec):
            return "".join(right.letter for right in rights)
        letters = ""
        for right in rights:
            letter = chr(97 + self.types.castling_walk(position, right.bit).rook_from % self.files)
            letters += letter if right.colour else letter.upper()
        return letters

    def _passant(self, text: str, field: str, board: list[int], side: int) -> int:
        """Parse the e.p. square; -1 if nothing can be captured there. Fairy-Stockfish writes the square of
        the piece that can be captured behind it, `d3d4`, if pawns also move sideways or back."""
        if field == "-":
            return -1
        both = _ONE_OR_TWO.fullmatch(field)
        first, standing = both.groups() if both else (field, None)
        square = square_index(first, self.files, self.ranks)
        if square is None:
            _reject(text, f"e.p. square {shorten(field, 50)} is not on the board")
        forward = 1 - 2 * side
        behind = self.geometry.step(square, 0, -forward)
        ahead = self.geometry.step(square, 0, forward)
        if board[square] or behind is None or ahead is None or board[ahead]:
            return -1
        if standing and square_index(standing, self.files, self.ranks) != behind:
            return -1
        if not self._is_passant(board[behind], 1 - side):
            return -1
        return square if self._can_capture(board, square, side) else -1

    def _is_passant(self, code: int, colour: int) -> bool:
        if code == 0 or piece_colour(code) != colour:
            return False
        return self.types.all[piece_type(code)].piece.passant

    def _can_capture(self, board: list[int], square: int, side: int) -> bool:
        """Return True if a piece of `side` may capture en passant on the square."""
        turn = 1 - 2 * side
        for origin, code in enumerate(board):
            if self._is_passant(code, side):
                piece = self.types.all[piece_type(code)].piece
                for move in self.geometry.movements(piece, side, origin):
                    target = self.geometry.step(origin, move.dx * turn, move.dy * turn)
                    if target == square and move.capture and move.reach == 1:
                        return True
        return False

    def _checks_field(self, text: str, rest: list[str], position: Position) -> list[str]:
        """Parse the checks field, which may be anywhere in the rest, and return the other
        fields."""
        if not self.checks:
            return rest
        for i, field in enumerate(rest):
            left, given = _CHECKS_LEFT.match(field), _CHECKS_GIVEN.match(field)
            if match := left or given:
                numbers = [int(match[1]), int(match[2])]
                if given:
                    numbers = [self.checks - n for n in numbers]
                if min(numbers) < 0 or max(numbers) > self.checks:
                    _reject(text, f"checks {field!r}: {self.checks} checks win")
                position[0]["wins_left"] = numbers
                return rest[:i] + rest[i + 1 :]
        _reject(text, f"the field of checks left is missing, such as '{self.checks}+{self.checks}'")

    def _number(self, text: str, name: str, field: str, most: int) -> int:
        if not _NUMBER.match(field) or int(field) > most:
            _reject(text, f"{name} {shorten(field, 50)} is not a number from 0 to {most}")
        return int(field)

    # --- writing -----------------------------------------------------------------------------

    def format(self, position: Position) -> str:
        record = position[0]
        fields = [self._board_text(position), "wb"[int(record["side"])]]
        if self.has_rights:
            fields.append(self._right_letters(position) or "-")
            ep, limit = int(record["ep"]), int(record["count_limit"])
            fields.append(str(limit) if limit else "-" if ep < 0 else square_name(ep, self.files))
        if self.checks:
            fields.append("{}+{}".format(*record["wins_left"]))
        number = int(record["ply"]) // 2 + 1
        return " ".join([*fields, str(int(record["clock"])), str(number)])

    def _board_text(self, position: Position) -> str:
        board = position[0]["board"].tolist()
        rows = []
        for rank in range(self.ranks - 1, -1, -1):
            row, empty = "", 0
            for square in range(rank * self.files, (rank + 1) * self.files):
                wall = square in self.geometry.walls
                if board[square] == 0 and not wall:
                    empty += 1
                    continue
                row += str(empty) if empty else ""
                row, empty = row + ("*" if wall else self.types.symbol(board[square])), 0
            rows.append(row + (str(empty) if empty else ""))
        return "/".join(rows) + self._pocket_text(position)

    def _pocket_text(self, position: Position) -> str:
        pocket = ""
        for colour in (0, 1):
            for index in range(len(self.types.hand_types) - 1, -1, -1):
                count = int(position[0]["hands"][colour, index])
                pocket += count * self.types.symbol(
                    piece_code(self.types.hand_types[index], colour)
                )
        return f"[{pocket}]" if pocket else self.empty_pocket


def _reject(text: str, message: str) -> NoReturn:
    raise FenError(f"{message}, in FEN {shorten(text)}")
