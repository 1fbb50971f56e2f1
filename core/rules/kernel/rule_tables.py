"""Rule tables of a variant, filled from its spec (`compile_tables`); `table_layout.py` has their layout."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from variant_ai.core.errors import SpecError
from variant_ai.core.renamed import moved_names
from variant_ai.core.rules.geometry import Geometry
from variant_ai.core.rules.kernel.move_programs import (
    BEYOND_THE_KERNEL,
    END,
    Path,
    captures_of,
    forced_squares,
    forward_program,
    may_repeat,
    piece_paths,
    reverse_program,
)
from variant_ai.core.rules.kernel.table_layout import (
    AVOIDS,
    BARE_KING_LOSES,
    CAPTURED_CHOICES,
    CAPTURES_RESET,
    COLOUR_BOUND,
    COUNTINGS,
    COUNTS_CHECKS,
    COUNTS_PIECES,
    COUNTS_POINTS,
    DRAWS_DEAD_POSITIONS,
    DROPS_RESET,
    EXPLODES,
    FACING_PARTS,
    FEWER_WIN,
    FORWARD_WORDS,
    HELD,
    LEAVING_FORCED,
    MATES,
    MAX_CHOICES,
    MAX_DROPS,
    MAX_EXTINCTIONS,
    MAX_PASSANT,
    MAX_PIECE_MOVES,
    MAY_REPEAT,
    MUST_CAPTURE,
    NEEDS_HELP,
    NEVER_CHECKS,
    NEVER_MATES,
    NO_DROP_MATE,
    ONLY_CAPTURES,
    PASSES,
    PER_FILE,
    PROMOTES_FROM,
    PROMOTES_TO,
    PROMOTION_FORCED,
    PROMOTIONS_RESET,
    RACES,
    REACHES_SAFELY,
    REVERSE_WORDS,
    SHUFFLED,
    TABLES,
    WINS_BY_CHECKS,
    WINS_BY_EXTINCTION,
    WINS_BY_REACHING,
    ZOBRIST_NUMBERS,
    Tables,
)
from variant_ai.core.rules.pieces import PieceType, PieceTypes
from variant_ai.core.rules.position import (
    MAX_HAND_KINDS,
    MAX_RIGHTS,
    MAX_SQUARES,
    piece_code,
)
from variant_ai.core.spec.betza import parse_betza
from variant_ai.core.spec.hashing import encoding_hash
from variant_ai.core.spec.plane_layout import last_moves_shown
from variant_ai.core.spec.rule_words import letters_of
from variant_ai.core.spec.schema import VariantSpec
from variant_ai.core.spec.start_position import royal_letters, start_array, start_walls
from variant_ai.core.spec.zones import square_name

__getattr__ = moved_names(
    __name__,
    {"TablesRow": "variant_ai.core.rules.kernel.table_layout"},
)


MOST_KNOWN = 8
"""Number of tables that are kept; each has 2 MB."""
_known: dict[str, Tables] = {}
"""The latest tables by encoding hash: compiling takes up to half a second, and rules, planes and search all
need them."""


def compile_tables(spec: VariantSpec) -> Tables:
    """Compile the tables of a variant, shape (1,).

    Raises SpecError that lists every word of the spec which the kernel does not support.
    """
    missing = missing_words(spec)
    if missing:
        raise SpecError(
            f"variant {spec.variant!r}: the kernel has no rule for {', '.join(missing)}; "
            f"{BEYOND_THE_KERNEL}",
            keys=("rules",),
        )
    key = encoding_hash(spec)
    tables = _known.get(key)
    if tables is None:
        if len(_known) >= MOST_KNOWN:
            del _known[next(iter(_known))]
        tables = _known[key] = _compiled(spec)
    return tables.copy()


def _compiled(spec: VariantSpec) -> Tables:
    types = PieceTypes(spec)
    geometry = Geometry(spec)
    tables = np.zeros(1, TABLES)
    table = tables[0]
    table["squares"] = geometry.squares
    table["files"] = geometry.files
    table["advance"] = geometry.files, -geometry.files
    table["keeps"] = last_moves_shown(spec)
    _fill_moves(table, spec, types, geometry)
    _fill_promotions(table, spec, types, geometry)
    _fill_hands(table, spec, types, geometry)
    _fill_castling(table, types, geometry)
    _fill_rules(table, spec, types, geometry)
    table["zobrist"] = np.random.PCG64(0x5EED).random_raw(ZOBRIST_NUMBERS)
    return tables


def missing_words(spec: VariantSpec) -> list[str]:
    """Rules in the spec that the kernel does not support, in the spec's words."""
    rules = spec.rules
    missing = []
    if rules.explodes and spec.hands:
        missing.append("`explodes: true` with pieces in hand")
    lost = {letters_of(win.extinct, spec.pieces) for win in rules.wins}
    kings = {(letter,) for letter in royal_letters(spec)}
    if rules.explodes and rules.checks != "ignored" and kings.isdisjoint(lost):
        missing.append("`explodes: true` without `wins: [{extinct: K}]` of a king of each player")
    others = {
        "castling": bool(spec.castling),
        "hands": spec.hands is not None,
        "promotion": any(piece.promotes for piece in spec.pieces.values()),
        "`passant`": any(piece.passant for piece in spec.pieces.values()),
        "`explodes: true`": rules.explodes,
    }
    plain = {
        "`checks: never`": rules.checks == "never",
        "`race: true`": any(win.race for win in rules.wins),
        "`facing_kings: must part`": rules.facing_kings == "must part",
    }
    for word in (word for word, given in plain.items() if given):
        missing += [f"{word} with {name}" for name, given in others.items() if given]
    if rules.checked_king != "may move" and any(
        move.capture and (move.hop or move.lame)
        for piece in spec.pieces.values()
        for word in piece.words
        for move in parse_betza(word)
    ):
        missing.append("`checked_king: only captures` with hoppers or lame leapers")
    if any(piece.avoids for piece in spec.pieces.values()):
        missing += [f"`avoids` with {name}" for name in ("hands", "promotion") if others[name]]
    if rules.facing_kings == "must part" and start_walls(spec):
        missing.append("`facing_kings: must part` with walls")
    if rules.bare_king == "draw":
        missing.append(f"`bare_king: {rules.bare_king}`")
    if spec.policy != "derived" and "pass" in spec.policy and rules.pass_ == "never":
        missing.append("passes in `policy:` without `pass: may`")
    if sum(piece.royal for piece in spec.pieces.values()) > 1:
        missing.append("more than one royal piece")
    rights = 2 * len(spec.castling)
    if rights > MAX_RIGHTS:
        missing.append(f"{rights} castling rights (at most {MAX_RIGHTS})")
    for letter in spec.hand_order:
        if letter in royal_letters(spec):
            missing.append(f"a royal piece in hand, {letter}")
    kinds = len(spec.hand_order)
    if kinds * spec.board.squares > MAX_DROPS:
        missing.append(f"{kinds} kinds in hand on so many squares (at most {MAX_DROPS} drops)")
    for word in ("checks", "reaches"):
        if sum(getattr(win, word) is not None for win in rules.wins) > 1:
            missing.append(f"two wins by `{word}`")
    extinctions = sum((win.extinct or win.lost) is not None for win in rules.wins)
    if extinctions > MAX_EXTINCTIONS:
        missing.append(f"{extinctions} wins by `extinct` and `lost` (at most {MAX_EXTINCTIONS})")
    return missing


