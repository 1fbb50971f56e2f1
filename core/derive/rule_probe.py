"""Promotions, hands, castling and royal pieces of a variant, found by probing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import permutations

from variant_ai.core.derive.piece_probe import PieceMoves, Probed
from variant_ai.core.derive.probe_board import FairyMove, Pieces, ProbeBoard, VariantWith, Words
from variant_ai.core.errors import VariantAIError
from variant_ai.core.spec.zones import view

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def known_symbols(board: ProbeBoard) -> dict[str, str]:
    """Symbols that the variant reads in a FEN, and the symbol it writes for each."""
    found = {}
    for symbol in [*LETTERS, *(f"+{letter}" for letter in LETTERS)]:
        try:
            written = board.neutral.fen_after(board.fen({0: symbol}), [])
        except VariantAIError:
            continue
        there = board.pieces(written).get(0)
        if there is not None and there.startswith("+") == symbol.startswith("+"):
            found[symbol] = there
    return found


def is_royal(board: ProbeBoard, symbol: str, attackers: Iterable[PieceMoves]) -> str | None:
    """Return a FEN in which the piece is in check, None if it is never in check."""
    where = board.ranks // 2 * board.files + board.files // 2
    for square in (where, board.files // 2, board.files // 2 + board.files):
        for attacker in attackers:
            for move in attacker.seen:
                dx, dy = board.displacement(move.origin, move.target)
                origin = board.step(square, dx, dy)  # the second player moves the other way
                if origin is None or max(abs(dx), abs(dy)) > 2 or move.rest:
                    continue
                far = 0 if square > board.squares // 2 else board.squares - 1
                enemies = {far: symbol.lower(), origin: attacker.symbol.lower()}
                fen = board.fen({square: symbol, **enemies})
                if board.variant.in_check(fen):
                    return fen
                break
    return None


# --- promotion -----------------------------------------------------------------------------------


def promotion(board: ProbeBoard, moves: PieceMoves, order: list[str], notes: list[str]) -> Words:
    """Return `promotes:` from the moves that were met while a piece was probed; empty if there were
    none."""
    choices: dict[tuple[int, int], set[str]] = defaultdict(set)
    plain: set[tuple[int, int]] = set()
    for move in moves.seen:
        way = (move.origin, move.target)
        symbol = promoted_symbol(moves.symbol, move)
        if symbol:
            choices[way].add(symbol)
        elif move.is_plain:
            plain.add(way)
    if not choices:
        return {}
    every = set().union(*choices.values())

    def ordered(symbols: Iterable[str]) -> list[str]:
        return sorted(symbols, key=lambda s: order.index(s) if s in order else len(order))

    to = ordered(every)
    ways = plain | set(choices)
    at = frozenset(t for _, t in choices if all(w in choices for w in ways if w[1] == t))
    word: Words = {"at": board.zone(at or frozenset(range(board.squares))), "to": to}
    way = min(choices)
    # by the same move as seen from the other side; there is none on boards that are rotated
    origin, target = (view(s, 1, board.files, board.ranks, "mirror") for s in way)
    second = _choices(board, moves.symbol, (origin, target), {origin: moves.symbol.lower()})
    if second and second != every:
        word["second"] = ordered(second)
    elif _limited_to_lost(board, moves.symbol, way, every):
        word["to"] = "captured pieces"
    leaving = any(t not in at for _, t in choices)
    leaving |= any(w not in choices for w in ways if w[1] in at)
    if leaving:
        word["on"] = "from or to"
    may = {(o, t) for o, t in ways if t in at or (leaving and o in at)}
    if may != set(choices) or any(choice != every for choice in choices.values()):
        notes.append(f"pieces.{moves.symbol}.promotes: no zone explains where it promoted")
    forced = set(choices) - plain
    if forced == set(choices):
        word["must"] = True
    elif forced:
        squares = frozenset(t for _, t in forced)
        word["must"] = "where stuck" if squares <= moves.stuck else board.zone(squares)
    return word


def _choices(board: ProbeBoard, symbol: str, way: tuple[int, int], pieces: Pieces) -> set[str]:
    """Pieces that a player's piece may promote to by a move among other pieces."""
    found = board.moves(pieces, black=pieces[way[0]].islower())
    there = [m for m in found if (m.origin, m.target) == way]
    return {promoted_symbol(symbol, m) for m in there} - {""}


def _limited_to_lost(board: ProbeBoard, symbol: str, way: tuple[int, int], every: set[str]) -> bool:
    """Return True if a piece cannot promote while all pieces of the start position are there, and may
    promote to one of a kind that has lost one."""
    home = {s: p for s, p in board.pieces(board.start).items() if p.isupper()}
    mine = {s: p for s, p in home.items() if s not in way and p != symbol}

    def choices(pieces: dict[int, str]) -> set[str]:
        return _choices(board, symbol, way, {**pieces, way[0]: symbol})

    if not every <= set(mine.values()) or choices(mine):
        return False
    victim = next(s for s, p in mine.items() if p in every)
    left = {s: p for s, p in mine.items() if s != victim}
    return choices(left) == {mine[victim]}


