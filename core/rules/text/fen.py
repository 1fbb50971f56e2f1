"""FEN: text to position and back, for both engines, from nothing but the spec.

    board [pocket]   side   castling e.p.   checks left   halfmove clock   move number

A variant's FEN has the fields that its start position has: shogi's has no castling and no e.p.
field, three-check's has one for the checks left, and makruk's counting limit stands where others
have the e.p. square, with the plies counted as its clock. Missing fields at the end get defaults.

Read, never written: pockets as `/Qn` after the last rank and as `[-]`, letters of `also:`, side `r`
for the first player, checks given as `+1+0` at the end. Castling rights are kept only while king
and rook stand at home, and an e.p. square only while somebody can capture there, so that equal
positions have equal records. The key is left 0: that is the kernel's.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator
from typing import NoReturn

from variant_ai.core.errors import FenError
from variant_ai.core.rules.pieces import PieceType, PieceTypes
from variant_ai.core.rules.position import (
    Position,
    new_position,
    piece_code,
    piece_colour,
    piece_type,
    square_index,
    view,
)
from variant_ai.core.spec.betza import parse_betza
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.spec.zones import square_name, zone_squares

MAX_LENGTH = 1000
"""Characters; the fullest board of 12 x 10 with full pockets stays below."""
MAX_CLOCK = 30_000
MAX_MOVE_NUMBER = 1_000_000_000

_IN_HAND = re.compile(r"\+?[A-Za-z]|.", re.DOTALL)
_CELL = re.compile(r"([0-9]+)|(\+?[A-Za-z]~?|\*)")
_NUMBER = re.compile(r"[0-9]{1,12}\Z")
_CHECKS_LEFT = re.compile(r"([0-9])\+([0-9])\Z")
_CHECKS_GIVEN = re.compile(r"\+([0-9])\+([0-9])\Z")
_ANY_RIGHTS = re.compile(r"-|[A-Za-z]{1,40}\Z")
MAX_IN_HAND = 120
"""Of a kind, where nothing else limits it: the counts of a record are bytes."""
_SIDES = {"w": 0, "r": 0, "b": 1}


def parse_fen(
    spec: VariantSpec, types: PieceTypes, text: str, *, lenient: bool = False
) -> Position:
    """The position of a FEN, shape (1,), key 0.

    lenient: as much of it as a record can hold. Walls (`*`) are left out, and so are rights,
    e.p. squares and pieces in hand that the spec has no word for, and nothing is said about pieces
    that are missing, too many or out of place: for the FENs of Fairy-Stockfish, which knows more
    rules than a spec can say.

    Raises FenError, saying what and where, for what is not a FEN of the variant or cannot be
    played on: wrong board size, royal pieces missing or too many, a piece standing where it had
    to promote, more pieces in hand than there are. Whether somebody is in check is left to the
    engines.
    """
    return _codec(types).parse(text, lenient)


def start_record(spec: VariantSpec, types: PieceTypes) -> Position:
    """The record of the spec's start position, key 0: all of it that a record can hold."""
    return parse_fen(spec, types, spec.rules.start, lenient=spec.rules.engine == "fairy")


def format_fen(spec: VariantSpec, types: PieceTypes, position: Position) -> str:
    """The FEN of a position, with the fields that the variant's start position has."""
    return _codec(types).format(position)


def shorten(text: str, length: int = 120) -> str:
    """A text as an error message shows it: cut in the middle, control characters escaped."""
    if len(text) > length:
        text = f"{text[: length - 40]} ... {text[-30:]}"
    return repr(text)


@functools.lru_cache(maxsize=128)
def _codec(types: PieceTypes) -> _Codec:
    return _Codec(types)


def _becomes(types: PieceTypes, kind: PieceType) -> set[str]:
    """What a piece may have promoted to, step by step."""
    met: set[str] = set()
    ahead = [kind.piece]
    while ahead:
        promotes = ahead.pop().promotes
        if promotes is not None and promotes.to != "captured pieces":
            more = set(promotes.to) - met
            met |= more
            ahead += [types.by_symbol[symbol].piece for symbol in more]
    return met