def _fill_moves(table: Any, spec: VariantSpec, types: PieceTypes, geometry: Geometry) -> None:
    """Fill in forward and reverse programs of every piece on every square."""
    for kind in types.all:
        for other in types.all:
            if other.base == kind.piece.avoids:
                table["features"] |= AVOIDS
                table["avoided_by"][other.index] |= 1 << kind.index
    forward = [END]
    reverse = [END]
    starts = table["forward_start"]
    for colour in (0, 1):
        alike: dict[object, list[tuple[list[Path], list[int]]]] = {}
        capturing: dict[int, list[tuple[int, Path, int]]] = defaultdict(list)
        passant: dict[int, list[int]] = defaultdict(list)
        for kind in types.all:
            piece = kind.piece
            moves = (piece.moves, tuple(piece.from_.items()), piece.within, piece.passant)
            if moves not in alike:  # several types move alike: shogi's golds, promoted twins
                on_squares = [
                    list(piece_paths(geometry, kind, colour, square))
                    for square in range(geometry.squares)
                ]
                alike[moves] = [(paths, forward_program(paths)) for paths in on_squares]
            widest = max(sum(len(path.targets) for path in paths) for paths, _ in alike[moves])
            if widest * (1 + _number_of_choices(kind, types)) > MAX_PIECE_MOVES:
                raise SpecError(
                    f"kernel: {kind.symbol!r} has more than {MAX_PIECE_MOVES} moves, promotions "
                    f"included, on one square; {BEYOND_THE_KERNEL}",
                    keys=("pieces", kind.base),
                )
            row = piece_code(kind.index, colour) * MAX_SQUARES
            for square, (paths, program) in enumerate(alike[moves]):
                if may_repeat(program):
                    table["features"] |= MAY_REPEAT
                if program != [END]:
                    starts[row + square] = len(forward)
                    forward += program
                for path in captures_of(geometry, kind, square, paths):
                    for distance, target in enumerate(path.targets):
                        capturing[target].append((kind.index, path, distance))
                    if path.passant:
                        passant[path.targets[0]].append(square | kind.index << 7)
        for square in range(geometry.squares):
            row = colour * MAX_SQUARES + square
            program = reverse_program(capturing[square])
            if program != [END]:
                table["reverse_start"][row] = len(reverse)
                reverse += program
            origins = (passant[square] + [-1] * MAX_PASSANT)[:MAX_PASSANT]
            if len(passant[square]) > MAX_PASSANT:
                raise SpecError(f"kernel: more than {MAX_PASSANT} en-passant captures on a square")
            table["passant"][row * MAX_PASSANT : (row + 1) * MAX_PASSANT] = origins
    if len(forward) > FORWARD_WORDS or len(reverse) > REVERSE_WORDS:
        raise SpecError(f"variant {spec.variant!r}: its move programs outgrow the kernel's tables")
    table["forward"][: len(forward)] = forward
    # masks of 24 types fill the sign bit
    table["reverse"][: len(reverse)] = np.array(reverse, np.int64).astype(np.uint32).view(np.int32)


