"""Values of pieces, estimated from how far they move: for variants that have no net.

The mobility of a piece on a square is the number of squares that it can be expected to reach if other
pieces stand on a random quarter of the board. A piece that promotes also has a share of what it would gain,
half as much with each rank that it is farther away. The value of a piece is the mean of both over the
squares where it may stand. Values are in logits, as `piece_gains:` in a spec: one logit
more changes the value of an even position by nearly one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from variant_ai.core.errors import SpecError
from variant_ai.core.rules.geometry import Geometry
from variant_ai.core.rules.kernel.move_programs import Path, piece_paths
from variant_ai.core.rules.pieces import PieceType, PieceTypes
from variant_ai.core.spec.rule_words import letters_of
from variant_ai.core.spec.schema import GREATEST_GAIN, VariantSpec
from variant_ai.core.spec.start_position import royal_letters, start_array

OCCUPIED = 0.25
"""Chance that a square holds a piece, of either side alike."""
PER_SQUARE = 0.07
"""Value of one square more to move to: a rook of chess has 0.54, a pawn 0.13."""
PLACE = 0.5
"""Share of a piece's mobility that depends on its square; the rest is the mean over all squares."""
PROMOTES = 0.2
"""Share of what a piece would gain by promotion, on the last square before it."""
DECISIVE = 3.0
"""Value of a piece whose loss loses the game."""

Floats = NDArray[np.float64]


def piece_values(spec: VariantSpec) -> dict[str, float]:
    """Return the value of each piece of a spec, in logits; negative where losing it wins.

    The values come from `search: {piece_gains: ...}`, if the spec has them. Pieces that cannot be captured
    have 0, and a piece whose loss loses the game `DECISIVE`.
    """
    return {letter: value for letter, (value, _) in _values(spec).items()}


def square_values(spec: VariantSpec) -> dict[str, Floats]:
    """Return the value of each piece of the first player on each square, [squares]; the mean over the squares
    where the piece may stand is that of `piece_values`."""
    return {letter: value + places for letter, (value, places) in _values(spec).items()}


def _values(spec: VariantSpec) -> dict[str, tuple[float, Floats]]:
    """Return the value of each piece, and what each square adds to it, [squares]."""
    geometry = Geometry(spec)
    kinds = [kind for kind in PieceTypes(spec).all if not kind.twin]
    moves = {kind.symbol: mobility(geometry, kind) for kind in kinds}
    means = {letter: fmean(found.values()) if found else 0.0 for letter, found in moves.items()}
    royal, decisive, unwanted = royal_letters(spec), decisive_letters(spec), unwanted_letters(spec)
    given = spec.search.piece_gains
    values = {}
    for kind in kinds:
        letter, places = kind.symbol, np.zeros(geometry.squares)
        if letter in royal:
            values[letter] = 0.0, places
            continue
        promotion = promotion_gains(geometry, kind, means)
        promotes = fmean([promotion[square] for square in moves[letter]] or [0.0])
        for square, reached in moves[letter].items():
            places[square] = PLACE * (reached - means[letter]) + promotion[square] - promotes
        sign = -1 if letter in unwanted else 1
        value = sign * PER_SQUARE * (means[letter] + promotes)
        if letter in decisive:
            value = DECISIVE
        elif letter in given:
            value = given[letter] / changes_of_balance(kind)
        values[letter] = value, sign * PER_SQUARE * places
    return values


def capture_gains(spec: VariantSpec) -> dict[str, float]:
    """Return the values as `piece_gains:` of a search for material; none where that would be wrong: where
    losing pieces can win, captures are forced, or captures explode."""
    rules = spec.rules
    if unwanted_letters(spec) or rules.captures == "must" or rules.explodes:
        return {}
    values = piece_values(spec)
    return {
        kind.symbol: min(changes_of_balance(kind) * values[kind.symbol], GREATEST_GAIN)
        for kind in PieceTypes(spec).all
        if not kind.twin
    }


def changes_of_balance(kind: PieceType) -> int:
    """Return how many pieces' worth a capture changes the balance: two if the captor gets a piece in hand."""
    return 2 if kind.hand >= 0 else 1


def decisive_letters(spec: VariantSpec) -> set[str]:
    """Pieces of which no player begins with more than one, and whose loss loses."""
    extinct = {letters_of(win.extinct, spec.pieces) for win in spec.rules.wins if win.left == 0}
    counts = Counter(start_array(spec).values())
    most = dict.fromkeys(spec.pieces, 0)
    for (_, letter), count in counts.items():
        most[letter] = max(most[letter], count)
    return {letter for letter, count in most.items() if (letter,) in extinct and count <= 1}


def unwanted_letters(spec: VariantSpec) -> set[str]:
    """Pieces that a player wants to lose."""
    rules = spec.rules
    if rules.captures == "must" and rules.stalemate == "win":
        return set(spec.pieces)
    return {letter for win in rules.wins for letter in letters_of(win.lost, spec.pieces)}


def mobility(geometry: Geometry, kind: PieceType) -> dict[int, float]:
    """Return how many squares the first player's piece can be expected to reach from each square where it may
    stand."""
    squares = geometry.everywhere
    if kind.piece.within is not None:
        squares &= geometry.zone(kind.piece.within, 0)
    return {square: sum(map(reach, _paths(geometry, kind, square))) for square in sorted(squares)}


def _paths(geometry: Geometry, kind: PieceType, square: int) -> list[Path]:
    paths = []
    # with `engine: fairy` a ride may leave its zone and come back, which the kernel cannot list
    with suppress(SpecError):
        for path in piece_paths(geometry, kind, 0, square):
            paths.append(path)
    return paths


def reach(path: Path) -> float:
    """Return the expected number of squares that a piece reaches on one path."""
    free = (1 - OCCUPIED) ** len(set(path.legs))
    lands = (1 - OCCUPIED) * path.quiet + OCCUPIED / 2 * path.capture
    arrives = 0.0
    for between in range(len(path.targets)):  # squares on the way
        if not path.hop:
            arrives += (1 - OCCUPIED) ** between
        elif between == 1 or (between and path.hop == "over"):
            arrives += between * OCCUPIED * (1 - OCCUPIED) ** (between - 1)
    return free * arrives * lands


def promotion_gains(geometry: Geometry, kind: PieceType, means: Mapping[str, float]) -> list[float]:
    """Return the share of the best promotion that counts on each square, [squares]."""
    promotes = kind.piece.promotes
    if promotes is None:
        return [0.0] * geometry.squares
    best = max((means[letter] for letter in promotes.of_both), default=0.0)
    gain = max(best - means[kind.symbol], 0.0)
    ranks = {square // geometry.files for square in geometry.zone(promotes.at, 0)}
    far = [min(abs(rank - at) for at in ranks) for rank in range(geometry.ranks)]
    # the last square before a zone is one rank away
    return [
        2 * PROMOTES * gain * 0.5 ** max(far[square // geometry.files], 1)
        for square in range(geometry.squares)
    ]