class _Codec:
    """Reads and writes the FENs of one variant."""

    def __init__(self, types: PieceTypes) -> None:
        spec = types.spec
        self.types = types
        self.board = spec.board
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
        self._read_start(spec.rules.start)
        self.forced = tuple(self._forced_squares(colour) for colour in (0, 1))
        self.confined = tuple(self._confined_squares(colour) for colour in (0, 1))

    def _read_start(self, start: str) -> None:
        """Which fields FENs have, what stands at home, and how many pieces there are."""
        fields = start.split()
        _, bracket, pocket = fields[0].partition("[")
        self.has_rights = len(fields) >= 4 and not _NUMBER.match(fields[2])
        self.empty_pocket = "[-]" if pocket == "-]" else "[]" if bracket else ""
        self.home, hand = self._placement(fields[0], start, self.types.spec.rules.engine == "fairy")
        royal = self.types.royal
        self.kings = [self.home.count(piece_code(royal, c)) if royal >= 0 else 0 for c in (0, 1)]
        self.total = sum(map(bool, self.home)) + sum(map(len, hand))
        counts = Counter(piece_type(code) for code in self.home if code)
        counts.update(self.types.hand_types[index] for side in hand for index in side)
        self.hand_limit = [0] * len(self.types.hand_types)
        for kind in self.types.all:
            if kind.hand >= 0:
                self.hand_limit[kind.hand] += counts[kind.index]
            for symbol in _becomes(self.types, kind):  # a FEN may have lost the promotion marks
                if symbol in self.hand_of:
                    self.hand_limit[self.hand_of[symbol]] += counts[kind.index]

    def _forced_squares(self, colour: int) -> dict[int, frozenset[int]]:
        """Squares on which a type cannot stand, because it had to promote there."""
        found = {}
        for kind in self.types.all:
            promotes = kind.piece.promotes
            if promotes is None or kind.twin or promotes.must is False:
                continue
            if promotes.must == "where stuck":
                squares = self._stuck_squares(kind.index)
            else:
                zone = promotes.at if promotes.must is True else promotes.must
                squares = zone_squares(zone, self.board)
            if kind.index in self.types.hand_types and kind.piece.drop is not False:
                drop = kind.piece.drop  # dropped there, it stands there
                board = frozenset(range(self.files * self.ranks))
                squares -= board if drop is True else zone_squares(drop, self.board)
            squares -= self._arrivals(kind.index)
            found[kind.index] = frozenset(self._view(s, colour) for s in squares)
        return found

    def _arrivals(self, kind: int) -> frozenset[int]:
        """Squares on which other pieces turn into this type, in the player's view: it stands there
        without having moved. Who promotes when leaving a zone may do so on any square."""
        found: frozenset[int] = frozenset()
        for other in self.types.all:
            promotes = other.piece.promotes
            if promotes is None or other.twin or other.index == kind:
                continue
            captured = promotes.to == "captured pieces"
            if captured or kind in (self.types.promoted(symbol) for symbol in promotes.to):
                if promotes.on == "from or to":
                    return frozenset(range(self.files * self.ranks))
                found |= zone_squares(promotes.at, self.board)
        return found

    def _confined_squares(self, colour: int) -> dict[int, frozenset[int]]:
        """The only squares of the types that can never leave a zone."""
        return {
            kind.index: frozenset(
                self._view(square, colour) for square in zone_squares(kind.piece.within, self.board)
            )
            for kind in self.types.all
            if kind.piece.within is not None
        }

    def _stuck_squares(self, kind: int) -> frozenset[int]:
        """Squares from which the first player's piece has no move on an empty board."""
        piece = self.types.all[kind].piece
        if piece.from_:
            return frozenset()
        moves = parse_betza(piece.moves)
        return frozenset(
            s
            for s in range(self.files * self.ranks)
            if not any(self._step(s, m.dx, m.dy) is not None for m in moves)
        )

    def _view(self, square: int, colour: int) -> int:
        return view(square, colour, self.files, self.ranks, self.board.sides)

    def _step(self, square: int, dx: int, dy: int) -> int | None:
        file, rank = square % self.files + dx, square // self.files + dy
        inside = 0 <= file < self.files and 0 <= rank < self.ranks
        return rank * self.files + file if inside else None

    # --- reading -----------------------------------------------------------------------------

    def parse(self, text: str, lenient: bool = False) -> Position:
        if len(text) > MAX_LENGTH:
            _refuse(text, f"a FEN has at most {MAX_LENGTH} characters, this text has {len(text)}")
        fields = text.split()
        if not fields:
            _refuse(text, "the text is empty")
        board, hands = self._placement(fields[0], text, lenient)
        if lenient:
            self._check_bytes(text, hands)
        else:
            self._check_pieces(text, board, hands)  # before counts could overflow the record
        position = new_position()
        record = position[0]
        record["board"][: len(board)] = board
        for colour in (0, 1):
            for index in hands[colour]:
                record["hands"][colour, index] += 1
        if len(fields) < 2:
            _refuse(text, "the side to move is missing; it is 'w' or 'b'")
        if fields[1] not in _SIDES:
            _refuse(text, f"side to move {shorten(fields[1], 50)} is neither 'w' (or 'r') nor 'b'")
        record["side"] = side = _SIDES[fields[1]]
        for colour in (0, 1):
            king = piece_code(self.types.royal, colour) if self.types.royal >= 0 else 0
            if king in board and king and (lenient or self.kings[colour]):
                record["kings"][colour] = board.index(king)
        rest = fields[2:]
        if self.has_rights or rest[:2] == ["-", "-"]:
            record["castling"] = self._castling(text, rest[0], board, lenient) if rest else 0
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
            _refuse(text, f"nothing is expected after the move number, found {shorten(rest[2])}")
        clock = self._number(text, "halfmove clock", rest[0], MAX_CLOCK) if rest else 0
        number = self._number(text, "move number", rest[1], MAX_MOVE_NUMBER) if rest[1:] else 1
        record["clock"] = clock
        record["ply"] = 2 * (max(number, 1) - 1) + side
        return position

    def _is_one_square(self, field: str) -> bool:
        """Whether a record can hold the e.p. field, which names several squares in some variants."""
        return square_index(field, self.files, self.ranks) is not None

    def _placement(
        self, field: str, text: str, lenient: bool = False
    ) -> tuple[list[int], tuple[list[int], list[int]]]:
        """Codes of all squares, and the hand indices of each side, one per piece in hand."""
        placement, bracket, pocket = field.partition("[")
        rows = placement.split("/")
        if bracket:
            if not pocket.endswith("]"):
                _refuse(text, "the pocket that '[' opens is not closed by ']'")
            pocket = pocket[:-1]
        elif len(rows) == self.ranks + 1 and self.hand_of and not lenient:
            pocket = rows.pop()
        if len(rows) != self.ranks:
            _refuse(text, f"{len(rows)} ranks are given, the board has {self.ranks}")
        board = [0] * (self.files * self.ranks)
        for number, row in zip(range(self.ranks, 0, -1), rows, strict=True):
            start = (number - 1) * self.files
            board[start : start + self.files] = self._row(row, number, text, lenient)
        return board, self._pocket(pocket, text, lenient)

    def _row(self, row: str, number: int, text: str, lenient: bool) -> list[int]:
        codes: list[int] = []
        at = 0
        while at < len(row):
            match = _CELL.match(row, at)
            if match is None:
                _refuse(text, f"rank {number}: {row[at]!r} is neither a piece nor a number")
            if match[1]:
                if not 1 <= int(match[1][:3]) <= self.files or len(match[1]) > 2:
                    _refuse(text, f"rank {number}: {shorten(match[1], 50)} empty squares")
                codes += [0] * int(match[1])
            elif match[2] in self.codes:
                codes.append(self.codes[match[2]])
            elif lenient and match[2] == "*":
                codes.append(0)
            elif lenient and match[2][-1:] == "~" and match[2][:-1] in self.codes:
                codes.append(self.codes[match[2][:-1]])
            else:
                known = " ".join(kind.symbol for kind in self.types.all)
                _refuse(text, f"rank {number}: {match[2]!r} is no piece here; pieces are {known}")
            at = match.end()
            if len(codes) > self.files:
                break
        if len(codes) != self.files:
            more = "more than " if len(codes) > self.files else ""
            count = min(len(codes), self.files)
            _refuse(text, f"rank {number} has {more}{count} files, the board has {self.files}")
        return codes

    def _pocket(self, pocket: str, text: str, lenient: bool) -> tuple[list[int], list[int]]:
        hands: tuple[list[int], list[int]] = ([], [])
        for letter in _IN_HAND.findall("" if pocket == "-" else pocket):
            if letter.upper() not in self.hand_of:
                if lenient and letter.isascii() and letter.isalpha():
                    continue
                known = " ".join(self.hand_of) or "none, the variant has no hands"
                _refuse(text, f"{letter!r} cannot be in hand; pieces in hand are {known}")
            hands[letter.islower()].append(self.hand_of[letter.upper()])
        return hands

    def _check_bytes(self, text: str, hands: tuple[list[int], list[int]]) -> None:
        for index, kind in enumerate(self.types.hand_types):
            if max(side.count(index) for side in hands) > MAX_IN_HAND:
                symbol = self.types.all[kind].symbol
                _refuse(text, f"more than {MAX_IN_HAND} {symbol!r} in a hand")

    def _check_pieces(
        self, text: str, board: list[int], hands: tuple[list[int], list[int]]
    ) -> None:
        for colour, name in enumerate(("first", "second")):
            found = (
                board.count(piece_code(self.types.royal, colour)) if self.types.royal >= 0 else 0
            )
            if found != self.kings[colour]:
                symbol = self.types.all[self.types.royal].symbol
                symbol = symbol.lower() if colour else symbol
                wanted = self.kings[colour]
                _refuse(text, f"the {name} player has {found} royal {symbol!r}, needs {wanted}")
            for square, code in enumerate(board):
                if code and piece_colour(code) == colour:
                    kind = piece_type(code)
                    if square in self.forced[colour].get(kind, ()):
                        reason = "it had to promote"
                    elif square not in self.confined[colour].get(kind, (square,)):
                        reason = "it cannot leave its zone"
                    else:
                        continue
                    symbol = self.types.all[kind].symbol
                    symbol = symbol.lower() if colour else symbol
                    where = square_name(square, self.files)
                    _refuse(text, f"{symbol!r} cannot stand on {where}: {reason}")
        if not self.hand_of:
            return
        for index, limit in enumerate(self.hand_limit):
            count = sum(side.count(index) for side in hands)
            if count > limit:
                symbol = self.types.all[self.types.hand_types[index]].symbol
                _refuse(text, f"{count} {symbol!r} in hand; there are at most {limit}")
        total = sum(map(bool, board)) + sum(map(len, hands))
        if total > self.total:
            _refuse(
                text, f"{total} pieces on board and in hand; the start position has {self.total}"
            )

    def _castling(self, text: str, field: str, board: list[int], lenient: bool) -> int:
        """Rights as bits, those whose king and rook stand at home. What stands there in the start
        array of a player without a king, as in horde, never castles."""
        royal = self.types.royal
        rights = {right.letter: right for right in self.types.castling_rights}
        held = 0
        for letter in "" if field == "-" else field:
            if letter not in rights:
                if lenient and _ANY_RIGHTS.match(field):
                    continue
                known = "".join(rights) or "none here"
                _refuse(text, f"castling {shorten(field, 50)}: rights are {known}, or '-'")
            right = rights[letter]
            king = self.home[right.king_from]
            at_home = all(board[s] == self.home[s] for s in (right.king_from, right.rook_from))
            if at_home and king and royal in (-1, piece_type(king)):
                held |= 1 << right.bit
        return held

    def _passant(self, text: str, field: str, board: list[int], side: int) -> int:
        """The e.p. square where a capture is possible there, else -1."""
        if field == "-":
            return -1
        square = square_index(field, self.files, self.ranks)
        if square is None:
            _refuse(text, f"e.p. square {shorten(field, 50)} is not on the board")
        forward = 1 - 2 * side
        behind, ahead = self._step(square, 0, -forward), self._step(square, 0, forward)
        if board[square] or behind is None or ahead is None or board[ahead]:
            return -1
        if not self._is_passant(board[behind], 1 - side):
            return -1
        return square if any(self._capturers(board, square, side)) else -1

    def _is_passant(self, code: int, colour: int) -> bool:
        if code == 0 or piece_colour(code) != colour:
            return False
        return self.types.all[piece_type(code)].piece.passant

    def _capturers(self, board: list[int], square: int, side: int) -> Iterator[int]:
        """Squares of pieces that may capture en passant on `square`."""
        turn = 1 - 2 * side
        for kind in self.types.all:
            if not kind.piece.passant:
                continue
            for zone, word in ((None, kind.piece.moves), *kind.piece.from_.items()):
                for move in parse_betza(word):
                    origin = self._step(square, -move.dx * turn, -move.dy * turn)
                    if origin is None or not (move.capture and move.reach == 1):
                        continue
                    own = zone is None or self._view(origin, side) in zone_squares(zone, self.board)
                    if own and board[origin] == piece_code(kind.index, side):
                        yield origin

    def _checks_field(self, text: str, rest: list[str], position: Position) -> list[str]:
        """Take the checks field, wherever it stands, out of the rest."""
        if not self.checks:
            return rest
        for i, field in enumerate(rest):
            left, given = _CHECKS_LEFT.match(field), _CHECKS_GIVEN.match(field)
            if match := left or given:
                numbers = [int(match[1]), int(match[2])]
                if given:
                    numbers = [self.checks - n for n in numbers]
                if min(numbers) < 0 or max(numbers) > self.checks:
                    _refuse(text, f"checks {field!r}: {self.checks} checks win")
                position[0]["wins_left"] = numbers
                return rest[:i] + rest[i + 1 :]
        wanted = f"{self.checks}+{self.checks}"
        _refuse(text, f"the field of checks left is missing, such as {wanted!r}")

    def _number(self, text: str, name: str, field: str, most: int) -> int:
        if not _NUMBER.match(field) or int(field) > most:
            _refuse(text, f"{name} {shorten(field, 50)} is not a number from 0 to {most}")
        return int(field)

    # --- writing -----------------------------------------------------------------------------

    def format(self, position: Position) -> str:
        record = position[0]
        fields = [self._board_text(position), "wb"[int(record["side"])]]
        if self.has_rights:
            held = int(record["castling"])
            letters = [r.letter for r in self.types.castling_rights if held >> r.bit & 1]
            fields.append("".join(letters) or "-")
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
            for code in board[rank * self.files : (rank + 1) * self.files]:
                if code == 0:
                    empty += 1
                    continue
                row += str(empty) if empty else ""
                row, empty = row + self._letter(code), 0
            rows.append(row + (str(empty) if empty else ""))
        return "/".join(rows) + self._pocket_text(position)

    def _pocket_text(self, position: Position) -> str:
        pocket = ""
        for colour in (0, 1):
            for index in range(len(self.types.hand_types) - 1, -1, -1):
                count = int(position[0]["hands"][colour, index])
                pocket += count * self._letter(piece_code(self.types.hand_types[index], colour))
        return f"[{pocket}]" if pocket else self.empty_pocket

    def _letter(self, code: int) -> str:
        symbol = self.types.all[piece_type(code)].symbol
        return symbol.lower() if piece_colour(code) else symbol


def _refuse(text: str, message: str) -> NoReturn:
    raise FenError(f"{message}, in FEN {shorten(text)}")