def _number_of_choices(kind: PieceType, types: PieceTypes) -> int:
    """Number of pieces that a type may promote to."""
    promotes = kind.piece.promotes
    if promotes is None:
        return 0
    if promotes.to == "captured pieces":
        return len(types)
    return len(promotes.of_both)


def _fill_promotions(table: Any, spec: VariantSpec, types: PieceTypes, geometry: Geometry) -> None:
    for colour, symbol in start_array(spec).values():
        table["start_count"][piece_code(types.by_symbol[symbol].index, colour)] += 1
    for kind in types.all:
        promotes = kind.piece.promotes
        if promotes is None or kind.twin:
            continue
        table["features"] |= CAPTURED_CHOICES * (promotes.to == "captured pieces")
        for colour in (0, 1):
            code = piece_code(kind.index, colour)
            if promotes.to == "captured pieces":
                choices = [t.index for t in types.all if t.index not in (kind.index, types.royal)]
            else:
                choices = [types.promoted(symbol) for symbol in promotes.choices(colour)]
            row = code * MAX_CHOICES
            table["choices"][row] = len(choices)
            table["choices"][row + 1 : row + 1 + len(choices)] = choices
            zone = geometry.zone(promotes.at, colour)
            forced = forced_squares(geometry, kind, colour)
            if stuck := sorted(forced - zone):
                name = square_name(stuck[0], geometry.files)
                raise SpecError(
                    f"variant {spec.variant!r}: {kind.symbol!r} must promote on {name}, which is not "
                    "in its `at`; accepted: an `at` with all squares of `must`",
                    keys=("pieces", kind.base, "promotes", "at"),
                )
            from_too = promotes.on == "from or to"
            for square in range(geometry.squares):
                table["promotion"][code * MAX_SQUARES + square] = (
                    PROMOTES_TO * (square in zone)
                    | PROMOTES_FROM * (square in zone and from_too)
                    | PROMOTION_FORCED * (square in forced)
                    | LEAVING_FORCED * (square in zone and from_too and promotes.must is True)
                )


