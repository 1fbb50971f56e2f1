"""Start position of a spec, and checks of `castling:` and royal pieces against it.

These checks come after those of single words: squares are on the board, pieces are known, and the
start position has the size of the board.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from variant_ai.core.spec.betza import parse_betza
from variant_ai.core.spec.issues import Issues, Path
from variant_ai.core.spec.rule_words import may_win_otherwise
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.spec.zones import square_name, square_of, zone_squares

Home = dict[int, tuple[int, str]]
"""Square -> colour (0 the first player) and piece symbol."""
PLAYERS = ("the first player", "the second player")
_RIGHT = re.compile(r"[A-Z]\Z")
_CELL = re.compile(r"([0-9]+)|(\+?[A-Za-z])~?|\*")
WALL = "*"
"""A square of a FEN on which no piece can stand."""


class _Side(NamedTuple):
    """Squares of one castling side of one player."""

    letter: str
    king_from: int
    king_to: int
    rook_from: int
    rook_to: int

    def of(self, colour: int, spec: VariantSpec) -> _Side:
        """Return the squares for a player: ranks are mirrored for the second, files are not."""
        if colour == 0:
            return self
        files, ranks = spec.board.files, spec.board.ranks
        squares = (self.king_from, self.king_to, self.rook_from, self.rook_to)
        turned = [(ranks - 1 - s // files) * files + s % files for s in squares]
        return _Side(self.letter.lower(), *turned)


def start_array(spec: VariantSpec) -> Home:
    """Return the pieces in `rules.start` by square."""
    names = {piece.also: symbol for symbol, piece in spec.pieces.items() if piece.also}
    home: Home = {}
    for square, text in _start_cells(spec):
        if text != WALL:
            symbol = text.upper()
            home[square] = (int(text.islower()), names.get(symbol, symbol))
    return home


def start_walls(spec: VariantSpec) -> frozenset[int]:
    """Return the squares with a wall, `*`, in `rules.start`. In the kernel they are no squares at all;
    Fairy-Stockfish has variants in which walls come and go."""
    return frozenset(square for square, text in _start_cells(spec) if text == WALL)


def _start_cells(spec: VariantSpec) -> Iterator[tuple[int, str]]:
    """Squares of `rules.start` that are not empty, with their text: a piece without `~`, or a wall."""
    for number, row in enumerate(spec.rules.start.split()[0].partition("[")[0].split("/")):
        square = (spec.board.ranks - 1 - number) * spec.board.files
        for match in _CELL.finditer(row):
            if match[1] is None:
                yield square, match[2] or WALL
            square += int(match[1] or 1)


def royal_letters(spec: VariantSpec) -> frozenset[str]:
    """Pieces that may not be left to be captured: the royal ones; where captures explode and no piece is
    royal, the one whose loss loses, if each player begins with one."""
    royal = {symbol for symbol, piece in spec.pieces.items() if piece.royal}
    if not royal and spec.rules.explodes and spec.rules.checks != "ignored":
        lost = {win.extinct for win in spec.rules.wins if win.extinct and not win.left}
        home = sorted(piece for piece in start_array(spec).values() if piece[1] in lost)
        if len(lost) == 1 and [colour for colour, _ in home] == [0, 1]:
            royal = {home[0][1]}
    return frozenset(royal)


def check_home(spec: VariantSpec) -> Issues:
    """Check the royal pieces of the start position, and castling from it."""
    home = start_array(spec)
    kings = _kings(spec, home)
    for colour, squares in enumerate(kings):
        if len(squares) > 1:
            where = ", ".join(_name(s, spec) for s in squares)
            yield (
                ("rules", "start"),
                f"{PLAYERS[colour]} has {len(squares)} royal pieces, on {where}; accepted: at most "
                "one (if a player may lose one of several, remove `royal` and write "
                "`wins: [{extinct: K}]`)",
            )
    yield from _missing_kings(spec, kings)
    if spec.castling:
        yield from _castling_issues(spec, home, kings)


def _missing_kings(spec: VariantSpec, kings: tuple[list[int], list[int]]) -> Issues:
    """Check that a player without a royal piece, against one with it, can lose at all."""
    rules = spec.rules
    if rules.engine != "kernel" or may_win_otherwise(rules) or bool(kings[0]) == bool(kings[1]):
        return
    if not any(win.extinct or win.lost or win.piece for win in rules.wins):
        colour = int(bool(kings[0]))
        symbol = next(s for s, piece in spec.pieces.items() if piece.royal)
        name = spec.pieces[symbol].name
        yield (
            ("rules", "start"),
            f"{PLAYERS[colour]} has no royal piece, so {PLAYERS[1 - colour]} cannot win; accepted: "
            f"a start position with the {name} {symbol.lower() if colour else symbol}, or "
            "`wins: [{extinct: all pieces}]`",
        )


def _kings(spec: VariantSpec, home: Home) -> tuple[list[int], list[int]]:
    """Squares of the royal pieces of both players."""
    royal = royal_letters(spec)
    there = [(colour, square) for square, (colour, symbol) in home.items() if symbol in royal]
    first, second = (sorted(s for c, s in there if c == colour) for colour in (0, 1))
    return first, second


def _castling_issues(spec: VariantSpec, home: Home, kings: tuple[list[int], list[int]]) -> Issues:
    royal = royal_letters(spec)
    fields = spec.rules.start.split()
    rights = fields[2] if len(fields) > 2 else ""
    if len(fields) < 4 or rights.isdigit():
        both = "".join(spec.castling) + "".join(spec.castling).lower()
        message = (
            f"the field of castling rights is missing; write `{both} -` after the side to move"
        )
        yield ("rules", "start"), message
        return
    walks: dict[tuple[int, int], str] = {}
    for letter, walk in spec.castling.items():
        king, rook = walk.king.split("-"), walk.rook.split("-")
        side = _Side(letter, *(square_of(name, spec.board) for name in (*king, *rook)))
        issues = list(_shape_issues(spec, side))
        same = walks.setdefault((side.king_from, side.king_to), letter)
        if same != letter:
            message = f"{walk.king!r} is the king's walk in castling {same} already"
            issues.append((("castling", letter, "king"), message))
        claimed = [c for c in (0, 1) if side.of(c, spec).letter in rights]
        # a player without a king castles only if the FEN has the right
        for colour in claimed or [c for c in (0, 1) if kings[c] or not royal]:
            if not issues:
                issues += _home_issues(spec, side, colour, home, kings[colour])
        if issues or spec.rules.shuffle == "none":  # else the move is written to the rook's square
            yield from issues or _own_move_issues(spec, side, home, kings)


def _shape_issues(spec: VariantSpec, side: _Side) -> Issues:
    """Check the squares of a castling side, without looking at the pieces."""
    letter, files = side.letter, spec.board.files
    walk = spec.castling[letter]
    path: Path = ("castling", letter)
    if not _RIGHT.match(letter):
        yield (
            path,
            f"{letter!r} is not a castling right of a FEN; accepted: one capital letter, such as K "
            "(the second player's is then k)",
        )
    rank = side.king_from // files
    for who, text, start, end in (
        ("king", walk.king, side.king_from, side.king_to),
        ("rook", walk.rook, side.rook_from, side.rook_to),
    ):
        if start // files != end // files:
            yield (*path, who), f"{text!r} is not along one rank; accepted: such as 'e1-g1'"
        elif start // files != rank:
            message = f"{text!r} is not on the rank of the king's walk {walk.king!r}"
            yield (*path, who), message
    if side.king_from == side.king_to and spec.rules.shuffle == "none":
        yield (*path, "king"), f"the king does not move by {walk.king!r}"
    for verb, king, rook in (
        ("start", side.king_from, side.rook_from),
        ("end", side.king_to, side.rook_to),
    ):
        if king == rook:
            yield (*path, "rook"), f"king and rook both {verb} on {_name(king, spec)}"


def _home_issues(
    spec: VariantSpec, side: _Side, colour: int, home: Home, kings: list[int]
) -> Issues:
    """Check that king and rook of a player who may castle are on the squares they start from."""
    path: Path = ("castling", side.letter)
    here = side.of(colour, spec)
    royal = royal_letters(spec)

    def found(square: int) -> str:
        name, (owner, symbol) = _name(square, spec), home.get(square, (0, ""))
        if not symbol:
            return f"nothing stands on {name} in rules.start"
        return f"{PLAYERS[owner]}'s {spec.pieces[symbol].name} ({symbol}) stands on {name}"

    owner, symbol = home.get(here.king_from, (colour, ""))
    if owner != colour or not symbol or (royal and symbol not in royal):
        where = " and ".join(_name(s, spec) for s in kings)
        king = (
            f"the royal piece of {PLAYERS[colour]} stands on {where}"
            if kings
            else f"{PLAYERS[colour]} has no royal piece there"
            if royal
            else f"accepted: the square of a piece of {PLAYERS[colour]}"
        )
        yield (*path, "king"), f"{found(here.king_from)}; {king}"
    owner, symbol = home.get(here.rook_from, (colour, ""))
    if owner != colour or not symbol or symbol in royal:
        message = (
            f"{found(here.rook_from)}; accepted: the square of a piece of {PLAYERS[colour]} "
            "that is not royal"
        )
        yield (*path, "rook"), message


def _own_move_issues(
    spec: VariantSpec, side: _Side, home: Home, kings: tuple[list[int], list[int]]
) -> Issues:
    """Reject a castling with the squares of another move of the king: text and action would be the
    same."""
    board = spec.board
    for colour in (0, 1):
        here = side.of(colour, spec)
        if here.king_from not in home or (any(kings) and here.king_from not in kings[colour]):
            continue
        symbol = home[here.king_from][1]
        piece = spec.pieces[symbol]
        turned = colour == 1 and board.sides == "rotate"
        square = side.king_from  # as its owner sees it
        if turned:
            square += board.files - 1 - 2 * (square % board.files)
        step = (side.king_to - side.king_from) * (-1 if colour else 1)
        words = [piece.moves] + [
            word for zone, word in piece.from_.items() if square in zone_squares(zone, board)
        ]
        for word in words:
            for move in parse_betza(word):
                if not move.quiet or move.hop or move.dy or move.dx * step <= 0:
                    continue
                times, rest = divmod(step, move.dx)
                if rest == 0 and (move.reach == 0 or times <= move.reach):
                    start, end = (_name(s, spec) for s in (here.king_from, here.king_to))
                    yield (
                        ("castling", side.letter, "king"),
                        f"castling {here.letter} moves the {piece.name} ({symbol}) from {start} "
                        f"to {end}, and so does its move {word!r}, which has the same text and "
                        "action; let castling end on another square, or remove the move",
                    )
                    return


def _name(square: int, spec: VariantSpec) -> str:
    return square_name(square, spec.board.files)