def promoted_symbol(symbol: str, move: FairyMove) -> str:
    """Symbol that a piece becomes by a move; empty if the move does not promote it."""
    if move.change == "+":
        return f"+{symbol}"
    return move.change.upper() if len(move.change) == 1 and move.change.isalpha() else ""


# --- hands ---------------------------------------------------------------------------------------


@dataclass
class HandRules:
    """Hands of a variant, as `hands:` and the words of pieces say it."""

    order: list[str]
    promoted: str = "keeps"
    captured: str = "changes side"
    drop: dict[str, frozenset[int]] = field(default_factory=dict)
    """Squares on which a piece may be dropped."""
    per_file: dict[str, int] = field(default_factory=dict)
    turned: bool = False
    """True if pieces may be dropped with their promoted side up."""


def hands(
    board: ProbeBoard,
    pieces: Probed,
    start_pocket: str,
    captures: bool,
    royal: list[str],
) -> HandRules | None:
    """Find the pieces that go into the hand, and the squares where they may be dropped."""
    taker = _taker(pieces) if captures else None
    becomes = {symbol: _gained(board, taker, symbol.lower()) for symbol in pieces}
    held = {*becomes.values(), *start_pocket.upper()} & {*pieces, *LETTERS}
    order = [s for s in pieces if s in held and s not in royal and not s.startswith("+")]
    if not order and "[" in board.start:  # of bughouse: pieces come from another board
        plain = [s for s in pieces if s not in royal and not s.startswith("+")]
        order = [s for s in plain if any(m.drop == s for m in board.moves({}, hand=s))]
    if not order:
        return None
    found = HandRules(order, captured="changes side" if captures else "leaves the game")
    turns = any(s.startswith("+") for s in pieces)
    twins = []
    if captures and not turns and _writes_twins(board, order[0]):
        twins = [s for s in pieces if _gained(board, taker, f"{s.lower()}~") not in ("", s)]
    if twins:
        found.promoted = f"returns as {_gained(board, taker, f'{twins[0].lower()}~')}"
    elif not captures and not turns and _writes_twins(board, order[0]):
        found.promoted = f"returns as {next(iter(order))}"  # nothing returns, but FENs mark them
    elif any(s.startswith("+") and becomes.get(s) == s[1:] for s in pieces):
        found.promoted = "reverts"
    for symbol in order:
        drops = [m for m in board.moves({}, hand=symbol) if m.drop]
        found.drop[symbol] = frozenset(m.target for m in drops if m.drop == symbol)
        found.turned |= any(m.drop == f"+{symbol}" for m in drops)
        limit = _per_file(board, symbol, found.drop[symbol])
        if limit:
            found.per_file[symbol] = limit
    return found


def _taker(pieces: Probed) -> tuple[str, FairyMove] | None:
    """A piece and a capture by it that was met."""
    for symbol, moves in pieces.items():
        if moves.moves and not moves.moves.startswith("m"):
            for move in moves.seen:
                if move.is_plain:
                    return symbol, move
    return None


def _gained(board: ProbeBoard, taker: tuple[str, FairyMove] | None, victim: str) -> str:
    """Symbol in hand after capturing a piece; empty if there is none."""
    if taker is None:
        return ""
    symbol, move = taker
    try:
        fen = board.after({move.origin: symbol, move.target: victim}, move.text)
    except VariantAIError:
        return ""
    return fen.split()[0].partition("[")[2].strip("]-").upper()


def _writes_twins(board: ProbeBoard, symbol: str) -> bool:
    """Return True if the variant marks promoted pieces with `~`."""
    written = board.neutral.fen_after(board.fen({0: f"{symbol}~"}), [])
    return "~" in written


def _per_file(board: ProbeBoard, symbol: str, drops: frozenset[int]) -> int:
    """Number of own pieces on a file beyond which another may not be dropped there; 0 for none."""
    for count in (1, 2):
        file = range(0, board.squares, board.files)
        mine: Pieces = dict.fromkeys(file[1 : 1 + count], symbol)
        left = {
            m.target
            for m in board.moves(mine, hand=symbol)
            if m.drop == symbol and m.target % board.files == 0
        }
        if not left and any(s % board.files == 0 and s not in mine for s in drops):
            return count
    return 0


# --- castling ------------------------------------------------------------------------------------


def castling(board: ProbeBoard) -> tuple[dict[str, dict[str, str]], bool]:
    """Find the walks of king and rook for each right in the start position's FEN.

    The second result is True if castling is written as the king that takes its rook, as in variants with
    shuffled start positions."""
    fields = board.start.split()
    rights = fields[2] if len(fields) > 2 and not fields[2].isdigit() else "-"
    home = board.pieces(board.start)
    first = {s: p for s, p in home.items() if s < board.files and p.isupper()}
    found: dict[str, dict[str, str]] = {}
    takes_rook = False
    theirs = {s: p for s, p in home.items() if p.islower()}
    for king, rook in permutations(first, 2):
        letter = "K" if rook > king else "Q"
        if letter not in rights or letter in found:
            continue
        two = {**theirs, king: first[king], rook: first[rook]}
        if walk := _walk(board, two, king, rook, letter):
            found[letter] = walk[0]
            takes_rook |= walk[1]
    return dict(sorted(found.items())), takes_rook