def _fill_hands(table: Any, spec: VariantSpec, types: PieceTypes, geometry: Geometry) -> None:
    table["hand_of"] = -1
    for kind in types.all:
        table["hand_of"][kind.index] = kind.hand
    table["hand_kinds"] = len(types.hand_types)
    for hand, index in enumerate(types.hand_types):
        piece = types.all[index].piece
        table["hand_type"][hand] = index
        table["per_file"][hand] = piece.per_file or 0
        table["no_drop_mate"][hand] = not piece.drop_mate
        table["features"] |= PER_FILE * (piece.per_file is not None)
        table["features"] |= NO_DROP_MATE * (not piece.drop_mate)
        for colour in (0, 1):
            for square in geometry.drop_squares(piece, colour):
                table["drop"][(colour * MAX_HAND_KINDS + hand) * MAX_SQUARES + square] = 1


def _fill_castling(table: Any, types: PieceTypes, geometry: Geometry) -> None:
    rights = types.castling_rights
    table["rights"] = len(rights)
    table["rights_kept"] = (1 << len(rights)) - 1
    table["castle_empty"] = -1
    table["castle_safe"] = -1
    for right in rights:
        table["castle_colour"][right.bit] = right.colour
        table["castle_first"][right.bit] = types.first_walks[right.bit]
    table["features"] |= SHUFFLED * (types.spec.rules.shuffle != "none")
    for i, right in enumerate(types.castling_walks):
        king = _walk(right.king_from, right.king_to)
        rook = _walk(right.rook_from, right.rook_to)
        own = (right.king_from, right.rook_from)
        empty = [s for s in dict.fromkeys([*king, *rook]) if s not in own]
        safe = king[1:-1]
        squares = (right.king_from, right.king_to, right.rook_from, right.rook_to, right.target)
        table["castle_squares"][i] = squares
        table["castle_empty"][i, : len(empty)] = empty
        table["castle_safe"][i, : len(safe)] = safe
        for square in own:
            table["rights_kept"][square] &= ~(1 << right.bit)


def _walk(start: int, end: int) -> list[int]:
    """Squares from start to end along a rank, including both."""
    step = 1 if end >= start else -1
    return list(range(start, end + step, step))


