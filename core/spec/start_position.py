"""Start position of a spec, castling from it, and checks of `castling:` and royal pieces against it.

These checks come after those of single words: squares are on the board, pieces are known, and the
start position has the size of the board.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from variant_ai.core.errors import FenError
from variant_ai.core.spec.betza import parse_betza
from variant_ai.core.spec.issues import Issues, Path, zone_issues
from variant_ai.core.spec.rule_words import (
    letters_in_words,
    letters_of,
    may_win_otherwise,
)
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.spec.zones import seen_by, square_name, square_of, view, zone_squares
from variant_ai.core.system.text_tables import counted

Home = dict[int, tuple[int, str]]
"""Square -> colour (0 the first player) and piece symbol."""
PLAYERS = ("the first player", "the second player")
MAX_SIDES = 3
"""Sides to which a player may castle: a position has six bits for both players."""
MAX_CASTLING_FILES = 10
"""Files of boards on which king and rook may castle from any of them."""
_WALK = re.compile(r"[a-z][0-9]+-[a-z][0-9]+\Z")
_RIGHT = re.compile(r"[A-Z]\Z")
_CELL = re.compile(r"([0-9]+)|\+?[A-Za-z]~?|\*")
WALL = "*"
"""A square of a FEN on which no piece can stand."""


@dataclass(frozen=True)
class CastlingRight:
    """Squares of one castling right of one colour; squares are absolute."""

    bit: int
    """Bit of the right in `POSITION['castling']`."""
    letter: str
    """Letter in the FEN: `K`, `Q`, `k`, `q`."""
    colour: int
    king_from: int
    king_to: int
    rook_from: int
    rook_to: int
    takes_rook: bool
    """True if the move is written as the king that takes its own rook."""

    @property
    def is_right_of_king(self) -> bool:
        """True if the rook begins on a later file than the king."""
        return self.rook_from > self.king_from

    @property
    def target(self) -> int:
        """Target square of the move."""
        return self.rook_from if self.takes_rook else self.king_to


def castling_rights(spec: VariantSpec) -> tuple[CastlingRight, ...]:
    """Return the rights of the first player in spec order, then those of the second (ranks mirrored),
    with the squares of the start position."""
    board = spec.board
    rights: list[CastlingRight] = []
    for colour in (0, 1):
        for letter, walk in spec.castling.items():
            king_from, king_to, rook_from, rook_to = (
                view(square_of(name, board), colour, board.files, board.ranks, "mirror")
                for name in (*walk.king.split("-"), *walk.rook.split("-"))
            )
            rights.append(
                CastlingRight(
                    bit=len(rights),
                    letter=letter.lower() if colour else letter,
                    colour=colour,
                    king_from=king_from,
                    king_to=king_to,
                    rook_from=rook_from,
                    rook_to=rook_to,
                    takes_rook=spec.rules.shuffle != "none",
                )
            )
    return tuple(rights)


def board_size(field: str) -> tuple[int, int]:
    """Return files and ranks of the first field of a FEN, by its first row."""
    rows = field.partition("[")[0].split("/")
    cells = (match[0] for match in _CELL.finditer(rows[0]))
    return sum(int(cell) if cell.isdigit() else 1 for cell in cells), len(rows)


def board_cells(field: str, files: int, ranks: int) -> dict[int, str]:
    """Return the text of each piece and wall on the board in the first field of a FEN, by square.

    Raises FenError, with the rank, for text of another form or size.
    """
    rows = field.partition("[")[0].split("/")
    if len(rows) != ranks:
        raise FenError(f"{counted(len(rows), 'rank')} given, the board has {ranks}")
    cells: dict[int, str] = {}
    for number, row in zip(range(ranks, 0, -1), rows, strict=True):
        at = width = 0
        while at < len(row):
            match = _CELL.match(row, at)
            if match is None:
                raise FenError(f"rank {number}: {row[at]!r} is neither a piece nor a number")
            at = match.end()
            if match[1] is None:
                cells[(number - 1) * files + width] = match[0]
                width += 1
            elif len(match[1]) > 2 or not 1 <= int(match[1]) <= files:
                raise FenError(
                    f"rank {number}: {match[1][:50]!r} empty squares, the board has {counted(files, 'file')}"
                )
            else:
                width += int(match[1])
        if width != files:
            raise FenError(f"rank {number} has {counted(width, 'file')}, the board has {files}")
    return cells


def start_array(spec: VariantSpec) -> Home:
    """Return the pieces in `rules.start` by square."""
    names = {piece.also: symbol for symbol, piece in spec.pieces.items() if piece.also}
    home: Home = {}
    for square, text in _start_cells(spec).items():
        if text != WALL:
            symbol = text.upper().removesuffix("~")
            home[square] = (int(text.islower()), names.get(symbol, symbol))
    return home


def start_walls(spec: VariantSpec) -> frozenset[int]:
    """Return the squares with a wall, `*`, in `rules.start`. In the kernel they are no squares at all;
    Fairy-Stockfish has variants in which walls come and go."""
    return walls_of_fen(spec, spec.rules.start)


def walls_of_fen(spec: VariantSpec, fen: str) -> frozenset[int]:
    """Return the squares with a wall in a FEN, also of those placed during the game."""
    cells = board_cells(fen.split(maxsplit=1)[0], spec.board.files, spec.board.ranks)
    return frozenset(square for square, text in cells.items() if text == WALL)


def has_even_walls(spec: VariantSpec) -> bool:
    """Return True if both players see the walls on the same squares."""
    walls = start_walls(spec)
    return walls == {seen_by(s, 1, spec.board) for s in walls}


def _start_cells(spec: VariantSpec) -> dict[int, str]:
    return board_cells(spec.rules.start.split()[0], spec.board.files, spec.board.ranks)


def royal_letters(spec: VariantSpec) -> frozenset[str]:
    """Pieces that may not be left to be captured: the royal ones; where captures explode and no piece is
    royal, the one whose loss loses, if each player begins with one."""
    royal = {symbol for symbol, piece in spec.pieces.items() if piece.royal}
    if not royal and spec.rules.explodes and spec.rules.checks != "ignored":
        lost = {letters_of(w.extinct, spec.pieces) for w in spec.rules.wins if not w.left} - {()}
        home = sorted(piece for piece in start_array(spec).values() if (piece[1],) in lost)
        if len(lost) == 1 and [colour for colour, _ in home] == [0, 1]:
            royal = {home[0][1]}
    return frozenset(royal)


def check_castling(spec: VariantSpec) -> Issues:
    """Check that the walks of castling are squares of the board, and that a position can hold their rights."""
    if len(spec.castling) > MAX_SIDES:
        yield ("castling",), f"{len(spec.castling)} sides; accepted: at most {MAX_SIDES}"
    for side, walk in spec.castling.items():
        for who, text in (("king", walk.king), ("rook", walk.rook)):
            path: Path = ("castling", side, who)
            if not _WALK.match(text):
                yield path, f"{text!r} is not two squares; accepted: such as 'e1-g1'"
                continue
            for name in text.split("-"):
                yield from zone_issues(spec, path, (name,))


def check_shuffle(spec: VariantSpec) -> Issues:
    """Check that `shuffle:` has the pieces and castling sides that it needs."""
    path: Path = ("rules", "shuffle")
    if spec.rules.shuffle == "none":
        return
    if spec.rules.engine != "kernel":
        yield (
            path,
            f"the engine {spec.rules.engine!r} castles from fixed squares only; use the kernel",
        )
    if spec.board.files > MAX_CASTLING_FILES:
        most = f"the kernel castles from any files on at most {MAX_CASTLING_FILES}"
        yield path, f"{spec.board.files} files; {most}; use `none`"
    rows = spec.rules.start.strip().partition(" ")[0].partition("[")[0].split("/")
    standard = sorted(rows[-1]) == sorted("RNBQKBNR") and rows[0] == rows[-1].lower()
    if spec.rules.shuffle == "chess960" and not standard:
        yield (
            path,
            "chess960 needs a start position with R N B Q K B N R on the first rank, in any order, "
            "and the same pieces opposite",
        )
    if any(check_castling(spec)):
        return
    sides = [(walk.king.split("-"), walk.rook.split("-")) for walk in spec.castling.values()]
    if sorted(king[0][0] < rook[0][0] for king, rook in sides) != [False, True]:
        yield path, f"{spec.rules.shuffle!r} needs two `castling:` sides, one with each rook"


def check_home(spec: VariantSpec) -> Issues:
    """Check the royal pieces of the start position, wins that are there already, and castling from it."""
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
    if spec.rules.engine == "kernel":
        for i in range(len(spec.rules.wins)):
            yield from _over_at_once(spec, i, home)
    if spec.castling:
        yield from _castling_issues(spec, home, kings)
    fields = spec.rules.start.split()
    counted = spec.rules.counting != "none"
    needed = counted or any(piece.passant for piece in spec.pieces.values())
    if needed and (len(fields) < 4 or fields[2].isdigit()):
        missing = "the counting limit" if counted else "en passant squares"
        yield ("rules", "start"), f"no field for {missing}; write `- -` after the side to move"


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


def _over_at_once(spec: VariantSpec, i: int, home: Home) -> Issues:
    """Check that a goal is not reached, and that pieces are not gone, from the start."""
    win, over = spec.rules.wins[i], "so the game would be over at once"
    if win.reaches is not None and not (win.safe or win.race or win.held):
        letters, zone = letters_of(win.piece, spec.pieces), zone_squares(win.reaches, spec.board)
        for square, (colour, symbol) in sorted(home.items()):
            if symbol in letters and seen_by(square, colour, spec.board) in zone:
                message = (
                    f"{PLAYERS[colour]} begins with {symbol} on {_name(square, spec)}, its goal"
                )
                yield ("rules", "wins", i, "reaches"), f"{message}, {over}"
                return
    word, which = ("extinct", win.extinct) if win.extinct else ("lost", win.lost)
    if which is None:
        return
    letters, pocket = letters_of(which, spec.pieces), spec.rules.start.split()[0].partition("[")[2]
    for colour, player in enumerate(PLAYERS):
        held = [c.upper() for c in pocket if c.isalpha() and c.islower() == bool(colour)]
        there = held + [symbol for owner, symbol in home.values() if owner == colour]
        count = sum(symbol in letters for symbol in there)
        if count <= win.left:
            message = f"{player} begins with {count} of {letters_in_words(which, 'and')}, {over}"
            yield ("rules", "wins", i, word), message


def _kings(spec: VariantSpec, home: Home) -> tuple[list[int], list[int]]:
    """Squares of the royal pieces of both players."""
    royal = royal_letters(spec)
    there = [(colour, square) for square, (colour, symbol) in home.items() if symbol in royal]
    first, second = (sorted(s for c, s in there if c == colour) for colour in (0, 1))
    return first, second


def _castling_issues(spec: VariantSpec, home: Home, kings: tuple[list[int], list[int]]) -> Issues:
    royal = royal_letters(spec)
    fields = spec.rules.start.split()
    held = fields[2] if len(fields) > 2 else ""
    if len(fields) < 4 or held.isdigit():
        both = "".join(spec.castling) + "".join(spec.castling).lower()
        message = (
            f"the field of castling rights is missing; write `{both} -` after the side to move"
        )
        yield ("rules", "start"), message
        return
    walks: dict[tuple[int, int], str] = {}
    rights, half = castling_rights(spec), len(spec.castling)
    for pair in zip(rights[:half], rights[half:], strict=True):
        side = pair[0]
        issues = list(_shape_issues(spec, side))
        same = walks.setdefault((side.king_from, side.king_to), side.letter)
        if same != side.letter:
            walk = spec.castling[side.letter].king
            message = f"{walk!r} is the king's walk in castling {same} already"
            issues.append((("castling", side.letter, "king"), message))
        for right in pair:
            issues += _wall_issues(spec, right, home)
        claimed = [right for right in pair if right.letter in held]
        # a player without a king castles only if the FEN has the right
        for right in claimed or [r for r in pair if kings[r.colour] or not royal]:
            if not issues:
                issues += _home_issues(spec, right, home, kings[right.colour])
        if issues or spec.rules.shuffle == "none":  # else the move is written to the rook's square
            yield from issues or _own_move_issues(spec, pair, home, kings)


def _shape_issues(spec: VariantSpec, side: CastlingRight) -> Issues:
    """Check the squares of a castling side of the first player, without looking at the pieces."""
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


def _wall_issues(spec: VariantSpec, right: CastlingRight, home: Home) -> Issues:
    """Check that no wall stands where king and rook of a player walk. With `shuffle:` they may begin on any
    square of their rank."""
    walls = start_walls(spec)
    from_any_files = spec.rules.shuffle != "none"
    here = right.king_from in home and right.rook_from in home
    if not walls or spec.rules.engine == "fairy" or not (here or from_any_files):
        return
    files, letter = spec.board.files, right.letter.upper()
    rank = range(right.king_from // files * files, right.king_from // files * files + files)
    king, rook = (right.king_from, right.king_to), (right.rook_from, right.rook_to)
    free = tuple(square for square in rank if square not in walls and from_any_files)
    walks = [range(min(ends), max(ends) + 1) for ends in (king + free, rook + free)]
    for square in sorted(walls & {*walks[0], *walks[1]})[:1]:
        message = f"king or rook of {PLAYERS[right.colour]} would walk over {_name(square, spec)}"
        yield (
            ("castling", letter),
            f"{message}, a wall in rules.start; accepted: walks without walls",
        )


def _home_issues(spec: VariantSpec, right: CastlingRight, home: Home, kings: list[int]) -> Issues:
    """Check that king and rook of a player who may castle are on the squares they start from."""
    path: Path = ("castling", right.letter.upper())
    colour, royal = right.colour, royal_letters(spec)

    def found(square: int) -> str:
        name, (owner, symbol) = _name(square, spec), home.get(square, (0, ""))
        if not symbol:
            return f"nothing stands on {name} in rules.start"
        return f"{PLAYERS[owner]}'s {spec.pieces[symbol].name} ({symbol}) stands on {name}"

    owner, symbol = home.get(right.king_from, (colour, ""))
    if owner != colour or not symbol or (royal and symbol not in royal):
        where = " and ".join(_name(s, spec) for s in kings)
        king = (
            f"the royal piece of {PLAYERS[colour]} stands on {where}"
            if kings
            else f"{PLAYERS[colour]} has no royal piece there"
            if royal
            else f"accepted: the square of a piece of {PLAYERS[colour]}"
        )
        yield (*path, "king"), f"{found(right.king_from)}; {king}"
    owner, symbol = home.get(right.rook_from, (colour, ""))
    if owner != colour or not symbol or symbol in royal:
        message = (
            f"{found(right.rook_from)}; accepted: the square of a piece of {PLAYERS[colour]} "
            "that is not royal"
        )
        yield (*path, "rook"), message


def _own_move_issues(
    spec: VariantSpec,
    rights: tuple[CastlingRight, CastlingRight],
    home: Home,
    kings: tuple[list[int], list[int]],
) -> Issues:
    """Reject a castling with the squares of another move of the king: text and action would be the
    same."""
    board = spec.board
    for here in rights:
        if here.king_from not in home or (any(kings) and here.king_from not in kings[here.colour]):
            continue
        symbol = home[here.king_from][1]
        piece = spec.pieces[symbol]
        square = seen_by(here.king_from, here.colour, board)
        step = (here.king_to - here.king_from) * (-1 if here.colour else 1)
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
                        ("castling", rights[0].letter, "king"),
                        f"castling {here.letter} moves the {piece.name} ({symbol}) from {start} "
                        f"to {end}, and so does its move {word!r}, which has the same text and "
                        "action; let castling end on another square, or remove the move",
                    )
                    return


def _name(square: int, spec: VariantSpec) -> str:
    return square_name(square, spec.board.files)