def _walk(
    board: ProbeBoard, two: Pieces, king: int, rook: int, letter: str
) -> tuple[dict[str, str], bool] | None:
    with_right = board.fen(two, rest=f"{letter} - 0 1")
    try:
        some = set(board.variant.legal_moves(with_right))
        none = set(board.variant.legal_moves(board.fen(two)))
    except VariantAIError:
        return None
    for move in board.read(sorted(some - none)):
        if move.origin != king or move.change:
            continue
        after = board.pieces(board.variant.fen_after(with_right, [move.text]))
        kings = [s for s, p in after.items() if p == two[king]]
        rooks = [s for s, p in after.items() if p == two[rook]]
        takes_rook = move.target == rook and kings != [rook]
        if len(rooks) == 1 and len(kings) == 1 and (takes_rook or kings == [move.target]):
            name = board.name
            walk = {
                "king": f"{name(king)}-{name(kings[0])}",
                "rook": f"{name(rook)}-{name(rooks[0])}",
            }
            return walk, takes_rook
    return None


# --- other moves ---------------------------------------------------------------------------------


def captures_en_passant(board: ProbeBoard, pieces: Probed) -> tuple[set[str], dict[str, set[int]]]:
    """Find the pieces that capture on a square which a double step has jumped over, and the squares from
    which the double step of each piece can be captured so."""
    doubles = {
        (symbol, m)
        for symbol, moves in pieces.items()
        if any("nD" in w or "nfD" in w for w in (moves.moves, *(w for _, w in moves.from_)))
        for m in moves.seen
        if board.displacement(m.origin, m.target) == (0, 2) and not m.rest
    }
    captors: set[str] = set()
    origins: dict[str, set[int]] = {}
    for symbol, double in sorted(doubles):
        jumped = (double.origin + double.target) // 2
        for other, moves in pieces.items():
            for dx, dy in ((1, 1), (-1, 1), (0, 1)):
                stand = board.step(jumped, dx, dy)
                if stand is None or stand == double.target or not moves.moves:
                    continue
                here = {double.origin: symbol, stand: other.lower()}
                after = board.after(here, double.text)
                moves_ = board.read(board.neutral.legal_moves(after))
                for move in (m for m in moves_ if m.target == jumped and m.origin == stand):
                    left = board.pieces(board.neutral.fen_after(after, [move.text]))
                    if double.target not in left:
                        captors.add(other)
                        origins.setdefault(symbol, set()).add(double.origin)
    return captors, origins


def never_checks(board: ProbeBoard, variant_with: VariantWith, pieces: Probed, king: str) -> bool:
    """Return True if a move that gives check is legal only when checks are allowed."""
    asked = variant_with({"checking": "true"})
    for symbol, moves in pieces.items():
        for move in moves.seen if symbol != king else ():
            step = board.displacement(move.origin, move.target)
            target = board.step(move.target, *step)
            if target is None or not move.is_plain:
                continue
            far = max(
                (s for s in range(board.squares) if s not in (move.origin, move.target, target)),
                key=lambda s: max(map(abs, board.displacement(target, s))),
            )
            fen = board.fen({move.origin: symbol, target: king.lower(), far: king})
            if move.text in asked.legal_moves(fen) and asked.in_check(fen, [move.text]):
                return move.text not in board.variant.legal_moves(fen)
    return False


def ignores_checks(board: ProbeBoard, variant_with: VariantWith, pieces: Probed, king: str) -> bool:
    """Return True if a player whose king's loss loses may leave it to be captured."""
    asked = variant_with({"extinctionPseudoRoyal": "true"})
    home = board.files // 2
    for symbol, moves in pieces.items():
        for move in moves.seen if symbol != king else ():
            # the second player moves the other way
            origin = board.step(home, *board.displacement(move.origin, move.target))
            if origin is None or not move.is_plain:
                continue
            fen = board.fen({home: king, origin: symbol.lower(), board.squares - 1: king.lower()})
            if asked.legal_moves(fen) != board.variant.legal_moves(fen):
                return True
    return False


def extras(board: ProbeBoard, pieces: Probed, prey: str) -> Words:
    """Find passes, forced captures and explosions."""
    seen = [(symbol, m) for symbol, moves in pieces.items() for m in moves.seen]
    found: Words = {
        "pass": any(m.origin == m.target and not m.rest for _, m in seen),
        "walls": any("," in m.rest for _, m in seen),
        "demotes": any(m.rest == "-" for _, m in seen),
    }
    taker = _taker(pieces)
    if taker is not None:
        symbol, move = taker
        try:
            after = board.pieces(board.after({move.origin: symbol, move.target: prey}, move.text))
        except VariantAIError:  # it captures only over another piece, or not straight ahead
            return found
        found["explodes"] = move.target not in after and move.origin not in after
    return found