def _fill_rules(table: Any, spec: VariantSpec, types: PieceTypes, geometry: Geometry) -> None:
    rules, count = spec.rules, spec.rules.no_progress
    given = {
        MUST_CAPTURE: rules.captures == "must",
        BARE_KING_LOSES: rules.bare_king == "loss",
        NEVER_CHECKS: rules.checks == "never",
        ONLY_CAPTURES: rules.checked_king == "only captures",
        COUNTS_CHECKS: count.checks_counted != "all",
        PASSES: rules.pass_ == "may",
        FACING_PARTS: rules.facing_kings == "must part",
    }
    table["features"] |= sum(feature for feature, is_given in given.items() if is_given)
    if rules.explodes:
        table["features"] |= EXPLODES
        table["spared"] = sum(1 << kind.index for kind in types.all if kind.piece.promotes)
    values = {"draw": 0, "loss": -1, "win": 1, "fewer pieces win": FEWER_WIN}
    table["checkmate"], table["stalemate"] = values[rules.checkmate], values[rules.stalemate]
    table["plies"] = 0 if count.plies == "none" else count.plies
    table["checks_counted"] = -1 if count.checks_counted == "all" else count.checks_counted
    if rules.insufficient_material:
        table["features"] |= DRAWS_DEAD_POSITIONS
        for kind in types.all:
            table["mating"][kind.index] = _mating(kind, types, geometry)
    if rules.points is not None:
        table["features"] |= COUNTS_POINTS
        table["second_points"] = round(2 * rules.points.second)
        table["points"][: len(types)] = [round(2 * points) for points in types.points()]
    if rules.counting != "none":
        table["features"] |= COUNTS_PIECES
        table["counting"] = COUNTINGS.index(rules.counting)
        table["count_types"] = _counted_types(types)
    for bits in _reset_bits(count.reset, types):
        table["resets"] |= bits
    for win in rules.wins:
        if win.checks is not None:
            table["features"] |= WINS_BY_CHECKS
        if win.piece is not None and win.reaches is not None:
            table["features"] |= WINS_BY_REACHING | REACHES_SAFELY * win.safe
            table["features"] |= RACES * win.race | HELD * win.held
            table["reach_types"] = types.mask(*letters_of(win.piece, spec.pieces))
            for colour in (0, 1):
                for square in geometry.zone(win.reaches, 0 if win.race else colour):
                    table["reach"][colour * MAX_SQUARES + square] = 1
        gone = win.extinct or win.lost
        if gone is not None:
            table["features"] |= WINS_BY_EXTINCTION
            n = int(table["extinctions"])
            table["extinct_types"][n] = types.mask(*letters_of(gone, spec.pieces))
            table["extinct_left"][n] = win.left
            table["extinct_wins"][n] = win.lost is not None
            table["extinctions"] += 1


def _mating(kind: PieceType, types: PieceTypes, geometry: Geometry) -> int:
    """Ability of a type to mate, from its movement, as Fairy-Stockfish has it.

    A knight or one that is half a knight (`mNcR`), or a bishop and its like on squares of one colour, need
    help; other pieces may mate alone. A piece that promotes counts as its best choice.
    """
    piece = kind.piece
    promotes = piece.promotes
    if promotes is not None and not kind.twin:
        if promotes.to == "captured pieces":
            return MATES
        choices = [_mating(types.by_symbol[s], types, geometry) for s in promotes.of_both]
        return MATES if MATES in choices else NEEDS_HELP
    if piece.royal or _never_meets_the_king(kind, types, geometry):
        return NEVER_MATES
    if types.spec.rules.checked_king == "only captures" or start_walls(types.spec):
        return MATES
    moves = {move for word in piece.words for move in parse_betza(word)}
    for words, ability in (
        (("B", "F", "A", "FA", "nA"), COLOUR_BOUND),
        (("N", "mNcB", "mBcN", "mNcR", "mRcN"), NEEDS_HELP),
    ):
        if any(moves == set(parse_betza(word)) for word in words):
            return ability
    return MATES


def _never_meets_the_king(kind: PieceType, types: PieceTypes, geometry: Geometry) -> bool:
    """Return True if the piece cannot reach any square of the enemy king's zone."""
    if kind.piece.within is None or types.royal < 0:
        return False
    palace = types.all[types.royal].piece.within
    if palace is None:
        return False
    return not geometry.zone(kind.piece.within, 0) & geometry.zone(palace, 1)


def _counted_types(types: PieceTypes) -> list[int]:
    """Types of pawn, rook, khon and knight, recognised by their movement; -1 if there is none."""
    found = [next((t.index for t in types.all if t.piece.promotes), -1)]
    for word in ("R", "FfW", "N"):
        moves = set(parse_betza(word))
        same = (t.index for t in types.all if set(parse_betza(t.piece.moves)) == moves)
        found.append(next(same, -1))
    return found


def _reset_bits(events: tuple[str, ...], types: PieceTypes) -> Iterator[int]:
    for event in events:
        if event == "captures":
            yield CAPTURES_RESET
        elif event == "drops":
            yield DROPS_RESET
        elif event == "promotions":
            yield PROMOTIONS_RESET
        else:
            yield 1 << types.by_symbol[event].index
